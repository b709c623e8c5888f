#include "cupti/host.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/room.h"
#include "cupti/internal.h"
#include "cupti/raw.h"

struct kp_host {
    const struct kp_cupti *c;
    CUpti_Profiler_Host_Object *object;
    char *chip;
    NVPW_MetricsEvaluator *evaluator; /* made when the first throughput is taken apart */
    uint8_t *scratch;                 /* of the evaluator */
    struct kp_raw *raw;               /* made for the first question of what fits */
    bool no_raw;                      /* making it failed */
};

static bool is_told_to_stop(const struct kp_cupti *c)
{
    return c->goes_on && !c->goes_on();
}

int kp_host_open_for(const struct kp_cupti *c, CUpti_ProfilerType profiler, const char *chip,
                     const uint8_t *availability, struct kp_host **out)
{
    KP_PARAMS(CUpti_Profiler_Host_Initialize_Params, p);
    struct kp_host *h = calloc(1, sizeof(*h));
    *out = NULL;
    if (!h)
        return -ENOMEM;
    p.profilerType = profiler;
    p.pChipName = chip;
    p.pCounterAvailabilityImage = availability;
    int rc = is_told_to_stop(c) ? -ECANCELED : kp_cupti_room();
    if (!rc)
        rc = KP_CALL(c, cuptiProfilerHostInitialize, &p);
    if (rc) {
        free(h);
        return rc;
    }
    h->c = c;
    h->object = p.pHostObject;
    if (!(h->chip = strdup(chip))) {
        kp_host_close(h);
        return -ENOMEM;
    }
    *out = h;
    return 0;
}

int kp_host_open(const struct kp_cupti *c, const char *chip, const uint8_t *availability, struct kp_host **out)
{
    return kp_host_open_for(c, CUPTI_PROFILER_TYPE_RANGE_PROFILER, chip, availability, out);
}

void kp_host_close(struct kp_host *h)
{
    if (!h)
        return;
    KP_PARAMS(CUpti_Profiler_Host_Deinitialize_Params, p);
    p.pHostObject = h->object;
    KP_CALL(h->c, cuptiProfilerHostDeinitialize, &p);
    kp_raw_close(h->raw);
    if (h->evaluator) {
        KP_PARAMS(NVPW_MetricsEvaluator_Destroy_Params, d);
        d.pMetricsEvaluator = h->evaluator;
        KP_CALL(h->c, NVPW_MetricsEvaluator_Destroy, &d);
    }
    free(h->scratch);
    free(h->chip);
    free(h);
}

/* Spells one factor of a dimension as the report does. Names ending in "_cycle", "_sector", "_request" ... of any
 * unit become the bare noun, as in ncu. */
static const struct spelling {
    const char *from, *to;
} spellings[] = {
    {"instruction", "inst"}, {"nanosecond", "ns"},     {"second", "s"},
    {"percent", "%"},        {"cga", "cluster"},       {"cta", "block"},
    {"attribute", "attr"},   {"register", "register"}, {"branch_target", "branches"},
};

static const char *const nouns[] = {"cycle", "sector", "request", "tag", "wavefront", "line"};

static void spell_factor(const char *from, size_t len, char *out, size_t size)
{
    for (size_t i = 0; i < sizeof(spellings) / sizeof(*spellings); i++)
        if (strlen(spellings[i].from) == len && !strncmp(spellings[i].from, from, len)) {
            snprintf(out, size, "%s", spellings[i].to);
            return;
        }
    for (size_t i = 0; i < sizeof(nouns) / sizeof(*nouns); i++) {
        size_t n = strlen(nouns[i]);
        if (len > n && from[len - n - 1] == '_' && !strncmp(from + len - n, nouns[i], n)) {
            snprintf(out, size, "%s", nouns[i]);
            return;
        }
    }
    snprintf(out, size, "%.*s", (int)len, from);
}

void kp_cupti_unit_from_dimension(const char *dimension, char *out, size_t size)
{
    char over[40] = "", under[40] = "";
    const char *slash = strchr(dimension, '/');
    spell_factor(dimension, slash ? (size_t)(slash - dimension) : strlen(dimension), over, sizeof(over));
    if (!slash) {
        snprintf(out, size, "%s", over);
        return;
    }
    spell_factor(slash + 1, strlen(slash + 1), under, sizeof(under));
    if (!strcmp(over, "cycle") && !strcmp(under, "s"))
        snprintf(out, size, "hz"); /* a frequency, as ncu prints it */
    else
        snprintf(out, size, "%s/%s", over, under);
}

