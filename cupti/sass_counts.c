#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "cupti/internal.h"
#include "cupti/source.h"

struct kp_sass {
    const struct kp_cupti *c;
    int ordinal;
    const char **names; /* CUPTI owns the strings */
    uint64_t *ids;
    size_t n;
    CUcontext owner; /* where CUPTI has memory for the list; NULL: CUPTI had the list, and accepts no other */
    struct kp_sass *next;
};

/* The lists made so far, one per device; CUPTI has no context for them either. */
static struct kp_sass *configured;
static struct kp_lock *const lock = &kp_locks[KP_LOCK_SASS];

static bool has_sass(const struct kp_cupti *c)
{
    return c->cuptiSassMetricsGetNumOfMetrics && c->cuptiSassMetricsGetMetrics && c->cuptiSassMetricsSetConfig &&
           c->cuptiSassMetricsEnable && c->cuptiSassMetricsDisable && c->cuptiSassMetricsGetDataProperties &&
           c->cuptiSassMetricsFlushData && c->cuptiSassMetricsUnsetConfig;
}

/* Lists the SASS metrics; *details is malloc'ed. */
static int list_metrics(const struct kp_cupti *c, const char *chip, CUpti_SassMetrics_MetricDetails **details,
                        size_t *n)
{
    KP_PARAMS(CUpti_SassMetrics_GetNumOfMetrics_Params, count);
    KP_PARAMS(CUpti_SassMetrics_GetMetrics_Params, get);
    *details = NULL;
    if (!has_sass(c))
        return -ENOSYS;
    count.pChipName = get.pChipName = chip;
    int rc = KP_CALL(c, cuptiSassMetricsGetNumOfMetrics, &count);
    if (rc)
        return rc;
    get.numOfMetrics = count.numOfMetrics;
    get.pMetricsList = calloc(count.numOfMetrics + 1, sizeof(*get.pMetricsList));
    if (!get.pMetricsList)
        return -ENOMEM;
    rc = KP_CALL(c, cuptiSassMetricsGetMetrics, &get);
    if (rc) {
        free(get.pMetricsList);
        return rc;
    }
    *details = get.pMetricsList;
    *n = count.numOfMetrics;
    return 0;
}

int kp_sass_names(const struct kp_cupti *c, const char *chip, const char ***names, size_t *n)
{
    CUpti_SassMetrics_MetricDetails *details;
    int rc = list_metrics(c, chip, &details, n);
    if (rc)
        return rc;
    *names = calloc(*n + 1, sizeof(**names));
    for (size_t i = 0; *names && i < *n; i++)
        (*names)[i] = details[i].pMetricName;
    free(details);
    return *names ? 0 : -ENOMEM;
}

static bool listed(const char *const *names, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (!strcmp(names[i], name))
            return true;
    return false;
}

static void free_list(struct kp_sass *s)
{
    free(s->names);
    free(s->ids);
    free(s);
}

static int choose(struct kp_sass *s, const char *chip, const char *const *names, size_t n)
{
    CUpti_SassMetrics_MetricDetails *details;
    size_t all = 0;
    int rc = list_metrics(s->c, chip, &details, &all);
    if (rc)
        return rc;
    s->names = calloc(all + 1, sizeof(*s->names));
    s->ids = calloc(all + 1, sizeof(*s->ids));
    if (!s->names || !s->ids)
        rc = -ENOMEM;
    for (size_t i = 0; !rc && i < all; i++)
        if (listed(names, n, details[i].pMetricName)) {
            s->names[s->n] = details[i].pMetricName;
            s->ids[s->n++] = details[i].metricId;
        }
    free(details);
    return rc ? rc : s->n ? 0 : -ENOSYS;
}

static int set_config(const struct kp_sass *s)
{
    KP_PARAMS(CUpti_SassMetricsSetConfig_Params, set);
    CUpti_SassMetrics_Config *configs = calloc(s->n, sizeof(*configs));
    if (!configs)
        return -ENOMEM;
    for (size_t i = 0; i < s->n; i++)
        configs[i] = (CUpti_SassMetrics_Config){.metricId = s->ids[i],
                                                .outputGranularity = CUPTI_SASS_METRICS_OUTPUT_GRANULARITY_GPU};
    set.numOfMetricConfig = s->n;
    set.pConfigs = configs;
    set.deviceIndex = (uint32_t)s->ordinal;
    int rc = KP_CALL(s->c, cuptiSassMetricsSetConfig, &set);
    free(configs);
    return rc;
}

static int make_list(const struct kp_cupti *c, CUcontext ctx, const char *chip, int ordinal, const char *const *names,
                     size_t n, struct kp_sass **out)
{
    struct kp_sass *s = calloc(1, sizeof(*s));
    if (!s)
        return -ENOMEM;
    s->c = c;
    s->ordinal = ordinal;
    int rc = choose(s, chip, names, n);
    if (!rc)
        rc = set_config(s);
    if (rc) {
        free_list(s);
        return rc;
    }
    s->owner = ctx;
    s->next = configured;
    configured = *out = s;
    return 0;
}

