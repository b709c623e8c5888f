#include "cupti/target.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mapped_pages.h"
#include "cupti/internal.h"

int kp_cupti_target_init(const struct kp_cupti *c)
{
    KP_PARAMS(CUpti_Profiler_Initialize_Params, p);
    return KP_CALL(c, cuptiProfilerInitialize, &p);
}

int kp_cupti_target_chip(const struct kp_cupti *c, int ordinal, const char **chip)
{
    KP_PARAMS(CUpti_Device_GetChipName_Params, p);
    p.deviceIndex = (size_t)ordinal;
    int rc = KP_CALL(c, cuptiDeviceGetChipName, &p);
    *chip = rc ? NULL : p.pChipName;
    return rc;
}

int kp_cupti_target_availability(const struct kp_cupti *c, CUcontext ctx, uint8_t **image, size_t *size)
{
    KP_PARAMS(CUpti_Profiler_GetCounterAvailability_Params, p);
    *image = NULL;
    p.ctx = ctx;
    int rc = KP_CALL(c, cuptiProfilerGetCounterAvailability, &p);
    if (rc)
        return rc;
    *image = malloc(p.counterAvailabilityImageSize ? p.counterAvailabilityImageSize : 1);
    if (!*image)
        return -ENOMEM;
    p.pCounterAvailabilityImage = *image;
    rc = KP_CALL(c, cuptiProfilerGetCounterAvailability, &p);
    *size = p.counterAvailabilityImageSize;
    if (rc) {
        free(*image);
        *image = NULL;
    }
    return rc;
}

int kp_cupti_target_context_id(const struct kp_cupti *c, CUcontext ctx, uint32_t *id)
{
    return KP_CALL(c, cuptiGetContextId, ctx, id);
}

int kp_cupti_target_stream_id(const struct kp_cupti *c, CUcontext ctx, CUstream stream, bool per_thread, uint32_t *id)
{
    return KP_CALL(c, cuptiGetStreamIdEx, ctx, stream, per_thread, id);
}

struct kp_image {
    const struct kp_config *config;
    size_t ranges, size;
    uint8_t *data;  /* the counter data */
    uint8_t *empty; /* its initial state; NULL until used twice */
    bool fresh;     /* the data is in its initial state */
};

struct kp_range {
    const struct kp_cupti *c;
    CUpti_RangeProfiler_Object *object;
    struct kp_image *image; /* from kp_range_begin */
    bool running;
    bool open;     /* a range of the running pass is open */
    size_t next;   /* the pass of the configuration that comes next */
    size_t pushed; /* ranges of the running pass */
    char name[24]; /* of the last one */
};

static int counter_data_size(const struct kp_range *r, const struct kp_config *config, size_t ranges, size_t *size)
{
    KP_PARAMS(CUpti_RangeProfiler_GetCounterDataSize_Params, s);
    s.pRangeProfilerObject = r->object;
    s.pMetricNames = config->names;
    s.numMetrics = config->n_names;
    s.maxNumOfRanges = ranges;
    s.maxNumRangeTreeNodes = (uint32_t)ranges;
    int rc = KP_CALL(r->c, cuptiRangeProfilerGetCounterDataSize, &s);
    *size = s.counterDataSize;
    return rc;
}

int kp_image_bytes(const struct kp_range *r, const struct kp_config *config, size_t ranges, size_t *bytes)
{
    int rc = counter_data_size(r, config, ranges, bytes);
    *bytes *= 2;
    return rc;
}

/* KP_VENDOR: the library initialises for the metrics whose size was last asked for. */
static int initialise_image(const struct kp_range *r, struct kp_image *i)
{
    KP_PARAMS(CUpti_RangeProfiler_CounterDataImage_Initialize_Params, p);
    size_t size;
    int rc = counter_data_size(r, i->config, i->ranges, &size);
    if (rc)
        return rc;
    p.pRangeProfilerObject = r->object;
    p.counterDataSize = i->size;
    p.pCounterData = i->data;
    rc = KP_CALL(r->c, cuptiRangeProfilerCounterDataImageInitialize, &p);
    i->fresh = !rc;
    return rc;
}

/* Empties an image. Initialising takes three times as long as copying, so a reused image also keeps its initial
 * state. */