int kp_host_metric(struct kp_host *h, const char *name, struct kp_metric_props *out)
{
    KP_PARAMS(CUpti_Profiler_Host_GetMetricProperties_Params, p);
    p.pHostObject = h->object;
    p.pMetricName = name;
    int rc = KP_CALL(h->c, cuptiProfilerHostGetMetricProperties, &p);
    if (rc)
        return rc;
    out->type = (enum kp_metric_type)p.metricType;
    out->description = p.pDescription ? p.pDescription : "";
    kp_cupti_unit_from_dimension(p.pDimUnit ? p.pDimUnit : "", out->unit, sizeof(out->unit));
    return 0;
}

int kp_host_names(struct kp_host *h, enum kp_metric_type type, const char *const **names, size_t *n)
{
    KP_PARAMS(CUpti_Profiler_Host_GetBaseMetrics_Params, p);
    p.pHostObject = h->object;
    p.metricType = (CUpti_MetricType)type;
    int rc = KP_CALL(h->c, cuptiProfilerHostGetBaseMetrics, &p);
    *names = rc ? NULL : p.ppMetricNames;
    *n = rc ? 0 : p.numMetrics;
    return rc;
}

int kp_host_suffixes(struct kp_host *h, enum kp_metric_type type, const char *name, const char *const **suffixes,
                     size_t *n)
{
    KP_PARAMS(CUpti_Profiler_Host_GetSubMetrics_Params, p);
    p.pHostObject = h->object;
    p.metricType = (CUpti_MetricType)type;
    p.pMetricName = name;
    *suffixes = NULL;
    *n = 0;
    if (!h->c->cuptiProfilerHostGetSubMetrics)
        return -ENOSYS;
    int rc = KP_CALL(h->c, cuptiProfilerHostGetSubMetrics, &p);
    if (rc)
        return rc;
    *suffixes = p.ppSubMetrics;
    *n = p.numOfSubmetrics;
    return 0;
}

/* ---- constituents of throughputs, which CUPTI itself does not list ---- */

static bool can_take_apart(const struct kp_cupti *c)
{
    return c->NVPW_MetricsEvaluator_GetMetricNames && c->NVPW_MetricsEvaluator_GetMetricTypeAndIndex &&
           c->NVPW_MetricsEvaluator_GetThroughputMetricProperties;
}

static bool has_evaluator(const struct kp_cupti *c)
{
    return c->NVPW_InitializeHost && c->NVPW_CUDA_MetricsEvaluator_CalculateScratchBufferSize &&
           c->NVPW_CUDA_MetricsEvaluator_Initialize && c->NVPW_MetricsEvaluator_Destroy;
}

static int open_evaluator(struct kp_host *h)
{
    KP_PARAMS(NVPW_InitializeHost_Params, i);
    KP_PARAMS(NVPW_CUDA_MetricsEvaluator_CalculateScratchBufferSize_Params, s);
    KP_PARAMS(NVPW_CUDA_MetricsEvaluator_Initialize_Params, p);
    if (h->evaluator)
        return 0;
    if (!has_evaluator(h->c))
        return -ENOSYS;
    s.pChipName = p.pChipName = h->chip;
    if (KP_CALL(h->c, NVPW_InitializeHost, &i) ||
        KP_CALL(h->c, NVPW_CUDA_MetricsEvaluator_CalculateScratchBufferSize, &s))
        return -EIO;
    if (!h->scratch && !(h->scratch = malloc(s.scratchBufferSize ? s.scratchBufferSize : 1)))
        return -ENOMEM;
    p.pScratchBuffer = h->scratch;
    p.scratchBufferSize = s.scratchBufferSize;
    if (KP_CALL(h->c, NVPW_CUDA_MetricsEvaluator_Initialize, &p))
        return -EIO;
    h->evaluator = p.pMetricsEvaluator;
    return 0;
}

/* The constituents found so far. */
struct parts {
    struct kp_host *h;
    const char **names;
    size_t n;
};

static const char *name_of(struct kp_host *h, NVPW_MetricType type, size_t index)
{
    KP_PARAMS(NVPW_MetricsEvaluator_GetMetricNames_Params, p);
    p.pMetricsEvaluator = h->evaluator;
    p.metricType = (uint8_t)type;
    if (KP_CALL(h->c, NVPW_MetricsEvaluator_GetMetricNames, &p) || index >= p.numMetrics)
        return NULL;
    return p.pMetricNames + p.pMetricNameBeginIndices[index];
}

static int add_part(struct parts *p, NVPW_MetricType type, size_t index)
{
    const char *name = name_of(p->h, type, index);
    if (!name)
        return -EIO;
    for (size_t i = 0; i < p->n; i++)
        if (!strcmp(p->names[i], name))
            return 0;
    if (!KP_ROOM(p->names, p->n))
        return -ENOMEM;
    p->names[p->n++] = name;
    return 0;
}

