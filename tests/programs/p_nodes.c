/* LINK: -lcuda */
/* A graph of kernels, a copy, a memset, an event and a child graph. It is launched several times between plain
 * launches, and changed in every way in between. */
#include "linked.h"

enum { N = 64 };

static struct session s;
static CUfunction increment;
static CUdeviceptr values, copied, cleared;

static CUgraphNode add_increment(CUgraph graph, unsigned blocks, const CUgraphNode *after)
{
    int n = 32 * (int)blocks;
    void *params[] = {&values, &n};
    CUDA_KERNEL_NODE_PARAMS p = kernel_node(increment, blocks, 32, 0, params);
    CUgraphNode node;

    MUST(cuGraphAddKernelNode(&node, graph, after, after != NULL, &p));
    return node;
}

static CUDA_MEMCPY3D copy_of(size_t ints)
{
    return (CUDA_MEMCPY3D){.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                           .srcDevice = values,
                           .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                           .dstDevice = copied,
                           .WidthInBytes = ints * sizeof(int),
                           .Height = 1,
                           .Depth = 1};
}

static void launch(CUgraphExec exec, int times)
{
    for (int i = 0; i < times; i++)
        MUST(cuGraphLaunch(exec, s.stream));
}

static void plain(void)
{
    int n = N;
    void *params[] = {&values, &n};

    MUST(cuLaunchKernel(increment, 2, 1, 1, 32, 1, 1, 0, s.stream, params, NULL));
}

static void sums(const char *when)
{
    printf("%s: %lld %lld %lld\n", when, (long long)sum_ints(&linked, values, N),
           (long long)sum_ints(&linked, copied, N), (long long)sum_ints(&linked, cleared, N));
}

static long long total;
static int results[N];

static void CUDA_CB add_up(void *data)
{
    for (int i = 0; i < N; i++)
        total += results[i] * *(const int *)data;
}

/* A graph that copies from the host and back, and may end in a host function. The host goes on from what it reads. */
static void by_the_host(int rounds, const char *kernel_name, int calls)
{
    static int input[N], weight = 1;
    CUfunction f = get_function(&linked, &s, kernel_name);
    CUDA_MEMCPY3D in = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                        .srcHost = input,
                        .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                        .dstDevice = values,
                        .WidthInBytes = sizeof(input),
                        .Height = 1,
                        .Depth = 1};
    CUDA_MEMCPY3D out = copy_of(N);
    CUDA_HOST_NODE_PARAMS call = {add_up, &weight};
    int n = strcmp(kernel_name, "varies") ? N : 0, at = 0, agree = 0; /* `varies`: the number of the execution */
    void *params[] = {&values, &n, &at};
    CUDA_KERNEL_NODE_PARAMS p = kernel_node(f, 2, 32, 0, params);
    CUgraphExec exec;
    CUgraphNode node;
    CUgraph graph;

    out.dstMemoryType = CU_MEMORYTYPE_HOST;
    out.dstHost = results;
    MUST(cuGraphCreate(&graph, 0));
    MUST(cuGraphAddMemcpyNode(&node, graph, NULL, 0, &in, s.ctx));
    MUST(cuGraphAddKernelNode(&node, graph, &node, 1, &p));
    MUST(cuGraphAddMemcpyNode(&node, graph, &node, 1, &out, s.ctx));
    if (calls)
        MUST(cuGraphAddHostNode(&node, graph, &node, 1, &call));
    MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));
    for (int i = 0; i < rounds; i++) {
        input[i] = 1 + results[N - 1] % 3;
        launch(exec, 1);
        MUST(cuStreamSynchronize(s.stream));
        agree += sum_ints(&linked, values, 1) == results[0]; /* the memory is that of the execution that was read */
        memset(input, 0, i % 2 ? sizeof(input) : 0);
    }
    report_number("host and device agree", agree, rounds);
    if (n)
        printf("%s by the host: %lld %d\n", kernel_name, total, results[0]);
    MUST(cuGraphExecDestroy(exec));
    MUST(cuGraphDestroy(graph));
}

