/* LINK: -lcuda -lpthread */
/* Memory that a save must know of, and memory that a program needs for itself. Argument: the case; without one, all
 * that need no device of a certain size. */
#include <pthread.h>
#include <stdbool.h>

#include "linked.h"

enum { N = 64, ROUNDS = 4 };

static struct session session;
static CUdeviceptr values;

static const char image[] =
    "FAKEMOD increment add_constant atomic_count const:five:4 global:counter:4 global:large:200000";

static void launch(const char *kernel, int threads, void **params)
{
    MUST(cuLaunchKernel(get_function(&linked, &session, kernel), 1, 1, 1, threads, 1, 1, 0, session.stream, params,
                        NULL));
}

static void increment(CUdeviceptr data, int n)
{
    launch("increment", n, (void *[]){&data, &n});
}

static void open_all(void)
{
    static const int zeros[N];

    open_session(&linked, &session, 0);
    MUST(cuModuleUnload(session.module));
    MUST(cuModuleLoadData(&session.module, image));
    values = device_ints(&linked, zeros, N);
}

/* Returns what the device has left, MB. */
static long long left(void)
{
    size_t bytes, total;

    MUST(cuMemGetInfo(&bytes, &total));
    return (long long)(bytes >> 20);
}

static CUdeviceptr variable(const char *name)
{
    CUdeviceptr at;
    size_t bytes;

    MUST(cuModuleGetGlobal(&at, &bytes, session.module, name));
    return at;
}

/* Variables that kernels change, one of them in its last bytes, and a constant that a copy sets. */
static void variables(void)
{
    enum { LARGE = 200000 / sizeof(int) };
    CUdeviceptr counter = variable("counter"), large = variable("large"), five = variable("five");
    int expected = 0, one = 1, wrong = 0;
    static int host[LARGE];

    for (int i = 0; i < ROUNDS; i++) {
        MUST(cuMemcpyHtoD(five, &i, sizeof(i)));
        launch("add_constant", N, (void *[]){&values, &(int){N}});
        launch("atomic_count", N, (void *[]){&counter});
        increment(large + (LARGE - N) * sizeof(int), N);
        increment(five, one);
        launch("add_constant", N, (void *[]){&values, &(int){N}});
        expected += i + i + 1;
    }
    MUST(cuStreamSynchronize(session.stream));
    report_number("values", sum_ints(&linked, values, N), expected * N);
    report_number("counter", sum_ints(&linked, counter, 1), ROUNDS * N);
    MUST(cuMemcpyDtoH(host, large, sizeof(host)));
    for (int i = 0; i < LARGE; i++)
        wrong += host[i] != (i < LARGE - N ? 0 : ROUNDS);
    report_number("large: wrong", wrong, 0);
}

/* Kinds of memory beside each other; a kernel changes the first and the last number of each. */
static void kinds(void)
{
    enum { BYTES = 3 << 20, MAPPED = 4 << 20, LAST = BYTES / sizeof(int) - 1 };
    const CUmemAllocationProp what = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
    const CUmemAccessDesc access = {.location = what.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle memory;
    CUdeviceptr at[3];

    MUST(cuMemAlloc(&at[0], BYTES));
    MUST(cuMemAllocAsync(&at[1], BYTES, session.stream));
    MUST(cuMemCreate(&memory, MAPPED, &what, 0));
    MUST(cuMemAddressReserve(&at[2], MAPPED, 0, 0, 0));
    MUST(cuMemMap(at[2], MAPPED, 0, memory, 0));
    MUST(cuMemSetAccess(at[2], MAPPED, &access, 1));
    for (int i = 0; i < 3; i++)
        MUST(cuMemsetD8(at[i], 0, BYTES));
    MUST(cuCtxSynchronize());
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < 3; i++) {
            increment(at[i], 1);
            increment(at[i] + LAST * sizeof(int), 1);
        }
    MUST(cuStreamSynchronize(session.stream));
    for (int i = 0; i < 3; i++) {
        report_number("first", sum_ints(&linked, at[i], 1), ROUNDS);
        report_number("last", sum_ints(&linked, at[i] + LAST * sizeof(int), 1), ROUNDS);
        report_number("all", sum_ints(&linked, at[i], LAST + 1), 2 * ROUNDS);
    }
    MUST(cuMemFree(at[0]));
    MUST(cuMemFreeAsync(at[1], session.stream));
    MUST(cuMemUnmap(at[2], MAPPED));
    MUST(cuMemAddressFree(at[2], MAPPED));
    MUST(cuMemRelease(memory));
}

