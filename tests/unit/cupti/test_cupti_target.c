/* The target side over a table of CUPTI functions that log their calls and fail where a test says: what is entered is
 * left again, whatever fails. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cupti/internal.h"
#include "cupti/target.h"

enum { FAILS = CUPTI_ERROR_UNKNOWN, IMAGE = 64, EACH = 100, FRESH = 0x11, DIRTY = 0x77 };

static CUcontext const context = (CUcontext)(uintptr_t)0xc0;

static struct {
    const char *fails; /* the function that fails */
    char log[1024];
    uint8_t *image; /* as configured */
    const uint8_t *config;
    size_t image_size, ranges; /* of the last size asked for, of the last configuration */
    size_t n_metrics;          /* of the last size asked for */
    int range, replay, last;
    size_t pass;
    size_t total, dropped;
} cupti;

static CUptiResult call(const char *function)
{
    size_t n = strlen(cupti.log);
    snprintf(cupti.log + n, sizeof(cupti.log) - n, "%s%s", n ? " " : "", function);
    return cupti.fails && !strcmp(cupti.fails, function) ? (CUptiResult)FAILS : CUPTI_SUCCESS;
}

/* What was called since the last look. */
static void assert_calls(const char *expected)
{
    assert_string_equal(cupti.log, expected);
    cupti.log[0] = '\0';
}

static CUptiResult CUPTIAPI enable(CUpti_RangeProfiler_Enable_Params *p)
{
    assert_ptr_equal(p->ctx, context);
    p->pRangeProfilerObject = (CUpti_RangeProfiler_Object *)&cupti;
    return call("enable");
}

static CUptiResult CUPTIAPI disable(CUpti_RangeProfiler_Disable_Params *p)
{
    assert_ptr_equal(p->pRangeProfilerObject, &cupti);
    return call("disable");
}

/* A metric more takes a byte more of each range. */
static CUptiResult CUPTIAPI data_size(CUpti_RangeProfiler_GetCounterDataSize_Params *p)
{
    assert_ptr_equal(p->pRangeProfilerObject, &cupti);
    assert_true(p->maxNumRangeTreeNodes >= p->maxNumOfRanges);
    cupti.n_metrics = p->numMetrics;
    p->counterDataSize = cupti.image_size = IMAGE + p->maxNumOfRanges * (EACH + p->numMetrics);
    return call("size");
}

/* As the library does, for the metrics that it was last asked the size for: their number is the first byte. */
static CUptiResult CUPTIAPI data_initialize(CUpti_RangeProfiler_CounterDataImage_Initialize_Params *p)
{
    assert_ptr_equal(p->pRangeProfilerObject, &cupti);
    assert_int_equal(p->counterDataSize, cupti.image_size);
    memset(p->pCounterData, FRESH, p->counterDataSize);
    p->pCounterData[0] = (uint8_t)cupti.n_metrics;
    return call("initialize");
}

static CUptiResult CUPTIAPI set_config(CUpti_RangeProfiler_SetConfig_Params *p)
{
    cupti.image = p->pCounterDataImage;
    cupti.image_size = p->counterDataImageSize;
    cupti.ranges = p->maxRangesPerPass;
    cupti.config = p->pConfig;
    assert_int_equal(p->configSize, 8);
    cupti.range = (int)p->range;
    cupti.replay = (int)p->replayMode;
    cupti.pass = p->passIndex;
    assert_int_equal(p->numNestingLevels, 1);
    return call("config");
}

static CUptiResult CUPTIAPI start(CUpti_RangeProfiler_Start_Params *p)
{
    assert_ptr_equal(p->pRangeProfilerObject, &cupti);
    return call("start");
}

static CUptiResult CUPTIAPI stop(CUpti_RangeProfiler_Stop_Params *p)
{
    p->isAllPassSubmitted = (uint8_t)cupti.last;
    return call("stop");
}

static CUptiResult CUPTIAPI push(CUpti_RangeProfiler_PushRange_Params *p)
{
    assert_non_null(p->pRangeName);
    return call("push");
}

static CUptiResult CUPTIAPI pop(CUpti_RangeProfiler_PopRange_Params *p)
{
    assert_ptr_equal(p->pRangeProfilerObject, &cupti);
    return call("pop");
}

static CUptiResult CUPTIAPI decode(CUpti_RangeProfiler_DecodeData_Params *p)
{
    p->numOfRangeDropped = cupti.dropped;
    return call("decode");
}

