/* LINK: -lcuda -lpthread */
/* Kernels that wait for the host, with work queued after them. Arguments: the case, and how long a gate waits at most,
 * ms. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "linked.h"

enum { N = 64, ROUNDS = 3, QUEUED = 16, GRAPHS = 6, PAGE = 4096 };

static struct session session;
static CUstream side;
static CUdeviceptr values, passed;
static int limit_ms, queued;
static CUevent before, after;

static const char image[] = "FAKEMOD increment gate gate_behind proxy_client global:g_gate:64";

static CUfunction function(const char *name)
{
    return get_function(&linked, &session, name);
}

static void open_all(void)
{
    static const int zeros[N];

    open_session(&linked, &session, 0);
    MUST(cuModuleUnload(session.module));
    MUST(cuModuleLoadData(&session.module, image));
    MUST(cuStreamCreate(&side, CU_STREAM_NON_BLOCKING));
    MUST(cuEventCreate(&before, 0));
    MUST(cuEventCreate(&after, 0));
    values = device_ints(&linked, zeros, N);
    passed = device_ints(&linked, zeros, 2);
}

static void increment(CUstream stream)
{
    int n = N;
    void *params[] = {&values, &n};

    MUST(cuLaunchKernel(function("increment"), 1, 1, 1, N, 1, 1, 0, stream, params, NULL));
    queued++;
}

static void gate(const char *kernel, CUdeviceptr flag)
{
    void *params[] = {&flag, &passed, &limit_ms};

    MUST(cuLaunchKernel(function(kernel), 1, 1, 1, 1, 1, 1, 0, session.stream, params, NULL));
}

/* The first gate is open when it is launched. `set` opens the others. */
static void rounds(const char *kernel, CUdeviceptr flag, volatile int *host, void (*set)(CUdeviceptr flag, int value))
{
    for (int i = 0; i <= ROUNDS; i++) {
        if (host)
            *host = !i;
        else
            set(flag, !i);
        gate(kernel, flag);
        MUST(cuEventRecord(before, session.stream));
        for (int k = 0; k < QUEUED; k++)
            increment(session.stream);
        MUST(cuEventRecord(after, session.stream));
        if (host)
            *host = 1;
        else
            set(flag, 1);
        MUST(cuStreamSynchronize(session.stream));
    }
    increment(side);
    MUST(cuStreamSynchronize(side));
}

static void opened(int gates)
{
    int host[2];

    MUST(cuMemcpyDtoH(host, passed, sizeof(host)));
    report_number("gates", host[0], gates);
    report_number("gates that ran into their limit", host[1], 0);
}

static int *host_memory(unsigned flags)
{
    int *p;

    MUST(cuMemHostAlloc((void **)&p, 64, flags));
    return p;
}

static void allocated(unsigned flags)
{
    int *flag = host_memory(flags);

    rounds("gate", (CUdeviceptr)(uintptr_t)flag, flag, NULL);
    opened(1 + ROUNDS);
    MUST(cuMemFreeHost(flag));
}

static void mapped(void)
{
    allocated(CU_MEMHOSTALLOC_DEVICEMAP);
}

static void write_combined(void)
{
    allocated(CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_WRITECOMBINED);
}

static void registered(void)
{
    int *flag = aligned_alloc(PAGE, PAGE);

    MUST(cuMemHostRegister(flag, PAGE, CU_MEMHOSTREGISTER_DEVICEMAP));
    rounds("gate", (CUdeviceptr)(uintptr_t)flag, flag, NULL);
    opened(1 + ROUNDS);
    MUST(cuMemHostUnregister(flag));
}

static void managed(void)
{
    CUdeviceptr p;

    MUST(cuMemAllocManaged(&p, 64, CU_MEM_ATTACH_GLOBAL));
    rounds("gate", p, (int *)(uintptr_t)p, NULL);
    opened(1 + ROUNDS);
}

