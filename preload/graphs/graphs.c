#include "preload/graphs/graphs.h"

#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "collectors/code/cubin.h"
#include "preload/os/guard.h"
#include "preload/graphs/graph_memory.h"
#include "preload/graphs/graph_pairs.h"
#include "preload/program/hostmem.h"
#include "preload/program/kernel.h"

struct entry {
    CUgraphExec exec;
    unsigned long long flags; /* of its instantiation */
    struct kp_graph graph;
    struct kp_graph_content *content; /* NULL: its nodes cannot be issued one by one */
    struct entry *next;
};

static struct entry *entries;
static uint32_t instantiated;
static struct kp_lock *const lock = &kp_locks[KP_LOCK_GRAPHS];

static void study(const struct kp_driver *d, CUgraph graph, struct kp_graph *out);

/* Notes a copy into host memory: a checkpoint does not save host memory, so a second run would read results of the
 * first. */
static void study_copy(const struct kp_driver *d, const CUDA_MEMCPY3D *copy, struct kp_graph *out)
{
    if (kp_graph_is_host(d, copy->dstMemoryType, copy->dstDevice))
        out->once_reason = KP_REASON_GRAPH_TO_HOST;
    else
        out->reads_host |= kp_graph_is_host(d, copy->srcMemoryType, copy->srcDevice);
}

static void study_copy_node(const struct kp_driver *d, CUgraphNode node, struct kp_graph *out)
{
    CUDA_MEMCPY3D copy;
    if (d->cuGraphMemcpyNodeGetParams(node, &copy) != CUDA_SUCCESS)
        out->once_reason = KP_REASON_GRAPH_TO_HOST;
    else
        study_copy(d, &copy, out);
}

/* Returns true if an argument of `size` bytes is or contains an address of host memory that the device can reach. */
static bool has_host_pointer(const char *argument, size_t size)
{
    for (size_t at = 0; at + sizeof(uint64_t) <= size; at += sizeof(uint64_t)) {
        uint64_t word;
        void *base;
        size_t bytes;
        memcpy(&word, argument + at, sizeof(word));
        if (kp_hostmem_find(word, &base, &bytes))
            return true;
    }
    return false;
}

/* Returns true if one of the arguments does, or may because the driver does not report its size. */
static bool reaches_host(const struct kp_driver *d, CUfunction f, void *const *params)
{
    size_t offset, size;
    bool reaches = false;
    CUresult rc = CUDA_SUCCESS;
    for (size_t i = 0; params && rc == CUDA_SUCCESS && !reaches; i++) {
        rc = d->cuFuncGetParamInfo(f, i, &offset, &size);
        /* A node may have a kernel in place of its function. */
        if (rc == CUDA_ERROR_INVALID_HANDLE && !i && d->cuKernelGetFunction(&f, (CUkernel)f) == CUDA_SUCCESS)
            rc = d->cuFuncGetParamInfo(f, i, &offset, &size);
        reaches = rc == CUDA_SUCCESS && has_host_pointer(params[i], size);
    }
    return reaches || (rc != CUDA_SUCCESS && rc != CUDA_ERROR_INVALID_VALUE); /* which means that there are no more */
}

static void study_kernel(const struct kp_driver *d, const CUDA_KERNEL_NODE_PARAMS *p, struct kp_graph *out)
{
    CUfunction f = p->func ? p->func : (CUfunction)p->kern;
    if (!p->func && p->kern)
        d->cuKernelGetFunction(&f, p->kern);
    out->outside |= kp_kernel_waits_outside(d, f);
    if (out->outside)
        out->once_reason = KP_REASON_GRAPH_WAITS_OUTSIDE;
    else if (reaches_host(d, f, p->kernelParams))
        out->once_reason = KP_REASON_GRAPH_REACHES_HOST;
    else {
        unsigned once = kp_kernel_once(d, f);
        if (once & KP_ONCE_ALONE)
            out->once_reason = KP_REASON_GRAPH_ONCE;
        out->once |= once;
        return;
    }
    out->waits = true;
}

static void study_kernel_node(const struct kp_driver *d, CUgraphNode node, struct kp_graph *out)
{
    CUDA_KERNEL_NODE_PARAMS params;
    memset(&params, 0, sizeof(params));
    if (d->cuGraphKernelNodeGetParams(node, &params) != CUDA_SUCCESS)
        out->once_reason = KP_REASON_GRAPH_UNREAD;
    else
        study_kernel(d, &params, out);
}

