// A graph that is changed between launches by each function that can: parameters of a kernel, of a copy, of a fill, of
// a function of the host, of a child graph, of an event; nodes switched off and on; the whole updated. Nothing waits
// for the launches in between: each of them must run with what was set when it was launched.
#include "contact.cuh"

enum { N = 256, LOG = 64 };

// Appends what it sees, so that the order and the number of launches are in the result.
__global__ void note(const unsigned *v, unsigned add, unsigned *log)
{
    if (blockIdx.x * blockDim.x + threadIdx.x == 0) {
        log[0]++;
        log[log[0] % LOG] = v[0] * 10u + add;
    }
}

static int called[2];
static void CUDART_CB by_host(void *which)
{
    ++*(int *)which;
}

static cudaKernelNodeParams kernel(void *f, unsigned grid, void **args)
{
    cudaKernelNodeParams p = {};
    p.func = f;
    p.gridDim = dim3(grid);
    p.blockDim = dim3(32);
    p.kernelParams = args;
    return p;
}

int main()
{
    unsigned *v = device_zeros<unsigned>(N), *w = device_zeros<unsigned>(N), *log = device_zeros<unsigned>(LOG),
             add = 1;
    unsigned host_log[LOG], source[4] = {11, 22, 33, 44}, *src;
    cudaStream_t s;
    cudaGraph_t g, child, other;
    cudaGraphExec_t x;
    cudaGraphNode_t fill, copy, kern, inner, host, mark, child_node;
    cudaEvent_t e[2];
    CK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    CK(cudaMalloc(&src, sizeof(source)));
    CK(cudaMemcpy(src, source, sizeof(source), cudaMemcpyHostToDevice));
    for (int i = 0; i < 2; i++)
        CK(cudaEventCreateWithFlags(&e[i], cudaEventDisableTiming));

    const unsigned *seen = v;
    void *args[] = {&seen, &add, &log};
    cudaKernelNodeParams kp = kernel((void *)note, 1, args);
    cudaMemsetParams mp = {};
    mp.dst = w;
    mp.elementSize = 4;
    mp.width = N;
    mp.height = 1;
    cudaHostNodeParams hp = {by_host, &called[0]};
    CK(cudaGraphCreate(&child, 0));
    unsigned child_add = 500;
    void *child_args[] = {&seen, &child_add, &log};
    cudaKernelNodeParams cp = kernel((void *)note, 1, child_args);
    CK(cudaGraphAddKernelNode(&inner, child, NULL, 0, &cp));
    CK(cudaGraphCreate(&g, 0));
    CK(cudaGraphAddMemsetNode(&fill, g, NULL, 0, &mp));
    CK(cudaGraphAddMemcpyNode1D(&copy, g, &fill, 1, v, src, 4, cudaMemcpyDeviceToDevice));
    CK(cudaGraphAddKernelNode(&kern, g, &copy, 1, &kp));
    CK(cudaGraphAddHostNode(&host, g, &kern, 1, &hp));
    CK(cudaGraphAddChildGraphNode(&child_node, g, &host, 1, child));
    CK(cudaGraphAddEventRecordNode(&mark, g, &child_node, 1, e[0]));
    CK(cudaGraphInstantiate(&x, g, 0));

    CK(cudaGraphLaunch(x, s)); // 111, 610
    add = 2;
    kp.gridDim = dim3(3);
    CK(cudaGraphExecKernelNodeSetParams(x, kern, &kp));
    CK(cudaGraphLaunch(x, s)); // 112, 610
    CK(cudaGraphExecMemcpyNodeSetParams1D(x, copy, v, src + 1, 4, cudaMemcpyDeviceToDevice));
    CK(cudaGraphLaunch(x, s)); // 222, 720
    mp.value = 9;
    CK(cudaGraphExecMemsetNodeSetParams(x, fill, &mp));
    CK(cudaGraphExecMemcpyNodeSetParams1D(x, copy, v, w, 4, cudaMemcpyDeviceToDevice));
    CK(cudaGraphLaunch(x, s)); // 92, 590
    hp.userData = &called[1];
    CK(cudaGraphExecHostNodeSetParams(x, host, &hp));
    child_add = 700;
    CK(cudaGraphKernelNodeSetParams(inner, &cp));
    CK(cudaGraphExecChildGraphNodeSetParams(x, child_node, child));
    CK(cudaGraphLaunch(x, s)); // 92, 790
    CK(cudaGraphNodeSetEnabled(x, kern, 0));
    CK(cudaGraphExecEventRecordNodeSetEvent(x, mark, e[1]));
    CK(cudaGraphLaunch(x, s)); // 790
    CK(cudaGraphNodeSetEnabled(x, kern, 1));
    CK(cudaGraphNodeSetEnabled(x, fill, 0));
    CK(cudaMemsetAsync(w, 0, 4, s)); // which the graph reads now
    CK(cudaGraphLaunch(x, s));       // 2, 700
    CK(cudaGraphNodeSetEnabled(x, fill, 1));
    // The whole from another graph of the same shape.
    CK(cudaGraphClone(&other, g));
    cudaGraphNode_t other_kern;
    CK(cudaGraphNodeFindInClone(&other_kern, kern, other));
    add = 4;
    kp.gridDim = dim3(2);
    CK(cudaGraphKernelNodeSetParams(other_kern, &kp));
    cudaGraphExecUpdateResultInfo info;
    CK(cudaGraphExecUpdate(x, other, &info));
    CK(cudaGraphLaunch(x, s)); // 114, and 610: the clone has the child of before
    CUDA_KERNEL_NODE_PARAMS dp = {};
    CU(cuGraphKernelNodeGetParams((CUgraphNode)kern, &dp));
    unsigned driver_add = 6;
    void *driver_args[] = {&seen, &driver_add, &log};
    dp.kernelParams = driver_args;
    dp.gridDimX = 5;
    CU(cuGraphExecKernelNodeSetParams((CUgraphExec)x, (CUgraphNode)kern, &dp));
    CK(cudaGraphLaunch(x, s)); // 116, 610
    CK(cudaStreamSynchronize(s));

    static const unsigned want[] = {111, 610, 112, 610, 222, 720, 92, 590, 92, 790, 790, 2, 700, 114, 610, 116, 610};
    CK(cudaMemcpy(host_log, log, sizeof(host_log), cudaMemcpyDeviceToHost));
    bool ok = host_log[0] == sizeof(want) / sizeof(*want);
    for (unsigned i = 1; i <= host_log[0] && i < LOG; i++) {
        printf("%u ", host_log[i]);
        ok = ok && host_log[i] == want[i - 1];
    }
    printf("\nhost functions: %d %d, event %d\n", called[0], called[1], cudaEventQuery(e[1]) == cudaSuccess);
    return verdict("graphsetters", ok && called[0] + called[1] == 9);
}
