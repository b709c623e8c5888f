#include "cupti/pm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cupti/internal.h"

enum {
    STOPS = 2,             /* attempts before a sampler is left running */
    MOST_COPIED = 96 << 20 /* bytes of an image that is emptied by a copy: 780 samples on GH100 */
};

struct kp_pm {
    const struct kp_cupti *c;
    CUpti_PmSampling_Object *object;
    const struct kp_config *group; /* from kp_pm_configure */
    uint8_t *image;                /* counter data */
    uint8_t *empty;                /* the image before samples are read, if `copies`; NULL = it is too large */
    size_t size;                   /* of the current counter data, */
    size_t allocated;              /* and of the memory of each */
    uint32_t samples;              /* that fit */
    bool copies;
    bool running;
};

bool kp_pm_available(const struct kp_cupti *c)
{
    return c->cuptiPmSamplingGetCounterAvailability && c->cuptiPmSamplingEnable && c->cuptiPmSamplingDisable &&
           c->cuptiPmSamplingSetConfig && c->cuptiPmSamplingStart && c->cuptiPmSamplingStop &&
           c->cuptiPmSamplingDecodeData && c->cuptiPmSamplingGetCounterDataSize &&
           c->cuptiPmSamplingCounterDataImageInitialize && c->cuptiPmSamplingGetCounterDataInfo &&
           c->cuptiPmSamplingCounterDataGetSampleInfo;
}

enum kp_pm_trigger kp_pm_trigger(int cc_major, int cc_minor)
{
    return 10 * cc_major + cc_minor > 80 ? KP_PM_NANOSECONDS : KP_PM_CYCLES;
}

int kp_pm_availability(const struct kp_cupti *c, int ordinal, uint8_t **image, size_t *size)
{
    KP_PARAMS(CUpti_PmSampling_GetCounterAvailability_Params, p);
    *image = NULL;
    p.deviceIndex = (size_t)ordinal;
    int rc = KP_CALL(c, cuptiPmSamplingGetCounterAvailability, &p);
    if (rc)
        return rc;
    *size = p.counterAvailabilityImageSize;
    *image = malloc(*size ? *size : 1);
    if (!*image)
        return -ENOMEM;
    p.pCounterAvailabilityImage = *image;
    rc = KP_CALL(c, cuptiPmSamplingGetCounterAvailability, &p);
    if (rc) {
        free(*image);
        *image = NULL;
    }
    return rc;
}

int kp_pm_open(const struct kp_cupti *c, int ordinal, struct kp_pm **out)
{
    KP_PARAMS(CUpti_PmSampling_Enable_Params, e);
    struct kp_pm *p = calloc(1, sizeof(*p));
    *out = NULL;
    if (!p)
        return -ENOMEM;
    p->c = c;
    e.deviceIndex = (size_t)ordinal;
    int rc = KP_CALL(c, cuptiPmSamplingEnable, &e);
    if (rc) {
        free(p);
        return rc;
    }
    p->object = e.pPmSamplingObject;
    *out = p;
    return 0;
}

void kp_pm_abandon(struct kp_pm *p)
{
    if (p) {
        free(p->image);
        free(p->empty);
    }
    free(p);
}

int kp_pm_close(struct kp_pm *p)
{
    int rc = 0;
    if (!p)
        return 0;
    KP_PARAMS(CUpti_PmSampling_Disable_Params, d);
    for (int i = 0; i < STOPS && p->running; i++)
        rc = kp_pm_stop(p);
    if (!p->running) {
        rc = 0;
        d.pPmSamplingObject = p->object;
        KP_CALL(p->c, cuptiPmSamplingDisable, &d); /* the next kp_pm_open shows whether that worked */
    }
    kp_pm_abandon(p);
    return rc;
}

/* Allocates memory for an image of that size, unless there is enough. */
static int take_memory(struct kp_pm *p, size_t size)
{
    bool copied = size <= MOST_COPIED;
    if (p->image && p->allocated >= size && (p->empty != NULL) == copied)
        return 0;
    uint8_t *image = malloc(size ? size : 1), *empty = copied ? malloc(size ? size : 1) : NULL;
    if (!image || (copied && !empty)) {
        free(image);
        free(empty);
        return -ENOMEM;
    }
    free(p->image);
    free(p->empty);
    p->image = image;
    p->empty = empty;
    p->allocated = size;
    return 0;
}

static int initialize(const struct kp_pm *p, uint8_t *image)
{
    KP_PARAMS(CUpti_PmSampling_CounterDataImage_Initialize_Params, i);
    i.pPmSamplingObject = p->object;
    i.counterDataSize = p->size;
    i.pCounterData = image;
    return KP_CALL(p->c, cuptiPmSamplingCounterDataImageInitialize, &i);
}

/* Empties the image: samples are added after the existing ones. A copy takes a quarter of the library's time. */
static int empty_image(struct kp_pm *p)
{
    if (!p->empty)
        return initialize(p, p->image);
    int rc = p->copies ? 0 : initialize(p, p->empty);
    p->copies = !rc;
    if (!rc)
        memcpy(p->image, p->empty, p->size);
    return rc;
}

