#include "preload/graphs/graph_memory.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/lock.h"

/* The memory of an allocation node. */
struct range {
    CUgraphExec exec;
    uint64_t base;
    size_t bytes;
    struct range *next;
};

static struct kp_lock *const lock = &kp_locks[KP_LOCK_GRAPHS];

static struct range *ranges; /* under the lock */
static atomic_size_t n_ranges;

static bool add(CUgraphExec exec, const CUDA_MEM_ALLOC_NODE_PARAMS *p)
{
    struct range *r = calloc(1, sizeof(*r));
    if (!r)
        return false;
    *r = (struct range){.exec = exec, .base = p->dptr, .bytes = p->bytesize};
    kp_lock_take(lock, KP_FOREVER);
    r->next = ranges;
    ranges = r;
    kp_lock_give(lock);
    atomic_fetch_add(&n_ranges, 1);
    return true;
}

static bool add_graph(const struct kp_driver *d, CUgraphExec exec, CUgraph graph);

static bool add_node(const struct kp_driver *d, CUgraphExec exec, CUgraphNode node)
{
    CUDA_MEM_ALLOC_NODE_PARAMS p;
    CUgraphNodeType type;
    CUgraph child;
    if (d->cuGraphNodeGetType(node, &type) != CUDA_SUCCESS)
        return false;
    if (type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
        return d->cuGraphMemAllocNodeGetParams(node, &p) == CUDA_SUCCESS && add(exec, &p);
    if (type == CU_GRAPH_NODE_TYPE_GRAPH)
        return d->cuGraphChildGraphNodeGetGraph(node, &child) == CUDA_SUCCESS && add_graph(d, exec, child);
    return true;
}

static bool add_graph(const struct kp_driver *d, CUgraphExec exec, CUgraph graph)
{
    size_t n = 0;
    if (d->cuGraphGetNodes(graph, NULL, &n) != CUDA_SUCCESS)
        return false;
    CUgraphNode *nodes = n ? calloc(n, sizeof(*nodes)) : NULL;
    bool read = !n || (nodes && d->cuGraphGetNodes(graph, nodes, &n) == CUDA_SUCCESS);
    for (size_t i = 0; read && i < n; i++)
        read = add_node(d, exec, nodes[i]);
    free(nodes);
    return read;
}

bool kp_graph_memory_note(const struct kp_driver *d, CUgraphExec exec, CUgraph graph)
{
    kp_graph_memory_forget(exec);
    return add_graph(d, exec, graph);
}

void kp_graph_memory_forget(CUgraphExec exec)
{
    struct range *gone = NULL;
    if (!atomic_load(&n_ranges))
        return;
    kp_lock_take(lock, KP_FOREVER);
    for (struct range **r = &ranges; *r;) {
        struct range *here = *r;
        if (here->exec != exec) {
            r = &here->next;
            continue;
        }
        *r = here->next;
        here->next = gone;
        gone = here;
        atomic_fetch_sub(&n_ranges, 1);
    }
    kp_lock_give(lock);
    while (gone) {
        struct range *next = gone->next;
        free(gone);
        gone = next;
    }
}

bool kp_graph_memory_holds(uint64_t address)
{
    if (!atomic_load(&n_ranges))
        return false;
    kp_lock_take(lock, KP_FOREVER);
    const struct range *r = ranges;
    while (r && (address < r->base || address - r->base >= r->bytes))
        r = r->next;
    kp_lock_give(lock);
    return r;
}
