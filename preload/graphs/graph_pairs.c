#include "preload/graphs/graph_pairs.h"

#include <stdlib.h>

#include "base/room.h"

/* The allocations during a walk through a graph. */
struct walk {
    CUdeviceptr *held; /* those not freed so far */
    size_t n;
    bool any;
    int device;
    enum kp_reason why;
};

static bool hold(struct walk *w, CUdeviceptr memory)
{
    enum { FIRST = 16 };
    if (!KP_ROOM(w->held, w->n))
        return false;
    w->held[w->n++] = memory;
    return true;
}

static size_t place_in_walk(const struct walk *w, CUdeviceptr memory)
{
    size_t i = 0;
    while (i < w->n && w->held[i] != memory)
        i++;
    return i;
}

static enum kp_reason allocate(struct walk *w, const struct kp_graph_node *node)
{
    if (w->any && node->memory.device != w->device)
        return KP_REASON_GRAPH_ALLOCATES_ON_SEVERAL;
    w->any = true;
    w->device = node->memory.device;
    /* The driver assigns an address twice only if a free lies in between. */
    bool taken = place_in_walk(w, node->memory.at) < w->n || !hold(w, node->memory.at);
    return taken ? KP_REASON_GRAPH_ORDER_UNKNOWN : KP_REASON_NONE;
}

static enum kp_reason release(struct walk *w, const struct kp_graph_node *node)
{
    size_t at = place_in_walk(w, node->memory.at);
    if (at == w->n)
        return KP_REASON_GRAPH_FREES_OTHERS;
    w->held[at] = w->held[--w->n];
    return KP_REASON_NONE;
}

static int visit(void *arg, const struct kp_graph_node *node)
{
    struct walk *w = arg;
    if (node->kind == KP_NODE_ALLOC)
        w->why = allocate(w, node);
    else if (node->kind == KP_NODE_FREE)
        w->why = release(w, node);
    return w->why != KP_REASON_NONE;
}

enum kp_reason kp_graph_pairs_judge(struct kp_graph_nodes *g, unsigned long long flags)
{
    struct walk w = {.held = NULL};
    kp_graph_nodes_each(g, visit, &w);
    free(w.held);
    g->allocates = w.any;
    g->device = w.device;
    if (w.why)
        return w.why;
    if (w.n)
        return KP_REASON_GRAPH_LEAVES_MEMORY;
    return w.any && flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH ? KP_REASON_GRAPH_AUTO_FREE
                                                                            : KP_REASON_NONE;
}