static CUptiResult CUPTIAPI info(CUpti_RangeProfiler_GetCounterDataInfo_Params *p)
{
    assert_ptr_equal(p->pCounterDataImage, cupti.image);
    assert_int_equal(p->counterDataImageSize, cupti.image_size);
    p->numTotalRanges = cupti.total;
    return call("info");
}

static CUptiResult CUPTIAPI availability(CUpti_Profiler_GetCounterAvailability_Params *p)
{
    CUptiResult rc = call(p->pCounterAvailabilityImage ? "fill" : "measure");
    p->counterAvailabilityImageSize = IMAGE;
    if (p->pCounterAvailabilityImage)
        memset(p->pCounterAvailabilityImage, FRESH, IMAGE);
    return rc;
}

static CUptiResult save(kp_checkpoint_abi *const handle)
{
    assert_ptr_equal(handle->ctx, context);
    assert_int_equal(handle->structSize, KP_CHECKPOINT_ABI_SIZE);
    handle->pPriv = &cupti;
    return call("save");
}

static CUptiResult restore(kp_checkpoint_abi *const handle)
{
    assert_ptr_equal(handle->pPriv, &cupti);
    return call("restore");
}

static CUptiResult release(kp_checkpoint_abi *const handle)
{
    assert_ptr_equal(handle->pPriv, &cupti);
    return call("release");
}

/* ---- activity: a flush hands one buffer over, which holds `kernels` records and one of another kind ---- */

static struct {
    CUpti_BuffersCallbackRequestFunc request;
    CUpti_BuffersCallbackCompleteFunc complete;
    unsigned kernels, next;
    CUpti_ActivityKernel10 record;
    union {
        CUpti_Activity head;
        CUpti_ActivityMemcpy6 copy;
        CUpti_ActivityMemset4 set;
        CUpti_ActivityMemcpyPtoP4 peers;
    } other;
} activity;

static CUptiResult CUPTIAPI register_callbacks(CUpti_BuffersCallbackRequestFunc request,
                                               CUpti_BuffersCallbackCompleteFunc complete)
{
    activity.request = request;
    activity.complete = complete;
    return call("register");
}

/* The calls for the kinds that a watch has besides kernels. */
static const char *word_of(CUpti_ActivityKind kind, const char *kernels, const char *others)
{
    assert_true(kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL || kind == CUPTI_ACTIVITY_KIND_MEMCPY ||
                kind == CUPTI_ACTIVITY_KIND_MEMCPY2 || kind == CUPTI_ACTIVITY_KIND_MEMSET);
    return kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL ? kernels : others;
}

static CUptiResult CUPTIAPI activity_enable(CUpti_ActivityKind kind)
{
    return call(word_of(kind, "activity", "more"));
}

static CUptiResult CUPTIAPI activity_disable(CUpti_ActivityKind kind)
{
    return call(word_of(kind, "inactivity", "less"));
}

static CUptiResult CUPTIAPI timestamp(uint64_t *ns)
{
    *ns = 12345;
    return call("clock");
}

static CUptiResult CUPTIAPI count_dropped(CUcontext ctx, uint32_t stream, size_t *dropped)
{
    (void)ctx;
    (void)stream;
    *dropped = 3;
    return CUPTI_SUCCESS;
}

static CUptiResult CUPTIAPI next_record(uint8_t *buffer, size_t valid, CUpti_Activity **record)
{
    assert_non_null(buffer);
    assert_true(valid > 0);
    if (activity.next > activity.kernels)
        return CUPTI_ERROR_MAX_LIMIT_REACHED;
    if (activity.next++ == 1) {
        if (!activity.other.head.kind)
            activity.other.head.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
        *record = &activity.other.head;
        return CUPTI_SUCCESS;
    }
    activity.record.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    activity.record.name = "_Z6kernelPf";
    activity.record.sharedMemoryExecuted = 32768;
    activity.record.registersPerThread = 40;
    activity.record.blockX = 64;
    activity.record.blockY = 2;
    activity.record.blockZ = 1;
    activity.record.dynamicSharedMemory = 400 + (int)activity.next;
    activity.record.gridX = 5;
    activity.record.start = 1000 + activity.next;
    activity.record.end = 2000;
    activity.record.deviceId = 1;
    activity.record.contextId = 2;
    activity.record.streamId = 3;
    activity.record.correlationId = 4;
    activity.record.graphId = 6;
    *record = (CUpti_Activity *)&activity.record;
    return CUPTI_SUCCESS;
}

