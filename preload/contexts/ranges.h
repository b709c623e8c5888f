/*
 * Ranges of the program that are one workload each: from cu(da)ProfilerStart to Stop, or an NVTX range. One is open at
 * a time; a range that starts inside it is part of it.
 *
 * Threads: kp_ranges_id, kp_ranges_why and kp_ranges_context any; kp_ranges_launched inside the gate, shared; the rest
 * inside the gate's exclusive section.
 */
#ifndef KP_PRELOAD_CONTEXTS_RANGES_H
#define KP_PRELOAD_CONTEXTS_RANGES_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

#include "report/model/model.h"
#include "report/options/options.h"

/* The range that is open. */
struct kp_range_open {
    char *name;
    struct kp_nvtx nvtx; /* the NVTX ranges at its start */
    bool beside;         /* the work before it had not ended in time */
    bool inside;         /* the NVTX filters accept it */
    bool undecided;      /* its first launch determines the device, which decides whether it is chosen */
};

/* Sets what starts a range. Call it before the first one. */
void kp_ranges_configure(const struct kp_options *o);

/* Returns the id of the open range; 0 = none. */
uint64_t kp_ranges_id(void);

/* Returns why a launch made now is in no range that is counted, if there is a reason. */
enum kp_reason kp_ranges_why(void);

/* Opens a range, and takes over *nvtx. `why`: why it is not counted, if there is a reason. */
void kp_ranges_begin(uint64_t id, const char *name, struct kp_nvtx *nvtx, enum kp_reason why);
/* Returns the open range, whose fields may be taken over. */
struct kp_range_open *kp_ranges_open(void);
/* Notes that the open range accepts no more launches, for `why`. */
void kp_ranges_cut(enum kp_reason why);
void kp_ranges_end(void);

/* ---- ranges that are counted as the program makes them, without a record ---- */

/* What has been launched in the open range. */
struct kp_ranges_tally {
    uint64_t launches, graphs;
};

/* Notes that launches in this context belong to the open range; NULL: no longer. `counts`: its counters are on. */
void kp_ranges_count_in(CUcontext ctx, bool counts);
bool kp_ranges_counts(void);
/* Returns that context; NULL = none. */
CUcontext kp_ranges_context(void);
void kp_ranges_launched(bool is_graph);
struct kp_ranges_tally kp_ranges_tally(void);

#endif
