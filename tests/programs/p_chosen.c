/* LINK: -lcuda -lpthread */
/* What goes on beside the launches that a rotation counts. Arguments: the case, and how many rounds. Launches of append
 * are to be counted, and depend on all before them; the others are not. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "linked.h"

enum { N = 64, EACH = 2, MOST = 4096 };

static struct session session;
static CUstream second;
static CUdeviceptr values, history, cursor, flag;
static int appended, rounds, calls;
static atomic_bool goes;

static CUfunction function(const char *name)
{
    return get_function(&linked, &session, name);
}

static void open_all(void)
{
    static const int zeros[MOST];

    open_session(&linked, &session, 0);
    MUST(cuModuleUnload(session.module));
    MUST(cuModuleLoadData(&session.module, "FAKEMOD increment append wait_flag set_flag late_increment"));
    MUST(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
    values = device_ints(&linked, zeros, N);
    history = device_ints(&linked, zeros, MOST);
    cursor = device_ints(&linked, zeros, 1);
    flag = device_ints(&linked, zeros, 1);
}

/* Launches of so many blocks are a key. */
static void append_of(unsigned blocks, int times)
{
    for (int i = 0; i < times; i++) {
        void *params[] = {&history, &cursor, &(int){MOST}, &(int){appended + 1}};

        MUST(cuLaunchKernel(function("append"), blocks, 1, 1, 1, 1, 1, 0, session.stream, params, NULL));
        appended += (int)blocks;
    }
}

static void append(int times)
{
    append_of(1, times);
}

static void increment(CUstream stream)
{
    void *params[] = {&values, &(int){N}};

    MUST(cuLaunchKernel(function("increment"), 1, 1, 1, N, 1, 1, 0, stream, params, NULL));
}

/* Takes some time. */
static void increment_late(CUstream stream)
{
    void *params[] = {&values, &(int){N}, &(int){2}};

    MUST(cuLaunchKernel(function("late_increment"), 1, 1, 1, N, 1, 1, 0, stream, params, NULL));
}

static void wait_for(CUdeviceptr where)
{
    void *params[] = {&where, &values};

    MUST(cuLaunchKernel(function("wait_flag"), 1, 1, 1, 1, 1, 1, 0, second, params, NULL));
}

static void set_in(CUstream stream, int value)
{
    void *params[] = {&flag, &value};

    MUST(cuLaunchKernel(function("set_flag"), 1, 1, 1, 1, 1, 1, 0, stream, params, NULL));
}

static void set(int value)
{
    set_in(session.stream, value);
}

static void finish(void)
{
    MUST(cuStreamSynchronize(session.stream));
    MUST(cuStreamSynchronize(second));
}

/* ---- the cases ---- */

/* Few of many launches are wanted. */
static void few(void)
{
    for (int i = 0; i < rounds; i++) {
        increment(session.stream);
        append(1);
        increment(second);
        increment_late(session.stream);
        finish();
    }
}

/* A kernel waits for one that is launched later, behind launches to be counted. */
static void waits_for_launch(void)
{
    for (int i = 0; i < rounds; i++) {
        append(EACH);
        wait_for(flag);
        append(2);
        set(3);
        MUST(cuStreamSynchronize(second));
        set(0);
        finish();
    }
}

/* The kernel that waits has been counted often enough before, when it did not. */
static void waits_when_complete(void)
{
    set(1);
    for (int i = 0; i < 5 * rounds; i++) {
        wait_for(flag);
        append(1);
        finish();
    }
    set(0);
    for (int i = 0; i < rounds; i++) {
        append_of(2, EACH);
        wait_for(flag);
        append_of(2, 2);
        set(3);
        MUST(cuStreamSynchronize(second));
        set(0);
        finish();
    }
}

static void waits_for_host(void)
{
    int *word;

    MUST(cuMemHostAlloc((void **)&word, 64, CU_MEMHOSTALLOC_DEVICEMAP));
    for (int i = 0; i < rounds; i++) {
        *(volatile int *)word = 0;
        append(EACH);
        wait_for((CUdeviceptr)(uintptr_t)word);
        append(2);
        *(volatile int *)word = 5;
        finish();
    }
    MUST(cuMemFreeHost(word));
}