static void study_node(const struct kp_driver *d, CUgraphNode node, struct kp_graph *out)
{
    CUgraphNodeType type;
    CUgraph child;
    unsigned row = KP_GRAPH_KINDS - 1;
    if (d->cuGraphNodeGetType(node, &type) == CUDA_SUCCESS)
        row = kp_graph_kind_of(type);
    const struct kp_graph_kind *kind = &kp_graph_kinds[row];
    out->nodes[row]++;
    if (kind->once_reason)
        out->once_reason = kind->once_reason;
    out->waits |= kind->waits;
    if (kind->type == CU_GRAPH_NODE_TYPE_MEMCPY)
        study_copy_node(d, node, out);
    if (kind->type == CU_GRAPH_NODE_TYPE_KERNEL)
        study_kernel_node(d, node, out);
    if (kind->type != CU_GRAPH_NODE_TYPE_GRAPH)
        return;
    if (d->cuGraphChildGraphNodeGetGraph(node, &child) == CUDA_SUCCESS)
        study(d, child, out);
    else
        out->once_reason = KP_REASON_GRAPH_UNREAD;
}

static void study(const struct kp_driver *d, CUgraph graph, struct kp_graph *out)
{
    size_t n = 0;
    CUresult rc = d->cuGraphGetNodes(graph, NULL, &n);
    CUgraphNode *nodes = rc == CUDA_SUCCESS && n ? calloc(n, sizeof(*nodes)) : NULL;
    if (rc != CUDA_SUCCESS || (n && (!nodes || d->cuGraphGetNodes(graph, nodes, &n) != CUDA_SUCCESS))) {
        out->once_reason = KP_REASON_GRAPH_UNREAD;
        n = 0;
    }
    for (size_t i = 0; i < n; i++)
        study_node(d, nodes[i], out);
    free(nodes);
}

/* ---- what is held ---- */

static struct entry *find(CUgraphExec exec)
{
    struct entry *e = entries;
    while (e && e->exec != exec)
        e = e->next;
    return e;
}

/* Call it under the lock. */
static void let(struct kp_graph_content *c)
{
    if (c && !--c->users) {
        kp_graph_nodes_free(c->nodes);
        free(c);
    }
}

static struct kp_graph_content *content_of(struct kp_graph_nodes *nodes, uint32_t number)
{
    struct kp_graph_content *c = nodes ? calloc(1, sizeof(*c)) : NULL;
    if (c)
        *c = (struct kp_graph_content){.nodes = nodes, .number = number, .users = 1};
    else
        kp_graph_nodes_free(nodes);
    return c;
}

const struct kp_graph_content *kp_graph_hold(CUgraphExec exec)
{
    kp_lock_take(lock, KP_FOREVER);
    struct entry *e = find(exec);
    struct kp_graph_content *c = e ? e->content : NULL;
    if (c)
        c->users++;
    kp_lock_give(lock);
    return c;
}

void kp_graph_let(const struct kp_graph_content *content)
{
    kp_lock_take(lock, KP_FOREVER);
    let((struct kp_graph_content *)content);
    kp_lock_give(lock);
}

bool kp_graph_runs_by_node(const struct kp_driver *d, const struct kp_graph_content *content)
{
    struct kp_graph_content *c = (struct kp_graph_content *)content;
    if (!atomic_load(&c->runs))
        atomic_store(&c->runs, kp_graph_nodes_try(d, c->nodes) ? 1 : -1);
    return atomic_load(&c->runs) > 0;
}

void kp_graph_forget(CUgraphExec exec)
{
    kp_graph_memory_forget(exec);
    kp_lock_take(lock, KP_FOREVER);
    for (struct entry **e = &entries; *e; e = &(*e)->next)
        if ((*e)->exec == exec) {
            struct entry *gone = *e;
            *e = gone->next;
            let(gone->content);
            free(gone);
            break;
        }
    kp_lock_give(lock);
}

bool kp_graph_find(CUgraphExec exec, struct kp_graph *out)
{
    kp_lock_take(lock, KP_FOREVER);
    const struct entry *e = find(exec);
    if (e)
        *out = e->graph;
    kp_lock_give(lock);
    return e;
}

/* ---- noting ---- */

/* Texts that graphs refer to for the lifetime of the process: few, because they name kinds of nodes. */
struct blame {
    char *text;
    struct blame *next;
};

static struct blame *blames;

