/* LINK: -lcuda -lpthread */
/* Host functions between launches that share a window. Argument: the case. With FAKE_HOST_THREADS the look-alike of the
 * driver calls them in threads of their own, as the driver does. */
#include <pthread.h>
#include <stdatomic.h>

#include "linked.h"

enum { N = 64, ROUNDS = 6, LATE_MS = 5 };

static struct session session;
static CUstream second, blocking;
static CUdeviceptr values, history, cursor, target;
static atomic_int calls, go;

static const char image[] = "FAKEMOD increment late_increment append axpy_inplace gather";

static CUfunction function(const char *name)
{
    return get_function(&linked, &session, name);
}

static void open_all(void)
{
    static const int zeros[1024];

    open_session(&linked, &session, 0);
    MUST(cuModuleUnload(session.module));
    MUST(cuModuleLoadData(&session.module, image));
    MUST(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
    MUST(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
    values = device_ints(&linked, zeros, N);
    history = device_ints(&linked, zeros, 1024);
    cursor = device_ints(&linked, zeros, 1);
    target = device_ints(&linked, zeros, N);
}

static void launch(const char *name, unsigned threads, CUstream stream, void **params)
{
    MUST(cuLaunchKernel(function(name), 1, 1, 1, threads, 1, 1, 0, stream, params, NULL));
}

/* Takes some time, so that what is behind it is still to come when the call returns. */
static void late(CUstream stream)
{
    launch("late_increment", N, stream, (void *[]){&values, &(int){N}, &(int){LATE_MS}});
}

/* Each entry depends on all before it. */
static void append(int tag)
{
    launch("append", 1, session.stream, (void *[]){&history, &cursor, &(int){1024}, &tag});
}

/* Counts what `word` of the device's memory says. */
static void gather(CUdeviceptr word, CUdeviceptr into)
{
    launch("gather", 1, session.stream, (void *[]){&word, &into, &(int){N}});
}

static void CUDA_CB count(void *by)
{
    atomic_fetch_add(&calls, *(int *)by);
}

static void CUDA_CB count_back(CUstream stream, CUresult rc, void *by)
{
    atomic_fetch_add(&calls, rc == CUDA_SUCCESS && stream == session.stream ? *(int *)by : 1000);
}

static int one = 1;

static void counted(int expected)
{
    MUST(cuCtxSynchronize());
    report_number("called", atomic_load(&calls), expected);
}

/* Between launches, on their stream and on another one. */
static void between(void)
{
    for (int i = 0; i < ROUNDS; i++) {
        append(i);
        MUST(cuLaunchHostFunc(i % 2 ? second : session.stream, count, &one));
        late(session.stream);
        MUST(cuStreamAddCallback(session.stream, count_back, &one, 0));
    }
    report_number("refused", cuStreamAddCallback(session.stream, count_back, &one, 7), CUDA_ERROR_INVALID_VALUE);
    counted(2 * ROUNDS);
}

/* ---- what they write ---- */

static int *source;

static void CUDA_CB rewrite(void *unused)
{
    (void)unused;
    source[0] = (source[0] * 5 + 1) % N;
}

enum how { PINNED, ROWS, PAGEABLE, GRAPH };

/* The copy of what a host function has written meanwhile. */
static void copy(enum how how)
{
    CUDA_MEMCPY2D rows = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                          .srcHost = source,
                          .srcPitch = 8,
                          .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                          .dstDevice = target,
                          .dstPitch = 8,
                          .WidthInBytes = 4,
                          .Height = 1};

    if (how == ROWS)
        MUST(cuMemcpy2DAsync(&rows, session.stream));
    else if (how == PAGEABLE)
        MUST(cuMemcpyHtoD(target, source, sizeof(int))); /* waits for the streams that heed the default one */
    else
        MUST(cuMemcpyHtoDAsync(target, source, sizeof(int), session.stream));
}

/* A graph that ends in the host function. */
static CUgraphExec graph_of(CUhostFn fn)
{
    CUDA_HOST_NODE_PARAMS call = {fn, NULL};
    CUDA_MEMSET_NODE_PARAMS clear = {.dst = target, .value = 0, .elementSize = 4, .width = 1, .height = 1};
    void *params[] = {&values, &(int){N}};
    CUDA_KERNEL_NODE_PARAMS p = kernel_node(function("increment"), 1, N, 0, params);
    CUgraphExec exec;
    CUgraphNode node;
    CUgraph graph;

    MUST(cuGraphCreate(&graph, 0));
    MUST(cuGraphAddMemsetNode(&node, graph, NULL, 0, &clear, session.ctx));
    MUST(cuGraphAddKernelNode(&node, graph, &node, 1, &p));
    MUST(cuGraphAddHostNode(&node, graph, &node, 1, &call));
    MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));
    return exec;
}

