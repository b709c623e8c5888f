/* Collects how the processes of a run fared, from the status file that they wrote. */
#ifndef KP_CMD_RUN_OUTCOME_H
#define KP_CMD_RUN_OUTCOME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/failures.h"

/* The lines of the status file: "PROCESS WORD REST", each ended by a zero. The WORDs are started (CUDA has), failed
 * KIND, stored PATH, left (excluded by the options), reached (all launches of launch-count are reported), runs NUMBER
 * and ended SEEN MATCHED. */
struct kp_run_outcome {
    kp_failure_set failures;
    bool started, left, reached;
    char *stored; /* a written export; malloc'ed, like all of them */
    char **all_stored;
    size_t n_stored;
    uint64_t seen, matched; /* launches of all processes; those that passed the filters */
    uint64_t runs;          /* of the program that the metrics need, if each is one pass */
    size_t unfinished;      /* processes that are gone without an `ended` line */
};

/* Reads the status file. Overwrites *out; kp_run_outcome_free frees its exports. 0 or -errno. */
int kp_run_outcome_read(const char *path, struct kp_run_outcome *out);
/* Ends the program, and the processes that have noted themselves in the status file, once one of them has reached the
 * number of launches. Returns true then. */
bool kp_run_outcome_end(const char *path, pid_t program);
void kp_run_outcome_free(struct kp_run_outcome *o);

#endif
