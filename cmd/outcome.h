/* How the processes of a run fared, by what they wrote into the status file. */
#ifndef KP_CMD_OUTCOME_H
#define KP_CMD_OUTCOME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/failures.h"

/* The lines of the status file: "PROCESS WORD REST", with the WORDs started (CUDA has), failed KIND, stored PATH, left
 * (alone, as was asked for) and ended SEEN MATCHED. */
struct kp_run_outcome {
    kp_failure_set failures;
    bool started, left;
    char *stored;           /* an export that was written; malloc'ed */
    uint64_t seen, matched; /* launches of all processes; those that filters did not hold back */
    size_t unfinished;      /* processes that are gone and have not ended */
};

/* Reads the status file. Overwrites *out, of which the caller frees `stored`. 0 or -errno. */
int kp_run_outcome_read(const char *path, struct kp_run_outcome *out);

#endif
