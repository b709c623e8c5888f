/*
 * The nodes of a graph in the journal. Repetitions issue them one by one: copies and memsets by themselves, copies to
 * the host as reads. Kernels are recorded as launches (kp_journal_launch).
 */
#include <stdlib.h>
#include <string.h>

#include "preload/graphs/graph_nodes.h"
#include "preload/journal/graph_memory_check.h"
#include "preload/journal/host_calls.h"
#include "preload/journal/reads.h"
#include "preload/journal/record.h"

static struct kp_journal *const j = &kp_journal_now;

/* A node that a window issues again, with its parameters, and for a copy from the host the source's contents. */
struct again {
    struct kp_graph_node node;
    const struct kp_driver *driver;
    CUstream stream;
    char bytes[];
};

/* A function of the type by which operations are issued. */
static CUresult issue_node_again(uint64_t of, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f)
{
    const struct again *a = (const struct again *)(uintptr_t)of;
    (void)b, (void)c, (void)d, (void)e, (void)f;
    return kp_graph_node_issue(a->driver, &a->node, a->stream);
}

/* Makes a copy or memset that can be issued later: it holds the contents of host memory. */
static struct again *keep_node(const struct kp_journal_graph *g, const struct kp_graph_node *node, size_t *bytes)
{
    const struct kp_graph_row row = node->from_host ? kp_graph_row(node) : (struct kp_graph_row){.bytes = 0};
    struct again *a = row.bytes <= KP_MOST_COPIED - j->copied ? malloc(sizeof(*a) + row.bytes) : NULL;
    if (!a)
        return NULL;
    *bytes = sizeof(*a) + row.bytes;
    a->node = *node;
    a->driver = j->setup->driver;
    a->stream = g->stream;
    if (node->from_host) {
        memcpy(a->bytes, row.host, row.bytes);
        a->node.copy = (CUDA_MEMCPY3D){.srcMemoryType = CU_MEMORYTYPE_HOST,
                                       .srcHost = a->bytes,
                                       .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                                       .dstDevice = row.device,
                                       .WidthInBytes = row.bytes,
                                       .Height = 1,
                                       .Depth = 1};
    }
    return a;
}

bool kp_journal_single_node(const struct kp_journal_graph *g, const struct kp_graph_node *node)
{
    size_t bytes = 0;
    struct again *a = keep_node(g, node, &bytes);
    struct kp_item *i = a ? kp_record_new(j) : NULL;
    if (!i)
        free(a);
    if (!i)
        return false;
    const struct kp_op op = {.real = (void *)(uintptr_t)issue_node_again,
                             .args = {(uintptr_t)a},
                             .copy = a,
                             .copied = bytes,
                             .stream = g->stream};
    kp_record_op(j, i, &op);
    return true;
}

static const char launch_symbol[] = "cuGraphLaunch";

/* Returns true if a copy to the host of this graph overlaps the row. */
static bool is_written(const struct kp_journal_graph *g, const struct kp_graph_row *row)
{
    for (size_t k = g->first; k < j->n; k++) {
        const struct kp_op *op = &j->items[k].op;
        uint64_t at = op->args[0], host = (uint64_t)(uintptr_t)row->host;
        if (j->items[k].read.site && host < at + op->result_bytes && at < host + row->bytes)
            return true;
    }
    return false;
}

/* Records a copy to the host as a read: the value of the program's own execution is compared in each repetition. If the
 * window does not accept the read, it closes after the graph. The program keeps its own memory in any case. */
static bool record_read(struct kp_journal_graph *g, const struct kp_graph_node *node)
{
    const struct kp_graph_row row = kp_graph_row(node);
    const struct kp_op op = {.real = (void *)(uintptr_t)j->setup->driver->cuMemcpyDtoH,
                             .args = {(uintptr_t)row.host, row.device, row.bytes},
                             .stream = g->stream,
                             .result = 1,
                             .result_bytes = row.bytes};
    g->reads = true;
    bool changes = g->nodes->calls_host; /* a host function may write what the graph has copied */
    if (changes || is_written(g, &row) || !kp_reads_admit(j, &op, launch_symbol)) {
        g->closes = KP_REASON_CALL;
        j->reads++;
        return true;
    }
    struct kp_item *i = kp_record_new(j);
    if (!i)
        return false;
    kp_record_op(j, i, &op);
    kp_reads_begin(j, i, launch_symbol);
    return true;
}

/* Records a node that is no kernel. Events need no record: each repeated operation waits for the one before it. Host
 * functions need none either, because no node depends on them; but they may write the source of a later copy. */
bool kp_journal_node(struct kp_journal_graph *g, const struct kp_graph_node *node)
{
    const struct kp_graph_row row = node->kind == KP_NODE_COPY ? kp_graph_row(node) : (struct kp_graph_row){.bytes = 0};
    if (node->kind == KP_NODE_HOST)
        kp_hostcalls_note(j);
    if (node->kind == KP_NODE_COPY && node->to_host)
        return !j->rewinds || record_read(g, node);
    if (node->kind == KP_NODE_COPY && node->from_host && is_written(g, &row))
        return false;
    return (node->kind != KP_NODE_COPY && node->kind != KP_NODE_SET) || kp_journal_single_node(g, node);
}

void kp_journal_log_graph(struct kp_journal_graph *g)
{
    for (size_t k = g->first; k < j->n; k++) {
        struct kp_item *i = &j->items[k];
        if (i->read.site && (!kp_reads_log(j, i) || !kp_reads_trusted(i)))
            g->closes = KP_REASON_CALL;
    }
}

void kp_journal_allocating_graph(CUgraphExec exec)
{
    kp_mapped_note(j, exec);
}