int kp_sass_configure(const struct kp_cupti *c, CUcontext ctx, const char *chip, int ordinal, const char *const *names,
                      size_t n, struct kp_sass **out)
{
    int rc = 0;
    *out = NULL;
    kp_lock_take(lock, KP_FOREVER);
    for (struct kp_sass *s = configured; s && !*out; s = s->next)
        if (s->ordinal == ordinal && s->c == c)
            *out = s;
    if (!*out)
        rc = make_list(c, ctx, chip, ordinal, names, n, out);
    else if (!(*out)->owner) {
        rc = KP_SASS_OVER;
        *out = NULL;
    }
    kp_lock_give(lock);
    return rc;
}

void kp_sass_release(struct kp_sass *s, CUcontext ctx)
{
    KP_PARAMS(CUpti_SassMetricsUnsetConfig_Params, unset);
    if (!s)
        return;
    unset.deviceIndex = (uint32_t)s->ordinal;
    kp_lock_take(lock, KP_FOREVER);
    if (s->owner == ctx) {
        KP_CALL(s->c, cuptiSassMetricsUnsetConfig, &unset);
        s->owner = NULL;
    }
    kp_lock_give(lock);
}

const char *const *kp_sass_metrics(const struct kp_sass *s, size_t *n)
{
    *n = s->n;
    return s->names;
}

int kp_sass_begin(struct kp_sass *s, CUcontext ctx)
{
    KP_PARAMS(CUpti_SassMetricsEnable_Params, enable);
    enable.ctx = ctx;
    enable.enableLazyPatching = 1; /* patch only launched kernels */
    return KP_CALL(s->c, cuptiSassMetricsEnable, &enable);
}

static size_t index_of(const struct kp_sass *s, uint64_t id)
{
    size_t i = 0;
    while (i < s->n && s->ids[i] != id)
        i++;
    return i;
}

static void hand_out_counts(const struct kp_sass *s, const CUpti_SassMetrics_Data *d, size_t instances,
                            void (*fn)(void *arg, const struct kp_pc *pc, size_t metric, uint64_t value), void *arg)
{
    struct kp_pc pc = {.crc = d->cubinCrc, .function = d->functionName, .offset = d->pcOffset};
    for (size_t i = 0; pc.function && i < instances; i++) {
        size_t metric = index_of(s, d->pInstanceValues[i].metricId);
        if (metric < s->n && d->pInstanceValues[i].value)
            fn(arg, &pc, metric, d->pInstanceValues[i].value);
    }
}

static int take(struct kp_sass *s, CUcontext ctx, size_t records, size_t instances,
                void (*fn)(void *arg, const struct kp_pc *pc, size_t metric, uint64_t value), void *arg)
{
    KP_PARAMS(CUpti_SassMetricsFlushData_Params, flush);
    CUpti_SassMetrics_Data *data = calloc(records, sizeof(*data));
    CUpti_SassMetrics_InstanceValue *values = calloc(records * instances, sizeof(*values));
    int rc = -ENOMEM;
    if (data && values) {
        for (size_t i = 0; i < records; i++) {
            data[i].structSize = sizeof(*data);
            data[i].pInstanceValues = values + i * instances;
        }
        flush.ctx = ctx;
        flush.numOfPatchedInstructionRecords = records;
        flush.numOfInstances = instances;
        flush.pMetricsData = data;
        rc = KP_CALL(s->c, cuptiSassMetricsFlushData, &flush);
        for (size_t i = 0; !rc && i < records; i++)
            hand_out_counts(s, &data[i], instances, fn, arg);
    }
    free(values);
    free(data);
    return rc;
}

int kp_sass_end(struct kp_sass *s, CUcontext ctx,
                void (*fn)(void *arg, const struct kp_pc *pc, size_t metric, uint64_t value), void *arg)
{
    KP_PARAMS(CUpti_SassMetricsGetDataProperties_Params, get);
    KP_PARAMS(CUpti_SassMetricsDisable_Params, disable);
    get.ctx = disable.ctx = ctx;
    int rc = KP_CALL(s->c, cuptiSassMetricsGetDataProperties, &get);
    /* The library fails if there is nothing to flush: after a refused launch, or without such instructions. */
    if (!rc && get.numOfPatchedInstructionRecords && get.numOfInstances)
        rc = take(s, ctx, get.numOfPatchedInstructionRecords, get.numOfInstances, fn, arg);
    int rc2 = KP_CALL(s->c, cuptiSassMetricsDisable, &disable);
    return rc ? rc : rc2;
}
