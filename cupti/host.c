#include "cupti/host.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cupti/internal.h"

struct kp_host {
    const struct kp_cupti *c;
    CUpti_Profiler_Host_Object *object;
};

int kp_host_open(const struct kp_cupti *c, const char *chip, const uint8_t *availability, struct kp_host **out)
{
    KP_PARAMS(CUpti_Profiler_Host_Initialize_Params, p);
    struct kp_host *h = calloc(1, sizeof(*h));
    *out = NULL;
    if (!h)
        return -ENOMEM;
    p.profilerType = CUPTI_PROFILER_TYPE_RANGE_PROFILER;
    p.pChipName = chip;
    p.pCounterAvailabilityImage = availability;
    int rc = c->cuptiProfilerHostInitialize(&p);
    if (rc) {
        free(h);
        return rc;
    }
    h->c = c;
    h->object = p.pHostObject;
    *out = h;
    return 0;
}

void kp_host_close(struct kp_host *h)
{
    if (!h)
        return;
    KP_PARAMS(CUpti_Profiler_Host_Deinitialize_Params, p);
    p.pHostObject = h->object;
    h->c->cuptiProfilerHostDeinitialize(&p);
    free(h);
}

/* One factor of a dimension in the report's spelling. Names ending in "_cycle", "_sector", "_request" ... of any unit
 * read as the bare noun, as ncu prints them. */
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

void kp_unit_from_dimension(const char *dimension, char *out, size_t size)
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
    int rc = h->c->cuptiProfilerHostGetMetricProperties(&p);
    if (rc)
        return rc;
    out->type = (enum kp_metric_type)p.metricType;
    out->description = p.pDescription ? p.pDescription : "";
    kp_unit_from_dimension(p.pDimUnit ? p.pDimUnit : "", out->unit, sizeof(out->unit));
    return 0;
}

int kp_host_names(struct kp_host *h, enum kp_metric_type type, const char *const **names, size_t *n)
{
    KP_PARAMS(CUpti_Profiler_Host_GetBaseMetrics_Params, p);
    p.pHostObject = h->object;
    p.metricType = (CUpti_MetricType)type;
    int rc = h->c->cuptiProfilerHostGetBaseMetrics(&p);
    *names = rc ? NULL : p.ppMetricNames;
    *n = rc ? 0 : p.numMetrics;
    return rc;
}

int kp_host_chips(const struct kp_cupti *c, const char *const **chips, size_t *n)
{
    KP_PARAMS(CUpti_Profiler_Host_GetSupportedChips_Params, p);
    int rc = c->cuptiProfilerHostGetSupportedChips(&p);
    *chips = rc ? NULL : p.ppChipNames;
    *n = rc ? 0 : p.numChips;
    return rc;
}

static int fetch_image(struct kp_host *h, struct kp_config *out)
{
    KP_PARAMS(CUpti_Profiler_Host_GetConfigImageSize_Params, s);
    s.pHostObject = h->object;
    int rc = h->c->cuptiProfilerHostGetConfigImageSize(&s);
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
    rc = h->c->cuptiProfilerHostGetConfigImage(&g);
    if (rc)
        return rc;
    KP_PARAMS(CUpti_Profiler_Host_GetNumOfPasses_Params, n);
    n.configImageSize = out->size;
    n.pConfigImage = out->image;
    rc = h->c->cuptiProfilerHostGetNumOfPasses(&n);
    out->passes = n.numOfPasses;
    return rc;
}

int kp_host_schedule(const struct kp_cupti *c, const char *chip, const uint8_t *availability, const char *const *names,
                     size_t n, struct kp_config *out)
{
    struct kp_host *h = NULL;
    memset(out, 0, sizeof(*out));
    int rc = kp_host_open(c, chip, availability, &h);
    if (rc)
        return rc;
    out->names = malloc((n ? n : 1) * sizeof(*names));
    if (!out->names) {
        rc = -ENOMEM;
        goto out;
    }
    memcpy(out->names, names, n * sizeof(*names));
    out->n_names = n;
    KP_PARAMS(CUpti_Profiler_Host_ConfigAddMetrics_Params, a);
    a.pHostObject = h->object;
    a.ppMetricNames = out->names;
    a.numMetrics = n;
    rc = c->cuptiProfilerHostConfigAddMetrics(&a);
    if (!rc)
        rc = fetch_image(h, out);
out:
    kp_host_close(h);
    if (rc)
        kp_config_free(out);
    return rc;
}

void kp_config_free(struct kp_config *config)
{
    free(config->image);
    free(config->names);
    memset(config, 0, sizeof(*config));
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
    return h->c->cuptiProfilerHostEvaluateToGpuValues(&p);
}
