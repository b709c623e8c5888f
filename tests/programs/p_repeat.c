/* LINK: -lcuda -lpthread */
/* What must not be run twice, or not in another order: a profiler that issues launches again would show. Arguments: the
 * case, and its rounds where it has some. */
#include <signal.h>

#include "linked.h"

enum { N = 32 };

static struct session session;
static int rounds; /* 0: as many as the case has */
static CUstream second;
static CUdeviceptr data, blocks;

static const char image[] = "FAKEMOD increment heap_swap touch_blocks read_blocks launching_increment late_increment "
                            "gather wait_flag set_flag";

static CUfunction function(const char *name)
{
    return get_function(&linked, &session, name);
}

static void open_all(void)
{
    static const int zeros[4 * N];

    open_session(&linked, &session, 0);
    MUST(cuModuleUnload(session.module));
    MUST(cuModuleLoadData(&session.module, image));
    MUST(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
    data = device_ints(&linked, zeros, N);
    blocks = device_ints(&linked, zeros, 2 * N); /* addresses */
}

static void launch(const char *name, CUstream stream, void **params)
{
    MUST(cuLaunchKernel(function(name), 1, 1, 1, N, 1, 1, 0, stream, params, NULL));
}

static void increment_as(const char *name, CUdeviceptr what)
{
    int n = N;

    launch(name, session.stream, (void *[]){&what, &n});
}

static void on_blocks(const char *name, int k)
{
    int n = N;

    launch(name, session.stream, (void *[]){&blocks, &n, &k});
}

static void show(void)
{
    int n = N;

    MUST(cuCtxSynchronize());
    printf("data: %lld\n", sum_ints(&linked, data, N));
    launch("read_blocks", session.stream, (void *[]){&blocks, &data, &n});
    MUST(cuCtxSynchronize());
    printf("blocks: %lld\n", sum_ints(&linked, data, N));
}

/* ---- the device's heap ---- */

static int rounds_or(int usual)
{
    return rounds ? rounds : usual;
}

static void heap(void)
{
    for (int k = 1; k <= rounds_or(4); k++) {
        increment_as("increment", data);
        on_blocks("heap_swap", k);
        increment_as("increment", data);
    }
}

/* Ends that no exit handler sees. */
static void heap_exits(void)
{
    heap();
    MUST(cuCtxSynchronize());
    printf("data: %lld\n", sum_ints(&linked, data, N));
    fflush(stdout);
    _exit(7);
}

static void heap_killed(void)
{
    heap();
    MUST(cuCtxSynchronize());
    raise(SIGKILL);
}

/* Blocks that a kernel took before, changed by kernels that take none. */
static void heap_blocks(void)
{
    increment_as("increment", data);
    on_blocks("heap_swap", 1);
    MUST(cuCtxSynchronize());
    for (int k = 1; k <= 3; k++)
        on_blocks("touch_blocks", k);
}

static void launches(void)
{
    for (int k = 0; k < rounds_or(3); k++) {
        increment_as("increment", data);
        increment_as("launching_increment", data);
    }
}

/* A kernel that comes while others have been launched often. */
static void joins_late(void)
{
    for (int k = 0; k < rounds_or(20); k++) {
        increment_as("increment", data);
        if (k > 3)
            increment_as("launching_increment", data);
    }
}

/* ---- virtual memory ---- */

static void virtual_memory_on(CUmemLocationType where)
{
    CUmemAllocationProp what = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {.type = where}};
    CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
                              .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle memory;
    CUdeviceptr at;
    size_t size;

    increment_as("increment", data);
    increment_as("increment", data);
    MUST(cuMemGetAllocationGranularity(&size, &what, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    MUST(cuMemCreate(&memory, size, &what, 0));
    MUST(cuMemAddressReserve(&at, size, 0, 0, 0));
    MUST(cuMemMap(at, size, 0, memory, 0));
    MUST(cuMemSetAccess(at, size, &access, 1));
    MUST(cuMemsetD32(at, 0, N));
    for (int k = 0; k < rounds_or(4); k++)
        increment_as("increment", at);
    report_number("virtual", sum_ints(&linked, at, N), rounds_or(4) * N);
}

static void virtual_memory(void)
{
    virtual_memory_on(CU_MEM_LOCATION_TYPE_DEVICE);
}

static void virtual_memory_of_the_host(void)
{
    virtual_memory_on(CU_MEM_LOCATION_TYPE_HOST_NUMA);
}

/* ---- memory that others see ---- */

/* Launches on a second device may come to be waited for. */
static void partners(void)
{
    CUipcMemHandle handle;
    CUcontext second_device;

    MUST(cuIpcGetMemHandle(&handle, data));
    for (int k = 0; k < 3; k++)
        increment_as("increment", data);
    MUST(cuDevicePrimaryCtxRetain(&second_device, 1));
    for (int k = 0; k < 3; k++)
        increment_as("increment", data);
    MUST(cuDevicePrimaryCtxRelease(1));
}

/* ---- graphs with memory of their own ---- */

/* A graph that is launched three times, with memory of its own or without; its next launch frees that. */
static void graphs(const char *name, int memory_nodes)
{
    CUDA_MEM_ALLOC_NODE_PARAMS memory = {
        .poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}},
        .bytesize = 64};
    int n = N;
    void *params[] = {&data, &n};
    CUDA_KERNEL_NODE_PARAMS kernel = kernel_node(function(name), 1, N, 0, params);
    CUgraphNode node;
    CUgraph graph;
    CUgraphExec exec;

    MUST(cuGraphCreate(&graph, 0));
    if (memory_nodes)
        MUST(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &memory));
    MUST(cuGraphAddKernelNode(&node, graph, &node, memory_nodes, &kernel));
    MUST(cuGraphInstantiateWithFlags(&exec, graph, memory_nodes ? CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH : 0));
    for (int k = 0; k < rounds_or(3); k++)
        MUST(cuGraphLaunch(exec, session.stream));
}