static int empty(const struct kp_range *r, struct kp_image *i)
{
    int rc = 0;
    if (!i->fresh && i->empty) {
        memcpy(i->data, i->empty, i->size);
    } else if (!i->fresh) {
        rc = initialise_image(r, i);
        if (!rc && (i->empty = kp_pages_take(i->size)))
            memcpy(i->empty, i->data, i->size);
    }
    i->fresh = false;
    return rc;
}

int kp_image_make(const struct kp_range *r, const struct kp_config *config, size_t ranges, struct kp_image **out)
{
    struct kp_image *i = calloc(1, sizeof(*i));
    *out = NULL;
    if (!i)
        return -ENOMEM;
    i->config = config;
    i->ranges = ranges;
    int rc = counter_data_size(r, config, ranges, &i->size);
    if (!rc)
        rc = (i->data = kp_pages_take(i->size)) ? initialise_image(r, i) : -ENOMEM;
    if (rc)
        kp_image_free(i);
    else
        *out = i;
    return rc;
}

void kp_image_free(struct kp_image *i)
{
    if (!i)
        return;
    kp_pages_give(i->data, i->size);
    kp_pages_give(i->empty, i->size);
    free(i);
}

void kp_image_data(const struct kp_image *i, const uint8_t **data, size_t *size)
{
    *data = i->data;
    *size = i->size;
}

size_t kp_image_ranges(const struct kp_image *i)
{
    return i->ranges;
}

int kp_range_open(const struct kp_cupti *c, CUcontext ctx, struct kp_range **out)
{
    KP_PARAMS(CUpti_RangeProfiler_Enable_Params, e);
    struct kp_range *r = calloc(1, sizeof(*r));
    *out = NULL;
    if (!r)
        return -ENOMEM;
    r->c = c;
    e.ctx = ctx;
    int rc = kp_cupti_room();
    if (!rc)
        rc = KP_CALL(c, cuptiRangeProfilerEnable, &e);
    if (rc) {
        free(r);
        return rc;
    }
    r->object = e.pRangeProfilerObject;
    *out = r;
    return 0;
}

void kp_range_abandon(struct kp_range *r)
{
    free(r);
}

int kp_range_close(struct kp_range *r)
{
    if (!r)
        return 0;
    KP_PARAMS(CUpti_RangeProfiler_Disable_Params, p);
    bool last;
    int rc = kp_range_stop(r, &last);
    p.pRangeProfilerObject = r->object;
    if (!r->running)
        rc = KP_CALL(r->c, cuptiRangeProfilerDisable, &p);
    kp_range_abandon(r);
    return rc == KP_CUPTI_LOST ? 0 : rc; /* a lost CUPTI has nothing to end */
}

int kp_image_write(const struct kp_image *i, const char *path)
{
    FILE *f = fopen(path, "wbex");
    if (!f)
        return -errno;
    int rc = fwrite(i->data, 1, i->size, f) == i->size ? 0 : -EIO;
    return fclose(f) && !rc ? -errno : rc;
}

int kp_image_read(struct kp_image *i, const char *path)
{
    FILE *f = fopen(path, "rbe");
    if (!f)
        return -errno;
    int rc = fread(i->data, 1, i->size, f) == i->size && fgetc(f) == EOF ? 0 : -EINVAL;
    i->fresh = false;
    fclose(f);
    return rc;
}

static int configure_range(struct kp_range *r, enum kp_range_mode mode, struct kp_image *i,
                           CUpti_ProfilerReplayMode replay, size_t pass)
{
    KP_PARAMS(CUpti_RangeProfiler_SetConfig_Params, p);
    r->image = i;
    p.pRangeProfilerObject = r->object;
    p.configSize = i->config->size;
    p.pConfig = i->config->image;
    p.counterDataImageSize = i->size;
    p.pCounterDataImage = i->data;
    p.range = mode == KP_RANGE_AUTO ? CUPTI_AutoRange : CUPTI_UserRange;
    p.replayMode = replay;
    p.maxRangesPerPass = i->ranges;
    p.numNestingLevels = 1;
    p.minNestingLevel = 1;
    p.passIndex = pass;
    p.targetNestingLevel = 1;
    return KP_CALL(r->c, cuptiRangeProfilerSetConfig, &p);
}

int kp_range_begin(struct kp_range *r, enum kp_range_mode mode, struct kp_image *i)
{
    int rc = empty(r, i);
    return rc ? rc : configure_range(r, mode, i, CUPTI_UserReplay, 0);
}

