#include "preload/doors/graph_doors.h"

#include <string.h>

#include "base/work.h"
#include "collectors/code/cubin.h"
#include "preload/doors/way_in.h"
#include "preload/gate/gate.h"
#include "preload/os/guard.h"
#include "preload/process/process.h"
#include "preload/graphs/graphs.h"
#include "preload/gate/window_facts.h"

static bool watching(void)
{
    if (kp_guard)
        kp_work_reclaim();
    return !kp_guard && kp_process_active();
}

/* The driver has returned: what follows is work. */
static CUresult back(CUresult rc)
{
    kp_work_begin();
    return rc;
}

static CUresult leave(CUresult rc)
{
    kp_gate_leave_shared();
    kp_work_end();
    return rc;
}

/* Ends all three ways to instantiate: notes the result and leaves the gate. */
static CUresult leave_noted(CUresult rc, const CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
    const struct kp_driver *d = kp_process_driver();
    if (rc == CUDA_SUCCESS && d && kp_graph_note(d, *exec, graph, flags, kp_process_by_node()) & KP_ONCE_HEAP)
        kp_window_heap_blocks();
    return leave(rc);
}

CUresult kp_cuGraphInstantiate(kp_pfn_graph_instantiate real, bool ptsz, CUgraphExec *exec, CUgraph graph,
                               CUgraphNode *node, char *log, size_t size)
{
    (void)ptsz;
    if (!watching())
        return real(exec, graph, node, log, size);
    kp_door_enter_shared("cuGraphInstantiate");
    kp_guard++;
    CUresult rc = back(real(exec, graph, node, log, size));
    kp_guard--;
    return leave_noted(rc, exec, graph, 0);
}

CUresult kp_cuGraphInstantiateWithFlags(PFN_cuGraphInstantiateWithFlags_v11040 real, bool ptsz, CUgraphExec *exec,
                                        CUgraph graph, unsigned long long flags)
{
    (void)ptsz;
    if (!watching())
        return real(exec, graph, flags);
    kp_door_enter_shared("cuGraphInstantiateWithFlags");
    kp_guard++;
    CUresult rc = back(real(exec, graph, flags));
    kp_guard--;
    return leave_noted(rc, exec, graph, flags);
}

CUresult kp_cuGraphInstantiateWithParams(PFN_cuGraphInstantiateWithParams_v12000 real, bool ptsz, CUgraphExec *exec,
                                         CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
    (void)ptsz;
    if (!watching())
        return real(exec, graph, params);
    kp_door_enter_shared("cuGraphInstantiateWithParams");
    kp_guard++;
    CUresult rc = back(real(exec, graph, params));
    kp_guard--;
    return leave_noted(rc, exec, graph, params ? params->flags : 0);
}

CUresult kp_cuGraphExecDestroy(PFN_cuGraphExecDestroy_v10000 real, bool ptsz, CUgraphExec exec)
{
    (void)ptsz;
    if (!watching())
        return real(exec);
    kp_door_enter_shared("cuGraphExecDestroy");
    CUresult rc = back(real(exec));
    kp_graph_forget(exec);
    return leave(rc);
}

/* ---- changes ---- */

struct change {
    CUgraphExec exec;
    const char *symbol;
};

/* Enters the gate. The window stays open unless it refers to the graph by its handle, however the graph has come in, or
 * to memory that the graph allocates: the driver may map that anew. */
static void enter_for(void *arg)
{
    const struct change *c = arg;
    const struct kp_graph_content *held = kp_graph_hold(c->exec);
    bool beside = held && !held->nodes->allocates && kp_window_watches() && kp_process_changes_graph(c->exec);
    if (held)
        kp_graph_let(held);
    if (!beside)
        kp_gate_enter_shared(c->symbol);
    if (kp_work_abandoned())
        kp_gate_leave_shared();
}

static void enter_change(CUgraphExec exec, const char *symbol)
{
    struct change c = {exec, symbol};
    kp_work_run(enter_for, &c, sizeof(c));
}

