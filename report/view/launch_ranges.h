/*
 * The push-pop NVTX ranges that were open on a thread as it launched. A run with nvtx stores them with the launch; else
 * they come from the timeline, if there is one: it has the ranges of threads, and the time of each launch.
 *
 * Errors: int results are 0 or -ENOMEM. Threads: the caller serialises calls for one object.
 */
#ifndef KP_REPORT_VIEW_LAUNCH_RANGES_H
#define KP_REPORT_VIEW_LAUNCH_RANGES_H

#include "report/model/lookup.h"

/* A range of the timeline: what it is there, and the one around it, + 1; 0: none. */
struct kp_nested_range {
    size_t at, around;
};

/* The timeline of a session, for questions about its launches; all 0 at first. */
struct kp_launch_ranges {
    bool is_loaded;
    struct kp_timeline line;
    const struct kp_activity **kernels; /* those of launches of the report, by the launch */
    size_t n_kernels;
    struct kp_nested_range *ranges; /* by thread, then by start */
    size_t n_ranges;
};

/* Names, the outermost first. `at` is to be freed, the names are not. */
struct kp_range_names {
    const char **at;
    size_t n;
};

/* Finds the ranges around a launch. The first call for a session loads its timeline, if the launch has no ranges of its
 * own. The names last as long as the launch and `r`. */
int kp_launch_ranges_find(struct kp_launch_ranges *r, const struct kp_lookup *lookup, const struct kp_launch_info *l,
                          struct kp_range_names *out);
/* Frees what it has loaded; the next session may follow. */
void kp_launch_ranges_free(struct kp_launch_ranges *r);

#endif