static void graph_memory(void)
{
    graphs("increment", 1);
}

static void graphs_in_a_row(void)
{
    graphs("increment", 0);
}

static void graph_launches(void)
{
    graphs("launching_increment", 0);
}

/* ---- orders that the host makes ---- */

static void gather(CUdeviceptr index, CUstream stream)
{
    int n = N;

    launch("gather", stream, (void *[]){&index, &data, &n});
}

/* An index comes by a copy that takes its time; the host waits, and a kernel of another stream uses it. */
static void order(void)
{
    CUdeviceptr index = device_ints(&linked, &(int){-1}, 1);
    static const int third = 3, wild = -1;

    for (int i = 0; i < 3; i++) {
        increment_as("increment", data);
        MUST(cuMemcpyHtoDAsync(index, &third, sizeof(int), session.stream));
        MUST(cuStreamSynchronize(session.stream));
        gather(index, second);
        MUST(cuStreamSynchronize(second));
        MUST(cuMemcpyHtoDAsync(index, &wild, sizeof(int), session.stream));
    }
}

/* The same with an order that an event makes. */
static void order_by_event(void)
{
    CUdeviceptr index = device_ints(&linked, &(int){-1}, 1);
    static const int third = 3;
    CUevent event;

    MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    increment_as("increment", data);
    MUST(cuMemcpyHtoDAsync(index, &third, sizeof(int), session.stream));
    MUST(cuEventRecord(event, session.stream));
    MUST(cuStreamWaitEvent(second, event, 0));
    gather(index, second);
}

/* A kernel waits for a flag that a kernel sets after the host has waited for the index. */
static void order_behind_a_wait(void)
{
    CUdeviceptr index = device_ints(&linked, &(int){-1}, 1), flag = device_ints(&linked, &(int){0}, 1);
    static const int third = 3;
    CUstream other;
    int one = 1;

    MUST(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < 2; i++) {
        increment_as("increment", data);
        launch("wait_flag", other, (void *[]){&flag, &data});
        launch("set_flag", session.stream, (void *[]){&flag, &one});
        MUST(cuMemcpyHtoDAsync(index, &third, sizeof(int), session.stream));
        MUST(cuStreamSynchronize(session.stream));
        gather(index, second);
        MUST(cuStreamSynchronize(other));
    }
}

