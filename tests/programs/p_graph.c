/* LINK: -lcuda */
/* Graphs made node by node, launched among plain launches: one of kernels, a copy, a memset and a host function; one of
 * kernels and a memset, which goes into the per-thread default stream too. */
#include "linked.h"

enum { N = 64 };

static int host_calls;

static void CUDA_CB host_function(void *data)
{
    host_calls += *(int *)data;
}

static CUgraphNode add_increment(CUgraph graph, CUfunction f, CUdeviceptr values, const CUgraphNode *after)
{
    int n = N;
    void *params[] = {&values, &n};
    CUDA_KERNEL_NODE_PARAMS p = {.func = f,
                                 .gridDimX = 2,
                                 .gridDimY = 1,
                                 .gridDimZ = 1,
                                 .blockDimX = 32,
                                 .blockDimY = 1,
                                 .blockDimZ = 1,
                                 .kernelParams = params};
    CUgraphNode node;

    MUST(cuGraphAddKernelNode(&node, graph, after, after != NULL, &p));
    return node;
}

int main(void)
{
    static const int zeros[N];
    int host[N] = {0}, step = 10;
    CUgraphExec exec, plain_exec;
    CUgraphNode first, node;
    CUgraphNode nodes[8];
    CUgraphNodeType type;
    struct session s;
    CUfunction f;
    CUdeviceptr values, cleared;
    CUgraph graph, plain;
    size_t n = 8;
    CUDA_HOST_NODE_PARAMS call = {host_function, &step};
    CUDA_MEMCPY3D copy = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                          .dstMemoryType = CU_MEMORYTYPE_HOST,
                          .dstHost = host,
                          .WidthInBytes = sizeof(host),
                          .Height = 1,
                          .Depth = 1};
    CUDA_MEMSET_NODE_PARAMS clear = {.value = 7, .elementSize = 4, .width = N, .height = 1};
    CUDA_GRAPH_INSTANTIATE_PARAMS how = {0};
    void *params[] = {&values, &(int){N}};

    open_session(&linked, &s, 0);
    f = get_function(&linked, &s, "increment");
    values = device_ints(&linked, zeros, N);
    cleared = device_ints(&linked, zeros, N);
    MUST(cuLaunchKernel(f, 2, 1, 1, 32, 1, 1, 0, s.stream, params, NULL));
    MUST(cuGraphCreate(&graph, 0));
    first = add_increment(graph, f, values, NULL);
    node = add_increment(graph, f, values, &first);
    copy.srcDevice = values;
    MUST(cuGraphAddMemcpyNode(&node, graph, &node, 1, &copy, s.ctx));
    MUST(cuGraphAddHostNode(&node, graph, &node, 1, &call));
    clear.dst = cleared;
    MUST(cuGraphAddMemsetNode(&node, graph, &node, 1, &clear, s.ctx));
    MUST(cuGraphGetNodes(graph, nodes, &n));
    report_number("nodes", n, 5);
    MUST(cuGraphNodeGetType(nodes[1], &type));
    report_number("type of the second", type, CU_GRAPH_NODE_TYPE_KERNEL);
    MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));
    MUST(cuGraphDestroy(graph));
    MUST(cuGraphCreate(&plain, 0));
    first = add_increment(plain, f, values, NULL);
    node = add_increment(plain, f, values, &first);
    MUST(cuGraphAddMemsetNode(&node, plain, &node, 1, &clear, s.ctx));
    MUST(cuGraphInstantiateWithParams(&plain_exec, plain, &how));
    MUST(cuGraphDestroy(plain));
    MUST(cuGraphLaunch(exec, s.stream));
    MUST(cuGraphLaunch(plain_exec, s.stream));
    MUST(cuGraphLaunch(exec, s.stream));
    MUST(cuGraphLaunch(plain_exec, CU_STREAM_PER_THREAD));
    MUST(cuLaunchKernel(f, 2, 1, 1, 32, 1, 1, 0, s.stream, params, NULL));
    MUST(cuCtxSynchronize());
    report_number("increments", sum_ints(&linked, values, N), N * (1 + 4 * 2 + 1));
    report_number("copied by the first graph", host[N - 1], 1 + 3 * 2);
    report_number("cleared", sum_ints(&linked, cleared, N), 7 * N);
    report_number("host function", host_calls, 2 * step);
    MUST(cuGraphExecDestroy(exec));
    MUST(cuGraphExecDestroy(plain_exec));
    close_session(&linked, &s);
    return program_wrong;
}