static void rewrites(enum how how)
{
    CUstream stream = how == PAGEABLE ? blocking : session.stream;
    CUgraphExec exec = how == GRAPH ? graph_of(rewrite) : NULL;
    int expected[N] = {0}, got[N], at = 0, right = 1;
    static const int zeros[N];
    CUdeviceptr counts = device_ints(&linked, zeros, N);

    if (how == PAGEABLE)
        source = calloc(1, 4096);
    else
        MUST(cuMemHostAlloc((void **)&source, 4096, 0));
    source[0] = 0;
    for (int i = 0; i < ROUNDS; i++) {
        late(stream);
        if (exec)
            MUST(cuGraphLaunch(exec, session.stream));
        else
            MUST(cuLaunchHostFunc(stream, rewrite, NULL));
        copy(how);
        gather(target, counts);
        at = (at * 5 + 1) % N;
        expected[at]++;
    }
    MUST(cuCtxSynchronize());
    MUST(cuMemcpyDtoH(got, counts, sizeof(got)));
    for (int i = 0; i < N; i++)
        right &= got[i] == expected[i];
    report("each word once", right);
}

static void rewrites_pinned(void)
{
    rewrites(PINNED);
}

static void rewrites_rows(void)
{
    rewrites(ROWS);
}

static void rewrites_pageable(void)
{
    rewrites(PAGEABLE);
}

static void rewrites_in_graph(void)
{
    rewrites(GRAPH);
}

static float *floats;

static void CUDA_CB change_floats(void *unused)
{
    (void)unused;
    floats[0] += 1;
}