/* A stream is captured while a kernel waits for a launch behind the capture. */
static void waits_for_capture(void)
{
    CUstream captured;
    CUgraph graph;

    MUST(cuStreamCreate(&captured, CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < rounds; i++) {
        append(EACH);
        wait_for(flag);
        append(2);
        MUST(cuStreamBeginCapture(captured, CU_STREAM_CAPTURE_MODE_GLOBAL));
        increment(captured);
        append(1);
        MUST(cuStreamEndCapture(captured, &graph));
        MUST(cuGraphDestroy(graph));
        set(3);
        MUST(cuStreamSynchronize(second));
        set(0);
        finish();
    }
    MUST(cuStreamDestroy(captured));
}

/* Another context ends while a kernel waits for a launch that is made later. */
static void waits_for_end(void)
{
    for (int i = 0; i < rounds; i++) {
        CUcontext other;

        append(EACH);
        wait_for(flag);
        append(2);
        MUST(cuCtxCreate(&other, NULL, 0, session.device));
        MUST(cuCtxDestroy(other));
        MUST(cuCtxSetCurrent(session.ctx));
        set(3);
        MUST(cuStreamSynchronize(second));
        set(0);
        finish();
    }
}

/* A stream waits for an event behind a kernel of another context, which waits for a launch that is made later. */
static void waits_for_event(void)
{
    struct session other = session;
    CUevent event;

    MUST(cuCtxCreate(&other.ctx, NULL, 0, session.device));
    MUST(cuModuleLoadData(&other.module, "FAKEMOD wait_flag"));
    MUST(cuStreamCreate(&other.stream, CU_STREAM_NON_BLOCKING));
    MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    for (int i = 0; i < rounds; i++) {
        MUST(cuCtxSetCurrent(session.ctx));
        append(EACH);
        MUST(cuCtxSetCurrent(other.ctx));
        MUST(cuLaunchKernel(get_function(&linked, &other, "wait_flag"), 1, 1, 1, 1, 1, 1, 0, other.stream,
                            (void *[]){&flag, &values}, NULL));
        MUST(cuEventRecord(event, other.stream));
        MUST(cuCtxSetCurrent(session.ctx));
        MUST(cuStreamWaitEvent(session.stream, event, 0));
        append(2);
        set_in(second, 3);
        finish();
        set(0);
        finish();
    }
}

static void *copy_behind(void *ctx)
{
    int value;

    MUST(cuCtxSetCurrent(ctx));
    atomic_store(&goes, true);
    MUST(cuMemcpyDtoH(&value, values, sizeof(int))); /* behind the kernel that waits */
    return NULL;
}

/* A stream is captured while another thread's call waits for a launch behind the capture. */
static void waits_in_call(void)
{
    CUstream captured;
    CUgraph graph;
    pthread_t thread;

    MUST(cuStreamCreate(&captured, CU_STREAM_NON_BLOCKING));
    MUST(cuStreamDestroy(second));
    MUST(cuStreamCreate(&second, CU_STREAM_DEFAULT));
    append(EACH);
    wait_for(flag);
    append(2);
    pthread_create(&thread, NULL, copy_behind, session.ctx);
    while (!atomic_load(&goes))
        usleep(1000);
    usleep(50000);
    MUST(cuStreamBeginCapture(captured, CU_STREAM_CAPTURE_MODE_RELAXED));
    increment(captured);
    MUST(cuStreamEndCapture(captured, &graph));
    MUST(cuGraphDestroy(graph));
    set(3);
    pthread_join(thread, NULL);
    MUST(cuStreamDestroy(captured));
}

/* A context ends while one of its streams is captured, which ends the capture. */
static void ends_captured(void)
{
    CUcontext other;
    CUstream captured;

    MUST(cuCtxCreate(&other, NULL, 0, session.device));
    MUST(cuStreamCreate(&captured, CU_STREAM_NON_BLOCKING));
    MUST(cuStreamBeginCapture(captured, CU_STREAM_CAPTURE_MODE_RELAXED));
    MUST(cuCtxDestroy(other));
    MUST(cuCtxSetCurrent(session.ctx));
    few();
}

/* A context that was counted in ends while another thread's call waits for a launch that is made later. */
static void ends_in_call(void)
{
    const struct session first = session;
    CUcontext other;
    pthread_t thread;

    append(EACH);
    finish();
    MUST(cuCtxCreate(&other, NULL, 0, session.device));
    MUST(cuModuleLoadData(&session.module, "FAKEMOD append"));
    MUST(cuStreamCreate(&session.stream, CU_STREAM_NON_BLOCKING));
    append(EACH);
    MUST(cuCtxSynchronize());
    session = first;
    MUST(cuCtxSetCurrent(session.ctx));
    MUST(cuStreamDestroy(second));
    MUST(cuStreamCreate(&second, CU_STREAM_DEFAULT));
    wait_for(flag);
    pthread_create(&thread, NULL, copy_behind, session.ctx);
    while (!atomic_load(&goes))
        usleep(1000);
    usleep(50000);
    MUST(cuCtxDestroy(other));
    MUST(cuCtxSetCurrent(session.ctx));
    set(3);
    pthread_join(thread, NULL);
    append(EACH);
    finish();
}

/* The program ends before a kernel does that passed. */
static void end_before(bool captures, void (*end)(int status))
{
    enum { WINDOW_MS = 60 }; /* as long as a window waits for a launch, and more */
    CUstream captured;

    if (rounds)
        append_of(2, 1); /* lacks a group, so that counters stay on */
    for (int i = 0; i < rounds; i++) {
        append(1);
        increment(second);
        finish();
        usleep(WINDOW_MS * 1000);
    }
    append(EACH);
    wait_for(flag);
    append(2);
    if (captures) {
        MUST(cuStreamCreate(&captured, CU_STREAM_NON_BLOCKING));
        MUST(cuStreamBeginCapture(captured, CU_STREAM_CAPTURE_MODE_GLOBAL));
    }
    printf("so many entries: %d\n", appended);
    fflush(stdout);
    end(program_wrong);
}

static void never_ends(void)
{
    end_before(false, exit);
}

static void never_ends_captures(void)
{
    end_before(true, exit);
}

static void never_ends_at_once(void)
{
    end_before(false, _exit);
}

static void CUDA_CB count(void *by)
{
    calls += *(int *)by;
}

static void host_functions(void)
{
    static int one = 1;

    for (int i = 0; i < rounds; i++) {
        append(1);
        MUST(cuLaunchHostFunc(session.stream, count, &one));
        append(1);
        MUST(cuLaunchHostFunc(second, count, &one));
        finish();
    }
    report_number("called", calls, 2 * rounds);
}

/* All kernels but one can reach host memory, and end before the next is launched. */
static void reaches_host(void)
{
    int *host, n = N;
    CUdeviceptr mapped;
    MUST(cuMemHostAlloc((void **)&host, N * sizeof(*host), CU_MEMHOSTALLOC_DEVICEMAP));
    memset(host, 0, N * sizeof(*host));
    MUST(cuMemHostGetDevicePointer(&mapped, host, 0));
    void *params[] = {&mapped, &n};
    for (int i = 0; i < rounds; i++) {
        append(1);
        finish();
        MUST(cuLaunchKernel(function("increment"), 4, 1, 1, 128, 1, 1, 0, session.stream, params, NULL));
        finish();
        MUST(cuLaunchKernel(function("increment"), 8, 1, 1, 64, 1, 1, 0, session.stream, params, NULL));
        finish();
    }
    report_number("on the host", host[0], 2 * rounds);
    MUST(cuMemFreeHost(host));
}

/* A host function waits for the program, behind launches to be counted. FAKE_HOST_THREADS has it run beside them. */
static void CUDA_CB wait_to_go(void *unused)
{
    (void)unused;
    while (!atomic_load(&goes))
        usleep(1000);
}

static void waits_in_function(void)
{
    for (int i = 0; i < rounds; i++) {
        append(EACH);
        atomic_store(&goes, false);
        MUST(cuLaunchHostFunc(second, wait_to_go, NULL));
        append(2);
        atomic_store(&goes, true);
        finish();
    }
}

/* Streams that have gone when a launch is to be counted; their work may go on. */
static void streams(void)
{
    for (int i = 0; i < rounds; i++) {
        CUstream gone;

        append(1);
        MUST(cuStreamCreate(&gone, i % 2 ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT));
        i % 3 ? increment_late(gone) : increment(gone);
        MUST(cuStreamDestroy(gone));
        append(1);
    }
}

/* A copy in another stream goes on when a launch is to be counted, for as long as FAKE_COPY_MS says. */
static void copies(void)
{
    int *pinned;

    MUST(cuMemHostAlloc((void **)&pinned, N * sizeof(int), 0));
    for (int i = 0; i < rounds; i++) {
        pinned[0] = i;
        append(1);
        MUST(cuMemcpyHtoDAsync(values, pinned, sizeof(int), second));
        append(1);
        finish();
    }
    MUST(cuMemFreeHost(pinned));
}

/* A shape that comes when many others have been counted often enough. */
static void latecomer(void)
{
    enum { OTHERS = 10 };

    for (int i = 0; i < rounds; i++)
        for (unsigned blocks = 1; blocks <= OTHERS; blocks++)
            append_of(blocks, 1);
    append_of(OTHERS + 1, rounds);
}

/* Graphs of two kernels, or of one and a host function. */
static void launch_graphs(bool calls_host)
{
    static int one = 1;
    void *params[] = {&values, &(int){N}};
    CUDA_KERNEL_NODE_PARAMS p = kernel_node(function("increment"), 1, N, 0, params);
    CUDA_HOST_NODE_PARAMS call = {count, &one};
    CUgraphNode first, then;
    CUgraphExec exec;
    CUgraph graph;

    MUST(cuGraphCreate(&graph, 0));
    MUST(cuGraphAddKernelNode(&first, graph, NULL, 0, &p));
    if (calls_host)
        MUST(cuGraphAddHostNode(&then, graph, &first, 1, &call));
    else
        MUST(cuGraphAddKernelNode(&then, graph, &first, 1, &p));
    MUST(cuGraphInstantiate(&exec, graph, 0));
    for (int i = 0; i < rounds; i++) {
        append(1);
        MUST(cuGraphLaunch(exec, session.stream));
        append(1);
        MUST(cuGraphLaunch(exec, second));
    }
    finish();
    MUST(cuGraphExecDestroy(exec));
    MUST(cuGraphDestroy(graph));
    report_number("called", calls, calls_host ? 2 * rounds : 0);
}

static void graphs(void)
{
    launch_graphs(false);
}

static void graphs_that_call(void)
{
    launch_graphs(true);
}

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {{"few", few},
             {"waits-for-launch", waits_for_launch},
             {"waits-for-host", waits_for_host},
             {"waits-when-complete", waits_when_complete},
             {"waits-for-capture", waits_for_capture},
             {"waits-for-end", waits_for_end},
             {"waits-for-event", waits_for_event},
             {"waits-in-call", waits_in_call},
             {"ends-captured", ends_captured},
             {"ends-in-call", ends_in_call},
             {"never-ends", never_ends},
             {"never-ends-captures", never_ends_captures},
             {"never-ends-at-once", never_ends_at_once},
             {"waits-in-function", waits_in_function},
             {"host-functions", host_functions},
             {"reaches-host", reaches_host},
             {"streams", streams},
             {"copies", copies},
             {"latecomer", latecomer},
             {"graphs", graphs},
             {"graphs-that-call", graphs_that_call}};

int main(int argc, char **argv)
{
    int *host = malloc(MOST * sizeof(int)), last = 0;

    if (argc < 3)
        return 2;
    rounds = atoi(argv[2]);
    open_all();
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        if (!strcmp(cases[i].name, argv[1]))
            cases[i].run();
    MUST(cuCtxSynchronize());
    MUST(cuMemcpyDtoH(host, history, MOST * sizeof(int)));
    if (appended && appended <= MOST)
        last = host[appended - 1];
    printf("values: %lld\nlast entry: %d\n", sum_ints(&linked, values, N), last);
    report_number("entries", sum_ints(&linked, cursor, 1), appended);
    free(host);
    close_session(&linked, &session);
    return program_wrong;
}
