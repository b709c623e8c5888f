/*
 * What any thread may ask or tell about windows without entering the gate.
 *
 * The functions of the second part are for this room, inside the gate's exclusive section.
 */
#ifndef KP_PRELOAD_WINDOW_FLAGS_H
#define KP_PRELOAD_WINDOW_FLAGS_H

#include <stdbool.h>
#include <stdint.h>

/* Whether a window is open; whether one is that will be replayed, so that operations on memory must join or close it;
 * whether it has to be closed before the program waits for the GPU or asks how far it is. */
bool kp_window_is_open(void);
bool kp_window_watches(void);
bool kp_window_closes_at_sync(void);

/* The program has waited for the GPU, or asked and heard that something is done. What it issues from now on may depend
 * on that. */
void kp_window_synchronised(void);

/* The program ends, and does not wait for kernels that hang. */
void kp_window_hurry(void);

/* Whether a launch of the open window could not be made again with a limit of so much dynamic shared memory, byte. */
bool kp_window_needs_shared(uint64_t bytes);

/* From now on: other processes share memory; the host reads memory without a driver call; launches may reach memory of
 * cuMemCreate; launches may reach blocks of the device's heap. */
void kp_window_shared_memory(void);
void kp_window_managed_memory(void);
void kp_window_virtual_memory(void);
void kp_window_heap_blocks(void);

/* The gate could not be entered: something changes memory although the window is open, which will not be replayed. */
void kp_window_spoil(void);

/* The driver refused the operation of this ticket: it is not to be issued again. The thread is inside the gate. */
void kp_window_refused(uint64_t ticket);

/* ---- for this room ---- */

/* A window opens; `watches`: it will be replayed. Or it is gone. */
void kp_flags_opened(bool watches);
void kp_flags_closed(void);

bool kp_flags_spoiled(void);
bool kp_flags_hurried(void);

/* What this process has met, for good. */
enum kp_met { KP_MET_SHARED, KP_MET_MANAGED, KP_MET_VIRTUAL, KP_MET_HEAP_BLOCKS, KP_MET_KINDS };
bool kp_flags_met(enum kp_met what);

/* The number of times that the program has waited so far; the second counts one more, and returns the number before. */
unsigned kp_flags_epoch(void);
unsigned kp_flags_next_epoch(void);

/* A launch of the open window takes so much dynamic shared memory, byte. */
void kp_flags_note_shared(uint64_t bytes);

/* Tells each ticket that was refused since the last call, once. */
void kp_flags_each_refused(void (*tell)(void *arg, uint64_t ticket), void *arg);

#endif
