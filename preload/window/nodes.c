/*
 * Graphs whose kernels are launches of the report. The program's own execution is the launch of the graph; repetitions
 * issue its nodes one by one, as the counters are of single kernels then. Where launches are counted as the program
 * makes them, or a graph has more kernels than a window has room for, the nodes are issued instead of the graph.
 */
#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "collectors/code/cubin.h"
#include "preload/session/session.h"
#include "preload/window/close.h"
#include "preload/window/closers.h"
#include "preload/window/launches.h"
#include "preload/window/open.h"
#include "preload/window/record.h"
#include "preload/window/strategy.h"

static struct kp_window *const w = &kp_window_now;

/* A graph on its way. */
struct passage {
    const struct kp_context_setup *setup;
    struct kp_context *context;
    const struct kp_candidate *what;
    struct kp_node_launches *of;
    CUstream stream;
    size_t at; /* kernels that have been dealt with */
    CUresult rc;
};

/* ---- copies and memsets ---- */

/* A node that a window issues again, with its parameters. */
struct again {
    struct kp_graph_node node;
    const struct kp_driver *driver;
    CUstream stream;
};

/* Has the type by which operations are issued. */
static CUresult issue_again(uint64_t of, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f)
{
    const struct again *a = (const struct again *)(uintptr_t)of;
    (void)b, (void)c, (void)d, (void)e, (void)f;
    return kp_graph_node_issue(a->driver, &a->node, a->stream);
}

/* Records a copy or memset. Events need no record: each repeated operation waits for the one before it. */
static bool record_operation(const struct passage *p, const struct kp_graph_node *node)
{
    if (node->kind != KP_NODE_COPY && node->kind != KP_NODE_SET)
        return true;
    sigset_t before = kp_signals_hold();
    struct again *a = malloc(sizeof(*a));
    struct kp_item *i = a ? kp_record_new(w) : NULL;
    if (!i)
        free(a);
    kp_signals_let(&before);
    if (!i)
        return false;
    *a = (struct again){*node, p->setup->driver, p->stream};
    const struct kp_op op = {.real = (void *)(uintptr_t)issue_again,
                             .args = {(uintptr_t)a},
                             .copy = a,
                             .copied = sizeof(*a),
                             .stream = p->stream};
    kp_record_op(w, i, &op);
    return true;
}

/* ---- the graph runs as a graph ---- */

/* Appends a node to the window. Returns other than 0 without memory. */
static int record_node(void *arg, const struct kp_graph_node *node)
{
    struct passage *p = arg;
    if (node->kind != KP_NODE_KERNEL)
        return record_operation(p, node) ? 0 : -1;
    struct kp_node_launch *k = &p->of->kernels[p->at];
    struct kp_known_function *f = kp_context_function(p->setup, p->context, k->launch.f);
    if (!f || !kp_record_launch(w, &k->launch, k->what.wanted, NULL, f))
        return -1;
    p->at++;
    return 0;
}

static void drop_from(size_t first)
{
    while (w->n > first)
        kp_record_drop_last(w);
}

static CUresult pass(struct kp_launch *l, const char *why, const char **skipped)
{
    *skipped = why;
    return l->issue(l);
}

/* Makes the graph's own launch, whose nodes the window has recorded from `first` on. */
static CUresult issue_whole(const struct passage *p, struct kp_launch *l, size_t first, const char **skipped)
{
    struct kp_item own = {.launch = *l};
    double start = kp_now_ns();
    CUresult rc = w->strategy->issue(w, &own);
    if (!w->strategy->rewinds)
        w->ours_ns += kp_now_ns() - start;
    if (rc != CUDA_SUCCESS)
        drop_from(first);
    if (rc == CUDA_ERROR_OUT_OF_MEMORY && w->strategy->rewinds) {
        kp_window_close("want of device memory");
        return pass(l, "made again when the window had given its memory back", skipped);
    }
    for (size_t i = first; i < w->n; i++)
        if (w->items[i].result)
            w->items[i].result->launch.ordinal = kp_session_seen(1);
    if (rc == CUDA_SUCCESS && p->what->last)
        kp_window_close("the last launch that was asked for");
    else if (rc == CUDA_SUCCESS && w->launches >= kp_admit_room(w))
        kp_window_close(kp_closed_full);
    return rc;
}

static CUresult record_and_issue(struct passage *p, struct kp_launch *l, const char **skipped)
{
    size_t first = w->n;
    if (kp_graph_nodes_each(p->of->nodes, record_node, p)) {
        drop_from(first);
        kp_window_close("want of memory");
        return pass(l, "lost for want of memory", skipped);
    }
    return issue_whole(p, l, first, skipped);
}

/* ---- the nodes run instead ---- */