/* An allocation that cannot be listed. */
static void managed(void)
{
    CUdeviceptr at;

    MUST(cuMemAllocManaged(&at, N * sizeof(int), CU_MEM_ATTACH_GLOBAL));
    MUST(cuMemsetD8(at, 0, N * sizeof(int)));
    MUST(cuCtxSynchronize());
    increment(at, N);
    increment(values, N);
    MUST(cuStreamSynchronize(session.stream));
    report_number("managed", sum_ints(&linked, at, N), N);
    MUST(cuMemFree(at));
}

/* What the device has left is what the program left it. Then all of it, which a profiler has to give. */
static void whole_device(void)
{
    enum { STEP = 256 << 20, MOST = 64, KEPT_MB = 1 };
    CUdeviceptr at[MOST], more;
    int n = 0;

    printf("left before: %lld MB\n", left());
    increment(values, N);
    MUST(cuStreamSynchronize(session.stream));
    report_number("values", sum_ints(&linked, values, N), N);
    printf("left behind a launch: %lld MB\n", left());
    while (n < MOST && left() > (STEP >> 20) && cuMemAlloc(&at[n], STEP) == CUDA_SUCCESS)
        n++;
    printf("allocations: %d, left: %lld MB\n", n, left());
    MUST(cuMemAlloc(&more, (size_t)(left() - KEPT_MB) << 20));
    printf("left at last: %lld MB\n", left());
    for (int i = 0; i < ROUNDS; i++) {
        increment(more, N);
        increment(at[n - 1] + STEP - N * sizeof(int), N);
    }
    MUST(cuStreamSynchronize(session.stream));
    increment(values, N);
    report_number("values", sum_ints(&linked, values, N), 2 * N);
    printf("too much: error %d\n", (int)cuMemAlloc(&more, STEP));
    printf("left: %lld MB\n", left());
}

/* ---- memory that takes all that the device has left, but for 2 MB ---- */

static size_t most(void)
{
    return (size_t)(left() - 2) << 20;
}

static void increment_once(void)
{
    increment(values, N);
    MUST(cuStreamSynchronize(session.stream));
}

static void free_all(const char *what, CUresult rc, CUdeviceptr at)
{
    printf("%s: error %d\n", what, (int)rc);
    if (rc == CUDA_SUCCESS)
        MUST(cuMemFree(at));
}

/* The size is a product. */
static void pitched(void)
{
    enum { WIDTH = 1 << 20 };
    CUdeviceptr at = 0;
    size_t pitch;

    increment_once();
    free_all("pitched", cuMemAllocPitch(&at, &pitch, WIDTH, most() / WIDTH, 4), at);
}

/* While a stream is captured, in a mode that allows it. */
static void while_captured(void)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    CUdeviceptr at = 0;
    CUgraph graph;
    size_t nodes;
    CUresult rc;

    increment_once();
    MUST(cuStreamBeginCapture(session.stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    increment(values, N);
    MUST(cuThreadExchangeStreamCaptureMode(&mode));
    rc = cuMemAlloc(&at, most());
    free_all("while a stream is captured", rc, at);
    MUST(cuThreadExchangeStreamCaptureMode(&mode));
    MUST(cuStreamEndCapture(session.stream, &graph));
    MUST(cuGraphGetNodes(graph, NULL, &nodes));
    report_number("nodes", (long long)nodes, 1);
}

/* Of a device that is not the current one, which has enough. */
static void elsewhere(void)
{
    enum { USED = 700 << 20 };
    const CUmemAllocationProp what = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
    CUmemGenericAllocationHandle memory;
    CUdeviceptr used;
    CUcontext other;
    size_t bytes;
    CUresult rc;

    increment_once();
    MUST(cuMemAlloc(&used, USED));
    bytes = most() & ~(((size_t)2 << 20) - 1);
    MUST(cuDevicePrimaryCtxRetain(&other, 1));
    MUST(cuCtxSetCurrent(other));
    rc = cuMemCreate(&memory, bytes, &what, 0);
    printf("elsewhere: error %d\n", (int)rc);
    if (rc == CUDA_SUCCESS)
        MUST(cuMemRelease(memory));
    MUST(cuCtxSetCurrent(session.ctx));
    MUST(cuMemFree(used));
    increment_once();
    report_number("values", sum_ints(&linked, values, N), 2 * N);
}

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;

static void CUDA_CB wait_for_main(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&held);
    pthread_mutex_unlock(&held);
}

/* Does not return before the host function does. */
static void *copy_back(void *unused)
{
    int host[N];

    (void)unused;
    MUST(cuCtxSetCurrent(session.ctx));
    MUST(cuMemcpyDtoH(host, values, sizeof(host)));
    return NULL;
}

