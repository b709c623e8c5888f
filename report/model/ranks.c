#include "report/model/ranks.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

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
        rc = kp_result_take(r, from);
    l->alike += other->alike;
    l->counted += other->counted;
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

static int set_durations(struct kp_result *r, const struct kp_rank *at, const char **names, double *values, size_t n)
{
    double sum = 0, high = 0;
    size_t known = 0;
    for (size_t i = 0; i < n; i++) {
        if (isnan(at[i].ns))
            continue;
        names[known] = at[i].name;
        values[known++] = at[i].ns;
        sum += at[i].ns;
        high = at[i].ns > high ? at[i].ns : high;
    }
    if (!known)
        return 0;
    double mean = sum / (double)known;
    int rc = kp_result_set_real(r, KP_RANK_DURATION, "ns", mean);
    rc = rc ? rc : kp_result_set_instances(r, KP_RANK_DURATION, names, values, known);
    return rc ? rc : kp_result_set_real(r, KP_RANK_IMBALANCE, "%", imbalance_of(high, mean));
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

/* Returns the launches of a rank. */
static double launches_on(const struct kp_metric *launches, const char *rank)
{
    for (size_t i = 0; launches && i < launches->n_instances; i++)
        if (!strcmp(launches->instances[i].key, rank))
            return launches->instances[i].value;
    return 0;
}

bool kp_ranks_of(const struct kp_result *r, struct kp_ranks *out)
{
    const struct kp_metric *times = kp_result_find(r, KP_RANK_DURATION);
    const struct kp_metric *launches = kp_result_find(r, KP_RANK_LAUNCHES);
    if (!times || times->kind != KP_VALUE_REAL || !times->n_instances)
        return false;
    *out = (struct kp_ranks){.n = times->n_instances,
                             .mean = times->real,
                             .low = times->instances[0].value,
                             .high = times->instances[0].value,
                             .slowest = times->instances[0].key};
    if (launches && launches->kind == KP_VALUE_COUNT)
        out->launches = launches->count;
    for (size_t i = 0; i < times->n_instances; i++) {
        const struct kp_instance *at = &times->instances[i];
        out->total += at->value * launches_on(launches, at->key);
        out->low = at->value < out->low ? at->value : out->low;
        if (at->value > out->high) {
            out->high = at->value;
            out->slowest = at->key;
        }
    }
    out->imbalance = imbalance_of(out->high, out->mean);
    for (size_t i = 0; i < times->n_instances; i++)
        out->lost += (out->high - times->instances[i].value) * launches_on(launches, times->instances[i].key);
    return true;
}
