/*
 * PM sampling, a part of the fake libcupti.so.13. Time advances with kernels: each kernel launched while a device is
 * sampled produces as many samples as its name says, followed by some idle ones. A sample needs FAKE_PM_RECORD bytes of
 * the hardware buffer; the newest are lost when it is full.
 */
#ifndef TESTS_FAKE_CUPTI_PM_H
#define TESTS_FAKE_CUPTI_PM_H

#include <cupti_pmsampling.h>

enum { PM_DEVICES = 16 };

/* A sample in the hardware buffer, and in the image. */
struct pm_record {
    uint64_t begin, end;
    char kernel[128]; /* "" while the device was idle */
    size_t index;     /* among the kernel's */
};

/* Followed by `n_metrics` hashes of base names, then by `max_samples` records. */
struct pm_image {
    char magic[8];
    uint64_t size, n_metrics, max_samples, n_samples;
};

#define PM_IMAGE_MAGIC "FAKEPMS1"

struct CUpti_PmSampling_Object {
    int device;
    bool enabled, configured, running, overflow;
    uint64_t interval, now, capacity;
    uint64_t *metrics; /* of the last GetCounterDataSize */
    size_t n_metrics;
    struct pm_record *records; /* not decoded yet */
    size_t n_records, cap_records;
};

static CUpti_PmSampling_Object samplers[PM_DEVICES];

int fake_cupti_pm_lose_rest;
size_t fake_cupti_pm_more_idle[2];

size_t fake_cupti_pm_samples(const char *kernel)
{
    return 8 + fake_hash(FAKE_HASH_START, kernel, strlen(kernel)) % 24;
}

double fake_cupti_pm_value(const char *metric, const char *kernel, size_t index)
{
    return *kernel ? fake_cupti_value(metric, kernel, index) : 0;
}

static CUpti_PmSampling_Object *sampler_of(CUpti_PmSampling_Object *given, const char *function)
{
    if (given < samplers || given >= samplers + PM_DEVICES)
        fake_misuse("%s: not a PM sampling object", function);
    if (!given->enabled)
        fake_misuse("%s: PM sampling is not enabled", function);
    return given;
}

static void take_sample(CUpti_PmSampling_Object *o, const char *kernel, size_t index)
{
    struct pm_record *r;

    o->now += o->interval;
    if (o->n_records == o->capacity) {
        o->overflow = true;
        return;
    }
    if (o->n_records == o->cap_records) {
        o->cap_records = o->cap_records ? 2 * o->cap_records : 256;
        o->records = realloc(o->records, o->cap_records * sizeof(*o->records));
        if (!o->records)
            fake_misuse("out of host memory");
    }
    r = &o->records[o->n_records++];
    r->begin = o->now - o->interval, r->end = o->now, r->index = index;
    snprintf(r->kernel, sizeof(r->kernel), "%s", kernel);
}

static void take_idle_samples(CUpti_PmSampling_Object *o, int behind)
{
    for (size_t i = 0; i < FAKE_PM_IDLE + fake_cupti_pm_more_idle[behind]; i++)
        take_sample(o, "", i);
}

/* Called for each kernel, under the driver's lock. */
static void sample_kernel(const struct fake_launch *launch)
{
    int device = fake_driver()->context_device(launch->ctx);
    CUpti_PmSampling_Object *o = device >= 0 && device < PM_DEVICES ? &samplers[device] : NULL;

    if (!o || !o->running)
        return;
    for (size_t i = 0; i < fake_cupti_pm_samples(launch->name); i++)
        take_sample(o, launch->name, i);
    take_idle_samples(o, 1);
}

