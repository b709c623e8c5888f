/* LINK: -lcuda */
/* Launches of two shared-memory configurations, before a graph of the second, inside it, and after it. */
#include "linked.h"

enum { N = 32, MUCH = 40000 };

static struct session s;
static CUfunction increment;
static CUdeviceptr values;

static void plain(unsigned shared)
{
    int n = N;
    void *params[] = {&values, &n};

    MUST(cuLaunchKernel(increment, 1, 1, 1, N, 1, 1, shared, s.stream, params, NULL));
}

static void graph(unsigned shared)
{
    int n = N;
    void *params[] = {&values, &n};
    CUDA_KERNEL_NODE_PARAMS p = kernel_node(increment, 1, N, shared, params);
    CUgraph made;
    CUgraphNode node;
    CUgraphExec exec;

    MUST(cuGraphCreate(&made, 0));
    MUST(cuGraphAddKernelNode(&node, made, NULL, 0, &p));
    MUST(cuGraphInstantiateWithFlags(&exec, made, 0));
    MUST(cuGraphLaunch(exec, s.stream));
    MUST(cuGraphExecDestroy(exec));
    MUST(cuGraphDestroy(made));
}

int main(void)
{
    int zeros[N] = {0};

    open_session(&linked, &s, 0);
    increment = get_function(&linked, &s, "increment");
    values = device_ints(&linked, zeros, N);
    plain(0);
    MUST(cuStreamSynchronize(s.stream));
    close_a_window();
    graph(MUCH);
    plain(MUCH);
    plain(MUCH);
    plain(0);
    MUST(cuStreamSynchronize(s.stream));
    report_number("sum", sum_ints(&linked, values, N), 5LL * N);
    return program_wrong;
}
