/*
 * Host functions that the program puts into its streams while a window is open: cuLaunchHostFunc, cuStreamAddCallback.
 * The program's own execution calls them, and repetitions leave them out. A host function may write any host memory.
 * Until it has ended, the window waits before it copies from there, or lets a kernel reach it.
 *
 * A host function may wait for what the program does next, possibly blocked at the gate. So all waits for it have a
 * limit, and after a timeout the window closes without repetitions. From then on the context's host functions close
 * windows before they are called.
 */
#ifndef KP_PRELOAD_JOURNAL_HOST_CALLS_H
#define KP_PRELOAD_JOURNAL_HOST_CALLS_H

#include "preload/journal/state.h"

/* Returns true if the open window stays open while a host function runs. */
bool kp_hostcalls_admit(const struct kp_journal *j);

/* Note that the function of `i`, an operation just recorded, is about to be put into its stream, and that it has been.
 */
void kp_hostcalls_begin(struct kp_journal *j, struct kp_item *i);
void kp_hostcalls_end(const struct kp_journal *j, struct kp_item *i);

/* Notes that a graph's host function will run, which is no operation of the window. */
void kp_hostcalls_note(struct kp_journal *j);

/* Returns true if so many operations are queued after an unfinished host function that the window must close: the
 * driver blocks a thread that issues more, which would hold the gate. */
bool kp_hostcalls_hinder(struct kp_journal *j);

/* Waits for the window's work, at most *ms, or less if a host function is what does not end; *called reports that, and
 * *ms receives the limit. */
CUresult kp_hostcalls_wait(struct kp_journal *j, long *ms, bool *called);

/* Destroys the events; call it in the window's context. */
void kp_hostcalls_drop(struct kp_journal *j);

#endif