/* Returns the kept copy of a text, which it takes over; NULL if memory is short. */
static const char *keep(char *text)
{
    struct blame *fresh = text ? calloc(1, sizeof(*fresh)) : NULL;
    kp_lock_take(lock, KP_FOREVER);
    struct blame *b = fresh ? blames : NULL;
    while (b && strcmp(b->text, text))
        b = b->next;
    if (fresh && !b) {
        *fresh = (struct blame){text, blames};
        b = blames = fresh;
        fresh = NULL;
        text = NULL;
    }
    kp_lock_give(lock);
    free(fresh);
    free(text);
    return b ? b->text : NULL;
}

/* Names the kinds of nodes that keep a graph in one piece. */
static struct kp_why blame(const struct kp_graph *facts)
{
    bool kinds[KP_GRAPH_KINDS] = {false};
    for (unsigned i = 0; i < KP_GRAPH_KINDS; i++)
        kinds[i] = facts->nodes[i] && !kp_graph_goes_by_node(kp_graph_kinds[i].type);
    const char *text = keep(kp_graph_blame(kinds));
    return kp_why_of(text ? KP_REASON_GRAPH_NODE_KINDS : KP_REASON_GRAPH_NODES, (char *)text);
}

/* Studies a graph. Returns false if the place of its allocation nodes' memory is unknown, so that none of its pointers
 * can be judged. */
static bool study_all(const struct kp_driver *d, CUgraphExec exec, CUgraph graph, unsigned long long flags,
                      struct kp_graph *out)
{
    bool noted = kp_graph_memory_note(d, exec, graph);
    study(d, graph, out);
    out->by_device = flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH;
    if (!noted) {
        out->once_reason = KP_REASON_GRAPH_UNREAD;
        out->whole = kp_why_of(KP_REASON_GRAPH_UNREADABLE, NULL);
    }
    return noted;
}

/* Reads the nodes of a graph whose facts have been studied. */
static struct kp_graph_nodes *read_nodes(const struct kp_driver *d, CUgraph graph, unsigned long long flags,
                                         struct kp_graph *facts)
{
    uint32_t next = 0;
    enum kp_reason why;
    struct kp_graph_nodes *nodes = kp_graph_nodes_read(d, graph, &next, &why);
    if (nodes)
        why = kp_graph_pairs_judge(nodes, flags);
    facts->whole = !nodes && why == KP_REASON_GRAPH_NODES ? blame(facts) : kp_why_of(why, NULL);
    if (!why)
        return nodes;
    kp_graph_nodes_free(nodes);
    return NULL;
}

static atomic_bool any;

bool kp_graph_any(void)
{
    return atomic_load(&any);
}

unsigned kp_graph_note(const struct kp_driver *d, CUgraphExec exec, CUgraph graph, unsigned long long flags,
                       bool by_node)
{
    struct entry *e = calloc(1, sizeof(*e));
    atomic_store(&any, true);
    if (!e)
        return 0;
    kp_graph_forget(exec);
    e->exec = exec;
    e->flags = flags;
    KP_GUARDED;
    bool known = study_all(d, exec, graph, flags, &e->graph);
    struct kp_graph_nodes *nodes = known && by_node ? read_nodes(d, graph, flags, &e->graph) : NULL;
    unsigned once = e->graph.once;
    kp_lock_take(lock, KP_FOREVER);
    e->content = content_of(nodes, ++instantiated);
    e->next = entries;
    entries = e;
    kp_lock_give(lock);
    return once;
}

static unsigned long long flags_of(CUgraphExec exec)
{
    kp_lock_take(lock, KP_FOREVER);
    const struct entry *e = find(exec);
    unsigned long long flags = e ? e->flags : 0;
    kp_lock_give(lock);
    return flags;
}

unsigned kp_graph_update(const struct kp_driver *d, CUgraphExec exec, CUgraph graph)
{
    struct kp_graph facts = {.once_reason = KP_REASON_NONE};
    unsigned long long flags = flags_of(exec);
    KP_GUARDED;
    struct kp_graph_nodes *nodes =
        study_all(d, exec, graph, flags, &facts) ? read_nodes(d, graph, flags, &facts) : NULL;
    if (nodes) /* the program names nodes by the handles of the first graph */
        kp_graph_nodes_unname(nodes);
    kp_lock_take(lock, KP_FOREVER);
    struct entry *e = find(exec);
    if (e && e->content) {
        struct kp_graph_content *old = e->content;
        e->content = content_of(nodes, old->number);
        nodes = NULL;
        let(old);
    }
    if (e)
        e->graph = facts;
    kp_lock_give(lock);
    kp_graph_nodes_free(nodes);
    return facts.once;
}

/* ---- changes of a node ---- */