static CUptiResult CUPTIAPI flush(uint32_t flag)
{
    uint8_t *buffer = NULL;
    size_t size = 0, most = 1;
    if (flag != CUPTI_ACTIVITY_FLAG_FLUSH_FORCED)
        return call("pour");
    activity.request(&buffer, &size, &most);
    assert_non_null(buffer);
    assert_int_equal((uintptr_t)buffer % 8, 0);
    activity.complete(NULL, 0, buffer, size, size);
    return call("flush");
}

static const struct kp_cupti table = {
    .cuptiRangeProfilerEnable = enable,
    .cuptiRangeProfilerDisable = disable,
    .cuptiRangeProfilerGetCounterDataSize = data_size,
    .cuptiRangeProfilerCounterDataImageInitialize = data_initialize,
    .cuptiRangeProfilerSetConfig = set_config,
    .cuptiRangeProfilerStart = start,
    .cuptiRangeProfilerStop = stop,
    .cuptiRangeProfilerPushRange = push,
    .cuptiRangeProfilerPopRange = pop,
    .cuptiRangeProfilerDecodeData = decode,
    .cuptiRangeProfilerGetCounterDataInfo = info,
    .cuptiProfilerGetCounterAvailability = availability,
    .cuptiActivityRegisterCallbacks = register_callbacks,
    .cuptiActivityEnable = activity_enable,
    .cuptiActivityDisable = activity_disable,
    .cuptiActivityGetNextRecord = next_record,
    .cuptiActivityFlushAll = flush,
    .cuptiActivityGetNumDroppedRecords = count_dropped,
    .cuptiGetTimestamp = timestamp,
    .cuptiCheckpointSave = save,
    .cuptiCheckpointRestore = restore,
    .cuptiCheckpointFree = release,
};

static int reset(void **state)
{
    (void)state;
    memset(&cupti, 0, sizeof(cupti));
    return 0;
}

static const char *names[] = {"sm__cycles_active.avg", "dram__bytes.sum"};
static uint8_t config_image[8], other_image[8];
static const struct kp_config
    config = {.image = config_image, .size = sizeof(config_image), .passes = 2, .names = names, .n_names = 1},
    other = {.image = other_image, .size = sizeof(other_image), .passes = 1, .names = names, .n_names = 2};

static struct kp_range *open_range(void)
{
    struct kp_range *r = NULL;
    assert_int_equal(kp_range_open(&table, context, &r), 0);
    assert_calls("enable");
    return r;
}

static struct kp_image *make_image(const struct kp_range *r, const struct kp_config *c, size_t ranges)
{
    struct kp_image *i = NULL;
    assert_int_equal(kp_image_make(r, c, ranges, &i), 0);
    assert_calls("size size initialize");
    assert_int_equal(kp_image_ranges(i), ranges);
    return i;
}

/* ---- images ---- */

static void test_image(void **state)
{
    struct kp_range *r = open_range();
    struct kp_image *i = make_image(r, &other, 3);
    const uint8_t *data;
    size_t size, bytes;
    (void)state;
    kp_image_data(i, &data, &size);
    assert_int_equal(size, IMAGE + 3 * (EACH + 2));
    assert_int_equal(kp_image_bytes(r, &other, 3, &bytes), 0);
    assert_int_equal(bytes, 2 * size);
    assert_int_equal(kp_image_bytes(r, &config, 500, &bytes), 0);
    assert_int_equal(bytes, 2 * (IMAGE + 500 * (EACH + 1)));
    assert_calls("size size");
    cupti.fails = "size";
    assert_int_equal(kp_image_bytes(r, &config, 1, &bytes), FAILS);
    kp_image_free(i);
    kp_image_free(NULL);
    kp_range_close(r);
}

static void test_image_fails(void **state)
{
    static const struct {
        const char *fails, *calls;
    } rows[] = {{"size", "size"}, {"initialize", "size size initialize"}};
    struct kp_range *r = open_range();
    (void)state;
    for (size_t k = 0; k < sizeof(rows) / sizeof(*rows); k++) {
        struct kp_image *i = (struct kp_image *)1;
        cupti.fails = rows[k].fails;
        assert_int_equal(kp_image_make(r, &config, 3, &i), FAILS);
        assert_null(i);
        assert_calls(rows[k].calls);
    }
    kp_range_close(r);
}

/* ---- range profiler ---- */

