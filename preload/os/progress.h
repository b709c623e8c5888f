/*
 * Reports on stderr what kprof is doing where that takes long. Prints a line at least every ten seconds of work, even
 * within one long driver call. Programs that finish fast, and those with --quiet, print nothing. Short pieces of work
 * add up, until another line has told of progress.
 *
 * Threads: any. Only long work starts a thread of ours, which blocks all signals, calls no CUDA function, and ends
 * with the work.
 */
#ifndef KP_PRELOAD_OS_PROGRESS_H
#define KP_PRELOAD_OS_PROGRESS_H

#include <stdbool.h>

/* Begins work, which `text` names (copied; "" leaves it to the steps). Work may nest: begin and end come in pairs.
 * `takes_long`: it may take seconds, and is worth a thread (0.1 ms) until its end. */
void kp_progress_begin(const char *text, bool takes_long);
/* Names the current or next part of the work, with arguments as above. Does nothing outside of work. */
void kp_progress_step(const char *text, bool takes_long);
void kp_progress_end(void);
/* Notes that another line has told what was done: the next one here is due ten seconds of work later. */
void kp_progress_told(void);

/* Resets the state in a forked child, where no work goes on. */
void kp_progress_forked(void);

#endif
