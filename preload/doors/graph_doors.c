#include "preload/doors/graph_doors.h"

#include <string.h>

#include "collectors/code/cubin.h"
#include "preload/gate/gate.h"
#include "preload/process/process.h"
#include "preload/graphs/graphs.h"
#include "preload/gate/window_facts.h"

/* ---- notes of doors.def: what a call has done, by its result and arguments ---- */

static void instantiated(CUresult rc, const CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
    const struct kp_driver *d = kp_process_driver();
    if (rc == CUDA_SUCCESS && d && kp_graph_note(d, *exec, graph, flags, kp_process_by_node()) & KP_ONCE_HEAP)
        kp_window_heap_blocks();
}

static void noted_instantiate(CUresult rc, CUgraphExec *exec, CUgraph graph, CUgraphNode *node, char *log, size_t size)
{
    (void)node, (void)log, (void)size;
    instantiated(rc, exec, graph, 0);
}

static void noted_instantiate_with_flags(CUresult rc, CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
    instantiated(rc, exec, graph, flags);
}

static void noted_instantiate_with_params(CUresult rc, CUgraphExec *exec, CUgraph graph,
                                          const CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
    instantiated(rc, exec, graph, params ? params->flags : 0);
}

static void noted_destroy(CUresult rc, CUgraphExec exec)
{
    (void)rc;
    kp_graph_forget(exec);
}

/* ---- ways into the gate, and changes ---- */

/* Nothing of an open window refers to a graph that is new. */
static void enter_instantiate(const struct kp_door_call *c)
{
    if (!kp_window_watches() || !kp_process_makes_graph())
        kp_gate_enter_shared(c->symbol);
}

/* A way into the gate for a change, or the end, of the graph, the first argument. The window stays open unless it
 * refers to the graph by its handle, in any way, or to memory that the graph allocates, which the driver may map again.
 * Launches of the graph in the window stay as they were if they are recorded node by node. */
static void enter_change(const struct kp_door_call *c)
{
    CUgraphExec exec = (CUgraphExec)(uintptr_t)c->first;
    const struct kp_graph_content *held = kp_graph_hold(exec);
    bool beside = held && !held->nodes->allocates && kp_window_watches() && kp_process_changes_graph(exec);
    if (held)
        kp_graph_let(held);
    if (!beside)
        kp_gate_enter_shared(c->symbol);
}

static void set_kernel(CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *p)
{
    const struct kp_driver *d = kp_process_driver();
    if (d && kp_graph_set_kernel(d, exec, node, p) & KP_ONCE_HEAP)
        kp_window_heap_blocks();
}

static void noted_set_kernel_v1(CUresult rc, CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *p)
{
    CUDA_KERNEL_NODE_PARAMS params;
    if (rc != CUDA_SUCCESS)
        return;
    memset(&params, 0, sizeof(params));
    memcpy(&params, p, sizeof(*p)); /* the later version only adds fields */
    set_kernel(exec, node, &params);
}

static void noted_set_kernel(CUresult rc, CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *p)
{
    if (rc == CUDA_SUCCESS)
        set_kernel(exec, node, p);
}

static void noted_set_copy(CUresult rc, CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D *p, CUcontext ctx)
{
    const struct kp_driver *d = kp_process_driver();
    (void)ctx;
    if (rc == CUDA_SUCCESS && d)
        kp_graph_set_copy(d, exec, node, p);
}

static void noted_set_memset(CUresult rc, CUgraphExec exec, CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *p,
                             CUcontext ctx)
{
    (void)ctx;
    if (rc == CUDA_SUCCESS)
        kp_graph_set_memset(exec, node, p);
}

static void noted_set_host(CUresult rc, CUgraphExec exec, CUgraphNode node, const CUDA_HOST_NODE_PARAMS *p)
{
    if (rc == CUDA_SUCCESS)
        kp_graph_set_host(exec, node, p);
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

static void noted_set_any(CUresult rc, CUgraphExec exec, CUgraphNode node, const CUgraphNodeParams *p)
{
    if (rc == CUDA_SUCCESS)
        set_any(exec, node, p);
}

static void noted_set_enabled(CUresult rc, CUgraphExec exec, CUgraphNode node, unsigned enabled)
{
    if (rc == CUDA_SUCCESS)
        kp_graph_set_enabled(exec, node, enabled);
}

static void note_update(CUresult rc, CUgraphExec exec, CUgraph graph)
{
    const struct kp_driver *d = kp_process_driver();
    if (rc == CUDA_SUCCESS && d && kp_graph_update(d, exec, graph) & KP_ONCE_HEAP)
        kp_window_heap_blocks();
}

static void noted_update(CUresult rc, CUgraphExec exec, CUgraph graph, CUgraphNode *node,
                         CUgraphExecUpdateResult *result)
{
    (void)node, (void)result;
    note_update(rc, exec, graph);
}

static void noted_update_v2(CUresult rc, CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *result)
{
    (void)result;
    note_update(rc, exec, graph);
}

static void noted_set_child(CUresult rc, CUgraphExec exec, CUgraphNode node, CUgraph child)
{
    (void)node, (void)child;
    if (rc == CUDA_SUCCESS)
        kp_graph_blur(exec);
}

static void noted_set_event(CUresult rc, CUgraphExec exec, CUgraphNode node, CUevent event)
{
    (void)node, (void)event;
    if (rc == CUDA_SUCCESS)
        kp_graph_blur(exec);
}

#define KP_GATED KP_GATED_LOGIC
#include "preload/doors/graph_doors.def"
#undef KP_GATED