static void test_auto_range(void **state)
{
    struct kp_range *r = open_range();
    struct kp_image *i = make_image(r, &config, 3);
    const uint8_t *data;
    size_t size, n, dropped;
    bool last = true;
    (void)state;
    assert_int_equal(kp_range_begin(r, KP_RANGE_AUTO, i), 0);
    assert_int_equal(cupti.range, CUPTI_AutoRange);
    assert_int_equal(cupti.replay, CUPTI_UserReplay);
    assert_int_equal(cupti.ranges, 3);
    assert_ptr_equal(cupti.config, config_image);
    assert_int_equal(kp_range_start(r), 0);
    assert_int_equal(kp_range_stop(r, &last), 0);
    assert_false(last);
    cupti.last = 1;
    assert_int_equal(kp_range_start(r), 0);
    assert_int_equal(kp_range_stop(r, &last), 0);
    assert_true(last);
    cupti.total = 3;
    cupti.dropped = 2;
    assert_int_equal(kp_range_decode(r, &n, &dropped), 0);
    assert_int_equal(n, 3);
    assert_int_equal(dropped, 2);
    kp_image_data(i, &data, &size);
    assert_ptr_equal(data, cupti.image);
    assert_int_equal(size, cupti.image_size);
    assert_calls("config start stop start stop decode info");
    kp_image_free(i);
    kp_range_close(r);
    assert_calls("disable");
}

/* Ranges are opened and closed around each launch that has a result. */
static void test_user_range(void **state)
{
    struct kp_range *r = open_range();
    struct kp_image *i = make_image(r, &config, 2);
    bool last;
    (void)state;
    assert_int_equal(kp_range_begin(r, KP_RANGE_USER, i), 0);
    assert_int_equal(cupti.range, CUPTI_UserRange);
    assert_int_equal(cupti.replay, CUPTI_UserReplay);
    assert_int_equal(kp_range_start(r), 0);
    for (int k = 0; k < 2; k++) {
        assert_int_equal(kp_range_push(r), 0);
        assert_int_equal(kp_range_pop(r), 0);
    }
    assert_int_equal(kp_range_stop(r, &last), 0);
    assert_calls("config start push pop push pop stop");
    cupti.fails = "push";
    assert_int_equal(kp_range_push(r), FAILS);
    cupti.fails = "pop";
    assert_int_equal(kp_range_pop(r), FAILS);
    kp_image_free(i);
    kp_range_close(r);
}

/* The image last configured is as the library initialises it for the metrics of `c`; then it is written to. */
static void use_up(const struct kp_config *c)
{
    assert_ptr_equal(cupti.config, c->image);
    assert_int_equal(cupti.image[0], c->n_names);
    for (size_t b = 1; b < cupti.image_size; b++)
        assert_int_equal(cupti.image[b], FRESH);
    memset(cupti.image, DIRTY, cupti.image_size);
}

/* A pass of several runs takes up the image that the run before has left in a file. */
static void test_resume(void **state)
{
    char folder[] = "/tmp/kprof-test.XXXXXX", path[64];
    struct kp_range *r = open_range();
    struct kp_image *i = make_image(r, &config, 3), *j = make_image(r, &config, 3), *k = make_image(r, &config, 4);
    const uint8_t *data;
    size_t size;
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/image", folder);
    assert_int_equal(kp_range_begin(r, KP_RANGE_AUTO, i), 0);
    assert_int_equal(cupti.pass, 0);
    memset(cupti.image, DIRTY, cupti.image_size);
    assert_int_equal(kp_image_read(j, path), -ENOENT);
    assert_int_equal(kp_image_write(i, path), 0);
    assert_int_equal(kp_image_write(i, path), -EEXIST);
    assert_int_equal(kp_image_read(k, path), -EINVAL); /* of another room */
    assert_int_equal(kp_image_read(j, path), 0);
    assert_int_equal(cupti.replay, CUPTI_UserReplay);
    assert_int_equal(kp_range_resume(r, KP_RANGE_AUTO, j, 2), 0);
    assert_int_equal(cupti.pass, 2);
    assert_int_equal(cupti.replay, CUPTI_ApplicationReplay);
    kp_image_data(j, &data, &size);
    assert_ptr_equal(data, cupti.image);
    for (size_t b = 0; b < size; b++)
        assert_int_equal(data[b], DIRTY); /* not emptied */
    assert_calls("config config");
    assert_int_equal(kp_range_resume(r, KP_RANGE_AUTO, j, 0), 0); /* for another launch, it is */
    assert_int_equal(cupti.replay, CUPTI_ApplicationReplay);
    assert_calls("size initialize config");
    use_up(&config);
    unlink(path);
    rmdir(folder);
    kp_image_free(i);
    kp_image_free(j);
    kp_image_free(k);
    kp_range_close(r);
}

/* Each collection begins with the data as it was initialised, whatever the last one left: what is used once is not
 * copied, what is used again is initialised once more, and from then on copied. */
