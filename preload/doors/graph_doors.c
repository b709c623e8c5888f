#include "preload/doors/graph_doors.h"

#include "collectors/code/cubin.h"
#include "preload/gate/gate.h"
#include "preload/os/guard.h"
#include "preload/process.h"
#include "preload/program/graphs.h"
#include "preload/window/flags.h"

static bool watching(void)
{
    return !kp_guard && kp_process_active();
}

/* Ends all three ways to instantiate: notes the result and leaves the gate. */
static CUresult leave_noted(CUresult rc, const CUgraphExec *exec, CUgraph graph)
{
    const struct kp_driver *d = kp_process_driver();
    if (rc == CUDA_SUCCESS && d && kp_graph_note(d, *exec, graph) & KP_ONCE_HEAP)
        kp_window_heap_blocks();
    kp_gate_leave_shared();
    return rc;
}

CUresult kp_cuGraphInstantiate(kp_pfn_graph_instantiate real, bool ptsz, CUgraphExec *exec, CUgraph graph,
                               CUgraphNode *node, char *log, size_t size)
{
    (void)ptsz;
    if (!watching())
        return real(exec, graph, node, log, size);
    kp_gate_enter_shared("cuGraphInstantiate");
    CUresult rc = real(exec, graph, node, log, size);
    return leave_noted(rc, exec, graph);
}

CUresult kp_cuGraphInstantiateWithFlags(PFN_cuGraphInstantiateWithFlags_v11040 real, bool ptsz, CUgraphExec *exec,
                                        CUgraph graph, unsigned long long flags)
{
    (void)ptsz;
    if (!watching())
        return real(exec, graph, flags);
    kp_gate_enter_shared("cuGraphInstantiateWithFlags");
    CUresult rc = real(exec, graph, flags);
    return leave_noted(rc, exec, graph);
}

CUresult kp_cuGraphInstantiateWithParams(PFN_cuGraphInstantiateWithParams_v12000 real, bool ptsz, CUgraphExec *exec,
                                         CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
    (void)ptsz;
    if (!watching())
        return real(exec, graph, params);
    kp_gate_enter_shared("cuGraphInstantiateWithParams");
    CUresult rc = real(exec, graph, params);
    return leave_noted(rc, exec, graph);
}

CUresult kp_cuGraphExecDestroy(PFN_cuGraphExecDestroy_v10000 real, bool ptsz, CUgraphExec exec)
{
    (void)ptsz;
    if (!watching())
        return real(exec);
    kp_gate_enter_shared("cuGraphExecDestroy");
    CUresult rc = real(exec);
    kp_graph_forget(exec);
    kp_gate_leave_shared();
    return rc;
}