/* Returns the node for a change, in contents that nobody else holds; NULL = there is none. Call it under the lock. */
static struct kp_graph_node *node_of(struct entry *e, CUgraphNode handle)
{
    struct kp_graph_content *c = e ? e->content : NULL;
    if (c && c->users > 1) {
        struct kp_graph_nodes *copy = kp_graph_nodes_copy(c->nodes);
        e->content = content_of(copy, c->number);
        let(c);
        c = e->content;
    }
    return c ? kp_graph_nodes_find(c->nodes, handle) : NULL;
}

/* Gives up the contents of a graph that changed in a way that is not followed. Call it under the lock. */
static void blur(struct entry *e, enum kp_reason why)
{
    if (!e)
        return;
    let(e->content);
    e->content = NULL;
    e->graph.whole = kp_why_of(why, NULL);
}

void kp_graph_blur(CUgraphExec exec)
{
    kp_lock_take(lock, KP_FOREVER);
    blur(find(exec), KP_REASON_GRAPH_CHANGED);
    kp_lock_give(lock);
}

/* Adds to a graph's facts those of a node's new parameters. */
static void add_facts(struct kp_graph *to, const struct kp_graph *from)
{
    if (from->once_reason)
        to->once_reason = from->once_reason;
    to->once |= from->once;
    to->outside |= from->outside;
    to->waits |= from->waits;
    to->reads_host |= from->reads_host;
}

/* Puts `fresh`, which it takes over, in place of a node of the same kind; `why`: there is none. */
static void replace(CUgraphExec exec, CUgraphNode handle, struct kp_graph_node *fresh, enum kp_reason why,
                    const struct kp_graph *facts)
{
    kp_lock_take(lock, KP_FOREVER);
    struct entry *e = find(exec);
    struct kp_graph_node *node = why ? NULL : node_of(e, handle);
    if (e && facts)
        add_facts(&e->graph, facts);
    if (node && node->kind == fresh->kind) {
        fresh->handle = node->handle;
        fresh->number = node->number;
        fresh->disabled = node->disabled;
        kp_graph_node_free(node);
        *node = *fresh;
        atomic_store(&e->content->runs, 0);
        kp_lock_give(lock);
        return;
    }
    blur(e, why ? why : KP_REASON_GRAPH_CHANGED);
    kp_lock_give(lock);
    if (!why)
        kp_graph_node_free(fresh);
}

unsigned kp_graph_set_kernel(const struct kp_driver *d, CUgraphExec exec, CUgraphNode node,
                             const CUDA_KERNEL_NODE_PARAMS *p)
{
    struct kp_graph facts = {.once_reason = KP_REASON_NONE};
    struct kp_graph_node fresh;
    const struct kp_graph_content *held = kp_graph_hold(exec);
    const struct kp_graph_node *old = held ? kp_graph_nodes_find(held->nodes, node) : NULL;
    KP_GUARDED;
    study_kernel(d, p, &facts);
    enum kp_reason why = old ? kp_graph_node_kernel(d, p, NULL, old, &fresh) : KP_REASON_GRAPH_CHANGED;
    if (held)
        kp_graph_let(held);
    replace(exec, node, &fresh, why, &facts);
    return facts.once;
}

void kp_graph_set_copy(const struct kp_driver *d, CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D *p)
{
    struct kp_graph facts = {.once_reason = KP_REASON_NONE};
    struct kp_graph_node fresh;
    KP_GUARDED;
    study_copy(d, p, &facts);
    enum kp_reason why = kp_graph_node_copy(d, p, &fresh);
    replace(exec, node, &fresh, why, &facts);
}

void kp_graph_set_memset(CUgraphExec exec, CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *p)
{
    struct kp_graph_node fresh;
    enum kp_reason why = kp_graph_node_set(p, &fresh);
    replace(exec, node, &fresh, why, NULL);
}

void kp_graph_set_host(CUgraphExec exec, CUgraphNode node, const CUDA_HOST_NODE_PARAMS *p)
{
    struct kp_graph_node fresh = {.kind = KP_NODE_HOST, .host = *p};
    replace(exec, node, &fresh, KP_REASON_NONE, NULL);
}

void kp_graph_set_enabled(CUgraphExec exec, CUgraphNode node, bool enabled)
{
    kp_lock_take(lock, KP_FOREVER);
    struct entry *e = find(exec);
    struct kp_graph_node *found = node_of(e, node);
    if (found)
        found->disabled = !enabled;
    else
        blur(e, KP_REASON_GRAPH_CHANGED);
    kp_lock_give(lock);
}