static void test_begin_empties(void **state)
{
    static const char *const calls[] = {"config", "size initialize config", "config", "config"};
    struct kp_range *r = open_range();
    struct kp_image *i = make_image(r, &config, 3);
    (void)state;
    for (size_t k = 0; k < sizeof(calls) / sizeof(*calls); k++) {
        assert_int_equal(kp_range_begin(r, KP_RANGE_AUTO, i), 0);
        assert_calls(calls[k]);
        use_up(&config);
    }
    kp_image_free(i);
    kp_range_close(r);
}

/* The library initialises for the metrics that it was last asked about, which may be another list's. */
static void test_begin_empties_in_turn(void **state)
{
    struct kp_range *r = open_range();
    struct kp_image *first = make_image(r, &config, 3), *second = make_image(r, &other, 3);
    size_t bytes;
    (void)state;
    for (int k = 0; k < 3; k++) {
        assert_int_equal(kp_range_begin(r, KP_RANGE_AUTO, first), 0);
        use_up(&config);
        assert_int_equal(kp_range_begin(r, KP_RANGE_AUTO, second), 0);
        use_up(&other);
        assert_int_equal(kp_image_bytes(r, &other, 7, &bytes), 0);
    }
    kp_image_free(first);
    kp_image_free(second);
    kp_range_close(r);
}

/* An image that could not be emptied is not collected into, and is tried again. */
static void test_begin_cannot_empty(void **state)
{
    static const char *const fails[] = {"size", "initialize"};
    struct kp_range *r = open_range();
    struct kp_image *i = make_image(r, &config, 2);
    (void)state;
    assert_int_equal(kp_range_begin(r, KP_RANGE_AUTO, i), 0);
    use_up(&config);
    assert_calls("config");
    for (size_t k = 0; k < sizeof(fails) / sizeof(*fails); k++) {
        cupti.fails = fails[k];
        assert_int_equal(kp_range_begin(r, KP_RANGE_AUTO, i), FAILS);
        assert_calls(k ? "size initialize" : "size");
    }
    cupti.fails = NULL;
    assert_int_equal(kp_range_begin(r, KP_RANGE_AUTO, i), 0);
    assert_calls("size initialize config");
    use_up(&config);
    kp_image_free(i);
    kp_range_close(r);
}

/* One profiler, several lists of counters and numbers of ranges: what one left is not touched by the next. */
static void test_images_in_turn(void **state)
{
    struct kp_range *r = open_range();
    struct kp_image *first = make_image(r, &config, 3), *second = make_image(r, &other, 5);
    const uint8_t *data;
    size_t size, n, dropped;
    (void)state;
    assert_int_equal(kp_range_begin(r, KP_RANGE_AUTO, first), 0);
    kp_image_data(first, &data, &size);
    assert_ptr_equal(cupti.image, data);
    memset(cupti.image, DIRTY, size);
    assert_int_equal(kp_range_begin(r, KP_RANGE_AUTO, second), 0);
    assert_int_equal(cupti.ranges, 5);
    assert_ptr_equal(cupti.config, other_image);
    assert_int_equal(data[0], DIRTY);
    assert_int_equal(data[size - 1], DIRTY);
    cupti.total = 5;
    assert_int_equal(kp_range_decode(r, &n, &dropped), 0); /* of the second: see info */
    assert_int_equal(n, 5);
    kp_image_free(first);
    kp_image_free(second);
    kp_range_close(r);
}

static void test_open_fails(void **state)
{
    struct kp_range *r = (struct kp_range *)1;
    (void)state;
    cupti.fails = "enable";
    assert_int_equal(kp_range_open(&table, context, &r), FAILS);
    assert_null(r);
    assert_calls("enable");
    kp_range_close(NULL);
    kp_range_abandon(NULL);
}

static void test_begin_fails(void **state)
{
    struct kp_range *r = open_range();
    struct kp_image *i = make_image(r, &config, 1);
    (void)state;
    cupti.fails = "config";
    assert_int_equal(kp_range_begin(r, KP_RANGE_AUTO, i), FAILS);
    kp_image_free(i);
    kp_range_close(r);
}

/* A pass that did not start is not stopped. */
static void test_start_fails(void **state)
{
    struct kp_range *r = open_range();
    bool last = true;
    (void)state;
    cupti.fails = "start";
    assert_int_equal(kp_range_start(r), FAILS);
    assert_int_equal(kp_range_stop(r, &last), 0);
    assert_false(last);
    assert_calls("start");
    kp_range_close(r);
}

