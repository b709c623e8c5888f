#include "preload/program/graphs.h"

#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "preload/os/guard.h"
#include "preload/program/hostmem.h"
#include "preload/program/kernel.h"

struct entry {
    CUgraphExec exec;
    struct kp_graph graph;
    struct entry *next;
};

static struct entry *entries;
static struct kp_lock *const lock = &kp_locks[KP_LOCK_GRAPHS];

/* How a node type counts, and whether it may run again. Types without a row come from a later driver: not replayed. */
static const struct node_rule {
    CUgraphNodeType type;
    enum { KERNEL, COPY, SET, CHILD, OTHER } kind;
    const char *obstacle;
    bool waits;
} rules[] = {
    {CU_GRAPH_NODE_TYPE_KERNEL, KERNEL, NULL, false},
    {CU_GRAPH_NODE_TYPE_MEMCPY, COPY, NULL, false},
    {CU_GRAPH_NODE_TYPE_MEMSET, SET, NULL, false},
    {CU_GRAPH_NODE_TYPE_GRAPH, CHILD, NULL, false},
    {CU_GRAPH_NODE_TYPE_EMPTY, OTHER, NULL, false},
    {CU_GRAPH_NODE_TYPE_EVENT_RECORD, OTHER, NULL, false},
    {CU_GRAPH_NODE_TYPE_WAIT_EVENT, OTHER, NULL, false},
    {CU_GRAPH_NODE_TYPE_HOST, OTHER, "graph with a host function, not replayed", true},
    {CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL, OTHER, "graph that signals an external semaphore, not replayed", false},
    {CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT, OTHER, "graph that waits for an external semaphore, not replayed", true},
    {CU_GRAPH_NODE_TYPE_MEM_ALLOC, OTHER, "graph that allocates memory, not replayed", false},
    {CU_GRAPH_NODE_TYPE_MEM_FREE, OTHER, "graph that frees memory, not replayed", false},
    {CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, OTHER, "graph that waits for memory values, not replayed", true},
    {CU_GRAPH_NODE_TYPE_CONDITIONAL, OTHER, "graph with conditional nodes, not replayed", false},
};

static void study(const struct kp_driver *d, CUgraph graph, struct kp_graph *out);

static bool is_host(const struct kp_driver *d, CUmemorytype said, CUdeviceptr address)
{
    unsigned type = 0;
    if (said != CU_MEMORYTYPE_UNIFIED)
        return said == CU_MEMORYTYPE_HOST;
    return d->cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address) != CUDA_SUCCESS ||
           type != CU_MEMORYTYPE_DEVICE;
}

/* Notes a copy into host memory: a checkpoint does not save host memory, so a second run would read results of the
 * first. */
static void study_copy(const struct kp_driver *d, CUgraphNode node, struct kp_graph *out)
{
    CUDA_MEMCPY3D copy;
    if (!d->cuGraphMemcpyNodeGetParams || !d->cuPointerGetAttribute ||
        d->cuGraphMemcpyNodeGetParams(node, &copy) != CUDA_SUCCESS || is_host(d, copy.dstMemoryType, copy.dstDevice))
        out->obstacle = "graph that copies to host memory, not replayed";
    else
        out->reads_host |= is_host(d, copy.srcMemoryType, copy.srcDevice);
}

/* Whether an argument is, or contains, an address of host memory that the device can reach. */
static bool reaches_host(const struct kp_driver *d, CUfunction f, void *const *params)
{
    size_t offset, size;
    for (size_t i = 0; params && d->cuFuncGetParamInfo && d->cuFuncGetParamInfo(f, i, &offset, &size) == CUDA_SUCCESS;
         i++)
        for (size_t at = 0; at + sizeof(uint64_t) <= size; at += sizeof(uint64_t)) {
            uint64_t word;
            void *base;
            size_t bytes;
            memcpy(&word, (const char *)params[i] + at, sizeof(word));
            if (kp_hostmem_find(word, &base, &bytes))
                return true;
        }
    return false;
}

