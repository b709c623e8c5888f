#include "report/model/ranks.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/sqrt.h"
#include "report/model/counts.h"

/* ---- what they counted ---- */

static int add_means(struct kp_result *r, const struct kp_result *from)
{
    int rc = 0;
    for (size_t i = 0; !rc && i < from->n_metrics; i++) {
        const struct kp_metric *m = &from->metrics[i], *known = kp_result_find(r, m->name);
        if (known && known->kind == KP_VALUE_REAL && known->counted && m->kind == KP_VALUE_REAL && m->counted)
            rc = kp_result_add_mean(r, m->name, m->unit, &(struct kp_mean){m->counted, m->real, m->deviation});
    }
    return rc;
}

static uint32_t more(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

int kp_ranks_add(struct kp_result *r, struct kp_result *from)
{
    struct kp_launch_info *l = &r->launch;
    const struct kp_launch_info *other = &from->launch;
    int rc = add_means(r, from);
    if (!rc)
        rc = kp_counts_add_launch(r, from);
    if (!rc)
        rc = kp_result_take(r, from);
    l->alike += other->alike;
    l->counted += other->counted;
    l->recorded += other->recorded;
    l->recorded_ns += other->recorded_ns;
    /* Which groups a rank counted is not stored: this many are known to be different ones. */
    l->groups = more(l->groups, other->groups);
    l->groups_counted = more(l->groups_counted, other->groups_counted);
    l->passes += other->passes;
    l->profiler_ns += other->profiler_ns;
    return rc;
}

/* ---- their times ---- */

/* The percent imbalance of Pearce and others, Quantifying the effectiveness of load balance algorithms, ICS 2012:
 * how far the highest is above the mean. */
static double imbalance_of(double high, double mean)
{
    return mean > 0 ? 100 * (high / mean - 1) : 0;
}

static int set_launches(struct kp_result *r, const struct kp_rank *at, const char **names, double *values, size_t n)
{
    uint64_t all = 0;
    for (size_t i = 0; i < n; i++) {
        names[i] = at[i].name;
        values[i] = (double)at[i].launches;
        all += at[i].launches;
    }
    int rc = kp_result_set_count(r, KP_RANK_LAUNCHES, "", all);
    return rc ? rc : kp_result_set_instances(r, KP_RANK_LAUNCHES, names, values, n);
}

/* Returns the standard deviation of the imbalance that follows from those of the ranks: by how much each rank's moves
 * it, to first order. *counted: the fewest launches of a rank. */
static double spread_of(const struct kp_rank *at, size_t n, double high, double mean, size_t known, uint32_t *counted)
{
    double squares = 0;
    bool is_first = true; /* the slowest rank comes once */
    *counted = UINT32_MAX;
    for (size_t i = 0; i < n; i++) {
        const struct kp_mean *m = &at[i].duration;
        if (!m->counted)
            continue;
        bool is_slowest = is_first && m->mean == high;
        double by_one = (is_slowest ? 1 / mean : 0) - high / ((double)known * mean * mean);
        is_first &= !is_slowest;
        squares += by_one * by_one * m->deviation * m->deviation;
        *counted = m->counted < *counted ? m->counted : *counted;
    }
    return 100 * kp_sqrt(squares);
}

static int set_imbalance(struct kp_result *r, const struct kp_rank *at, size_t n, double mean, size_t known)
{
    double high = 0;
    uint32_t counted;
    for (size_t i = 0; i < n; i++)
        if (at[i].duration.counted && at[i].duration.mean > high)
            high = at[i].duration.mean;
    int rc = kp_result_set_real(r, KP_RANK_IMBALANCE, "%", imbalance_of(high, mean));
    if (rc || !(mean > 0))
        return rc;
    double deviation = spread_of(at, n, high, mean, known, &counted);
    return kp_result_set_spread(r, KP_RANK_IMBALANCE, counted, deviation);
}

static int set_durations(struct kp_result *r, const struct kp_rank *at, const char **names, double *values, size_t n)
{
    double sum = 0;
    size_t known = 0;
    for (size_t i = 0; i < n; i++) {
        if (!at[i].duration.counted)
            continue;
        names[known] = at[i].name;
        values[known++] = at[i].duration.mean;
        sum += at[i].duration.mean;
    }
    if (!known)
        return 0;
    double mean = sum / (double)known;
    int rc = kp_result_set_real(r, KP_RANK_DURATION, "ns", mean);
    rc = rc ? rc : kp_result_set_instances(r, KP_RANK_DURATION, names, values, known);
    return rc ? rc : set_imbalance(r, at, n, mean, known);
}

int kp_ranks_set(struct kp_result *r, const struct kp_rank *at, size_t n)
{
    const char **names = calloc(n + 1, sizeof *names);
    double *values = calloc(n + 1, sizeof *values);
    int rc = names && values ? set_launches(r, at, names, values, n) : -ENOMEM;
    if (!rc)
        rc = set_durations(r, at, names, values, n);
    free(names);
    free(values);
    return rc;
}

/* Returns the launches of a rank. *at moves on: ranks with a duration are in the order of all ranks. */
static double launches_on(const struct kp_metric *launches, const char *rank, size_t *at)
{
    while (launches && *at < launches->n_instances) {
        const struct kp_instance *one = &launches->instances[(*at)++];
        if (!strcmp(one->key, rank))
            return one->value;
    }
    return 0;
}

bool kp_ranks_of(const struct kp_result *r, struct kp_ranks *out)
{
    const struct kp_metric *times = kp_result_find(r, KP_RANK_DURATION);
    const struct kp_metric *launches = kp_result_find(r, KP_RANK_LAUNCHES);
    double known = 0; /* launches on ranks with a duration */
    size_t place = 0;
    if (!times || times->kind != KP_VALUE_REAL || !times->n_instances)
        return false;
    *out = (struct kp_ranks){.n = times->n_instances,
                             .mean = times->real,
                             .low = times->instances[0].value,
                             .high = times->instances[0].value,
                             .slowest = times->instances[0].key,
                             .half = NAN};
    kp_metric_interval(kp_result_find(r, KP_RANK_IMBALANCE), &out->half);
    if (launches && launches->kind == KP_VALUE_COUNT)
        out->launches = launches->count;
    for (size_t i = 0; i < times->n_instances; i++) {
        const struct kp_instance *at = &times->instances[i];
        double n = launches_on(launches, at->key, &place);
        known += n;
        out->total += at->value * n;
        out->low = at->value < out->low ? at->value : out->low;
        if (at->value > out->high) {
            out->high = at->value;
            out->slowest = at->key;
        }
    }
    out->imbalance = imbalance_of(out->high, out->mean);
    out->lost = out->high * known - out->total;
    return true;
}
