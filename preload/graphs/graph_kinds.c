#include "preload/graphs/graph_kinds.h"

#include <stdio.h>
#include <stdlib.h>

const struct kp_graph_kind kp_graph_kinds[KP_GRAPH_KINDS] = {
    {CU_GRAPH_NODE_TYPE_KERNEL, "kernel", "kernels", true, KP_REASON_NONE, false},
    {CU_GRAPH_NODE_TYPE_MEMCPY, "copy", "copies", true, KP_REASON_NONE, false},
    {CU_GRAPH_NODE_TYPE_MEMSET, "memset", "memsets", true, KP_REASON_NONE, false},
    {CU_GRAPH_NODE_TYPE_GRAPH, NULL, NULL, false, KP_REASON_NONE, false},
    {CU_GRAPH_NODE_TYPE_EMPTY, "empty node", "empty nodes", false, KP_REASON_NONE, false},
    {CU_GRAPH_NODE_TYPE_EVENT_RECORD, "event record", "event records", false, KP_REASON_NONE, false},
    {CU_GRAPH_NODE_TYPE_WAIT_EVENT, "event wait", "event waits", false, KP_REASON_NONE, false},
    {CU_GRAPH_NODE_TYPE_HOST, "host function", "host functions", false, KP_REASON_GRAPH_HOST_FUNCTION, true},
    {CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL, "external semaphore signal", "external semaphore signals", false,
     KP_REASON_GRAPH_SIGNALS, false},
    {CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT, "external semaphore wait", "external semaphore waits", false,
     KP_REASON_GRAPH_SEMAPHORE, true},
    {CU_GRAPH_NODE_TYPE_MEM_ALLOC, "memory allocation", "memory allocations", false, KP_REASON_GRAPH_ALLOCATES, false},
    {CU_GRAPH_NODE_TYPE_MEM_FREE, "memory free", "memory frees", false, KP_REASON_GRAPH_FREES, false},
    {CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, "batch of memory operations", "batches of memory operations", false,
     KP_REASON_GRAPH_VALUES, true},
    {CU_GRAPH_NODE_TYPE_CONDITIONAL, "conditional node", "conditional nodes", false, KP_REASON_GRAPH_CONDITIONAL,
     false},
    {(CUgraphNodeType)-1, "node of an unknown type", "nodes of unknown types", false, KP_REASON_GRAPH_UNKNOWN_NODES,
     false},
};

unsigned kp_graph_kind_of(CUgraphNodeType type)
{
    unsigned i = 0;
    while (i < KP_GRAPH_KINDS - 1 && kp_graph_kinds[i].type != type)
        i++;
    return i;
}

char *kp_graph_describe(const unsigned counts[KP_GRAPH_KINDS])
{
    char *text = NULL;
    size_t size;
    const char *before = "CUDA graph of ";
    FILE *f = open_memstream(&text, &size);
    if (!f)
        return NULL;
    for (unsigned i = 0; i < KP_GRAPH_KINDS; i++) {
        const struct kp_graph_kind *k = &kp_graph_kinds[i];
        if (!k->one || (!counts[i] && !k->always))
            continue;
        fprintf(f, "%s%u %s", before, counts[i], counts[i] == 1 ? k->one : k->many);
        before = ", ";
    }
    if (!fclose(f))
        return text;
    free(text);
    return NULL;
}

char *kp_graph_blame(const bool kinds[KP_GRAPH_KINDS])
{
    char *text = NULL;
    size_t size;
    unsigned left = 0;
    const char *before = "graph with ";
    FILE *f = open_memstream(&text, &size);
    if (!f)
        return NULL;
    for (unsigned i = 0; i < KP_GRAPH_KINDS; i++)
        left += kinds[i];
    for (unsigned i = 0; i < KP_GRAPH_KINDS; i++) {
        if (!kinds[i])
            continue;
        fprintf(f, "%s%s", before, kp_graph_kinds[i].many);
        before = --left == 1 ? " and " : ", ";
    }
    fputs(", which cannot be issued by themselves", f);
    if (!fclose(f))
        return text;
    free(text);
    return NULL;
}