static void study_kernel(const struct kp_driver *d, CUgraphNode node, struct kp_graph *out)
{
    CUDA_KERNEL_NODE_PARAMS params;
    CUfunction f;
    memset(&params, 0, sizeof(params));
    if (!d->cuGraphKernelNodeGetParams || d->cuGraphKernelNodeGetParams(node, &params) != CUDA_SUCCESS)
        return;
    f = params.func ? params.func : (CUfunction)params.kern;
    if (!params.func && params.kern && d->cuKernelGetFunction)
        d->cuKernelGetFunction(&f, params.kern);
    if (kp_kernel_waits_outside(d, f))
        out->obstacle = "graph with a kernel that waits for other processes or devices, not replayed";
    else if (reaches_host(d, f, params.kernelParams))
        out->obstacle = "graph with a kernel that can reach host memory, not replayed";
    else {
        unsigned once = kp_kernel_once(d, f);
        if (once)
            out->obstacle = "graph with a kernel that uses the device's heap or gives the device work, not replayed";
        out->once |= once;
        return;
    }
    out->waits = true;
}

static void study_node(const struct kp_driver *d, CUgraphNode node, struct kp_graph *out)
{
    CUgraphNodeType type;
    CUgraph child;
    const struct node_rule *rule = NULL;
    if (d->cuGraphNodeGetType(node, &type) == CUDA_SUCCESS)
        for (size_t i = 0; i < sizeof(rules) / sizeof(*rules); i++)
            if (rules[i].type == type)
                rule = &rules[i];
    if (!rule) {
        out->others++;
        out->obstacle = "graph with nodes of an unknown type, not replayed";
        return;
    }
    out->kernels += rule->kind == KERNEL;
    out->copies += rule->kind == COPY;
    out->sets += rule->kind == SET;
    out->others += rule->kind == OTHER;
    if (rule->obstacle)
        out->obstacle = rule->obstacle;
    out->waits |= rule->waits;
    if (rule->kind == COPY)
        study_copy(d, node, out);
    if (rule->kind == KERNEL)
        study_kernel(d, node, out);
    if (rule->kind == CHILD && d->cuGraphChildGraphNodeGetGraph(node, &child) == CUDA_SUCCESS)
        study(d, child, out);
}

static void study(const struct kp_driver *d, CUgraph graph, struct kp_graph *out)
{
    size_t n = 0;
    CUgraphNode *nodes = NULL;
    if (d->cuGraphGetNodes(graph, NULL, &n) == CUDA_SUCCESS && n)
        nodes = calloc(n, sizeof(*nodes));
    if (n && (!nodes || d->cuGraphGetNodes(graph, nodes, &n) != CUDA_SUCCESS)) {
        out->obstacle = "graph whose nodes could not be read, not replayed";
        n = 0;
    }
    for (size_t i = 0; i < n; i++)
        study_node(d, nodes[i], out);
    free(nodes);
}

void kp_graph_forget(CUgraphExec exec)
{
    kp_lock_take(lock, KP_FOREVER);
    for (struct entry **e = &entries; *e; e = &(*e)->next)
        if ((*e)->exec == exec) {
            struct entry *gone = *e;
            *e = gone->next;
            free(gone);
            break;
        }
    kp_lock_give(lock);
}

unsigned kp_graph_note(const struct kp_driver *d, CUgraphExec exec, CUgraph graph)
{
    struct entry *e = calloc(1, sizeof(*e));
    if (!e)
        return 0;
    kp_graph_forget(exec);
    e->exec = exec;
    kp_guard++;
    study(d, graph, &e->graph);
    kp_guard--;
    unsigned once = e->graph.once;
    kp_lock_take(lock, KP_FOREVER);
    e->next = entries;
    entries = e;
    kp_lock_give(lock);
    return once;
}

bool kp_graph_find(CUgraphExec exec, struct kp_graph *out)
{
    bool found = false;
    kp_lock_take(lock, KP_FOREVER);
    for (const struct entry *e = entries; e && !found; e = e->next)
        if (e->exec == exec) {
            *out = e->graph;
            found = true;
        }
    kp_lock_give(lock);
    return found;
}