/* While another thread is in a call that waits for this one. */
static void beside_call(void)
{
    enum { UNDER_WAY_US = 100000 };
    CUdeviceptr at = 0;
    CUstream blocking;
    pthread_t thread;
    CUresult rc;

    MUST(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
    increment_once();
    pthread_mutex_lock(&held);
    MUST(cuLaunchHostFunc(blocking, wait_for_main, NULL));
    pthread_create(&thread, NULL, copy_back, NULL);
    usleep(UNDER_WAY_US);
    rc = cuMemAllocAsync(&at, most(), session.stream);
    pthread_mutex_unlock(&held);
    pthread_join(thread, NULL);
    free_all("beside a call", rc, at);
}

/* Memory of two contexts of the device; the other one's work goes on beside this one's. */
static void two_contexts(void)
{
    static const int zeros[N];
    CUcontext other;
    CUdeviceptr theirs;

    MUST(cuCtxCreate(&other, NULL, 0, session.device));
    theirs = device_ints(&linked, zeros, N);
    MUST(cuCtxSetCurrent(session.ctx));
    for (int i = 0; i < ROUNDS; i++)
        increment(values, N);
    MUST(cuStreamSynchronize(session.stream));
    MUST(cuCtxSetCurrent(other));
    report_number("theirs", sum_ints(&linked, theirs, N), 0);
    MUST(cuCtxDestroy(other));
    MUST(cuCtxSetCurrent(session.ctx));
    increment(values, N);
    report_number("values", sum_ints(&linked, values, N), (ROUNDS + 1) * N);
}

/* The second allocation is refused once: the program makes it again, unless that was done for it. Launches change its
 * memory. */
static void refused_once(void)
{
    CUdeviceptr at;

    increment(values, N);
    if (cuMemAlloc(&at, N * sizeof(int)))
        MUST(cuMemAlloc(&at, N * sizeof(int)));
    MUST(cuMemsetD8(at, 0, N * sizeof(int)));
    for (int i = 0; i < ROUNDS; i++) {
        increment(at, N);
        MUST(cuStreamSynchronize(session.stream));
    }
    report_number("refused once", sum_ints(&linked, at, N), ROUNDS * N);
}

static void *launch_for_ever(void *f)
{
    enum { BYTES = 64 << 20 };
    CUdeviceptr memory;
    int n = 64;
    void *params[] = {&values, &n};

    MUST(cuCtxSetCurrent(session.ctx));
    for (;;) {
        if (cuMemAlloc(&memory, BYTES) || cuMemsetD8(memory, 1, BYTES))
            pause();
        if (cuLaunchKernel(f, 1, 1, 1, 64, 1, 1, 0, session.stream, params, NULL) ||
            cuStreamSynchronize(session.stream) || cuMemFree(memory))
            pause(); /* the driver has ended */
    }
    return NULL;
}

/* Exits while another thread's first launch is under way, for which a profiler prepares a lot. */
static void exits_amid(void)
{
    enum { PIECE = 16 << 20, PIECES = 8, AMID_US = 400000 };
    pthread_t t;
    int *host = calloc(1, PIECE);
    CUdeviceptr much;

    MUST(cuMemAlloc(&much, (size_t)PIECES * PIECE));
    for (size_t i = 0; i < PIECE / sizeof(*host); i++)
        host[i] = (int)(i * 2654435761u);
    for (size_t i = 0; i < PIECES; i++)
        MUST(cuMemcpyHtoD(much + i * PIECE, host, PIECE));
    if (pthread_create(&t, NULL, launch_for_ever, get_function(&linked, &session, "increment")))
        exit(9);
    usleep(AMID_US);
    exit(4);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
        bool by_name; /* not without an argument */
    } cases[] = {{"variables", variables, false},      {"kinds", kinds, false},
                 {"managed", managed, false},          {"whole-device", whole_device, true},
                 {"pitched", pitched, true},           {"while-captured", while_captured, true},
                 {"elsewhere", elsewhere, true},       {"beside-call", beside_call, true},
                 {"two-contexts", two_contexts, true}, {"refused-once", refused_once, true},
                 {"exits-amid", exits_amid, true}};
    enum { CASES = sizeof(cases) / sizeof(*cases) };

    open_all();
    for (int i = 0; i < CASES; i++)
        if (argc > 1 ? !strcmp(argv[1], cases[i].name) : !cases[i].by_name)
            cases[i].run();
    return program_wrong;
}
