/*
 * Reports on stderr what kprof is doing if that is slow. Prints a line at least every ten seconds of work, even within
 * one long driver call. Programs that finish fast, and those with --quiet, print nothing. Short pieces of work add up,
 * until another line has reported progress.
 *
 * Threads: any. Only long work starts a thread of ours, which blocks all signals, calls no CUDA function, and ends
 * with the work.
 */
#ifndef KP_PRELOAD_OS_PROGRESS_H
#define KP_PRELOAD_OS_PROGRESS_H

#include <stdbool.h>

/* Starts work, which `text` names (copied; "" leaves it to the steps). Work may nest: calls to begin and end come in
 * pairs. `takes_long`: it may last seconds, and is worth a thread (0.1 ms) until its end. */
void kp_progress_begin(const char *text, bool takes_long);
/* Names the current or next part of the work, with arguments as above. Does nothing outside work. */
void kp_progress_step(const char *text, bool takes_long);
void kp_progress_end(void);
/* Notes that another line has reported progress: the next one here is due ten seconds of work later. */
void kp_progress_told(void);

/* Resets the state in a forked child, where no work goes on. */
void kp_progress_forked(void);

#endif
