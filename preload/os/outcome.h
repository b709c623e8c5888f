/*
 * Reports the outcome of profiling this process to the kprof command that started it. Without the command, `strict`
 * prints a last line instead (kp_log_outcome). The command passes a file; a line of it is "PROCESS WORD REST" (see
 * cmd/run_outcome.h).
 *
 * Threads: any, except for kp_outcome_open and kp_outcome_strict, which come before all others. A forked child reports
 * nothing. Write errors are ignored.
 */
#ifndef KP_PRELOAD_OS_OUTCOME_H
#define KP_PRELOAD_OS_OUTCOME_H

#include <stdbool.h>
#include <stdint.h>

#include "base/failures.h"

/* Reports that CUDA has started in this process. */
void kp_outcome_open(void);
/* Returns true under the kprof command, which waits for the process to end. */
bool kp_outcome_is_awaited(void);

/* Sets if a last line reports failures when no command does. */
void kp_outcome_strict(bool strict);

/* Reports how many runs of the program the metrics need, if each run is one pass. */
void kp_outcome_runs(size_t runs);

/* Reports a failure, once for each kind. The caller prints the line with details. */
void kp_outcome_failed(enum kp_failure kind);
/* Reports that the export of this process is at `path`, which is absolute, and contains its launches from now on. */
void kp_outcome_stored(const char *path);
/* Reports that all launches of launch-count are profiled and reported, so that the program may be ended. */
void kp_outcome_reached(void);
/* Reports that the options exclude this process. */
void kp_outcome_left(void);
/* Reports the end, after the report or when there will be none: launches seen, and those that passed the filters.
 * Returns the line that `strict` prints if no command waits; malloc'ed. NULL: no line. */
char *kp_outcome_ended(uint64_t seen, uint64_t matched);

#endif