/* Memory of a pool that is not a device's: a gate, and values that kernels and the host change in turns. */
static void of_pool(CUmemAllocationType type, CUmemLocationType where, int finds)
{
    const CUmemPoolProps props = {.allocType = type, .location = {.type = where}};
    CUmemLocation at = {.type = where};
    CUmemoryPool pool;
    CUdeviceptr p;
    int n = N, right = 1;
    void *params[] = {&p, &n};

    MUST(finds ? cuMemGetMemPool(&pool, &at, type) : cuMemPoolCreate(&pool, &props));
    MUST(cuMemAllocFromPoolAsync(&p, PAGE, pool, session.stream));
    MUST(cuStreamSynchronize(session.stream));
    memset((void *)(uintptr_t)p, 0, PAGE);
    for (int i = 1, expected = 0; i <= 8; i++) {
        MUST(cuLaunchKernel(function("increment"), 1, 1, 1, N, 1, 1, 0, session.stream, params, NULL));
        increment(session.stream);
        expected++;
        if (i % 3)
            continue;
        MUST(cuStreamSynchronize(session.stream));
        right &= ((int *)(uintptr_t)p)[5] == expected;
        ((int *)(uintptr_t)p)[5] += i;
        expected += i;
    }
    MUST(cuStreamSynchronize(session.stream));
    report("pool", right && ((int *)(uintptr_t)p)[5] == 8 + 3 + 6 && ((int *)(uintptr_t)p)[N - 1] == 8);
    rounds("gate", p, (int *)(uintptr_t)p, NULL);
    opened(1 + ROUNDS);
    MUST(cuMemFreeAsync(p, session.stream));
    MUST(cuStreamSynchronize(session.stream));
}

static void host_pool(void)
{
    of_pool(CU_MEM_ALLOCATION_TYPE_PINNED, CU_MEM_LOCATION_TYPE_HOST, 0);
}

static void numa_pool(void)
{
    of_pool(CU_MEM_ALLOCATION_TYPE_PINNED, CU_MEM_LOCATION_TYPE_HOST_NUMA, 1);
}

static void managed_pool(void)
{
    of_pool(CU_MEM_ALLOCATION_TYPE_MANAGED, CU_MEM_LOCATION_TYPE_DEVICE, 0);
}

/* The address of the flag stands in device memory: no argument points to the host. */
static void behind(void)
{
    int *flag = host_memory(CU_MEMHOSTALLOC_DEVICEMAP);
    CUdeviceptr at;

    MUST(cuMemAlloc(&at, sizeof(flag)));
    MUST(cuMemcpyHtoD(at, &flag, sizeof(flag)));
    rounds("gate_behind", at, flag, NULL);
    opened(1 + ROUNDS);
}

/* The flag is in device memory, and a copy or a memset on another stream sets it. */
static void copy_flag(CUdeviceptr flag, int value)
{
    static int from[2] = {0, 1};

    MUST(cuMemcpyHtoDAsync(flag, &from[value], sizeof(int), side));
    if (!value)
        MUST(cuStreamSynchronize(side));
}

static void fill_flag(CUdeviceptr flag, int value)
{
    MUST(cuMemsetD32Async(flag, value, 1, side));
    if (!value)
        MUST(cuStreamSynchronize(side));
}

static void copied(void)
{
    rounds("gate", device_ints(&linked, &(int){1}, 1), NULL, copy_flag);
    opened(1 + ROUNDS);
}

static void filled(void)
{
    rounds("gate", device_ints(&linked, &(int){1}, 1), NULL, fill_flag);
    opened(1 + ROUNDS);
}

/* A graph of two gates and what follows. The first `open` launches find their gates open, as all kernels do whose code
 * only looks as if it waited for the host. */
