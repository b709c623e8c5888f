/*
 * What became of the profiling in this process, told to the kprof command that started it, or without one, with
 * `strict`, in a last line (kp_log_outcome). The command hands over a file; a line of it is "PROCESS WORD REST" (see
 * cmd/main.h).
 *
 * Threads: any, but for kp_outcome_open and kp_outcome_strict, which come before all others. Nothing is told in a
 * forked child. What cannot be written is not told.
 */
#ifndef KP_PRELOAD_OS_OUTCOME_H
#define KP_PRELOAD_OS_OUTCOME_H

#include <stdbool.h>
#include <stdint.h>

#include "base/failures.h"

/* CUDA has started in this process. */
void kp_outcome_open(void);
/* Whether failures are told in a line at the end, where no command does. */
void kp_outcome_strict(bool strict);

/* Something of a kind went wrong; told once a kind. The line that says more is the caller's. */
void kp_outcome_failed(enum kp_failure kind);
/* The export of this process is at `path`, which is absolute, and holds its launches from now on. */
void kp_outcome_stored(const char *path);
/* The process is left alone, as was asked for. */
void kp_outcome_left(void);
/* The report is written, or there will be none: launches seen, and those of them that filters did not hold back.
 * Returns the line that `strict` asks for where no command waits for the outcome; malloc'ed. NULL: there is none. */
char *kp_outcome_ended(uint64_t seen, uint64_t matched);

#endif
