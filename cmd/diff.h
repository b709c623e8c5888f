/*
 * Two sessions compared, A with B: launches are paired by name, grid and order, or kernels by name; of each pair come
 * the rows of the sections shown, with both values and the change, and the rules that appeared or went.
 *
 * Threads: one at a time for each store.
 */
#ifndef KP_CMD_DIFF_H
#define KP_CMD_DIFF_H

#include "base/sink.h"
#include "report/store/store.h"
#include "report/view/display.h"

/* What the totals are of, and a limit that names no metric. */
#define KP_DIFF_DURATION "gpu__time_duration.sum"

enum kp_diff_by {
    KP_DIFF_BY_LAUNCH,
    /* The averages over all launches of a kernel; texts that are not the same in all of them are left out. A rule
     * counts where it spoke for at least half of the launches, with the average of its estimates. */
    KP_DIFF_BY_KERNEL,
};

/* How much more B may have of a metric than A. */
struct kp_diff_limit {
    const char *metric; /* full name; not owned */
    double percent;     /* of A's value */
};

struct kp_diff_options {
    enum kp_diff_by by;
    bool all;         /* rows that did not change, too */
    double threshold; /* a row that changed by no more percent of A's value than this did not change */
    const struct kp_diff_limit *limits;
    size_t n_limits;
};

/* One of the two. */
struct kp_diff_input {
    const char *name; /* the file's, for the reader */
    struct kp_store *store;
};

struct kp_diff_outcome {
    size_t pairs, exceeded;   /* of limits, each counted once for every pair */
    size_t unchecked;         /* limits for which no pair could be compared */
    bool without_counters[2]; /* the session has launches, and nothing was counted of any */
    char *warnings;           /* malloc'ed: a line for each limit that not all pairs have numbers for; NULL: none */
};

/* Reads both sessions and writes the comparison. Rows are compared where both launches have them, in the sections and
 * metrics that both sessions asked for, or that `d` chooses. Returns 0; -EINVAL with *err (malloc'ed line) for a metric
 * of a limit that no launch has, the duration aside, or one that `d` lists and no launch has; what `out` returned; or
 * an error of a store, with *err. */
int kp_diff(const struct kp_sink *out, const struct kp_display *d, const struct kp_diff_options *o,
            const struct kp_diff_input input[2], struct kp_diff_outcome *outcome, char **err);

#endif