/* A kernel reads the pinned memory that a host function writes before it and after it. */
static void reached(void)
{
    float got[1];

    MUST(cuMemHostAlloc((void **)&floats, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
    floats[0] = 0;
    for (int i = 0; i < ROUNDS; i++) {
        late(session.stream);
        MUST(cuLaunchHostFunc(session.stream, change_floats, NULL));
        launch("axpy_inplace", 1, session.stream, (void *[]){&floats, &target, &(float){1}, &(int){1}});
    }
    MUST(cuStreamSynchronize(session.stream));
    MUST(cuMemcpyDtoH(got, target, sizeof(got)));
    report_number("sum", (long long)got[0], ROUNDS * (ROUNDS + 1) / 2);
    report_number("the host's own", (long long)floats[0], ROUNDS);
}

/* A value comes to pinned memory, a host function changes it there, and it is copied back. */
static int *result;

static void CUDA_CB add_seven(void *unused)
{
    (void)unused;
    result[0] += 7;
}

static void there_and_back(void)
{
    int right = 1;

    MUST(cuMemHostAlloc((void **)&result, 4096, 0));
    for (int i = 0; i < 2 * ROUNDS; i++) {
        late(session.stream);
        MUST(cuMemcpyDtoHAsync(result, values, sizeof(int), session.stream));
        MUST(cuLaunchHostFunc(session.stream, add_seven, NULL));
        MUST(cuMemcpyHtoDAsync(target, result, sizeof(int), session.stream));
        append(i);
        MUST(cuStreamSynchronize(session.stream));
        right &= result[0] == i + 8;
    }
    report("changed on the way", right);
    report_number("copied back", sum_ints(&linked, target, 1), 2 * ROUNDS + 7);
}

/* ---- what they wait for ---- */

static void CUDA_CB wait_for_go(void *unused)
{
    (void)unused;
    while (!atomic_load(&go))
        usleep(1000);
    atomic_store(&go, 0);
    atomic_fetch_add(&calls, 1);
}

/* For what the program does behind its next launches. */
static void waits(void)
{
    for (int i = 0; i < 3; i++) {
        append(i);
        MUST(cuLaunchHostFunc(i % 2 ? second : session.stream, wait_for_go, NULL));
        append(i);
        late(second);
        atomic_store(&go, 1);
        MUST(cuCtxSynchronize());
    }
    counted(3);
}

/* For what it does behind a call that closes the window. */
static void waits_behind(void)
{
    for (int i = 0; i < 3; i++) {
        append(i);
        MUST(cuLaunchHostFunc(second, wait_for_go, NULL));
        append(i);
        close_a_window();
        atomic_store(&go, 1);
        MUST(cuCtxSynchronize());
        append(i);
        append(i);
    }
    counted(3);
}

/* For what it does behind so many operations that the driver would soon take no more. */
static void waits_behind_many(void)
{
    append(0);
    MUST(cuLaunchHostFunc(second, wait_for_go, NULL));
    for (int i = 0; i < 300; i++)
        MUST(cuMemsetD32Async(target, i, 1, second));
    atomic_store(&go, 1);
    MUST(cuCtxSynchronize());
    append(1);
    counted(1);
}

static void *launch_then_go(void *unused)
{
    (void)unused;
    MUST(cuCtxSetCurrent(session.ctx));
    usleep(20000);
    append(7);
    atomic_store(&go, 1);
    return NULL;
}

/* For what another thread does behind a launch of its own, while this one copies what the function may write. */
static void waits_for_thread(void)
{
    pthread_t thread;

    MUST(cuMemHostAlloc((void **)&source, 4096, 0));
    source[0] = 5;
    append(0);
    MUST(cuLaunchHostFunc(second, wait_for_go, NULL));
    pthread_create(&thread, NULL, launch_then_go, NULL);
    MUST(cuMemcpyHtoDAsync(target, source, sizeof(int), second));
    pthread_join(thread, NULL);
    append(1);
    counted(1);
    report_number("copied", sum_ints(&linked, target, 1), 5);
}

/* For what it does behind the begin of a capture, where a window has let the function by. */
static void waits_behind_capture(void)
{
    CUgraph graph;

    for (int i = 0; i < 2; i++) {
        append(i);
        append(i);
        MUST(cuLaunchHostFunc(second, wait_for_go, NULL));
        append(i);
        MUST(cuStreamBeginCapture(session.stream, CU_STREAM_CAPTURE_MODE_RELAXED));
        MUST(cuStreamEndCapture(session.stream, &graph));
        atomic_store(&go, 1);
        MUST(cuCtxSynchronize());
    }
    for (int i = 0; i < 20; i++)
        append(i);
    counted(2);
}

/* For what it does behind a launch that follows a graph which ends in the function. */
static void waits_in_graph(void)
{
    CUgraphExec exec = graph_of(wait_for_go);

    append(0);
    for (int i = 0; i < 3; i++) {
        MUST(cuGraphLaunch(exec, second));
        append(i);
        atomic_store(&go, 1);
        MUST(cuCtxSynchronize());
    }
    counted(3);
}

static atomic_int signalled;

static void CUDA_CB signal_thread(void *unused)
{
    (void)unused;
    atomic_fetch_add(&signalled, 1);
}

static void *launch_when_told(void *unused)
{
    MUST(cuCtxSetCurrent(session.ctx));
    for (int i = 0; i < ROUNDS; i++) {
        while (atomic_load(&signalled) <= i)
            if (cuStreamQuery(second) != CUDA_SUCCESS)
                usleep(100);
        append(i);
    }
    return unused;
}

/* They tell another thread when to launch. */
static void signals(void)
{
    pthread_t thread;

    pthread_create(&thread, NULL, launch_when_told, NULL);
    for (int i = 0; i < ROUNDS; i++) {
        late(second);
        MUST(cuLaunchHostFunc(second, signal_thread, NULL));
    }
    pthread_join(thread, NULL);
    MUST(cuCtxSynchronize());
    report_number("values", sum_ints(&linked, values, N), ROUNDS * N);
}

static void CUDA_CB take_long(void *ms)
{
    usleep(1000u * *(unsigned *)ms);
    atomic_fetch_add(&calls, 1);
}

/* One still runs when the window closes. */
static void runs_on(void)
{
    unsigned ms = 300;

    for (int i = 0; i < 2; i++) {
        append(i);
        MUST(cuLaunchHostFunc(session.stream, take_long, &ms));
        append(i);
        close_a_window();
    }
    counted(2);
}

/* ---- threads with streams of their own ---- */

static void *use_own_stream(void *data)
{
    CUdeviceptr own = *(CUdeviceptr *)data;

    MUST(cuCtxSetCurrent(session.ctx));
    for (int i = 0; i < ROUNDS; i++) {
        launch("late_increment", N, CU_STREAM_PER_THREAD, (void *[]){&own, &(int){N}, &(int){1}});
        MUST(cuLaunchHostFunc(CU_STREAM_PER_THREAD, count, &one));
        launch("increment", N, CU_STREAM_PER_THREAD, (void *[]){&own, &(int){N}});
        MUST(cuStreamSynchronize(CU_STREAM_PER_THREAD));
    }
    return NULL;
}

static void own_streams(void)
{
    CUdeviceptr own[2] = {values, target};
    pthread_t thread[2];

    for (int t = 0; t < 2; t++)
        pthread_create(&thread[t], NULL, use_own_stream, &own[t]);
    for (int t = 0; t < 2; t++)
        pthread_join(thread[t], NULL);
    counted(2 * ROUNDS);
    report_number("first", sum_ints(&linked, values, N), 2 * ROUNDS * N);
    report_number("second", sum_ints(&linked, target, N), 2 * ROUNDS * N);
}

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
    {"between", between},
    {"rewrites-pinned", rewrites_pinned},
    {"rewrites-rows", rewrites_rows},
    {"rewrites-pageable", rewrites_pageable},
    {"rewrites-in-graph", rewrites_in_graph},
    {"reached", reached},
    {"there-and-back", there_and_back},
    {"waits", waits},
    {"waits-behind", waits_behind},
    {"waits-behind-many", waits_behind_many},
    {"waits-for-thread", waits_for_thread},
    {"waits-behind-capture", waits_behind_capture},
    {"waits-in-graph", waits_in_graph},
    {"signals", signals},
    {"runs-on", runs_on},
    {"own-streams", own_streams},
};

int main(int argc, char **argv)
{
    open_all();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        if (argc > 1 && !strcmp(cases[i].name, argv[1])) {
            cases[i].run();
            MUST(cuCtxSynchronize());
            printf("history: %lld\n", sum_ints(&linked, history, 1024));
            return program_wrong;
        }
    printf("no such case\n");
    return 3;
}