/* One that could not be stopped is over all the same. */
static void test_stop_fails(void **state)
{
    struct kp_range *r = open_range();
    bool last = true;
    (void)state;
    assert_int_equal(kp_range_start(r), 0);
    cupti.fails = "stop";
    assert_int_equal(kp_range_stop(r, &last), FAILS);
    assert_false(last);
    assert_int_equal(kp_range_stop(r, &last), 0);
    assert_calls("start stop");
    kp_range_close(r);
}

/* A range whose end failed is open still: it is ended before the pass, or the pass goes on, and then the profiler is
 * not disabled. */
static void test_pop_fails(void **state)
{
    bool last;
    (void)state;
    for (int for_good = 0; for_good < 2; for_good++) {
        struct kp_range *r = open_range();
        assert_int_equal(kp_range_start(r), 0);
        assert_int_equal(kp_range_push(r), 0);
        cupti.fails = "pop";
        assert_int_equal(kp_range_pop(r), FAILS);
        assert_int_equal(kp_range_push(r), FAILS);
        cupti.fails = for_good ? "pop" : NULL;
        assert_int_equal(kp_range_stop(r, &last), for_good ? FAILS : 0);
        assert_int_equal(kp_range_runs(r), for_good);
        assert_calls(for_good ? "start push pop pop pop" : "start push pop pop pop stop");
        assert_int_equal(kp_range_close(r), for_good ? FAILS : 0);
        assert_calls(for_good ? "pop" : "disable");
        cupti.fails = NULL;
    }
}

static void test_disable_fails(void **state)
{
    struct kp_range *r = open_range();
    (void)state;
    cupti.fails = "disable";
    assert_int_equal(kp_range_close(r), FAILS);
    assert_calls("disable");
}

static void test_decode_fails(void **state)
{
    struct kp_range *r = open_range();
    struct kp_image *i = make_image(r, &config, 1);
    size_t n = 0, dropped = 0;
    (void)state;
    assert_int_equal(kp_range_begin(r, KP_RANGE_AUTO, i), 0);
    cupti.fails = "decode";
    assert_int_equal(kp_range_decode(r, &n, &dropped), FAILS);
    cupti.fails = "info";
    assert_int_equal(kp_range_decode(r, &n, &dropped), FAILS);
    kp_image_free(i);
    kp_range_close(r);
}

/* The context is gone: only memory is given back. */
static void test_abandon(void **state)
{
    struct kp_range *r = open_range();
    (void)state;
    kp_range_abandon(r);
    assert_calls("");
}

/* ---- availability and checkpoint ---- */

static void test_availability(void **state)
{
    uint8_t *image = NULL;
    size_t size = 0;
    (void)state;
    assert_int_equal(kp_cupti_target_availability(&table, context, &image, &size), 0);
    assert_calls("measure fill");
    assert_int_equal(size, IMAGE);
    assert_int_equal(image[IMAGE - 1], FRESH);
    free(image);
    cupti.fails = "fill";
    assert_int_equal(kp_cupti_target_availability(&table, context, &image, &size), FAILS);
    assert_null(image);
    cupti.fails = "measure";
    assert_int_equal(kp_cupti_target_availability(&table, context, &image, &size), FAILS);
    assert_null(image);
}

static void test_checkpoint(void **state)
{
    struct kp_checkpoint *k = NULL;
    (void)state;
    assert_true(kp_checkpoint_available(&table));
    assert_int_equal(kp_checkpoint_save(&table, context, &k), 0);
    assert_int_equal(kp_checkpoint_restore(k), 0);
    assert_int_equal(kp_checkpoint_restore(k), 0);
    cupti.fails = "restore";
    assert_int_equal(kp_checkpoint_restore(k), FAILS);
    kp_checkpoint_free(k);
    assert_calls("save restore restore restore release");
    cupti.fails = "save";
    assert_int_equal(kp_checkpoint_save(&table, context, &k), FAILS);
    assert_null(k);
    kp_checkpoint_free(NULL);
    assert_calls("save");
    cupti.fails = NULL;
    assert_int_equal(kp_checkpoint_save(&table, context, &k), 0);
    kp_checkpoint_abandon(k); /* its context is gone, or must not be touched */
    kp_checkpoint_abandon(NULL);
    assert_calls("save");
}

/* ---- activity ---- */

