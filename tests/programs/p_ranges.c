/* LINK: -lcuda -lpthread -ldl */
/* Work between cuProfilerStart and Stop, or in NVTX ranges where NVTX's headers are at hand. Arguments: the case, and
 * numbers where the case takes some. */
#include <cudaProfiler.h>
#include <pthread.h>
#include <unistd.h>

#include "linked.h"

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
enum { HAS_NVTX = 1 };
#else
enum { HAS_NVTX = 0 };
#define nvtxRangePushA(name)  0
#define nvtxRangePop()        0
#define nvtxRangeStartA(name) 0
#define nvtxRangeEnd(id)      (void)(id)
typedef int nvtxRangeId_t;
#endif

enum { N = 64 };

static struct session session;
static CUstream second;
static CUdeviceptr values, scratch, flag;
static int *pinned;

static const char image[] = "FAKEMOD increment wait_flag set_flag varies ncclDevKernel_increment fail heap_swap "
                            "launching_increment _Z9incrementPii late_increment";

static CUfunction function(const char *name)
{
    return get_function(&linked, &session, name);
}

static void open_all(void)
{
    static const int zeros[N];

    MUST(cuInit(0));
    MUST(cuDevicePrimaryCtxRetain(&session.ctx, 0));
    MUST(cuCtxSetCurrent(session.ctx));
    MUST(cuModuleLoadData(&session.module, image));
    MUST(cuStreamCreate(&session.stream, CU_STREAM_NON_BLOCKING));
    MUST(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
    MUST(cuMemHostAlloc((void **)&pinned, N * sizeof(int), 0));
    values = device_ints(&linked, zeros, N);
    scratch = device_ints(&linked, zeros, N);
    flag = device_ints(&linked, zeros, 1);
}

static void increment_as(const char *kernel, CUdeviceptr data, CUstream stream)
{
    int n = N;
    void *params[] = {&data, &n};

    MUST(cuLaunchKernel(function(kernel), 1, 1, 1, N, 1, 1, 0, stream, params, NULL));
}

static void increment(CUdeviceptr data, CUstream stream)
{
    increment_as("increment", data, stream);
}

static void show(void)
{
    MUST(cuCtxSynchronize());
    printf("values: %lld\n", sum_ints(&linked, values, N));
    printf("scratch: %lld\n", sum_ints(&linked, scratch, N));
    printf("pinned: %d %d\n", pinned[0], pinned[N - 1]);
}

/* Two ranges, and launches outside. The first thing of a range is a memset, which a repetition must see. */
static void plain(void)
{
    int host[N];

    increment(values, session.stream);
    for (int i = 0; i < 2; i++) {
        MUST(cuProfilerStart());
        MUST(cuMemsetD32Async(scratch, 5, N, session.stream));
        increment(values, session.stream);
        increment(scratch, session.stream);
        for (int k = 0; k < N; k++)
            host[k] = 100 * i + k;
        MUST(cuMemcpyHtoDAsync(values, host, sizeof(host), session.stream));
        memset(host, 0, sizeof(host));
        increment(values, session.stream);
        MUST(cuProfilerStop());
        increment(scratch, session.stream);
    }
}

/* A kernel that ends only once a later one runs beside it, in another stream: one after the other they would hang. */
static void beside(void)
{
    int one = 1;
    void *waits[] = {&flag, &values}, *sets[] = {&flag, &one};

    MUST(cuProfilerStart());
    MUST(cuLaunchKernel(function("wait_flag"), 1, 1, 1, 1, 1, 1, 0, second, waits, NULL));
    increment(scratch, session.stream);
    MUST(cuLaunchKernel(function("set_flag"), 1, 1, 1, 1, 1, 1, 0, session.stream, sets, NULL));
    MUST(cuStreamSynchronize(second));
    increment(values, second);
    MUST(cuProfilerStop());
}

/* Kernels that take a while, in streams that the default one does not wait for. Nothing waits for them within the
 * range.
 */
static void slow(void)
{
    int n = N, ms = 5;

    MUST(cuProfilerStart());
    for (int i = 0; i < 4; i++)
        MUST(cuLaunchKernel(function("late_increment"), 1, 1, 1, N, 1, 1, 0, i % 2 ? second : session.stream,
                            (void *[]){i % 2 ? &scratch : &values, &n, &ms}, NULL));
    MUST(cuProfilerStop());
}

/* Copies in two streams, which the look-alike of the driver gives FAKE_COPY_MS each. */
static void copies(void)
{
    int *other;

    MUST(cuMemHostAlloc((void **)&other, N * sizeof(int), 0));
    for (int k = 0; k < N; k++)
        pinned[k] = k, other[k] = -k;
    MUST(cuProfilerStart());
    MUST(cuMemcpyHtoDAsync(values, pinned, N * sizeof(int), session.stream));
    MUST(cuMemcpyHtoDAsync(scratch, other, N * sizeof(int), second));
    increment(values, session.stream);
    increment(scratch, second);
    MUST(cuProfilerStop());
}

/* Streams that wait for each other by events. */
static void events(void)
{
    CUevent one, other;

    MUST(cuEventCreate(&one, CU_EVENT_DISABLE_TIMING));
    MUST(cuEventCreate(&other, CU_EVENT_DISABLE_TIMING));
    MUST(cuProfilerStart());
    for (int i = 0; i < 5; i++) {
        increment(values, session.stream);
        MUST(cuEventRecord(one, session.stream));
        MUST(cuStreamWaitEvent(second, one, 0));
        increment(values, second);
        MUST(cuEventRecord(other, second));
        MUST(cuStreamWaitEvent(session.stream, other, 0));
        MUST(cuEventSynchronize(other));
    }
    MUST(cuProfilerStop());
}

/* Results that the program reads, at once and later. */
static void reads(void)
{
    int host[N];

    for (int i = 0; i < 3; i++) {
        MUST(cuProfilerStart());
        increment(values, session.stream);
        MUST(cuMemcpyDtoHAsync(pinned, values, N * sizeof(int), session.stream));
        increment(scratch, second);
        MUST(cuStreamSynchronize(session.stream));
        printf("later: %d\n", pinned[3]);
        MUST(cuMemcpyDtoH(host, scratch, sizeof(host)));
        printf("at once: %d\n", host[5]);
        increment(values, session.stream);
        MUST(cuProfilerStop());
    }
}

/* A value that differs in each execution. */
static void differs(void)
{
    int every = 0, at = 0, host;
    void *params[] = {&scratch, &every, &at};

    MUST(cuProfilerStart());
    increment(values, session.stream);
    MUST(cuLaunchKernel(function("varies"), 1, 1, 1, 1, 1, 1, 0, session.stream, params, NULL));
    MUST(cuMemcpyDtoH(&host, scratch, sizeof(host)));
    increment(values, session.stream);
    MUST(cuProfilerStop());
    MUST(cuMemsetD32(scratch, 0, 1));
}

/* What cannot be repeated, in the middle. */
static void cut(void)
{
    MUST(cuProfilerStart());
    increment(values, session.stream);
    increment(values, session.stream);
    close_a_window();
    increment(values, session.stream);
    MUST(cuProfilerStop());
    MUST(cuProfilerStart());
    increment(values, session.stream);
    MUST(cuProfilerStop());
}

/* A kernel that waits for others is never repeated. */
static void outside(void)
{
    MUST(cuProfilerStart());
    increment(values, session.stream);
    increment_as("ncclDevKernel_increment", values, session.stream);
    increment(values, session.stream);
    MUST(cuProfilerStop());
}

static void empty(void)
{
    MUST(cuProfilerStop());
    for (int i = 0; i < 3; i++) {
        MUST(cuProfilerStart());
        MUST(cuProfilerStop());
    }
    increment(values, session.stream);
}

static void unended(void)
{
    MUST(cuProfilerStart());
    increment(values, session.stream);
    increment(values, session.stream);
}

/* A kernel, a graph and memory that is made and freed within. */
static void graph(void)
{
    CUgraph g;
    CUgraphExec exec;
    CUdeviceptr made;

    MUST(cuStreamBeginCapture(session.stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    increment(values, session.stream);
    increment(scratch, session.stream);
    MUST(cuStreamEndCapture(session.stream, &g));
    MUST(cuGraphInstantiate(&exec, g, 0));
    MUST(cuProfilerStart());
    increment(values, session.stream);
    MUST(cuGraphLaunch(exec, session.stream));
    MUST(cuMemAlloc(&made, N * sizeof(int)));
    MUST(cuMemsetD32Async(made, 3, N, session.stream));
    increment(made, session.stream);
    MUST(cuMemcpyDtoDAsync(scratch, made, N * sizeof(int), session.stream));
    MUST(cuStreamSynchronize(session.stream));
    MUST(cuMemFree(made));
    MUST(cuGraphLaunch(exec, session.stream));
    MUST(cuProfilerStop());
}

/* So many ranges of so many launches. */
static int n_ranges, n_launches;

static void many(void)
{
    for (int i = 0; i < n_ranges; i++) {
        increment(scratch, session.stream);
        MUST(cuProfilerStart());
        for (int k = 0; k < n_launches; k++)
            increment_as(k % 2 == i % 2 ? "increment" : "_Z9incrementPii", values, session.stream);
        MUST(cuProfilerStop());
    }
}

static void CUDA_CB note(void *arg)
{
    ++*(int *)arg;
}

/* What no repetition may hold: the device's heap; launches from the device; kernels that wait for others; functions of
 * the host; a graph that is captured within; modules that come and go; values that differ; memory of the host. */
static void anything(void)
{
    int n = N, k = 1, host = 0, called = 0, every = 0, at = 0;
    static const int zeros[2 * N];
    CUdeviceptr blocks = device_ints(&linked, zeros, 2 * N);
    CUmodule more;
    CUgraph g;
    CUgraphExec exec;

    for (int i = 0; i < 2; i++, k++) {
        MUST(cuProfilerStart());
        MUST(cuLaunchKernel(function("heap_swap"), 1, 1, 1, N, 1, 1, 0, session.stream, (void *[]){&blocks, &n, &k},
                            NULL));
        increment_as("launching_increment", values, session.stream);
        increment_as("ncclDevKernel_increment", values, second);
        MUST(cuStreamBeginCapture(second, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
        increment(values, second);
        increment(scratch, session.stream); /* while another stream is captured */
        MUST(cuStreamEndCapture(second, &g));
        MUST(cuGraphInstantiate(&exec, g, 0));
        MUST(cuGraphLaunch(exec, second));
        MUST(cuLaunchHostFunc(session.stream, note, &called));
        MUST(cuModuleLoadData(&more, "FAKEMOD increment global:g_more:64"));
        MUST(cuLaunchKernel(function("varies"), 1, 1, 1, 1, 1, 1, 0, session.stream, (void *[]){&scratch, &every, &at},
                            NULL));
        MUST(cuMemcpyDtoH(&host, scratch, sizeof(host)));
        MUST(cuModuleUnload(more));
        MUST(cuStreamSynchronize(session.stream));
        MUST(cuStreamSynchronize(second));
        MUST(cuProfilerStop());
        MUST(cuGraphExecDestroy(exec));
        MUST(cuGraphDestroy(g));
    }
    printf("called: %d\n", called);
    MUST(cuMemsetD32(scratch, 0, 1));
}

/* A kernel that waits for what another thread does once the range is about to end. */
static void *set_later(void *arg)
{
    usleep(300000);
    MUST(cuCtxSetCurrent(session.ctx));
    MUST(cuMemsetD32Async(flag, 1, 1, session.stream));
    return arg;
}

static void wait_in_range(CUstream stream)
{
    MUST(cuLaunchKernel(function("wait_flag"), 1, 1, 1, 1, 1, 1, 0, stream, (void *[]){&flag, &values}, NULL));
}

static void partner(void)
{
    pthread_t thread;

    MUST(cuProfilerStart());
    wait_in_range(second);
    increment(scratch, session.stream);
    pthread_create(&thread, NULL, set_later, NULL);
    MUST(cuProfilerStop());
    pthread_join(thread, NULL);
}

/* The same for a range that is about to begin. */
static void before(void)
{
    pthread_t thread;

    wait_in_range(second);
    pthread_create(&thread, NULL, set_later, NULL);
    MUST(cuProfilerStart());
    increment(scratch, session.stream);
    MUST(cuProfilerStop());
    pthread_join(thread, NULL);
}

/* A kernel that goes on before, in and after a range, until the program lets it end. */
static void around(void)
{
    wait_in_range(second);
    MUST(cuProfilerStart());
    increment(scratch, session.stream);
    MUST(cuProfilerStop());
    MUST(cuMemsetD32Async(flag, 1, 1, session.stream));
    MUST(cuStreamSynchronize(second));
    MUST(cuProfilerStart());
    increment(scratch, session.stream);
    MUST(cuProfilerStop());
}

/* A kernel that goes on after its range, until the program lets it end. */
static void endless(void)
{
    MUST(cuProfilerStart());
    wait_in_range(second);
    MUST(cuProfilerStop());
    MUST(cuMemsetD32Async(flag, 1, 1, session.stream));
    MUST(cuStreamSynchronize(second));
    MUST(cuProfilerStart());
    increment(values, session.stream);
    MUST(cuProfilerStop());
}

/* A range that ends while a stream is captured: nothing may wait for the context then. */
static void captured(void)
{
    CUgraph g;
    CUgraphExec exec;

    MUST(cuProfilerStart());
    increment(values, session.stream);
    MUST(cuStreamBeginCapture(second, CU_STREAM_CAPTURE_MODE_GLOBAL));
    increment(values, second);
    MUST(cuProfilerStop());
    MUST(cuStreamEndCapture(second, &g));
    MUST(cuGraphInstantiate(&exec, g, 0));
    MUST(cuGraphLaunch(exec, second));
    MUST(cuStreamSynchronize(second));
}

/* Launches in a context beside that of the range. */
static void contexts(void)
{
    CUcontext other;
    CUmodule module;
    CUfunction f;
    CUdeviceptr data;
    int n = N;

    MUST(cuProfilerStart());
    increment(values, session.stream);
    MUST(cuDevicePrimaryCtxRetain(&other, 1));
    MUST(cuCtxPushCurrent(other));
    MUST(cuModuleLoadData(&module, image));
    MUST(cuModuleGetFunction(&f, module, "increment"));
    MUST(cuMemAlloc(&data, N * sizeof(int)));
    MUST(cuLaunchKernel(f, 1, 1, 1, N, 1, 1, 0, NULL, (void *[]){&data, &n}, NULL));
    MUST(cuCtxSynchronize());
    MUST(cuCtxPopCurrent(&other));
    increment(values, session.stream);
    MUST(cuProfilerStop());
}

/* Ranges that begin on one of two devices in turn, of one launch more each time. */
static void devices(void)
{
    CUcontext contexts[2] = {session.ctx};
    CUfunction functions[2] = {function("increment")};
    CUdeviceptr data[2] = {values};
    CUmodule module;
    int n = N;

    MUST(cuDevicePrimaryCtxRetain(&contexts[1], 1));
    MUST(cuCtxSetCurrent(contexts[1]));
    MUST(cuModuleLoadData(&module, image));
    MUST(cuModuleGetFunction(&functions[1], module, "increment"));
    MUST(cuMemAlloc(&data[1], N * sizeof(int)));
    MUST(cuMemsetD32(data[1], 0, N));
    for (int i = 0; i < 4; i++) {
        MUST(cuCtxSetCurrent(contexts[i % 2]));
        MUST(cuProfilerStart());
        for (int k = 0; k <= i; k++)
            MUST(cuLaunchKernel(functions[i % 2], 1, 1, 1, N, 1, 1, 0, NULL, (void *[]){&data[i % 2], &n}, NULL));
        MUST(cuProfilerStop());
    }
    MUST(cuCtxSetCurrent(contexts[1]));
    MUST(cuCtxSynchronize());
    MUST(cuCtxSetCurrent(contexts[0]));
}

/* A range of one launch, and 3 s later one of two. */
static void later(void)
{
    MUST(cuProfilerStart());
    increment(values, session.stream);
    MUST(cuProfilerStop());
    MUST(cuCtxSynchronize());
    usleep(3000000);
    MUST(cuProfilerStart());
    increment(values, session.stream);
    increment(scratch, session.stream);
    MUST(cuProfilerStop());
}

/* A range of one launch that begins in an NVTX range, and one of two launches that does not. */
static void inside(void)
{
    nvtxRangePushA("warm-up");
    MUST(cuProfilerStart());
    increment(values, session.stream);
    nvtxRangePop();
    MUST(cuProfilerStop());
    MUST(cuProfilerStart());
    increment(values, session.stream);
    increment(scratch, session.stream);
    MUST(cuProfilerStop());
}

/* A range that begins before there is a context. */
static void early(void)
{
    increment(values, session.stream);
    increment(values, session.stream);
    MUST(cuProfilerStop());
}

static void *launch_beside(void *arg)
{
    MUST(cuCtxSetCurrent(session.ctx));
    nvtxRangePushA("step");
    increment(scratch, second);
    MUST(cuStreamSynchronize(second));
    nvtxRangePop();
    return arg;
}

/* NVTX ranges: nested ones, one that begins with a thread of its own inside of another, and one that is started. */
static void nvtx(void)
{
    pthread_t thread;

    nvtxRangePushA("warm-up");
    increment(values, session.stream);
    nvtxRangePop();
    for (int i = 0; i < 3; i++) {
        nvtxRangePushA("step");
        increment(values, session.stream);
        nvtxRangePushA("step");
        increment(values, session.stream);
        nvtxRangePop();
        pthread_create(&thread, NULL, launch_beside, NULL);
        pthread_join(thread, NULL);
        nvtxRangePop();
        increment(scratch, session.stream);
    }
    nvtxRangeId_t epoch = nvtxRangeStartA("epoch");
    increment(values, session.stream);
    nvtxRangeEnd(epoch);
    increment(values, session.stream);
    printf("NVTX: %d\n", HAS_NVTX);
}

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
    {"plain", plain},     {"beside", beside},   {"slow", slow},         {"copies", copies},     {"events", events},
    {"reads", reads},     {"differs", differs}, {"cut", cut},           {"outside", outside},   {"empty", empty},
    {"unended", unended}, {"graph", graph},     {"nvtx", nvtx},         {"many", many},         {"anything", anything},
    {"partner", partner}, {"endless", endless}, {"captured", captured}, {"contexts", contexts}, {"early", early},
    {"before", before},   {"around", around},   {"devices", devices},   {"later", later},       {"inside", inside},
};

int main(int argc, char **argv)
{
    n_ranges = argc > 2 ? atoi(argv[2]) : 0;
    n_launches = argc > 3 ? atoi(argv[3]) : 0;
    for (size_t i = 0; argc > 1 && i < sizeof(cases) / sizeof(*cases); i++) {
        if (strcmp(argv[1], cases[i].name))
            continue;
        if (cases[i].run == early) {
            MUST(cuInit(0));
            cuProfilerStart(); /* fails for want of a context, which the range need not know */
        }
        open_all();
        cases[i].run();
        show();
        return 0;
    }
    printf("no such case\n");
    return 3;
}
