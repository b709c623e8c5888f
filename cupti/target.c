#include "cupti/target.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cupti/internal.h"

int kp_target_init(const struct kp_cupti *c)
{
    KP_PARAMS(CUpti_Profiler_Initialize_Params, p);
    return c->cuptiProfilerInitialize(&p);
}

int kp_target_chip(const struct kp_cupti *c, int ordinal, const char **chip)
{
    KP_PARAMS(CUpti_Device_GetChipName_Params, p);
    p.deviceIndex = (size_t)ordinal;
    int rc = c->cuptiDeviceGetChipName(&p);
    *chip = rc ? NULL : p.pChipName;
    return rc;
}

int kp_target_availability(const struct kp_cupti *c, CUcontext ctx, uint8_t **image, size_t *size)
{
    KP_PARAMS(CUpti_Profiler_GetCounterAvailability_Params, p);
    *image = NULL;
    p.ctx = ctx;
    int rc = c->cuptiProfilerGetCounterAvailability(&p);
    if (rc)
        return rc;
    *image = malloc(p.counterAvailabilityImageSize ? p.counterAvailabilityImageSize : 1);
    if (!*image)
        return -ENOMEM;
    p.pCounterAvailabilityImage = *image;
    rc = c->cuptiProfilerGetCounterAvailability(&p);
    *size = p.counterAvailabilityImageSize;
    if (rc) {
        free(*image);
        *image = NULL;
    }
    return rc;
}

int kp_target_context_id(const struct kp_cupti *c, CUcontext ctx, uint32_t *id)
{
    return c->cuptiGetContextId(ctx, id);
}

int kp_target_stream_id(const struct kp_cupti *c, CUcontext ctx, CUstream stream, bool per_thread, uint32_t *id)
{
    return c->cuptiGetStreamIdEx(ctx, stream, per_thread, id);
}

struct kp_range {
    const struct kp_cupti *c;
    const struct kp_config *config;
    CUpti_RangeProfiler_Object *object;
    enum kp_range_mode mode;
    size_t max_ranges;
    uint8_t *image, *empty; /* the counter data, and the same as it was when initialised */
    size_t size;
    bool running;
};

static int make_image(struct kp_range *r)
{
    KP_PARAMS(CUpti_RangeProfiler_GetCounterDataSize_Params, s);
    s.pRangeProfilerObject = r->object;
    s.pMetricNames = r->config->names;
    s.numMetrics = r->config->n_names;
    s.maxNumOfRanges = r->max_ranges;
    s.maxNumRangeTreeNodes = (uint32_t)r->max_ranges;
    int rc = r->c->cuptiRangeProfilerGetCounterDataSize(&s);
    if (rc)
        return rc;
    r->size = s.counterDataSize;
    r->image = malloc(r->size);
    r->empty = malloc(r->size);
    if (!r->image || !r->empty)
        return -ENOMEM;
    KP_PARAMS(CUpti_RangeProfiler_CounterDataImage_Initialize_Params, i);
    i.pRangeProfilerObject = r->object;
    i.counterDataSize = r->size;
    i.pCounterData = r->empty;
    return r->c->cuptiRangeProfilerCounterDataImageInitialize(&i);
}

int kp_range_open(const struct kp_cupti *c, CUcontext ctx, const struct kp_config *config, enum kp_range_mode mode,
                  size_t max_ranges, struct kp_range **out)
{
    KP_PARAMS(CUpti_RangeProfiler_Enable_Params, e);
    struct kp_range *r = calloc(1, sizeof(*r));
    *out = NULL;
    if (!r)
        return -ENOMEM;
    r->c = c;
    r->config = config;
    r->mode = mode;
    r->max_ranges = max_ranges;
    e.ctx = ctx;
    int rc = c->cuptiRangeProfilerEnable(&e);
    if (rc) {
        free(r);
        return rc;
    }
    r->object = e.pRangeProfilerObject;
    rc = make_image(r);
    if (rc) {
        kp_range_close(r);
        return rc;
    }
    *out = r;
    return 0;
}

void kp_range_abandon(struct kp_range *r)
{
    if (!r)
        return;
    free(r->image);
    free(r->empty);
    free(r);
}

void kp_range_close(struct kp_range *r)
{
    if (!r)
        return;
    KP_PARAMS(CUpti_RangeProfiler_Disable_Params, p);
    p.pRangeProfilerObject = r->object;
    r->c->cuptiRangeProfilerDisable(&p);
    kp_range_abandon(r);
}