static void test_activity(void **state)
{
    struct kp_executed records[3];
    size_t n = 99;
    (void)state;
    assert_true(kp_activity_available(&table));
    memset(records, 0, sizeof(records));
    activity.kernels = 2;
    activity.next = 0;
    assert_int_equal(kp_activity_begin(&table), 0);
    assert_calls("register activity");
    assert_int_equal(kp_activity_end(&table, records, 3, &n), 0);
    assert_calls("flush inactivity");
    assert_int_equal(n, 2);
    assert_string_equal(records[0].name, "_Z6kernelPf");
    assert_int_equal(records[0].shared_config_size, 32768);
    assert_int_equal(records[0].registers, 40);
    assert_int_equal(records[0].block[0], 64);
    assert_int_equal(records[0].block[1], 2);
    assert_int_equal(records[0].block[2], 1);
    assert_int_equal(records[0].dynamic_shared, 401);
    assert_int_equal(records[1].dynamic_shared, 403);

    activity.kernels = 9; /* more than there is room for; the callbacks are known by now */
    activity.next = 0;
    assert_int_equal(kp_activity_begin(&table), 0);
    assert_calls("activity");
    assert_int_equal(kp_activity_end(&table, records, 2, &n), 0);
    assert_int_equal(n, 2);
    assert_calls("flush inactivity");
}

/* Records that come when nobody asks go nowhere; what fails is said, and the kind is switched off all the same. */
static void test_activity_fails(void **state)
{
    struct kp_executed record = {.registers = 0};
    uint8_t *buffer = NULL;
    size_t size = 0, most = 0, n;
    (void)state;
    activity.next = activity.kernels + 1; /* an empty collection with room for a record */
    assert_int_equal(kp_activity_end(&table, &record, 1, &n), 0);
    assert_int_equal(n, 0);
    activity.kernels = 3;
    activity.next = 0;
    activity.request(&buffer, &size, &most);
    activity.complete(NULL, 0, buffer, size, size);
    assert_int_equal(record.registers, 0);
    cupti.fails = "activity";
    assert_int_equal(kp_activity_begin(&table), FAILS);
    cupti.fails = "flush";
    cupti.log[0] = '\0';
    assert_int_equal(kp_activity_end(&table, &record, 1, &n), FAILS);
    assert_calls("flush inactivity");
}

/* ---- the timeline ---- */

static struct kp_device_record told[8];
static char told_names[8][32];
static size_t n_told;

static void tell(const struct kp_device_record *r)
{
    snprintf(told_names[n_told], sizeof told_names[0], "%s", r->name);
    told[n_told++] = *r;
}

static size_t n_told_else;

static void tell_else(const struct kp_device_record *r)
{
    assert_non_null(r->name);
    n_told_else++;
}

