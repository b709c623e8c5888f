/*
 * What any thread may say or ask of the window that is open, without a lock: the functions of window.h for any thread
 * are here, and their other side, which the window reads.
 */
#ifndef KP_PRELOAD_WINDOW_SIGNS_H
#define KP_PRELOAD_WINDOW_SIGNS_H

#include <stdbool.h>
#include <stdint.h>

/* A window is open from now on. `watches`: operations on memory must join or close it. */
void kp_signs_open(bool watches);
void kp_signs_closed(void);

/* Whether the window must not be replayed, as a call changed memory in between. */
bool kp_signs_spoiled(void);
bool kp_signs_in_a_hurry(void);

/* The number of times that the program has waited for something. `waits`: it does so now; the number before that. */
unsigned kp_signs_epoch(bool waits);

/* A launch of the window has so much dynamic shared memory, byte. */
void kp_signs_note_shared(uint64_t bytes);

/* The ticket of an operation that the driver refused, each once; 0 = no more. */
uint64_t kp_signs_refused(void);

/* Which memory launches may reach, see window.h. */
bool kp_signs_shared_memory(void);
bool kp_signs_managed_memory(void);
bool kp_signs_virtual_memory(void);
bool kp_signs_heap_blocks(void);

#endif