/* Adds a throughput's constituents; one without any counts itself, like some hardware throughputs. */
static int take_apart(struct parts *p, size_t throughput, int depth)
{
    enum { DEEPEST = 16 }; /* the library nests its own four deep */
    KP_PARAMS(NVPW_MetricsEvaluator_GetThroughputMetricProperties_Params, t);
    t.pMetricsEvaluator = p->h->evaluator;
    t.throughputMetricIndex = throughput;
    if (depth == DEEPEST || KP_CALL(p->h->c, NVPW_MetricsEvaluator_GetThroughputMetricProperties, &t))
        return -EIO;
    int rc = t.numCounters || t.numSubThroughputs ? 0 : add_part(p, NVPW_METRIC_TYPE_THROUGHPUT, throughput);
    for (size_t i = 0; !rc && i < t.numCounters; i++)
        rc = add_part(p, NVPW_METRIC_TYPE_COUNTER, t.pCounterIndices[i]);
    for (size_t i = 0; !rc && i < t.numSubThroughputs; i++)
        rc = take_apart(p, t.pSubThroughputIndices[i], depth + 1);
    return rc;
}

int kp_host_constituents(struct kp_host *h, const char *name, const char ***names, size_t *n)
{
    struct parts parts = {.h = h};
    KP_PARAMS(NVPW_MetricsEvaluator_GetMetricTypeAndIndex_Params, p);
    *names = NULL;
    *n = 0;
    int rc = can_take_apart(h->c) ? open_evaluator(h) : -ENOSYS;
    if (rc)
        return rc;
    p.pMetricsEvaluator = h->evaluator;
    p.pMetricName = name;
    if (KP_CALL(h->c, NVPW_MetricsEvaluator_GetMetricTypeAndIndex, &p) || p.metricType != NVPW_METRIC_TYPE_THROUGHPUT)
        return -EINVAL;
    rc = take_apart(&parts, p.metricIndex, 0);
    if (rc) {
        free(parts.names);
        return rc;
    }
    *names = parts.names;
    *n = parts.n;
    return 0;
}

static int open_raw(struct kp_host *h)
{
    if (h->no_raw)
        return -ENOSYS;
    int rc = h->raw ? 0 : open_evaluator(h);
    if (!rc && !h->raw)
        rc = kp_raw_open(h->c, h->evaluator, h->chip, &h->raw);
    h->no_raw = rc && rc != -ENOMEM;
    return rc;
}

int kp_host_fits_pass(struct kp_host *h, const char *const *names, size_t n, bool *fits)
{
    *fits = false;
    if (is_told_to_stop(h->c))
        return -ECANCELED;
    int rc = open_raw(h);
    return rc ? rc : kp_raw_fits(h->raw, names, n, fits);
}

int kp_host_layout(struct kp_host *h, const struct kp_config *lists, size_t n, uint8_t **prefix, size_t *size)
{
    size_t sum = 0, at = 0;
    *prefix = NULL;
    int rc = open_raw(h);
    for (size_t i = 0; i < n; i++)
        sum += lists[i].n_names;
    const char **names = rc ? NULL : calloc(sum + 1, sizeof(*names));
    if (!names)
        return rc ? rc : -ENOMEM;
    for (size_t i = 0; i < n; at += lists[i++].n_names)
        memcpy(names + at, lists[i].names, lists[i].n_names * sizeof(*names));
    rc = kp_raw_layout(h->raw, h->chip, names, sum, prefix, size);
    free(names);
    return rc;
}

int kp_host_chips(const struct kp_cupti *c, const char *const **chips, size_t *n)
{
    KP_PARAMS(CUpti_Profiler_Host_GetSupportedChips_Params, p);
    int rc = KP_CALL(c, cuptiProfilerHostGetSupportedChips, &p);
    *chips = rc ? NULL : p.ppChipNames;
    *n = rc ? 0 : p.numChips;
    return rc;
}

static int fetch_image(struct kp_host *h, struct kp_config *out)
{
    KP_PARAMS(CUpti_Profiler_Host_GetConfigImageSize_Params, s);
    s.pHostObject = h->object;
    int rc = KP_CALL(h->c, cuptiProfilerHostGetConfigImageSize, &s);
    if (rc)
        return rc;
    out->size = s.configImageSize;
    out->image = malloc(out->size ? out->size : 1);
    if (!out->image)
        return -ENOMEM;
    KP_PARAMS(CUpti_Profiler_Host_GetConfigImage_Params, g);
    g.pHostObject = h->object;
    g.configImageSize = out->size;
    g.pConfigImage = out->image;
    rc = KP_CALL(h->c, cuptiProfilerHostGetConfigImage, &g);
    if (rc)
        return rc;
    KP_PARAMS(CUpti_Profiler_Host_GetNumOfPasses_Params, n);
    n.configImageSize = out->size;
    n.pConfigImage = out->image;
    rc = KP_CALL(h->c, cuptiProfilerHostGetNumOfPasses, &n);
    out->passes = n.numOfPasses;
    return rc;
}