/* Makes room for so many samples, and no more: the time to empty and to decode depends on the room. Keeps memory that
 * is large enough. */
static int make_pm_image(struct kp_pm *p, const struct kp_config *group, uint32_t max_samples)
{
    KP_PARAMS(CUpti_PmSampling_GetCounterDataSize_Params, s);
    s.pPmSamplingObject = p->object;
    s.pMetricNames = group->names;
    s.numMetrics = group->n_names;
    s.maxSamples = max_samples;
    int rc = KP_CALL(p->c, cuptiPmSamplingGetCounterDataSize, &s);
    if (!rc)
        rc = take_memory(p, s.counterDataSize);
    if (rc)
        return rc;
    p->size = s.counterDataSize;
    p->samples = max_samples;
    p->copies = false;
    return 0;
}

int kp_pm_make_room(struct kp_pm *p, uint32_t max_samples)
{
    return !p->group || p->samples == max_samples ? 0 : make_pm_image(p, p->group, max_samples);
}

int kp_pm_configure(struct kp_pm *p, const struct kp_config *group, const struct kp_pm_settings *s)
{
    KP_PARAMS(CUpti_PmSampling_SetConfig_Params, set);
    p->group = NULL;
    set.pPmSamplingObject = p->object;
    set.configSize = group->size;
    set.pConfig = group->image;
    set.hardwareBufferSize = s->buffer_size;
    set.samplingInterval = s->interval;
    set.triggerMode = s->trigger == KP_PM_NANOSECONDS ? CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_TIME_INTERVAL
                                                      : CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_SYSCLK_INTERVAL;
    /* The start of the profiled work matters more than its end, and Turing has no other mode. */
    set.hwBufferAppendMode = CUPTI_PM_SAMPLING_HARDWARE_BUFFER_APPEND_MODE_KEEP_OLDEST;
    int rc = KP_CALL(p->c, cuptiPmSamplingSetConfig, &set);
    if (rc)
        return rc;
    rc = make_pm_image(p, group, s->max_samples);
    if (!rc)
        p->group = group;
    return rc;
}

int kp_pm_start(struct kp_pm *p)
{
    KP_PARAMS(CUpti_PmSampling_Start_Params, s);
    s.pPmSamplingObject = p->object;
    int rc = KP_CALL(p->c, cuptiPmSamplingStart, &s);
    p->running = !rc;
    return rc;
}

int kp_pm_stop(struct kp_pm *p)
{
    KP_PARAMS(CUpti_PmSampling_Stop_Params, s);
    if (!p->running)
        return 0;
    s.pPmSamplingObject = p->object;
    int rc = KP_CALL(p->c, cuptiPmSamplingStop, &s);
    p->running = rc && rc != CUPTI_ERROR_INVALID_OPERATION; /* the code means that it is not running */
    return rc;
}

int kp_pm_decode(struct kp_pm *p, struct kp_pm_decoded *out)
{
    KP_PARAMS(CUpti_PmSampling_DecodeData_Params, d);
    KP_PARAMS(CUpti_PmSampling_GetCounterDataInfo_Params, i);
    memset(out, 0, sizeof(*out));
    int rc = empty_image(p);
    if (rc)
        return rc;
    d.pPmSamplingObject = p->object;
    i.pCounterDataImage = d.pCounterDataImage = p->image;
    i.counterDataImageSize = d.counterDataImageSize = p->size;
    rc = KP_CALL(p->c, cuptiPmSamplingDecodeData, &d);
    out->overflow = d.overflow || rc == CUPTI_ERROR_OUT_OF_MEMORY; /* what that code means here */
    if (rc && !out->overflow)
        return rc;
    out->more = d.decodeStopReason == CUPTI_PM_SAMPLING_DECODE_STOP_REASON_COUNTER_DATA_FULL;
    rc = KP_CALL(p->c, cuptiPmSamplingGetCounterDataInfo, &i);
    out->n = rc ? 0 : i.numCompletedSamples;
    return rc;
}

int kp_pm_times(const struct kp_pm *p, size_t i, uint64_t *begin_ns, uint64_t *end_ns)
{
    KP_PARAMS(CUpti_PmSampling_CounterData_GetSampleInfo_Params, s);
    s.pPmSamplingObject = p->object;
    s.pCounterDataImage = p->image;
    s.counterDataImageSize = p->size;
    s.sampleIndex = i;
    int rc = KP_CALL(p->c, cuptiPmSamplingCounterDataGetSampleInfo, &s);
    *begin_ns = s.startTimestamp;
    *end_ns = s.endTimestamp;
    return rc;
}

int kp_pm_values(const struct kp_pm *p, struct kp_host *h, size_t i, const char *const *names, size_t n, double *values)
{
    return kp_host_evaluate(h, p->image, p->size, i, names, n, values);
}