static void test_watch(void **state)
{
    struct kp_executed records[3];
    size_t n;
    (void)state;
    memset(&activity.other, 0, sizeof activity.other);
    assert_true(kp_watch_available(&table));
    assert_true(kp_watch_now(&table) == 12345);
    cupti.log[0] = '\0';
    n_told = 0;
    cupti.fails = "more";
    assert_int_equal(kp_watch_begin(&table, tell, false), FAILS);
    assert_calls("activity more more more inactivity less less less");
    cupti.fails = NULL;
    assert_int_equal(kp_watch_begin(&table, tell, false), 0);
    assert_calls("activity more more more");

    activity.other.copy.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
    activity.other.copy.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_DTOH;
    activity.other.copy.bytes = 77;
    activity.other.copy.streamId = 8;
    activity.kernels = 2;
    activity.next = 0;
    assert_int_equal(kp_watch_flush(&table, true), 0);
    assert_int_equal(n_told, 3);
    assert_string_equal(told_names[0], "_Z6kernelPf");
    const struct kp_activity *a = &told[0].activity;
    assert_int_equal(a->kind, KP_ACTIVITY_KERNEL);
    assert_true(a->start_ns == 1001 && a->end_ns == 2000 && a->device == 1 && a->context_id == 2 && a->stream_id == 3);
    assert_true(a->correlation == 4 && a->graph == 6 && a->grid[0] == 5 && a->block[0] == 64 && a->ordinal == -1);
    assert_string_equal(told_names[1], "memcpy DtoH");
    assert_int_equal(told[1].activity.kind, KP_ACTIVITY_COPY);
    assert_int_equal(told[1].activity.bytes, 77);
    assert_int_equal(told[1].activity.stream_id, 8);
    assert_int_equal(kp_watch_dropped(), 3);

    /* other kinds, and a copy kind that CUPTI may add */
    static const struct {
        CUpti_ActivityKind kind;
        const char *name;
        enum kp_activity_kind as;
    } others[] = {{CUPTI_ACTIVITY_KIND_MEMSET, "memset", KP_ACTIVITY_SET},
                  {CUPTI_ACTIVITY_KIND_MEMCPY2, "memcpy PtoP", KP_ACTIVITY_COPY},
                  {CUPTI_ACTIVITY_KIND_MEMCPY, "memcpy", KP_ACTIVITY_COPY}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        memset(&activity.other, 0, sizeof activity.other);
        activity.other.head.kind = others[i].kind;
        if (others[i].kind == CUPTI_ACTIVITY_KIND_MEMCPY)
            activity.other.copy.copyKind = 200;
        activity.kernels = 1;
        activity.next = n_told = 0;
        kp_watch_flush(&table, true);
        assert_int_equal(n_told, 2);
        assert_string_equal(told_names[1], others[i].name);
        assert_int_equal(told[1].activity.kind, others[i].as);
    }

    /* a probe goes on beside it, and leaves the kinds on */
    cupti.log[0] = '\0';
    activity.kernels = 1;
    activity.next = n_told = 0;
    assert_int_equal(kp_activity_begin(&table), 0);
    assert_calls("pour activity");
    assert_int_equal(kp_activity_end(&table, records, 3, &n), 0);
    assert_calls("flush");
    assert_int_equal(n, 1);
    assert_int_equal(n_told, 2);
    assert_int_equal(kp_watch_pause(&table), 0);
    assert_calls("pour inactivity less less less");
    assert_int_equal(kp_activity_begin(&table), 0);
    activity.next = 0;
    assert_int_equal(kp_activity_end(&table, records, 3, &n), 0);
    assert_calls("pour activity flush inactivity"); /* a probe alone */
    assert_int_equal(kp_watch_resume(&table), 0);
    assert_calls("activity more more more");

    /* both receivers get the records, and the second leaves the kinds on */
    activity.kernels = 1;
    activity.next = n_told = n_told_else = 0;
    assert_int_equal(kp_activity_on(&table, tell_else), 0);
    assert_int_equal(kp_activity_off(&table), 0);
    kp_watch_flush(&table, true);
    assert_calls("flush");
    assert_true(n_told == 2 && n_told_else == 2);
    assert_int_equal(told[0].dynamic_shared, 401);
    kp_watch_pause(&table);
    cupti.log[0] = '\0';

    /* kernels alone */
    assert_int_equal(kp_watch_begin(&table, tell, true), 0);
    assert_int_equal(kp_watch_pause(&table), 0);
    assert_calls("activity pour inactivity");
}

/* Without a buffer CUPTI drops records; it never holds more than 64. */
static void test_buffers_are_bounded(void **state)
{
    uint8_t *buffers[80];
    size_t size, most;
    (void)state;
    for (int i = 0; i < 80; i++) {
        activity.request(&buffers[i], &size, &most);
        assert_int_equal(buffers[i] != NULL, i < 64);
        assert_int_equal(size, i < 64 ? 1 << 20 : 0);
    }
    for (int i = 0; i < 64; i++)
        activity.complete(NULL, 0, buffers[i], size, 0);
    activity.request(&buffers[0], &size, &most);
    assert_non_null(buffers[0]);
    activity.complete(NULL, 0, buffers[0], size, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_image, reset),
        cmocka_unit_test_setup(test_image_fails, reset),
        cmocka_unit_test_setup(test_auto_range, reset),
        cmocka_unit_test_setup(test_user_range, reset),
        cmocka_unit_test_setup(test_resume, reset),
        cmocka_unit_test_setup(test_begin_empties, reset),
        cmocka_unit_test_setup(test_images_in_turn, reset),
        cmocka_unit_test_setup(test_begin_empties_in_turn, reset),
        cmocka_unit_test_setup(test_begin_cannot_empty, reset),
        cmocka_unit_test_setup(test_open_fails, reset),
        cmocka_unit_test_setup(test_begin_fails, reset),
        cmocka_unit_test_setup(test_start_fails, reset),
        cmocka_unit_test_setup(test_stop_fails, reset),
        cmocka_unit_test_setup(test_pop_fails, reset),
        cmocka_unit_test_setup(test_disable_fails, reset),
        cmocka_unit_test_setup(test_decode_fails, reset),
        cmocka_unit_test_setup(test_abandon, reset),
        cmocka_unit_test_setup(test_availability, reset),
        cmocka_unit_test_setup(test_checkpoint, reset),
        cmocka_unit_test_setup(test_activity, reset),
        cmocka_unit_test_setup(test_activity_fails, reset),
        cmocka_unit_test_setup(test_watch, reset),
        cmocka_unit_test_setup(test_buffers_are_bounded, reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
