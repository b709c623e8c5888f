/* LINK: -lcuda */
/* Launches between plain ones are captured into a graph: they must not run, and nothing may be called then that a
 * capture forbids. */
#include "linked.h"

enum { N = 64 };

int main(void)
{
    static const int zeros[N];
    CUstreamCaptureStatus status;
    CUgraphExec exec;
    struct session s;
    CUstream other;
    CUfunction f;
    CUdeviceptr values, more;
    CUgraph graph;
    size_t n = 0;
    void *params[] = {&values, &(int){N}}, *other_params[] = {&more, &(int){N}};

    open_session(&linked, &s, 0);
    MUST(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    f = get_function(&linked, &s, "increment");
    values = device_ints(&linked, zeros, N);
    more = device_ints(&linked, zeros, N);
    MUST(cuLaunchKernel(f, 2, 1, 1, 32, 1, 1, 0, s.stream, params, NULL));
    for (int mode = CU_STREAM_CAPTURE_MODE_GLOBAL; mode <= CU_STREAM_CAPTURE_MODE_RELAXED; mode++) {
        MUST(cuStreamBeginCapture(s.stream, (CUstreamCaptureMode)mode));
        for (int i = 0; i < 3; i++)
            MUST(cuLaunchKernel(f, 2, 1, 1, 32, 1, 1, 0, s.stream, params, NULL));
        /* not captured, so it runs while the other stream captures */
        MUST(cuLaunchKernel(f, 2, 1, 1, 32, 1, 1, 0, other, other_params, NULL));
        MUST(cuMemsetD32Async(more, 5, N / 2, s.stream));
        MUST(cuStreamIsCapturing(s.stream, &status));
        report_number("capturing", status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
        MUST(cuStreamEndCapture(s.stream, &graph));
        MUST(cuGraphGetNodes(graph, NULL, &n));
        report_number("captured nodes", n, 4);
        MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));
    }
    MUST(cuCtxSynchronize());
    report_number("before the graph", sum_ints(&linked, values, N), N);
    report_number("the other stream", sum_ints(&linked, more, N), 3 * N);
    MUST(cuGraphLaunch(exec, s.stream));
    MUST(cuGraphLaunch(exec, s.stream));
    MUST(cuStreamSynchronize(s.stream));
    report_number("after the graph", sum_ints(&linked, values, N), N * (1 + 2 * 3));
    report_number("set by the graph", sum_ints(&linked, more, N), 5 * N / 2 + 3 * N / 2);
    return program_wrong;
}