/* Graphs beside registered memory, which the host writes between them. */
static void beside_registered(CUgraphExec exec)
{
    int *own = aligned_alloc(4096, 4096);

    memset(own, 0, 4096);
    MUST(cuMemHostRegister(own, 4096, CU_MEMHOSTREGISTER_DEVICEMAP));
    for (int i = 0; i < 4; i++) {
        launch(exec, 1);
        own[1]++;
    }
    MUST(cuMemHostUnregister(own));
    report_number("the host's own", own[1], 4);
    free(own);
    sums("beside registered memory");
}

int main(int argc, char **argv)
{
    static const int zeros[N];
    CUDA_MEMSET_NODE_PARAMS clear = {.value = 7, .elementSize = 4, .width = N, .height = 1};
    CUgraph graph, child;
    CUgraphNode first, copy, set, second, family, record;
    CUgraphExec exec;
    CUgraphExecUpdateResultInfo info;
    CUDA_MEMCPY3D part;
    CUDA_KERNEL_NODE_PARAMS p;
    CUevent event;
    int n = 32;
    void *params[] = {&values, &n};

    open_session(&linked, &s, 0);
    MUST(cuModuleUnload(s.module));
    MUST(cuModuleLoadData(&s.module, "FAKEMOD increment varies"));
    increment = get_function(&linked, &s, "increment");
    values = device_ints(&linked, zeros, N);
    copied = device_ints(&linked, zeros, N);
    cleared = device_ints(&linked, zeros, N);
    clear.dst = cleared;
    const int by_device = argc > 1 && !strcmp(argv[1], "device"); /* it can launch the graph, too */
    if (argc > 1 && !by_device && strcmp(argv[1], "registered")) {
        by_the_host(6, argv[1], argc > 2);
        close_session(&linked, &s);
        return program_wrong;
    }
    MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    MUST(cuGraphCreate(&graph, 0));
    MUST(cuGraphCreate(&child, 0));
    first = add_increment(graph, 2, NULL);
    part = copy_of(N);
    MUST(cuGraphAddMemcpyNode(&copy, graph, &first, 1, &part, s.ctx));
    MUST(cuGraphAddMemsetNode(&set, graph, &copy, 1, &clear, s.ctx));
    second = add_increment(child, 1, NULL);
    add_increment(child, 2, &second);
    MUST(cuGraphAddChildGraphNode(&family, graph, &set, 1, child));
    MUST(cuGraphAddEventRecordNode(&record, graph, &family, 1, event));
    MUST(cuGraphInstantiateWithFlags(&exec, graph, by_device ? CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH : 0));

    if (argc > 1 && !by_device) {
        beside_registered(exec);
        close_session(&linked, &s);
        return program_wrong;
    }
    plain();
    launch(exec, 2);
    p = kernel_node(increment, 1, 32, 0, params); /* half of what it was */
    MUST(cuGraphExecKernelNodeSetParams(exec, first, &p));
    launch(exec, 1);
    part = copy_of(N / 2);
    MUST(cuGraphExecMemcpyNodeSetParams(exec, copy, &part, s.ctx));
    clear.value = 9;
    MUST(cuGraphExecMemsetNodeSetParams(exec, set, &clear, s.ctx));
    launch(exec, 1);
    MUST(cuGraphNodeSetEnabled(exec, first, 0));
    launch(exec, 1);
    MUST(cuGraphNodeSetEnabled(exec, first, 1));
    plain();
    launch(exec, 1);
    MUST(cuCtxSynchronize());
    sums("changed node by node");

    MUST(cuGraphExecUpdate(exec, graph, &info));
    launch(exec, 1);
    plain();
    MUST(cuCtxSynchronize());
    sums("as at first");
    MUST(cuEventQuery(event));
    MUST(cuGraphExecDestroy(exec));
    close_session(&linked, &s);
    return program_wrong;
}