int kp_range_begin(struct kp_range *r)
{
    KP_PARAMS(CUpti_RangeProfiler_SetConfig_Params, p);
    memcpy(r->image, r->empty, r->size);
    p.pRangeProfilerObject = r->object;
    p.configSize = r->config->size;
    p.pConfig = r->config->image;
    p.counterDataImageSize = r->size;
    p.pCounterDataImage = r->image;
    p.range = r->mode == KP_RANGE_AUTO ? CUPTI_AutoRange : CUPTI_UserRange;
    p.replayMode = CUPTI_UserReplay;
    p.maxRangesPerPass = r->max_ranges;
    p.numNestingLevels = 1;
    p.minNestingLevel = 1;
    p.passIndex = 0;
    p.targetNestingLevel = 1;
    return r->c->cuptiRangeProfilerSetConfig(&p);
}

int kp_range_start(struct kp_range *r)
{
    KP_PARAMS(CUpti_RangeProfiler_Start_Params, p);
    p.pRangeProfilerObject = r->object;
    int rc = r->c->cuptiRangeProfilerStart(&p);
    if (rc)
        return rc;
    r->running = true;
    if (r->mode == KP_RANGE_AUTO)
        return 0;
    KP_PARAMS(CUpti_RangeProfiler_PushRange_Params, q);
    q.pRangeProfilerObject = r->object;
    q.pRangeName = "workload";
    rc = r->c->cuptiRangeProfilerPushRange(&q);
    if (rc) { /* a start that failed must leave nothing running */
        KP_PARAMS(CUpti_RangeProfiler_Stop_Params, s);
        s.pRangeProfilerObject = r->object;
        r->c->cuptiRangeProfilerStop(&s);
        r->running = false;
    }
    return rc;
}

int kp_range_stop(struct kp_range *r, bool *last)
{
    KP_PARAMS(CUpti_RangeProfiler_Stop_Params, p);
    int rc = 0;
    *last = false;
    if (!r->running)
        return 0;
    r->running = false;
    if (r->mode == KP_RANGE_USER) {
        KP_PARAMS(CUpti_RangeProfiler_PopRange_Params, q);
        q.pRangeProfilerObject = r->object;
        rc = r->c->cuptiRangeProfilerPopRange(&q);
    }
    p.pRangeProfilerObject = r->object;
    int rc2 = r->c->cuptiRangeProfilerStop(&p);
    *last = p.isAllPassSubmitted != 0;
    return rc ? rc : rc2;
}

int kp_range_decode(struct kp_range *r, size_t *n, size_t *dropped)
{
    KP_PARAMS(CUpti_RangeProfiler_DecodeData_Params, d);
    d.pRangeProfilerObject = r->object;
    int rc = r->c->cuptiRangeProfilerDecodeData(&d);
    if (rc)
        return rc;
    KP_PARAMS(CUpti_RangeProfiler_GetCounterDataInfo_Params, i);
    i.pCounterDataImage = r->image;
    i.counterDataImageSize = r->size;
    rc = r->c->cuptiRangeProfilerGetCounterDataInfo(&i);
    *n = i.numTotalRanges;
    *dropped = d.numOfRangeDropped;
    return rc;
}

void kp_range_image(const struct kp_range *r, const uint8_t **image, size_t *size)
{
    *image = r->image;
    *size = r->size;
}

struct kp_checkpoint {
    const struct kp_cupti *c;
    kp_checkpoint_abi abi;
};

bool kp_checkpoint_available(const struct kp_cupti *c)
{
    return c->cuptiCheckpointSave && c->cuptiCheckpointRestore && c->cuptiCheckpointFree;
}

int kp_checkpoint_save(const struct kp_cupti *c, CUcontext ctx, struct kp_checkpoint **out)
{
    struct kp_checkpoint *k = calloc(1, sizeof(*k));
    *out = NULL;
    if (!k)
        return -ENOMEM;
    k->c = c;
    k->abi.structSize = KP_CHECKPOINT_ABI_SIZE;
    k->abi.ctx = ctx;
    int rc = c->cuptiCheckpointSave(&k->abi);
    if (rc) {
        free(k);
        return rc;
    }
    *out = k;
    return 0;
}

int kp_checkpoint_restore(struct kp_checkpoint *k)
{
    return k->c->cuptiCheckpointRestore(&k->abi);
}

void kp_checkpoint_free(struct kp_checkpoint *k)
{
    if (!k)
        return;
    k->c->cuptiCheckpointFree(&k->abi);
    free(k);
}