/* ---- kernels that wait, again and again ---- */

static void wait_for(CUdeviceptr flag)
{
    launch("wait_flag", second, (void *[]){&flag, &data});
}

static void set(CUdeviceptr flag, int value)
{
    launch("set_flag", session.stream, (void *[]){&flag, &value});
}

/* For a kernel that comes later. */
static void waits_for_launches(void)
{
    CUdeviceptr flag = device_ints(&linked, &(int){0}, 1);

    for (int i = 0; i < 40; i++) {
        increment_as("increment", data);
        wait_for(flag);
        set(flag, 1);
        MUST(cuStreamSynchronize(second));
        set(flag, 0);
        sum_ints(&linked, data, N); /* closes a window */
    }
}

/* The same, behind a kernel that must not be repeated. */
static void launches_wait(void)
{
    CUdeviceptr flag = device_ints(&linked, &(int){0}, 1);

    for (int i = 0; i < rounds_or(4); i++) {
        increment_as("launching_increment", data);
        wait_for(flag);
        set(flag, 1);
        MUST(cuStreamSynchronize(second));
        set(flag, 0);
    }
}

/* For the host, with other launches meanwhile. */
static void waits_for_host(void)
{
    int *flag;

    MUST(cuMemHostAlloc((void **)&flag, 64, CU_MEMHOSTALLOC_DEVICEMAP));
    for (int i = 0; i < 20; i++) {
        *(volatile int *)flag = 0;
        increment_as("increment", data);
        wait_for((CUdeviceptr)(uintptr_t)flag);
        increment_as("increment", data);
        *(volatile int *)flag = 1;
        MUST(cuStreamSynchronize(second));
        sum_ints(&linked, data, N);
    }
}

/* ---- events ---- */

/* The time between two events is that of the program's own execution, whenever it is asked for. */
static void times(void)
{
    int n = N, ms = 20;
    float before, after;
    CUevent start, end;

    MUST(cuEventCreate(&start, CU_EVENT_DEFAULT));
    MUST(cuEventCreate(&end, CU_EVENT_DEFAULT));
    increment_as("increment", data);
    MUST(cuEventRecord(start, session.stream));
    launch("late_increment", session.stream, (void *[]){&data, &n, &ms});
    MUST(cuEventRecord(end, session.stream));
    MUST(cuEventSynchronize(end));
    MUST(cuEventElapsedTime(&before, start, end));
    sum_ints(&linked, data, N); /* closes a window */
    MUST(cuEventElapsedTime(&after, start, end));
    report("time between events", before == after && before >= 19);
}

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
    {"heap", heap},
    {"heap-exits", heap_exits},
    {"heap-killed", heap_killed},
    {"heap-blocks", heap_blocks},
    {"launches", launches},
    {"joins-late", joins_late},
    {"virtual", virtual_memory},
    {"virtual-host", virtual_memory_of_the_host},
    {"partners", partners},
    {"graph-memory", graph_memory},
    {"graphs", graphs_in_a_row},
    {"graph-launches", graph_launches},
    {"order", order},
    {"order-by-event", order_by_event},
    {"order-behind-a-wait", order_behind_a_wait},
    {"times", times},
    {"waits-for-launches", waits_for_launches},
    {"waits-for-host", waits_for_host},
    {"launches-wait", launches_wait},
};

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "heap";

    rounds = argc > 2 ? atoi(argv[2]) : 0;
    open_all();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        if (!strcmp(cases[i].name, name)) {
            cases[i].run();
            show();
            return program_wrong;
        }
    printf("no such case: %s\n", name);
    return 3;
}
