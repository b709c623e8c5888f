/*
 * Memory of allocation nodes. Its addresses are fixed when the node is made. A launch of the executable graph puts
 * memory there, which stays after the graph's end. It goes when the memory is trimmed, the executable graph is
 * destroyed or updated, or another graph with such nodes is instantiated or launched: that one takes all memory that is
 * not held. A driver may do so at each of these points; this one always does, and also when an allocation finds too
 * little memory.
 *
 * KP_VENDOR: seen with driver 580. A kernel finds the memory after the end of the graph; one that finds none breaks its
 * context. Queries never know the address, and copies and memsets outside graphs refuse it.
 */
#include "core.h"

static CUresult reserve_graph_memory(size_t size, struct allocation **out)
{
    size_t mapped = (size + PAGE - 1) / PAGE * PAGE;
    void *base;

    if (!size)
        return CUDA_ERROR_INVALID_VALUE;
    base = mmap(NULL, mapped + PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *out = list_allocation(current(), base, size);
    (*out)->mapped = mapped;
    (*out)->of_graph = true;
    return CUDA_SUCCESS;
}

static void take_back(struct allocation *a)
{
    if (!a->backed || a->held)
        return;
    fake_log("unmapped pid=%d bytes=%zu\n", (int)getpid(), a->info.size);
    a->backed = false;
    madvise(a->info.base, a->mapped, MADV_DONTNEED);
    mprotect(a->info.base, a->mapped, PROT_NONE);
}

static bool has_memory(const struct graph *graph, const struct allocation *a)
{
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const struct node *node = graph->nodes[i];

        if (node->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC && (!a || node->memory == a))
            return true;
        if (node->child && has_memory(node->child, a))
            return true;
    }
    return false;
}

/* Takes the memory of all graphs but this one, which has such nodes. */
static void take_others(const struct graph *graph)
{
    if (!has_memory(graph, NULL))
        return;
    for (struct allocation *a = allocations; a; a = a->next)
        if (a->of_graph && !has_memory(graph, a))
            take_back(a);
}

static void take_all_back(void)
{
    for (struct allocation *a = allocations; a; a = a->next)
        if (a->of_graph)
            take_back(a);
}

static void put_behind(const struct graph *graph)
{
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const struct node *node = graph->nodes[i];

        if (node->child)
            put_behind(node->child);
        if (node->type != CU_GRAPH_NODE_TYPE_MEM_ALLOC || node->memory->backed)
            continue;
        mprotect(node->memory->info.base, node->memory->mapped, PROT_READ | PROT_WRITE);
        node->memory->backed = true;
    }
}

static void back(const struct graph *graph)
{
    take_others(graph);
    put_behind(graph);
}

/* Takes the memory of a graph that is about to be destroyed or updated. */
static void unback(const struct graph *graph)
{
    for (size_t i = 0; i < graph->n_nodes; i++) {
        if (graph->nodes[i]->child)
            unback(graph->nodes[i]->child);
        if (graph->nodes[i]->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
            take_back(graph->nodes[i]->memory);
    }
}

/* Returns true if a launch may allocate: memory left by the last launch must be freed first, which the flag does. */
static bool may_allocate(const struct graph *graph, bool frees)
{
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const struct node *node = graph->nodes[i];

        if (node->child && !may_allocate(node->child, frees))
            return false;
        if (node->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC && node->memory->held && !frees)
            return false;
    }
    return true;
}

/* The content of new memory is arbitrary. */
static void reach_alloc(const struct node *node)
{
    node->memory->held = true;
    memset(node->memory->info.base, POISON, node->memory->info.size);
}

static void reach_free(const struct node *node)
{
    if (!node->memory->held)
        fake_misuse("a free node frees what is not allocated");
    node->memory->held = false;
}

CUresult cuDeviceGraphMemTrim(CUdevice device)
{
    ENTER(NEED_INIT);
    for (struct allocation *a = allocations; a; a = a->next)
        if (a->of_graph && !a->head.dead && a->head.ctx->device == device)
            take_back(a);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attribute, void *value)
{
    cuuint64_t bytes = 0;

    ENTER(NEED_INIT);
    if (attribute != CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT && attribute != CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT)
        return CUDA_ERROR_NOT_SUPPORTED;
    for (const struct allocation *a = allocations; a; a = a->next)
        if (a->of_graph && !a->head.dead && a->head.ctx->device == device)
            bytes += attribute == CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT ? a->held * a->info.size : a->backed * a->mapped;
    *(cuuint64_t *)value = bytes;
    return CUDA_SUCCESS;
}