static int add_metrics(struct kp_host *h, const char **names, size_t n)
{
    KP_PARAMS(CUpti_Profiler_Host_ConfigAddMetrics_Params, a);
    a.pHostObject = h->object;
    a.ppMetricNames = names;
    a.numMetrics = n;
    return KP_CALL(h->c, cuptiProfilerHostConfigAddMetrics, &a);
}

/* Schedules the names with a host that has nothing yet, into an empty *out. */
static int schedule_with(struct kp_host *h, const char *const *names, size_t n, struct kp_config *out)
{
    out->names = malloc((n ? n : 1) * sizeof(*names));
    if (!out->names)
        return -ENOMEM;
    memcpy(out->names, names, n * sizeof(*names));
    out->n_names = n;
    int rc = add_metrics(h, out->names, n);
    if (!rc)
        rc = fetch_image(h, out);
    if (rc)
        kp_config_free(out);
    return rc;
}

int kp_host_schedule_kept(const struct kp_cupti *c, const char *chip, const uint8_t *availability,
                          const char *const *names, size_t n, struct kp_config *out, struct kp_host **kept)
{
    *out = (struct kp_config){.image = NULL};
    int rc = kp_host_open(c, chip, availability, kept);
    if (!rc)
        rc = schedule_with(*kept, names, n, out);
    if (rc) {
        kp_host_close(*kept);
        *kept = NULL;
    }
    return rc;
}

int kp_host_schedule_for(const struct kp_cupti *c, CUpti_ProfilerType profiler, const char *chip,
                         const uint8_t *availability, const char *const *names, size_t n, struct kp_config *out)
{
    struct kp_host *h = NULL;
    *out = (struct kp_config){.image = NULL};
    int rc = kp_host_open_for(c, profiler, chip, availability, &h);
    if (!rc)
        rc = schedule_with(h, names, n, out);
    kp_host_close(h);
    return rc;
}

int kp_host_schedule(const struct kp_cupti *c, const char *chip, const uint8_t *availability, const char *const *names,
                     size_t n, struct kp_config *out)
{
    return kp_host_schedule_for(c, CUPTI_PROFILER_TYPE_RANGE_PROFILER, chip, availability, names, n, out);
}

/* Gives each list its copy of the image; on failure, no list has one. */
static int share_image(const struct kp_config *image, struct kp_config *lists, size_t n)
{
    uint8_t **copies = calloc(n + 1, sizeof(*copies));
    size_t made = 0, turn = 0;
    bool patched = false;
    for (size_t i = 0; i < n; i++)
        patched |= kp_config_patches(&lists[i]);
    while (copies && made < n && (copies[made] = malloc(image->size)))
        memcpy(copies[made++], image->image, image->size);
    for (size_t i = 0; i < made; i++) {
        uint8_t *unused = made < n ? copies[i] : lists[i].image;
        if (made == n) {
            lists[i].image = copies[i];
            lists[i].size = image->size;
            lists[i].turn = turn;
            lists[i].turns = image->passes;
            lists[i].patched = patched;
            turn += lists[i].passes;
        }
        free(unused);
    }
    free(copies);
    return made < n ? -ENOMEM : 0;
}

int kp_host_schedule_turns(const struct kp_cupti *c, const char *chip, const uint8_t *availability,
                           struct kp_config *lists, size_t n, struct kp_host *first, size_t *good)
{
    struct kp_host *h = first;
    struct kp_config image = {0};
    *good = first && n ? 1 : 0;
    size_t passes = *good ? lists->passes : 0;
    int rc = first ? 0 : kp_host_open(c, chip, availability, &h);
    if (rc)
        return rc;
    while (*good < n && !add_metrics(h, lists[*good].names, lists[*good].n_names))
        passes += lists[(*good)++].passes;
    if (*good == n)
        rc = fetch_image(h, &image);
    if (!rc && *good == n)
        rc = image.passes == passes ? share_image(&image, lists, n) : -EINVAL;
    free(image.image);
    kp_host_close(h);
    return rc;
}

int kp_host_evaluate(struct kp_host *h, const uint8_t *image, size_t size, size_t range, const char *const *names,
                     size_t n, double *values)
{
    KP_PARAMS(CUpti_Profiler_Host_EvaluateToGpuValues_Params, p);
    p.pHostObject = h->object;
    p.pCounterDataImage = image;
    p.counterDataImageSize = size;
    p.rangeIndex = range;
    p.ppMetricNames = (const char **)(uintptr_t)names; /* CUPTI only reads it */
    p.numMetrics = n;
    p.pMetricValues = values;
    int rc = kp_cupti_room();
    return rc ? rc : KP_CALL(h->c, cuptiProfilerHostEvaluateToGpuValues, &p);
}
