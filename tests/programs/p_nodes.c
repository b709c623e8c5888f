/* LINK: -lcuda */
/* A graph of kernels, a copy, a memset, an event and a child graph, launched several times between plain launches, and
 * changed in every way in between. */
#include "linked.h"

enum { N = 64 };

static struct session s;
static CUfunction increment;
static CUdeviceptr values, copied, cleared;

static CUDA_KERNEL_NODE_PARAMS kernel(CUfunction f, unsigned blocks, void **params)
{
    return (CUDA_KERNEL_NODE_PARAMS){.func = f,
                                     .gridDimX = blocks,
                                     .gridDimY = 1,
                                     .gridDimZ = 1,
                                     .blockDimX = 32,
                                     .blockDimY = 1,
                                     .blockDimZ = 1,
                                     .kernelParams = params};
}

static CUgraphNode add_increment(CUgraph graph, unsigned blocks, const CUgraphNode *after)
{
    int n = 32 * (int)blocks;
    void *params[] = {&values, &n};
    CUDA_KERNEL_NODE_PARAMS p = kernel(increment, blocks, params);
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

int main(void)
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
    increment = get_function(&linked, &s, "increment");
    values = device_ints(&linked, zeros, N);
    copied = device_ints(&linked, zeros, N);
    cleared = device_ints(&linked, zeros, N);
    clear.dst = cleared;
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
    MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));

    plain();
    launch(exec, 2);
    p = kernel(increment, 1, params); /* half of what it was */
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
