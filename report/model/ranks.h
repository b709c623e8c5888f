/*
 * A kernel and shape on several ranks of a program: what they counted put together, and the time that it took on each.
 * The time of each rank is kept in metrics, with an instance for each rank, so that all formats have it.
 *
 * Threads: a result belongs to its holder.
 */
#ifndef KP_REPORT_MODEL_RANKS_H
#define KP_REPORT_MODEL_RANKS_H

#include "report/model/model.h"

/* The metrics: the mean of the ranks' durations, all launches, and the imbalance in percent. */
#define KP_RANK_DURATION  "rank__duration"
#define KP_RANK_LAUNCHES  "rank__launches"
#define KP_RANK_IMBALANCE "rank__imbalance"

/* Adds what another rank counted of the same kernel and shape. Means of both become one mean, with the spread of all
 * launches; what `r` lacks is moved from `from`. Counts and series come together as in counts.h: those by instruction
 * must have the same ids of functions. Launches and counted ones add up. Values of `r` that are not means stay. 0, or
 * -ENOMEM with both as far as it got. */
int kp_ranks_add(struct kp_result *r, struct kp_result *from);

/* A kernel and shape on one rank. */
struct kp_rank {
    const char *name;        /* "0" */
    uint64_t launches;       /* all of them, not only those that were counted */
    struct kp_mean duration; /* ns; counted 0 = not known */
};

/* Sets the metrics of the ranks. Duration and imbalance include only ranks with a known duration, and are left out if
 * there are none. The spread of the imbalance is propagated from the durations', to first order. 0 or -ENOMEM. */
int kp_ranks_set(struct kp_result *r, const struct kp_rank *at, size_t n);

struct kp_ranks {
    size_t n;               /* ranks with a duration, 1 or more */
    uint64_t launches;      /* on all ranks */
    double mean, low, high; /* of the ranks' mean durations, ns */
    const char *slowest;    /* the rank of the highest one; as long as the result */
    double imbalance;       /* percent by which the slowest is above the mean */
    double half;            /* of its interval, see kp_metric_interval; NAN = unknown */
    double total, lost;     /* of all launches, ns; that ranks would wait for the slowest */
};

/* Reads the metrics of the ranks; false if there are none. */
bool kp_ranks_of(const struct kp_result *r, struct kp_ranks *out);

#endif
