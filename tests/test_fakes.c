/* The look-alikes that the other tests trust: that they keep what they promise, and notice what they must notice. Each
 * case runs in a child, as misuse ends the process; the driver is opened there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <cuda.h>
#include <cudaTypedefs.h>
#include <cupti_profiler_host.h>
#include <cupti_range_profiler.h>
#include <cupti_target.h>
#include <dlfcn.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cupti/checkpoint_abi.h"
#include "tests/fake/fake_hooks.h"
#include "tests/fake/fake_image.h"

enum { RIGHT = 0, WRONG = 1, SKIPPED = 77 };

/* In a child: ends it when the condition does not hold. */
#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                                            \
            _exit(WRONG);                                                                                              \
        }                                                                                                              \
    } while (0)

static int run_child(void (*body)(void))
{
    int status;
    pid_t pid;

    fflush(NULL);
    pid = fork();
    if (!pid) {
        signal(SIGSEGV, SIG_DFL); /* cmocka's handler would go on with the tests in here */
        signal(SIGBUS, SIG_DFL);
        alarm(60);
        body();
        _exit(RIGHT);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
        return -1;
    return WEXITSTATUS(status);
}

static void *open_fake(const char *name)
{
    const char *build = getenv("KP_TEST_BUILD");
    char path[PATH_MAX];
    void *handle;

    snprintf(path, sizeof(path), "%s/fake/%s", build ? build : "build", name);
    handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        fprintf(stderr, "%s\n", dlerror());
    CHECK(handle);
    return handle;
}

/* A function of a fake, typed as its declaration. */
#define TAKE(handle, function)                                                                                         \
    __extension__({                                                                                                    \
        __typeof__(&function) function_;                                                                               \
        *(void **)&function_ = dlsym(handle, EXPORTED(function));                                                      \
        CHECK(function_);                                                                                              \
        function_;                                                                                                     \
    })
#define EXPORTED_(name) #name
#define EXPORTED(name)  EXPORTED_(name)

enum { N = 64 };

static struct {
    void *cuda;
    CUcontext ctx;
    CUmodule module;
    CUfunction increment, atomic_count;
    CUdeviceptr values;
    int n;
} gpu;

static void open_gpu(void)
{
    gpu.cuda = open_fake("libcuda.so.1");
    CHECK(!TAKE(gpu.cuda, cuInit)(0));
    CHECK(!TAKE(gpu.cuda, cuDevicePrimaryCtxRetain)(&gpu.ctx, 0));
    CHECK(!TAKE(gpu.cuda, cuCtxSetCurrent)(gpu.ctx));
    CHECK(!TAKE(gpu.cuda, cuModuleLoadData)(&gpu.module, "FAKEMOD increment atomic_count fail"));
    CHECK(!TAKE(gpu.cuda, cuModuleGetFunction)(&gpu.increment, gpu.module, "increment"));
    CHECK(!TAKE(gpu.cuda, cuModuleGetFunction)(&gpu.atomic_count, gpu.module, "atomic_count"));
    CHECK(!TAKE(gpu.cuda, cuMemAlloc)(&gpu.values, N * sizeof(int)));
    CHECK(!TAKE(gpu.cuda, cuMemsetD8)(gpu.values, 0, N * sizeof(int)));
    gpu.n = N;
}

static void launch(CUfunction f)
{
    void *params[] = {&gpu.values, &gpu.n};

    CHECK(!TAKE(gpu.cuda, cuLaunchKernel)(f, 1, 1, 1, N, 1, 1, 0, NULL, params, NULL));
}

static int value_at(int index)
{
    int value;

    CHECK(!TAKE(gpu.cuda, cuMemcpyDtoH)(&value, gpu.values + index * sizeof(int), sizeof(value)));
    return value;
}

static void body_restore(void)
{
    kp_checkpoint_abi saved = {.structSize = KP_CHECKPOINT_ABI_SIZE};
    CUdeviceptr large;
    void *library;
    int marker = 7, value = 0;

    open_gpu();
    library = open_fake("libcheckpoint.so");
    CHECK(!TAKE(gpu.cuda, cuMemAlloc)(&large, (size_t)64 << 20));
    CHECK(!TAKE(gpu.cuda, cuMemcpyHtoD)(large + (1 << 20), &marker, sizeof(marker)));
    saved.ctx = gpu.ctx;
    launch(gpu.increment);
    CHECK(!TAKE(library, cuptiCheckpointSave)(&saved));
    for (int i = 0; i < 3; i++) {
        launch(gpu.increment);
        CHECK(!TAKE(gpu.cuda, cuMemsetD8)(large, 0xff, (size_t)64 << 20));
        CHECK(value_at(N - 1) == 2);
        CHECK(!TAKE(library, cuptiCheckpointRestore)(&saved));
        CHECK(value_at(N - 1) == 1);
    }
    CHECK(!TAKE(gpu.cuda, cuMemcpyDtoH)(&value, large + (1 << 20), sizeof(value)) && value == marker);
    CHECK(!TAKE(gpu.cuda, cuMemcpyDtoH)(&value, large + (2 << 20), sizeof(value)) && value == 0);
    CHECK(!TAKE(library, cuptiCheckpointFree)(&saved));
    CHECK(TAKE(library, cuptiCheckpointRestore)(&saved) == CUPTI_ERROR_INVALID_OPERATION);
}

static void body_restore_freed(void)
{
    kp_checkpoint_abi saved = {.structSize = KP_CHECKPOINT_ABI_SIZE};
    void *library;

    open_gpu();
    library = open_fake("libcheckpoint.so");
    saved.ctx = gpu.ctx;
    CHECK(!TAKE(library, cuptiCheckpointSave)(&saved));
    CHECK(!TAKE(gpu.cuda, cuMemFree)(gpu.values));
    TAKE(library, cuptiCheckpointRestore)(&saved);
}

static void body_no_arguments(void)
{
    open_gpu();
    TAKE(gpu.cuda, cuLaunchKernel)(gpu.increment, 1, 1, 1, N, 1, 1, 0, NULL, NULL, NULL);
}

static void body_freed_pointer(void)
{
    open_gpu();
    CHECK(!TAKE(gpu.cuda, cuMemFree)(gpu.values));
    launch(gpu.increment);
}

static void body_unloaded_module(void)
{
    open_gpu();
    CHECK(!TAKE(gpu.cuda, cuModuleUnload)(gpu.module));
    launch(gpu.increment);
}

static void body_context_gone(void)
{
    open_gpu();
    CHECK(!TAKE(gpu.cuda, cuDevicePrimaryCtxReset)(0));
    launch(gpu.increment);
}

static void body_written_beyond(void)
{
    open_gpu();
    ((char *)gpu.values)[N * sizeof(int)] = 1;
    TAKE(gpu.cuda, cuMemFree)(gpu.values);
}

static void body_injected(void)
{
    CUdeviceptr p;

    setenv("FAKE_FAIL", "cuMemFree_v2:1,cuMemAlloc_v2:2:3", 1);
    open_gpu(); /* the first allocation */
    CHECK(!TAKE(gpu.cuda, cuMemAlloc)(&p, 16));
    CHECK(TAKE(gpu.cuda, cuMemAlloc)(&p, 16) == CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(!TAKE(gpu.cuda, cuMemAlloc)(&p, 16));
    CHECK(TAKE(gpu.cuda, cuMemFree)(p) == CUDA_ERROR_INVALID_VALUE);
}

static void body_sticky(void)
{
    CUfunction fail;

    open_gpu();
    CHECK(!TAKE(gpu.cuda, cuModuleGetFunction)(&fail, gpu.module, "fail"));
    CHECK(!TAKE(gpu.cuda, cuLaunchKernel)(fail, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    CHECK(TAKE(gpu.cuda, cuCtxSynchronize)() == CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK(TAKE(gpu.cuda, cuMemFree)(gpu.values) == CUDA_ERROR_ILLEGAL_ADDRESS);
}

static void body_before_init(void)
{
    int n;

    gpu.cuda = open_fake("libcuda.so.1");
    CHECK(TAKE(gpu.cuda, cuDeviceGetCount)(&n) == CUDA_ERROR_NOT_INITIALIZED);
}

/* --- the range profiler --- */

static const char *metrics[] = {"sm__throughput.avg.pct_of_peak_sustained_elapsed", "gpu__time_duration.sum",
                                "lts__t_sectors.sum", "l1tex__t_sectors.sum",
                                "dram__throughput.avg.pct_of_peak_sustained_elapsed"};
enum { N_METRICS = sizeof(metrics) / sizeof(metrics[0]), MAX_RANGES = 3 };

static struct {
    void *cupti;
    CUpti_Profiler_Host_Object *host;
    CUpti_RangeProfiler_Object *object;
    uint8_t *config, *image;
    size_t config_size, image_size, passes, dropped, n_ranges;
    bool all;
} prof;

#define PARAMS(type, name) type name = {.structSize = type##_STRUCT_SIZE}
#define CALL(function, params)                                                                                         \
    do {                                                                                                               \
        CUptiResult result_ = TAKE(prof.cupti, function)(params);                                                      \
        if (result_)                                                                                                   \
            fprintf(stderr, "%s: %d\n", #function, (int)result_);                                                      \
        CHECK(!result_);                                                                                               \
    } while (0)

static void make_config(const char *chip)
{
    PARAMS(CUpti_Profiler_Host_Initialize_Params, init);
    PARAMS(CUpti_Profiler_Host_ConfigAddMetrics_Params, add);
    PARAMS(CUpti_Profiler_Host_GetConfigImageSize_Params, size);
    PARAMS(CUpti_Profiler_Host_GetConfigImage_Params, get);
    PARAMS(CUpti_Profiler_Host_GetNumOfPasses_Params, passes);

    init.profilerType = CUPTI_PROFILER_TYPE_RANGE_PROFILER;
    init.pChipName = chip;
    CALL(cuptiProfilerHostInitialize, &init);
    prof.host = add.pHostObject = size.pHostObject = get.pHostObject = init.pHostObject;
    add.ppMetricNames = metrics;
    add.numMetrics = N_METRICS;
    CALL(cuptiProfilerHostConfigAddMetrics, &add);
    CALL(cuptiProfilerHostGetConfigImageSize, &size);
    prof.config_size = get.configImageSize = passes.configImageSize = size.configImageSize;
    prof.config = get.pConfigImage = passes.pConfigImage = malloc(size.configImageSize);
    CALL(cuptiProfilerHostGetConfigImage, &get);
    CALL(cuptiProfilerHostGetNumOfPasses, &passes);
    prof.passes = passes.numOfPasses;
    CHECK(prof.passes > 1); /* or nothing would be replayed */
}

static void set_config(CUpti_ProfilerRange mode)
{
    PARAMS(CUpti_RangeProfiler_CounterDataImage_Initialize_Params, image);
    PARAMS(CUpti_RangeProfiler_SetConfig_Params, set);

    image.pRangeProfilerObject = set.pRangeProfilerObject = prof.object;
    image.pCounterData = set.pCounterDataImage = prof.image;
    image.counterDataSize = set.counterDataImageSize = prof.image_size;
    CALL(cuptiRangeProfilerCounterDataImageInitialize, &image);
    set.configSize = prof.config_size;
    set.pConfig = prof.config;
    set.range = mode;
    set.replayMode = CUPTI_UserReplay;
    set.maxRangesPerPass = MAX_RANGES;
    set.numNestingLevels = set.minNestingLevel = set.targetNestingLevel = 1;
    CALL(cuptiRangeProfilerSetConfig, &set);
}

static void open_profiler(CUpti_ProfilerRange mode)
{
    PARAMS(CUpti_Profiler_Initialize_Params, init);
    PARAMS(CUpti_Device_GetChipName_Params, chip);
    PARAMS(CUpti_RangeProfiler_Enable_Params, enable);
    PARAMS(CUpti_RangeProfiler_GetCounterDataSize_Params, size);

    if (!getenv("KP_REAL_CUPTI"))
        _exit(SKIPPED);
    open_gpu();
    prof.cupti = open_fake("libcupti.so.13");
    CALL(cuptiProfilerInitialize, &init);
    CALL(cuptiDeviceGetChipName, &chip);
    make_config(chip.pChipName);
    enable.ctx = gpu.ctx;
    CALL(cuptiRangeProfilerEnable, &enable);
    prof.object = size.pRangeProfilerObject = enable.pRangeProfilerObject;
    size.pMetricNames = metrics;
    size.numMetrics = N_METRICS;
    size.maxNumOfRanges = size.maxNumRangeTreeNodes = MAX_RANGES;
    CALL(cuptiRangeProfilerGetCounterDataSize, &size);
    prof.image_size = size.counterDataSize;
    prof.image = malloc(prof.image_size);
    set_config(mode);
}

static void start(void)
{
    PARAMS(CUpti_RangeProfiler_Start_Params, p);

    p.pRangeProfilerObject = prof.object;
    CALL(cuptiRangeProfilerStart, &p);
}

static void stop(void)
{
    PARAMS(CUpti_RangeProfiler_Stop_Params, p);

    p.pRangeProfilerObject = prof.object;
    CALL(cuptiRangeProfilerStop, &p);
    prof.all = p.isAllPassSubmitted;
}

static void decode(void)
{
    PARAMS(CUpti_RangeProfiler_DecodeData_Params, p);
    PARAMS(CUpti_RangeProfiler_GetCounterDataInfo_Params, info);

    p.pRangeProfilerObject = prof.object;
    CALL(cuptiRangeProfilerDecodeData, &p);
    info.pCounterDataImage = prof.image;
    info.counterDataImageSize = prof.image_size;
    CALL(cuptiRangeProfilerGetCounterDataInfo, &info);
    prof.dropped = p.numOfRangeDropped;
    prof.n_ranges = info.numTotalRanges;
}

static CUptiResult evaluate(size_t range, double *values)
{
    PARAMS(CUpti_Profiler_Host_EvaluateToGpuValues_Params, p);

    p.pHostObject = prof.host;
    p.pCounterDataImage = prof.image;
    p.counterDataImageSize = prof.image_size;
    p.rangeIndex = range;
    p.ppMetricNames = metrics;
    p.numMetrics = N_METRICS;
    p.pMetricValues = values;
    return TAKE(prof.cupti, cuptiProfilerHostEvaluateToGpuValues)(&p);
}

static void clear_values(void)
{
    CHECK(!TAKE(gpu.cuda, cuMemsetD8)(gpu.values, 0, N * sizeof(int)));
}

static void body_all_passes(void)
{
    static const char *const kernels[] = {"increment", "atomic_count", "increment"};
    double values[N_METRICS];

    open_profiler(CUPTI_AutoRange);
    for (size_t pass = 0; pass < prof.passes; pass++) {
        clear_values();
        start();
        launch(gpu.increment);
        launch(gpu.atomic_count);
        launch(gpu.increment);
        launch(gpu.increment); /* finds no room */
        stop();
        CHECK(prof.all == (pass + 1 == prof.passes));
    }
    decode();
    CHECK(prof.n_ranges == MAX_RANGES && prof.dropped == prof.passes);
    for (size_t range = 0; range < MAX_RANGES; range++) {
        CHECK(!evaluate(range, values));
        for (int m = 0; m < N_METRICS; m++)
            CHECK(values[m] == TAKE(prof.cupti, fake_cupti_value)(metrics[m], kernels[range], range));
    }
    CHECK(evaluate(MAX_RANGES, values) == CUPTI_ERROR_INVALID_PARAMETER);
}

static void body_user_range(void)
{
    PARAMS(CUpti_RangeProfiler_PushRange_Params, push);
    PARAMS(CUpti_RangeProfiler_PopRange_Params, pop);
    double values[N_METRICS];

    open_profiler(CUPTI_UserRange);
    push.pRangeProfilerObject = pop.pRangeProfilerObject = prof.object;
    push.pRangeName = "both";
    for (size_t pass = 0; pass < prof.passes; pass++) {
        clear_values();
        start();
        launch(gpu.increment); /* outside */
        CALL(cuptiRangeProfilerPushRange, &push);
        launch(gpu.atomic_count);
        launch(gpu.increment);
        CALL(cuptiRangeProfilerPopRange, &pop);
        stop();
    }
    decode();
    CHECK(prof.n_ranges == 1 && prof.dropped == 0);
    CHECK(!evaluate(0, values));
    CHECK(values[1] == TAKE(prof.cupti, fake_cupti_value)(metrics[1], "atomic_count", 0));
}

static void body_pass_missing(void)
{
    double values[N_METRICS];

    open_profiler(CUPTI_AutoRange);
    start();
    launch(gpu.increment);
    stop();
    decode();
    CHECK(prof.n_ranges == 1);
    CHECK(evaluate(0, values) == CUPTI_ERROR_UNKNOWN);
}

/* Replays `later` in all passes but the first, which runs `first`. */
static void replay_wrongly(CUfunction first, CUfunction later, bool restore)
{
    double values[N_METRICS];

    for (size_t pass = 0; pass < prof.passes; pass++) {
        if (restore)
            clear_values();
        start();
        launch(pass ? later : first);
        stop();
    }
    decode();
    evaluate(0, values);
}

static void body_not_restored(void)
{
    open_profiler(CUPTI_AutoRange);
    replay_wrongly(gpu.increment, gpu.increment, false);
}

static void body_other_kernel(void)
{
    open_profiler(CUPTI_AutoRange);
    replay_wrongly(gpu.atomic_count, gpu.increment, true);
}

static void body_started_twice(void)
{
    open_profiler(CUPTI_AutoRange);
    start();
    start();
}

static void body_enabled_twice(void)
{
    PARAMS(CUpti_RangeProfiler_Enable_Params, enable);

    open_profiler(CUPTI_AutoRange);
    enable.ctx = gpu.ctx;
    TAKE(prof.cupti, cuptiRangeProfilerEnable)(&enable);
}

static void body_profiler_context_gone(void)
{
    open_profiler(CUPTI_AutoRange);
    CHECK(!TAKE(gpu.cuda, cuDevicePrimaryCtxReset)(0));
    start();
}

static void body_too_many_passes(void)
{
    open_profiler(CUPTI_AutoRange);
    for (size_t pass = 0; pass <= prof.passes; pass++) {
        start();
        stop();
    }
}

struct one_case {
    const char *name;
    void (*body)(void);
    int expected;
};

static const struct one_case cases[] = {
    {"restore gives back what was saved", body_restore, RIGHT},
    {"restore after a free", body_restore_freed, FAKE_MISUSE_EXIT},
    {"a kernel without arguments", body_no_arguments, FAKE_MISUSE_EXIT},
    {"a pointer into freed memory", body_freed_pointer, FAKE_MISUSE_EXIT},
    {"a function of an unloaded module", body_unloaded_module, FAKE_MISUSE_EXIT},
    {"a launch after the context's end", body_context_gone, FAKE_MISUSE_EXIT},
    {"a write beyond an allocation", body_written_beyond, FAKE_MISUSE_EXIT},
    {"injected failures", body_injected, RIGHT},
    {"a kernel that breaks its context", body_sticky, RIGHT},
    {"a call before cuInit", body_before_init, RIGHT},
    {"ranges that saw all passes", body_all_passes, RIGHT},
    {"a user range", body_user_range, RIGHT},
    {"a range that missed a pass", body_pass_missing, RIGHT},
    {"a pass over changed memory", body_not_restored, FAKE_MISUSE_EXIT},
    {"a pass of another kernel", body_other_kernel, FAKE_MISUSE_EXIT},
    {"Start twice", body_started_twice, FAKE_MISUSE_EXIT},
    {"Enable twice", body_enabled_twice, FAKE_MISUSE_EXIT},
    {"Start after the context's end", body_profiler_context_gone, FAKE_MISUSE_EXIT},
    {"more passes than there are", body_too_many_passes, FAKE_MISUSE_EXIT},
};

static void run_case(void **state)
{
    const struct one_case *c = *state;
    int code = run_child(c->body);

    if (code == SKIPPED)
        skip();
    assert_int_equal(code, c->expected);
}

int main(void)
{
    struct CMUnitTest tests[sizeof(cases) / sizeof(cases[0])];

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        tests[i] = (struct CMUnitTest){cases[i].name, run_case, NULL, NULL, (void *)(uintptr_t)&cases[i]};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