static void set_kernel(CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *p)
{
    const struct kp_driver *d = kp_process_driver();
    if (d && kp_graph_set_kernel(d, exec, node, p) & KP_ONCE_HEAP)
        kp_window_heap_blocks();
}

CUresult kp_cuGraphExecKernelNodeSetParams(PFN_cuGraphExecKernelNodeSetParams_v10010 real, bool ptsz, CUgraphExec exec,
                                           CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *p)
{
    (void)ptsz;
    if (!watching() || !p)
        return real(exec, node, p);
    enter_change(exec, "cuGraphExecKernelNodeSetParams");
    CUresult rc = back(real(exec, node, p));
    CUDA_KERNEL_NODE_PARAMS params;
    memset(&params, 0, sizeof(params));
    memcpy(&params, p, sizeof(*p)); /* the later version only adds fields */
    if (rc == CUDA_SUCCESS)
        set_kernel(exec, node, &params);
    return leave(rc);
}

CUresult kp_cuGraphExecKernelNodeSetParams_v2(PFN_cuGraphExecKernelNodeSetParams_v12000 real, bool ptsz,
                                              CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *p)
{
    (void)ptsz;
    if (!watching() || !p)
        return real(exec, node, p);
    enter_change(exec, "cuGraphExecKernelNodeSetParams");
    CUresult rc = back(real(exec, node, p));
    if (rc == CUDA_SUCCESS)
        set_kernel(exec, node, p);
    return leave(rc);
}

CUresult kp_cuGraphExecMemcpyNodeSetParams(PFN_cuGraphExecMemcpyNodeSetParams_v10020 real, bool ptsz, CUgraphExec exec,
                                           CUgraphNode node, const CUDA_MEMCPY3D *p, CUcontext ctx)
{
    (void)ptsz;
    if (!watching() || !p)
        return real(exec, node, p, ctx);
    enter_change(exec, "cuGraphExecMemcpyNodeSetParams");
    CUresult rc = back(real(exec, node, p, ctx));
    const struct kp_driver *d = kp_process_driver();
    if (rc == CUDA_SUCCESS && d)
        kp_graph_set_copy(d, exec, node, p);
    return leave(rc);
}

CUresult kp_cuGraphExecMemsetNodeSetParams(PFN_cuGraphExecMemsetNodeSetParams_v10020 real, bool ptsz, CUgraphExec exec,
                                           CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *p, CUcontext ctx)
{
    (void)ptsz;
    if (!watching() || !p)
        return real(exec, node, p, ctx);
    enter_change(exec, "cuGraphExecMemsetNodeSetParams");
    CUresult rc = back(real(exec, node, p, ctx));
    if (rc == CUDA_SUCCESS)
        kp_graph_set_memset(exec, node, p);
    return leave(rc);
}

CUresult kp_cuGraphExecHostNodeSetParams(PFN_cuGraphExecHostNodeSetParams_v10020 real, bool ptsz, CUgraphExec exec,
                                         CUgraphNode node, const CUDA_HOST_NODE_PARAMS *p)
{
    (void)ptsz;
    if (!watching() || !p)
        return real(exec, node, p);
    enter_change(exec, "cuGraphExecHostNodeSetParams");
    CUresult rc = back(real(exec, node, p));
    if (rc == CUDA_SUCCESS)
        kp_graph_set_host(exec, node, p);
    return leave(rc);
}

/* Notes parameters of any kind of node. */
static void set_any(CUgraphExec exec, CUgraphNode node, const CUgraphNodeParams *p)
{
    const struct kp_driver *d = kp_process_driver();
    CUDA_KERNEL_NODE_PARAMS kernel;
    CUDA_MEMSET_NODE_PARAMS memset_to = {.dst = p->memset.dst,
                                         .pitch = p->memset.pitch,
                                         .value = p->memset.value,
                                         .elementSize = p->memset.elementSize,
                                         .width = p->memset.width,
                                         .height = p->memset.height};
    if (p->type == CU_GRAPH_NODE_TYPE_KERNEL) {
        memcpy(&kernel, &p->kernel, sizeof(kernel)); /* the same fields by another name */
        set_kernel(exec, node, &kernel);
    } else if (p->type == CU_GRAPH_NODE_TYPE_MEMCPY && d) {
        kp_graph_set_copy(d, exec, node, &p->memcpy.copyParams);
    } else if (p->type == CU_GRAPH_NODE_TYPE_MEMSET) {
        kp_graph_set_memset(exec, node, &memset_to);
    } else {
        kp_graph_blur(exec);
    }
}

