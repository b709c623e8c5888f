/*
 * Says on stderr what kprof is doing where that takes long: a line at least every ten seconds, also in the middle of
 * one long driver call. Programs that finish fast, and those with --quiet, see nothing of it.
 *
 * Threads: any. A thread of ours is started only for work that may take long, blocks all signals, calls no CUDA
 * function, and is gone when the work ends.
 */
#ifndef KP_PRELOAD_OS_PROGRESS_H
#define KP_PRELOAD_OS_PROGRESS_H

#include <stdbool.h>

/* Work begins, which `text` names (copied; "" leaves it to the steps). Work may be within other work: begin and end
 * come in pairs. `takes_long`: it may take seconds, and is worth a thread (0.1 ms) until its end. */
void kp_progress_begin(const char *text, bool takes_long);
/* What the work does now, or its next part; as above. Nothing outside of work. */
void kp_progress_step(const char *text, bool takes_long);
void kp_progress_end(void);

/* In a forked child: no work is under way. */
void kp_progress_forked(void);

#endif