CUptiResult cuptiPmSamplingGetCounterAvailability(CUpti_PmSampling_GetCounterAvailability_Params *params)
{
    static const char image[64] = AVAILABILITY_MAGIC;

    ENTER(params, CUpti_PmSampling_GetCounterAvailability_Params);
    if (!initialised)
        return CUPTI_ERROR_NOT_INITIALIZED;
    if (!fake_driver()->chip_name((int)params->deviceIndex))
        return CUPTI_ERROR_INVALID_PARAMETER;
    if (params->pCounterAvailabilityImage) {
        if (params->counterAvailabilityImageSize < sizeof(image))
            return CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT;
        memcpy(params->pCounterAvailabilityImage, image, sizeof(image));
    }
    params->counterAvailabilityImageSize = sizeof(image);
    return CUPTI_SUCCESS;
}

/* A range profiler has the counters. */
static bool busy(int device)
{
    for (const CUpti_RangeProfiler_Object *r = objects; r; r = r->next)
        if (has_counters(r) && fake_driver()->context_device(r->ctx) == device)
            return true;
    return false;
}

CUptiResult cuptiPmSamplingEnable(CUpti_PmSampling_Enable_Params *params)
{
    CUpti_PmSampling_Object *o;

    ENTER(params, CUpti_PmSampling_Enable_Params);
    LOCKED();
    if (!initialised)
        return CUPTI_ERROR_NOT_INITIALIZED;
    if (params->deviceIndex >= PM_DEVICES || !fake_driver()->chip_name((int)params->deviceIndex))
        return CUPTI_ERROR_INVALID_PARAMETER;
    o = &samplers[params->deviceIndex];
    if (o->enabled)
        return CUPTI_ERROR_INVALID_OPERATION;
    if (busy((int)params->deviceIndex))
        return CUPTI_ERROR_HARDWARE_BUSY;
    *o = (CUpti_PmSampling_Object){.device = (int)params->deviceIndex, .enabled = true, .now = 1000000000};
    fake_driver()->set_launch_hook(on_launch, NULL);
    params->pPmSamplingObject = o;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiPmSamplingDisable(CUpti_PmSampling_Disable_Params *params)
{
    CUpti_PmSampling_Object *o;

    ENTER(params, CUpti_PmSampling_Disable_Params);
    LOCKED();
    o = sampler_of(params->pPmSamplingObject, __func__);
    if (o->running)
        fake_misuse("%s: sampling is running: Stop comes first", __func__);
    free(o->metrics);
    free(o->records);
    *o = (CUpti_PmSampling_Object){.enabled = false};
    return CUPTI_SUCCESS;
}

/* Turing and GA100 have no timer for it. */
static bool has_timer(int device)
{
    const char *chip = fake_driver()->chip_name(device);

    return strncmp(chip, "TU", 2) && strcmp(chip, "GA100");
}

CUptiResult cuptiPmSamplingSetConfig(CUpti_PmSampling_SetConfig_Params *params)
{
    CUpti_PmSampling_Object *o;
    uint32_t passes;
    CUptiResult result;

    ENTER(params, CUpti_PmSampling_SetConfig_Params);
    LOCKED();
    o = sampler_of(params->pPmSamplingObject, __func__);
    if (o->running)
        fake_misuse("%s: sampling is running", __func__);
    if (!params->pConfig || !params->configSize || !params->samplingInterval ||
        params->hardwareBufferSize < FAKE_PM_RECORD)
        return CUPTI_ERROR_INVALID_PARAMETER;
    if (busy(o->device))
        return CUPTI_ERROR_HARDWARE_BUSY;
    if (params->triggerMode == CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_TIME_INTERVAL && !has_timer(o->device))
        return CUPTI_ERROR_NOT_SUPPORTED;
    if (params->hwBufferAppendMode != CUPTI_PM_SAMPLING_HARDWARE_BUFFER_APPEND_MODE_KEEP_OLDEST)
        return CUPTI_ERROR_NOT_SUPPORTED; /* by the fake */
    result = passes_of(params->pConfig, params->configSize, &passes);
    if (result)
        return result;
    if (passes != 1)
        return CUPTI_ERROR_NOT_SUPPORTED;
    o->interval = params->samplingInterval;
    o->capacity = params->hardwareBufferSize / FAKE_PM_RECORD;
    o->n_records = 0;
    o->overflow = false;
    o->configured = true;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiPmSamplingStart(CUpti_PmSampling_Start_Params *params)
{
    CUpti_PmSampling_Object *o;

    ENTER(params, CUpti_PmSampling_Start_Params);
    LOCKED();
    o = sampler_of(params->pPmSamplingObject, __func__);
    if (!o->configured)
        fake_misuse("%s: SetConfig comes first", __func__);
    if (o->running)
        return CUPTI_ERROR_INVALID_OPERATION;
    for (const CUpti_RangeProfiler_Object *r = objects; r; r = r->next)
        if (r->running && fake_driver()->context_device(r->ctx) == o->device)
            fake_misuse("%s: a pass of the range profiler is running", __func__);
    o->running = true;
    take_idle_samples(o, 0);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiPmSamplingStop(CUpti_PmSampling_Stop_Params *params)
{
    CUpti_PmSampling_Object *o;

    ENTER(params, CUpti_PmSampling_Stop_Params);
    LOCKED();
    o = sampler_of(params->pPmSamplingObject, __func__);
    if (!o->running)
        return CUPTI_ERROR_INVALID_OPERATION;
    o->running = false;
    fake_log("sampled pid=%d device=%d samples=%zu overflow=%d\n", (int)getpid(), o->device, o->n_records, o->overflow);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiPmSamplingGetCounterDataSize(CUpti_PmSampling_GetCounterDataSize_Params *params)
{
    CUpti_PmSampling_Object *o;

    ENTER(params, CUpti_PmSampling_GetCounterDataSize_Params);
    LOCKED();
    o = sampler_of(params->pPmSamplingObject, __func__);
    if (!params->pMetricNames || !params->numMetrics || !params->maxSamples)
        return CUPTI_ERROR_INVALID_PARAMETER;
    o->metrics = realloc(o->metrics, params->numMetrics * sizeof(*o->metrics));
    if (!o->metrics)
        return CUPTI_ERROR_OUT_OF_MEMORY;
    o->n_metrics = params->numMetrics;
    for (size_t i = 0; i < params->numMetrics; i++)
        o->metrics[i] = hash_base(params->pMetricNames[i]);
    params->counterDataSize = sizeof(struct pm_image) + params->numMetrics * sizeof(*o->metrics) +
                              params->maxSamples * sizeof(struct pm_record);
    return CUPTI_SUCCESS;
}

static struct pm_image *pm_image_of(const uint8_t *bytes, size_t size)
{
    struct pm_image *image = (void *)(uintptr_t)bytes;

    if (!bytes || size < sizeof(*image) || memcmp(image->magic, PM_IMAGE_MAGIC, sizeof(image->magic)))
        return NULL;
    if (image->size != size)
        fake_misuse("a counter-data image of %zu bytes was given as %zu", (size_t)image->size, size);
    return image;
}

static uint64_t *pm_metrics(struct pm_image *image)
{
    return (uint64_t *)(image + 1);
}

static struct pm_record *pm_records(struct pm_image *image)
{
    return (struct pm_record *)(pm_metrics(image) + image->n_metrics);
}

CUptiResult cuptiPmSamplingCounterDataImageInitialize(CUpti_PmSampling_CounterDataImage_Initialize_Params *params)
{
    CUpti_PmSampling_Object *o;
    struct pm_image *image;
    size_t fixed;

    ENTER(params, CUpti_PmSampling_CounterDataImage_Initialize_Params);
    LOCKED();
    o = sampler_of(params->pPmSamplingObject, __func__);
    fixed = sizeof(*image) + o->n_metrics * sizeof(*o->metrics);
    if (!params->pCounterData || !o->n_metrics || params->counterDataSize < fixed)
        return CUPTI_ERROR_INVALID_PARAMETER;
    image = (void *)params->pCounterData;
    memset(image, 0, params->counterDataSize);
    memcpy(image->magic, PM_IMAGE_MAGIC, sizeof(image->magic));
    image->size = params->counterDataSize;
    image->n_metrics = o->n_metrics;
    image->max_samples = (params->counterDataSize - fixed) / sizeof(struct pm_record);
    memcpy(pm_metrics(image), o->metrics, o->n_metrics * sizeof(*o->metrics));
    return CUPTI_SUCCESS;
}

CUptiResult cuptiPmSamplingDecodeData(CUpti_PmSampling_DecodeData_Params *params)
{
    CUpti_PmSampling_Object *o;
    struct pm_image *image;
    size_t n;

    ENTER(params, CUpti_PmSampling_DecodeData_Params);
    LOCKED();
    o = sampler_of(params->pPmSamplingObject, __func__);
    image = pm_image_of(params->pCounterDataImage, params->counterDataImageSize);
    if (!image)
        return CUPTI_ERROR_INVALID_PARAMETER;
    n = image->max_samples - image->n_samples;
    n = n < o->n_records ? n : o->n_records;
    memcpy(pm_records(image) + image->n_samples, o->records, n * sizeof(*o->records));
    memmove(o->records, o->records + n, (o->n_records - n) * sizeof(*o->records));
    image->n_samples += n;
    o->n_records -= n;
    params->decodeStopReason = o->n_records ? CUPTI_PM_SAMPLING_DECODE_STOP_REASON_COUNTER_DATA_FULL
                                            : CUPTI_PM_SAMPLING_DECODE_STOP_REASON_END_OF_RECORDS;
    params->overflow = o->overflow;
    if (fake_cupti_pm_lose_rest)
        o->n_records = 0;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiPmSamplingGetCounterDataInfo(CUpti_PmSampling_GetCounterDataInfo_Params *params)
{
    const struct pm_image *image;

    ENTER(params, CUpti_PmSampling_GetCounterDataInfo_Params);
    image = pm_image_of(params->pCounterDataImage, params->counterDataImageSize);
    if (!image)
        return CUPTI_ERROR_INVALID_PARAMETER;
    params->numTotalSamples = image->max_samples;
    params->numPopulatedSamples = params->numCompletedSamples = image->n_samples;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiPmSamplingCounterDataGetSampleInfo(CUpti_PmSampling_CounterData_GetSampleInfo_Params *params)
{
    struct pm_image *image;

    ENTER(params, CUpti_PmSampling_CounterData_GetSampleInfo_Params);
    image = pm_image_of(params->pCounterDataImage, params->counterDataImageSize);
    if (!image || params->sampleIndex >= image->n_samples)
        return CUPTI_ERROR_INVALID_PARAMETER;
    params->startTimestamp = pm_records(image)[params->sampleIndex].begin;
    params->endTimestamp = pm_records(image)[params->sampleIndex].end;
    return CUPTI_SUCCESS;
}

/* False if the image is not one of samples. */
static bool evaluate_sample(CUpti_Profiler_Host_EvaluateToGpuValues_Params *params, CUptiResult *result)
{
    struct pm_image *image = pm_image_of(params->pCounterDataImage, params->counterDataImageSize);
    const struct pm_record *r;

    if (!image)
        return false;
    *result = CUPTI_ERROR_INVALID_PARAMETER;
    if (!params->pHostObject || params->rangeIndex >= image->n_samples)
        return true;
    r = &pm_records(image)[params->rangeIndex];
    for (size_t i = 0; i < params->numMetrics; i++) {
        const char *metric = params->ppMetricNames[i];
        bool there = false;

        for (size_t k = 0; k < image->n_metrics; k++)
            there |= pm_metrics(image)[k] == hash_base(metric);
        params->pMetricValues[i] = there ? fake_cupti_pm_value(metric, r->kernel, r->index) : NAN;
    }
    *result = CUPTI_SUCCESS;
    return true;
}

#endif