CUresult kp_cuGraphExecNodeSetParams(PFN_cuGraphExecNodeSetParams_v12020 real, bool ptsz, CUgraphExec exec,
                                     CUgraphNode node, CUgraphNodeParams *p)
{
    (void)ptsz;
    if (!watching() || !p)
        return real(exec, node, p);
    enter_change(exec, "cuGraphExecNodeSetParams");
    CUresult rc = back(real(exec, node, p));
    if (rc == CUDA_SUCCESS)
        set_any(exec, node, p);
    return leave(rc);
}

CUresult kp_cuGraphNodeSetEnabled(PFN_cuGraphNodeSetEnabled_v11060 real, bool ptsz, CUgraphExec exec, CUgraphNode node,
                                  unsigned enabled)
{
    (void)ptsz;
    if (!watching())
        return real(exec, node, enabled);
    enter_change(exec, "cuGraphNodeSetEnabled");
    CUresult rc = back(real(exec, node, enabled));
    if (rc == CUDA_SUCCESS)
        kp_graph_set_enabled(exec, node, enabled);
    return leave(rc);
}

static void note_update(CUgraphExec exec, CUgraph graph)
{
    const struct kp_driver *d = kp_process_driver();
    if (d && kp_graph_update(d, exec, graph) & KP_ONCE_HEAP)
        kp_window_heap_blocks();
}

CUresult kp_cuGraphExecUpdate(PFN_cuGraphExecUpdate_v10020 real, bool ptsz, CUgraphExec exec, CUgraph graph,
                              CUgraphNode *node, CUgraphExecUpdateResult *result)
{
    (void)ptsz;
    if (!watching())
        return real(exec, graph, node, result);
    enter_change(exec, "cuGraphExecUpdate");
    CUresult rc = back(real(exec, graph, node, result));
    if (rc == CUDA_SUCCESS)
        note_update(exec, graph);
    return leave(rc);
}

CUresult kp_cuGraphExecUpdate_v2(PFN_cuGraphExecUpdate_v12000 real, bool ptsz, CUgraphExec exec, CUgraph graph,
                                 CUgraphExecUpdateResultInfo *result)
{
    (void)ptsz;
    if (!watching())
        return real(exec, graph, result);
    enter_change(exec, "cuGraphExecUpdate");
    CUresult rc = back(real(exec, graph, result));
    if (rc == CUDA_SUCCESS)
        note_update(exec, graph);
    return leave(rc);
}

CUresult kp_cuGraphExecChildGraphNodeSetParams(PFN_cuGraphExecChildGraphNodeSetParams_v11010 real, bool ptsz,
                                               CUgraphExec exec, CUgraphNode node, CUgraph child)
{
    (void)ptsz;
    if (!watching())
        return real(exec, node, child);
    enter_change(exec, "cuGraphExecChildGraphNodeSetParams");
    CUresult rc = back(real(exec, node, child));
    if (rc == CUDA_SUCCESS)
        kp_graph_blur(exec);
    return leave(rc);
}

CUresult kp_cuGraphExecNodeSetEvent(PFN_cuGraphExecEventRecordNodeSetEvent_v11010 real, bool ptsz, CUgraphExec exec,
                                    CUgraphNode node, CUevent event)
{
    (void)ptsz;
    if (!watching())
        return real(exec, node, event);
    enter_change(exec, "cuGraphExecEventNodeSetEvent");
    CUresult rc = back(real(exec, node, event));
    if (rc == CUDA_SUCCESS)
        kp_graph_blur(exec);
    return leave(rc);
}