static bool is_on_host(const struct kp_graph_node *node)
{
    const CUDA_MEMCPY3D *c = &node->copy;
    return node->kind == KP_NODE_COPY &&
           (c->srcMemoryType != CU_MEMORYTYPE_DEVICE || c->dstMemoryType != CU_MEMORYTYPE_DEVICE);
}

/* Issues a copy, memset or event, which an open window repeats. */
static CUresult issue_operation(const struct passage *p, const struct kp_graph_node *node)
{
    bool repeated = w->open && w->strategy->rewinds;
    if (repeated && (is_on_host(node) || !record_operation(p, node)))
        kp_window_close("a copy of a graph");
    return kp_graph_node_issue(p->setup->driver, node, p->stream);
}

static int issue_node(void *arg, const struct kp_graph_node *node)
{
    struct passage *p = arg;
    if (node->kind != KP_NODE_KERNEL) {
        p->rc = issue_operation(p, node);
        return p->rc != CUDA_SUCCESS;
    }
    struct kp_node_launch *k = &p->of->kernels[p->at++];
    p->rc = kp_launches_run(p->setup, p->context, &k->launch, &k->what, &k->skipped);
    return p->rc != CUDA_SUCCESS;
}

static CUresult issue_nodes(struct passage *p)
{
    p->at = 0;
    p->rc = CUDA_SUCCESS;
    kp_graph_nodes_each(p->of->nodes, issue_node, p);
    return p->rc;
}

/* ---- the choice ---- */

/* Returns why the graph cannot be repeated node by node (static text), or NULL. */
static const char *why_whole(const struct passage *p)
{
    for (size_t i = 0; i < p->of->n; i++) {
        struct kp_node_launch *k = &p->of->kernels[i];
        struct kp_known_function *f = kp_launches_function(p->setup, p->context, &k->launch);
        if (!f || !f->facts.params_known || kp_launch_copy(&k->launch, &f->facts))
            return "graph with a kernel that the driver gives no facts of";
        struct kp_question q = {w, p->setup, p->context, &k->launch, &k->what, f, {.obstacle = NULL}, 0};
        kp_admit_judge(&q);
        const char *why = q.fit.obstacle ? q.fit.obstacle : q.fit.waits ? q.fit.waits : q.fit.alone;
        if (why || q.fit.host)
            return why ? why : kp_reaches_host;
    }
    return NULL;
}

/* Runs the graph as one workload. */
static CUresult run_whole(const struct passage *p, struct kp_launch *l, const char *why, const char **skipped)
{
    p->of->whole = why;
    if (p->of->named)
        return pass(l, why, skipped);
    for (size_t i = 0; i < p->of->n && !l->nvtx.ranges; i++) {
        l->nvtx = p->of->kernels[i].launch.nvtx;
        p->of->kernels[i].launch.nvtx = (struct kp_nvtx){.ranges = NULL};
    }
    return kp_launches_run(p->setup, p->context, l, p->what, skipped);
}

/* Runs the graph in a window, its nodes recorded. */
static CUresult run_by_node(struct passage *p, struct kp_launch *l, const char **skipped)
{
    struct kp_question q = {w, p->setup, p->context, l, p->what, NULL, {.obstacle = NULL}, p->of->n};
    const char *why = NULL;
    kp_admit_judge(&q);
    const char *closer = w->open ? kp_admit_misfit(&q) : NULL;
    if (closer)
        kp_window_close(closer);
    if (!w->open && !kp_window_open(w, &q, &why))
        return pass(l, why, skipped);
    bool counts = !w->strategy->rewinds && w->strategy->close;
    return counts ? issue_nodes(p) : record_and_issue(p, l, skipped);
}

static CUresult run_graph(void *arg, const struct kp_context_setup *setup, struct kp_context *c, struct kp_launch *l,
                          const char **skipped)
{
    struct passage *p = arg;
    p->setup = setup;
    p->context = c;
    p->stream = kp_launch_stream(l);
    const struct kp_question q = {.context = c, .setup = setup};
    bool counters = kp_admit_counters(&q);
    if (setup->one_pass && counters)
        return issue_nodes(p);
    const char *why = why_whole(p);
    if (why)
        return run_whole(p, l, why, skipped);
    if (counters && p->of->n > kp_collector_room(c->collector))
        return issue_nodes(p);
    return run_by_node(p, l, skipped);
}

CUresult kp_window_launch_graph(const struct kp_context_setup *setup, struct kp_launch *l,
                                const struct kp_candidate *what, struct kp_node_launches *of, const char **skipped,
                                char **bad_input)
{
    struct passage p = {.what = what, .of = of};
    const struct kp_launches_way way = {run_graph, &p};
    return kp_launches_in_context(setup, l, &way, skipped, bad_input);
}
