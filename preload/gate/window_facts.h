/*
 * Answers any thread's questions about windows, and receives notes from any thread, without the gate. The second
 * part is for this room, inside the gate's exclusive section.
 */
#ifndef KP_PRELOAD_GATE_WINDOW_FACTS_H
#define KP_PRELOAD_GATE_WINDOW_FACTS_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

bool kp_window_is_open(void);
/* Returns true if a launch that is let through waits for the window's end. It does not if the window will not be
 * replayed, or lets launches pass. */
bool kp_window_holds_back(void);
/* Notes that work unseen by the open window may have started in a context, or that a stream is gone. Does nothing while
 * none is open, so that launches of several threads share no write. Call it inside the gate. */
void kp_window_note_unseen(void);
/* Returns true if a window is open that waits for each launch of its context, whatever that waits for. */
bool kp_window_takes_all(void);
/* Returns true if a window is open that will be replayed: operations on memory must join or close it. */
bool kp_window_watches(void);
/* Returns true if a window is open that still has to read functions, or limits of the context, as its launches found
 * them. */
bool kp_window_keeps(void);
/* Returns the number of windows opened so far. */
uint64_t kp_window_count(void);
/* Returns true if the window has to be closed before the program waits for the GPU or asks for its progress. */
bool kp_window_closes_at_sync(void);

/* Notes that the program has waited for the GPU, or has learnt that some work is done: its later operations may depend
 * on that. */
void kp_window_synchronised(void);

/* Notes that the program ends, and does not wait for kernels that hang. */
void kp_window_hurry(void);

/* Returns true if a launch of function `f` in the open window (NULL: of any) could not be repeated with a limit of
 * `bytes` of dynamic shared memory. */
bool kp_window_needs_shared(CUfunction f, uint64_t bytes);
/* Returns true if the open window sets attributes again: a change that it does not know would be lost. */
bool kp_window_sets_attributes(void);

/* Note permanently: other processes share memory; the host reads memory without a driver call; launches may reach
 * memory of cuMemCreate; launches may reach blocks of the device's heap. */
void kp_window_shared_memory(void);
void kp_window_managed_memory(void);
void kp_window_virtual_memory(void);
void kp_window_heap_blocks(void);

/* Gives up replaying the open window: something changes memory, and the gate could not be entered. */
void kp_window_spoil(void);

/* Notes that the driver refused the operation of this ticket, which must not be issued again. The thread is inside the
 * gate. */
void kp_window_refused(uint64_t ticket);

/* ---- for this room ---- */

/* Note that a window opens, which will be replayed if `watches`, keeps functions if `keeps`, stays open at any age if
 * `lasts`, and lets launches pass if `lets_by`; and that it is gone. */
void kp_flags_opened(bool watches, bool keeps, bool lasts, bool lets_by);
void kp_flags_closed(void);

bool kp_flags_spoiled(void);
bool kp_flags_hurried(void);

/* Facts that this process has met; they stay set. */
enum kp_met { KP_MET_SHARED, KP_MET_MANAGED, KP_MET_VIRTUAL, KP_MET_HEAP_BLOCKS, KP_MET_SERVED, KP_MET_KINDS };
bool kp_flags_met(enum kp_met what);
/* Notes KP_MET_SERVED: the host works with kernels while they run, in memory that a replay would rewind. */
void kp_flags_served(void);

/* Returns how much of that was noted so far. */
unsigned kp_flags_unseen(void);

/* Return how often the program has waited so far; the second then counts one more. */
unsigned kp_flags_epoch(void);
unsigned kp_flags_next_epoch(void);

/* Notes that a launch of `f` in the open window uses `bytes` of dynamic shared memory. */
void kp_flags_note_shared(CUfunction f, uint64_t bytes);
/* Notes that the open window has recorded an attribute. */
void kp_flags_note_setting(void);

/* Reports each ticket refused since the last call, once. */
void kp_flags_each_refused(void (*tell)(void *arg, uint64_t ticket), void *arg);

#endif