static void graph_of_gates(int open)
{
    int *flag = host_memory(CU_MEMHOSTALLOC_DEVICEMAP);
    CUdeviceptr at;
    CUgraph graph;
    CUgraphExec exec;

    MUST(cuMemAlloc(&at, sizeof(flag)));
    MUST(cuMemcpyHtoD(at, &flag, sizeof(flag)));
    MUST(cuStreamBeginCapture(session.stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    gate("gate_behind", at);
    gate("gate_behind", at);
    increment(session.stream);
    MUST(cuStreamEndCapture(session.stream, &graph));
    MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));
    queued--;
    for (int i = 0; i < GRAPHS; i++, queued++) {
        *(volatile int *)flag = i < open;
        MUST(cuGraphLaunch(exec, session.stream));
        for (int k = 0; k < QUEUED; k++)
            increment(session.stream);
        *(volatile int *)flag = 1;
        MUST(cuStreamSynchronize(session.stream));
    }
    opened(2 * GRAPHS);
}

static void captured(void)
{
    graph_of_gates(GRAPHS);
}

static void captured_shut(void)
{
    graph_of_gates(1);
}

/* While a gate is closed, the program does what would close a window. */
static void busy(void)
{
    int *flag = host_memory(CU_MEMHOSTALLOC_DEVICEMAP), host[N];
    CUdeviceptr at = (CUdeviceptr)(uintptr_t)flag, more;
    CUmodule module;

    for (int i = 0; i <= ROUNDS; i++) {
        *(volatile int *)flag = !i;
        increment(session.stream);
        gate("gate", at);
        for (int k = 0; k < QUEUED; k++) {
            MUST(cuMemAlloc(&more, 4096));
            MUST(cuModuleLoadData(&module, image));
            increment(session.stream);
            increment(side);
            MUST(cuMemcpyDtoHAsync(host, passed, sizeof(int), side));
            MUST(cuStreamSynchronize(side));
        }
        *(volatile int *)flag = 1;
        MUST(cuStreamSynchronize(session.stream));
    }
    opened(1 + ROUNDS);
}

/* ---- a kernel that asks a thread of the host ---- */

struct proxy {
    volatile int request, answer, posted;
};

static struct proxy *ring;
static atomic_bool over;
static int served;

static void *serve(void *arg)
{
    (void)arg;
    while (!atomic_load(&over)) {
        int request = ring->request;

        if (request) {
            ring->request = 0;
            served++;
            ring->answer = 3 * request;
        }
        usleep(50);
    }
    return NULL;
}

static void proxied(void)
{
    enum { TIMES = 6 };
    pthread_t thread;
    CUdeviceptr at, sum = device_ints(&linked, &(int){0}, 1);

    ring = (struct proxy *)host_memory(CU_MEMHOSTALLOC_DEVICEMAP);
    memset((void *)ring, 0, sizeof(*ring));
    at = (CUdeviceptr)(uintptr_t)ring;
    pthread_create(&thread, NULL, serve, NULL);
    for (int i = 1, expected = 0; i <= TIMES; i++) {
        void *params[] = {&at, &sum, &i};

        increment(session.stream);
        MUST(cuLaunchKernel(function("proxy_client"), 1, 1, 1, 1, 1, 1, 0, session.stream, params, NULL));
        increment(session.stream);
        MUST(cuCtxSynchronize());
        expected += 3 * i;
        if (i % 2 == 0)
            report_number("answers", sum_ints(&linked, sum, 1), expected);
    }
    atomic_store(&over, true);
    pthread_join(thread, NULL);
    report_number("served", served, TIMES);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } cases[] = {
        {"mapped", mapped},         {"write-combined", write_combined},
        {"registered", registered}, {"managed", managed},
        {"behind", behind},         {"copied", copied},
        {"filled", filled},         {"busy", busy},
        {"proxied", proxied},       {"host-pool", host_pool},
        {"numa-pool", numa_pool},   {"managed-pool", managed_pool},
        {"captured", captured},     {"captured-shut", captured_shut},
    };
    const char *name = argc > 1 ? argv[1] : "mapped";

    limit_ms = argc > 2 ? atoi(argv[2]) : 10000;
    open_all();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        if (!strcmp(cases[i].name, name)) {
            cases[i].run();
            report_number("values", sum_ints(&linked, values, N), (long long)queued * N);
            return program_wrong;
        }
    printf("no such case: %s\n", name);
    return 3;
}