int kp_range_resume(struct kp_range *r, enum kp_range_mode mode, struct kp_image *i, size_t pass)
{
    int rc = pass ? 0 : empty(r, i);
    return rc ? rc : configure_range(r, mode, i, CUPTI_ApplicationReplay, pass);
}

int kp_range_start(struct kp_range *r)
{
    KP_PARAMS(CUpti_RangeProfiler_Start_Params, p);
    p.pRangeProfilerObject = r->object;
    int rc = KP_CALL(r->c, cuptiRangeProfilerStart, &p);
    r->running = !rc;
    r->pushed = 0;
    return rc;
}

/* Ends a range that is still open, after a failed pop or a refused launch: it must end before another range, and
 * before the pass. */
static int end_range(struct kp_range *r)
{
    return r->open ? kp_range_pop(r) : 0;
}

/* KP_VENDOR: two ranges of one name in a pass are one range. */
int kp_range_push(struct kp_range *r)
{
    KP_PARAMS(CUpti_RangeProfiler_PushRange_Params, p);
    int rc = end_range(r);
    if (rc)
        return rc;
    p.pRangeProfilerObject = r->object;
    snprintf(r->name, sizeof(r->name), "%09zu", r->pushed++);
    p.pRangeName = r->name;
    rc = KP_CALL(r->c, cuptiRangeProfilerPushRange, &p);
    r->open = !rc;
    return rc;
}

int kp_range_pop(struct kp_range *r)
{
    KP_PARAMS(CUpti_RangeProfiler_PopRange_Params, p);
    p.pRangeProfilerObject = r->object;
    int rc = KP_CALL(r->c, cuptiRangeProfilerPopRange, &p);
    r->open = rc != 0;
    return rc;
}

int kp_range_stop(struct kp_range *r, bool *last)
{
    KP_PARAMS(CUpti_RangeProfiler_Stop_Params, p);
    *last = false;
    if (!r->running)
        return 0;
    int rc = end_range(r);
    if (rc)
        return rc;
    r->running = false;
    p.pRangeProfilerObject = r->object;
    rc = KP_CALL(r->c, cuptiRangeProfilerStop, &p);
    *last = p.isAllPassSubmitted != 0;
    r->next = rc ? KP_TURN_UNKNOWN : p.passIndex;
    return rc;
}

size_t kp_range_turn(const struct kp_range *r)
{
    return r->next;
}

int kp_range_skip(struct kp_range *r, size_t pass)
{
    bool last;
    size_t before = r->next;
    while (r->next != pass) {
        int rc = kp_range_start(r);
        if (!rc)
            rc = kp_range_stop(r, &last);
        if (rc)
            return rc;
        if (r->next == before) /* all the way round: there is no such pass */
            return -EINVAL;
    }
    return 0;
}

bool kp_range_runs(const struct kp_range *r)
{
    return r->running;
}

int kp_range_decode(struct kp_range *r, size_t *n, size_t *dropped)
{
    KP_PARAMS(CUpti_RangeProfiler_DecodeData_Params, d);
    d.pRangeProfilerObject = r->object;
    int rc = KP_CALL(r->c, cuptiRangeProfilerDecodeData, &d);
    if (rc)
        return rc;
    KP_PARAMS(CUpti_RangeProfiler_GetCounterDataInfo_Params, i);
    i.pCounterDataImage = r->image->data;
    i.counterDataImageSize = r->image->size;
    rc = KP_CALL(r->c, cuptiRangeProfilerGetCounterDataInfo, &i);
    *n = i.numTotalRanges;
    *dropped = d.numOfRangeDropped;
    return rc;
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
    int rc = KP_CALL(c, cuptiCheckpointSave, &k->abi);
    if (rc) {
        free(k);
        return rc;
    }
    *out = k;
    return 0;
}

int kp_checkpoint_restore(struct kp_checkpoint *k)
{
    return KP_CALL(k->c, cuptiCheckpointRestore, &k->abi);
}

void kp_checkpoint_free(struct kp_checkpoint *k)
{
    if (!k)
        return;
    KP_CALL(k->c, cuptiCheckpointFree, &k->abi);
    free(k);
}

void kp_checkpoint_abandon(struct kp_checkpoint *k)
{
    free(k);
}
