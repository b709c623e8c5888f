/*
 * Graphs whose kernels are launches of the report. The program's own execution is the launch of the graph; repetitions
 * issue its nodes one by one, so that counters belong to single kernels. The nodes are issued instead of the graph if
 * launches are counted as the program makes them, or if the graph has more kernels than a window has room for.
 */
#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "collectors/code/cubin.h"
#include "preload/program/host_snapshot.h"
#include "preload/program/hostmem.h"
#include "preload/session/session.h"
#include "preload/who/timeline.h"
#include "preload/mode/bounded.h"
#include "preload/mode/close.h"
#include "preload/mode/close_reasons.h"
#include "preload/gate/window_facts.h"
#include "preload/mode/launches.h"
#include "preload/mode/open.h"
#include "preload/graphs/host_pointers.h"
#include "preload/mode/strategy.h"
#include "preload/contexts/unending.h"
#include "preload/program/waits.h"

static struct kp_window *const w = &kp_window_now;

/* A graph on its way. */
struct passage {
    const struct kp_context_setup *setup;
    struct kp_context *context;
    const struct kp_candidate *what;
    struct kp_node_launches *of;
    struct kp_journal_graph nodes; /* its nodes in the journal */
    size_t at;                     /* kernels that have been dealt with */
    CUresult rc;
    bool touches; /* some of its kernels can reach host memory */
};

/* ---- the graph runs as a graph ---- */

/* Appends a node to the window. Returns other than 0 without memory. */
static int record_node(void *arg, const struct kp_graph_node *node)
{
    struct passage *p = arg;
    if (node->kind != KP_NODE_KERNEL)
        return kp_journal_node(&p->nodes, node) ? 0 : -1;
    struct kp_node_launch *k = &p->of->kernels[p->at];
    struct kp_known_function *f = kp_context_function(p->setup, p->context, k->launch.f);
    struct kp_entry *e = f ? kp_window_record(&k->launch, k->what.wanted, NULL, f) : NULL;
    if (!e)
        return -1;
    e->reaches_host = p->touches;
    kp_bounded_took_node(w, e);
    p->at++;
    return 0;
}

/* Returns why the window cannot accept the graph's kernels, if there is a reason: repetitions would find host memory
 * changed, or it is too much. Adds the host memory that they can reach to the window's. */
static enum kp_reason refuses_host(const struct passage *p)
{
    enum kp_reason why = KP_REASON_NONE;
    for (size_t i = 0; !why && p->touches && i < p->of->n; i++)
        why = kp_journal_refuses(&p->of->kernels[i].launch, false, true);
    return why;
}

/* Returns the next entry of the graph from operation *k on, and moves *k past it; NULL: there is none. */
static struct kp_entry *next_entry(size_t *k)
{
    const size_t n = kp_journal_facts().records;
    struct kp_entry *e = NULL;
    while (!e && *k < n)
        e = kp_journal_entry((*k)++);
    return e;
}

static void drop_from(size_t first)
{
    const struct kp_entry *e;
    for (size_t k = first; (e = next_entry(&k));)
        kp_bounded_refused(e);
    while (kp_journal_facts().records > first)
        kp_journal_drop_last();
}

/* Learns whether kernels of the graph, which has ended, have changed host memory. */
static void learn_host(struct passage *p)
{
    const struct kp_entry *e;
    for (size_t k = p->nodes.first; p->touches && (e = next_entry(&k));) {
        kp_journal_learn(e);
        if (e->function && e->function->loud)
            p->nodes.closes = KP_REASON_REACHES_HOST;
    }
}

static bool may_wait(const struct passage *p, const struct kp_entry *e)
{
    return kp_reach_host(p->setup->driver, &e->launch, NULL, 0, NULL) ||
           e->function->once & (KP_ONCE_POSTS | KP_WAITS_FOR_OTHERS);
}

/* Notes that nothing waits again for the kernels that may be why the graph did not end: those that may wait for the
 * host, or all if none is known to. */
static void note_waiting(const struct passage *p)
{
    bool known = false;
    struct kp_entry *e;
    for (int all = 0; all < 2 && !known; all++)
        for (size_t k = p->nodes.first; (e = next_entry(&k));) {
            if (!e->function || !(all || may_wait(p, e)))
                continue;
            e->function->waits_reason = KP_REASON_WAITS_FOR_HOST;
            known = true;
        }
}

/* Waits for the end of a graph with results for the host, and looks at them. */
static void settle_host(struct passage *p)
{
    if (!p->nodes.reads && !p->touches)
        return;
    if (kp_stuck_watch(p->setup->driver, p->context, NULL, KP_WAIT_MANY)) {
        kp_journal_log_graph(&p->nodes);
        learn_host(p);
    } else {
        note_waiting(p);
        w->unending = true;
        p->nodes.closes = KP_REASON_WAITS_FOR_HOST;
    }
}

/* Follows up the graph's own launch: results, and why the window closes. */
static void launched(struct passage *p)
{
    const struct kp_entry *e;
    for (size_t k = p->nodes.first; (e = next_entry(&k));)
        if (e->result) {
            e->result->launch.ordinal = kp_session_seen(1);
            kp_timeline_node(e->launch.shape.grid, e->launch.shape.block, e->result->launch.ordinal);
        }
    if (w->strategy->rewinds)
        settle_host(p);
    if (!p->nodes.closes && kp_journal_facts().launches >= kp_admit_room(w))
        p->nodes.closes = KP_REASON_FULL;
    if (!p->nodes.closes)
        p->nodes.closes = w->alone_reason;
    if (p->what->last)
        p->nodes.closes = KP_REASON_LAST_LAUNCH;
    if (p->nodes.closes == KP_REASON_CALL)
        kp_window_close_by("cuGraphLaunch");
    else if (p->nodes.closes)
        kp_window_close(p->nodes.closes);
}

/* Makes the graph's own launch, whose nodes the window has recorded. */
static CUresult issue_whole(struct passage *p, struct kp_launch *l, enum kp_reason *skip_reason)
{
    struct kp_entry own = {.launch = *l};
    double start = kp_now_ns();
    kp_launch_on_timeline(l);
    CUresult rc = w->strategy->issue(w, &own);
    kp_timeline_launched(rc != CUDA_SUCCESS);
    if (!w->strategy->rewinds)
        w->ours_ns += kp_now_ns() - start;
    if (rc == CUDA_SUCCESS) {
        if (p->of->content->nodes->allocates)
            kp_journal_allocating_graph(l->graph);
        launched(p);
        return rc;
    }
    drop_from(p->nodes.first);
    if (rc != CUDA_ERROR_OUT_OF_MEMORY || !w->strategy->rewinds)
        return rc;
    kp_window_close(KP_REASON_WANT_DEVICE_MEMORY);
    return kp_launches_pass(l, KP_REASON_MADE_AGAIN, skip_reason);
}

static CUresult record_and_issue(struct passage *p, struct kp_launch *l, enum kp_reason *skip_reason)
{
    p->nodes.first = kp_journal_facts().records;
    p->at = 0;
    if (!kp_graph_nodes_each(p->of->content->nodes, record_node, p))
        return issue_whole(p, l, skip_reason);
    drop_from(p->nodes.first);
    kp_window_close(KP_REASON_WANT_MEMORY);
    return kp_launches_pass(l, KP_REASON_LOST, skip_reason);
}

/* ---- the nodes run instead ---- */

/* Issues a copy, memset, event or host function; an open window repeats the first two. It closes before any node that
 * it could not repeat, and before a host function, because later work may wait for it. */
static CUresult issue_operation(const struct passage *p, const struct kp_graph_node *node)
{
    bool again = node->kind == KP_NODE_COPY || node->kind == KP_NODE_SET;
    bool repeated = w->open && w->strategy->rewinds && again, beside = w->open && kp_strategy_chooses(w->strategy);
    if ((node->kind == KP_NODE_HOST && !beside) ||
        (repeated && (node->to_host || node->from_host || !kp_journal_single_node(&p->nodes, node))))
        kp_window_close(KP_REASON_GRAPH_OPERATION);
    if (w->open && kp_strategy_chooses(w->strategy))
        kp_window_note_unseen(); /* later work may wait for it, and it for the program */
    return kp_graph_node_issue(p->setup->driver, node, p->nodes.stream);
}

static int issue_node(void *arg, const struct kp_graph_node *node)
{
    struct passage *p = arg;
    if (node->kind != KP_NODE_KERNEL) {
        p->rc = issue_operation(p, node);
        return p->rc != CUDA_SUCCESS;
    }
    struct kp_node_launch *k = &p->of->kernels[p->at++];
    p->rc = kp_launches_run(p->setup, p->context, &k->launch, &k->what, &k->skip_reason);
    return p->rc != CUDA_SUCCESS;
}

/* Issues the nodes one by one. Once started, there is no way back, so they are tried first. */
static CUresult issue_nodes(struct passage *p)
{
    p->at = 0;
    p->rc = CUDA_SUCCESS;
    kp_graph_nodes_each(p->of->content->nodes, issue_node, p);
    return p->rc;
}

/* ---- the choice ---- */

/* How a graph runs. */
struct choice {
    enum kp_reason whole; /* why as one workload, if there is a reason */
    bool nodes;           /* its nodes are issued instead */
};

/* Returns the function of a kernel of the graph if its code looks as if it waited for the host, and launches of it were
 * not yet seen to end often enough; else NULL. */
static struct kp_known_function *waiter(const struct passage *p, size_t i)
{
    struct kp_known_function *f = kp_launches_function(p->setup, p->context, &p->of->kernels[i].launch);
    return f && f->once & KP_WAITS_FOR_OTHERS && !kp_admit_ends(f) ? f : NULL;
}

/* Returns why the graph is let through, if there is a reason. A node that waits for the host would hold up the program,
 * which has to launch more before it acts. */
static enum kp_reason lets_through(const struct passage *p)
{
    bool shares = kp_hostmem_any() || kp_flags_met(KP_MET_MANAGED) || kp_flags_met(KP_MET_VIRTUAL), waits = false;
    for (size_t i = 0; shares && !waits && i < p->of->n; i++)
        waits = waiter(p, i) != NULL;
    return waits ? KP_REASON_GRAPH_MAY_WAIT : KP_REASON_NONE;
}

/* Judges the kernels of the graph for repetitions. */
static struct choice judge(struct passage *p)
{
    struct choice c = {.whole = KP_REASON_NONE};
    for (size_t i = 0; i < p->of->n && !c.whole; i++) {
        struct kp_node_launch *k = &p->of->kernels[i];
        struct kp_known_function *f = kp_launches_function(p->setup, p->context, &k->launch);
        if (!f || !f->facts.params_known || kp_launch_copy(&k->launch, &f->facts))
            return (struct choice){.whole = KP_REASON_GRAPH_NO_FACTS};
        struct kp_question q = {.window = w,
                                .setup = p->setup,
                                .context = p->context,
                                .launch = &k->launch,
                                .what = &k->what,
                                .function = f};
        kp_admit_judge(&q);
        bool loud = q.fit.host && !q.fit.quiet && !q.fit.heap;
        enum kp_reason why = q.fit.once_reason && !q.fit.once ? q.fit.once_reason : q.fit.waits_reason;
        p->touches |= q.fit.host;
        c.nodes |= q.fit.once || loud;
        c.whole = why ? why : loud ? KP_REASON_NONE : q.fit.alone_reason;
    }
    return c;
}

/* Runs the graph as one workload. */
static CUresult run_whole(const struct passage *p, struct kp_launch *l, enum kp_reason why, enum kp_reason *skip_reason)
{
    p->of->whole = why;
    if (p->what->graph->waits)
        return kp_launches_pass(l, p->what->graph->once_reason, skip_reason);
    if (p->of->named)
        return kp_launches_pass(l, why, skip_reason);
    for (size_t i = 0; i < p->of->n && !l->nvtx.ranges; i++) {
        l->nvtx = p->of->kernels[i].launch.nvtx;
        p->of->kernels[i].launch.nvtx = (struct kp_nvtx){.ranges = NULL};
    }
    return kp_launches_run(p->setup, p->context, l, p->what, skip_reason);
}

/* Returns true if nothing is to wait for the graph: a kernel of it did not end by itself. */
static bool is_known_to_wait(const struct passage *p)
{
    const struct kp_known_function *f;
    bool waits = false;
    for (size_t i = 0; !waits && i < p->of->n; i++)
        waits = (f = waiter(p, i)) && f->waits_reason;
    return waits;
}

/* Learns, once for each function, whether the kernels that may wait ended by themselves in a launch of the graph. */
static void learn_waiters(const struct passage *p, bool ended)
{
    for (size_t i = 0; i < p->of->n; i++) {
        struct kp_known_function *f = waiter(p, i);
        size_t before = 0;
        while (f && before < i && waiter(p, before) != f)
            before++;
        if (f && before == i)
            kp_stuck_learn(f, ended);
    }
}

/* Lets the graph through. Waits a moment for its end, to know whether work goes on that the program must end, and
 * whether its kernels end by themselves: after a few such launches, the graph is counted. */
static CUresult let_through(const struct passage *p, struct kp_launch *l, enum kp_reason why,
                            enum kp_reason *skip_reason)
{
    kp_window_close(why);
    bool watched = !is_known_to_wait(p) && kp_stuck_settle(p->setup->driver, p->context);
    CUresult rc = kp_launches_pass(l, why, skip_reason);
    if (rc == CUDA_SUCCESS && watched)
        learn_waiters(p, kp_stuck_watch(p->setup->driver, p->context, NULL, KP_WAIT_ALONE));
    return rc;
}

/* Its launch may reuse the memory of another graph, whose repeated kernels would then access unmapped memory. */
static enum kp_reason takes_memory(const struct passage *p, CUgraphExec exec)
{
    const CUgraphExec other = kp_journal_facts().allocates;
    bool takes = p->of->content->nodes->allocates && other && other != exec;
    return takes ? KP_REASON_OTHER_GRAPH : KP_REASON_NONE;
}

/* Returns why the open window does not accept the graph, if there is a reason. */
static enum kp_reason join_reason(const struct passage *p, const struct kp_question *q)
{
    enum kp_reason why = takes_memory(p, q->launch->graph);
    if (!why)
        why = kp_admit_join_reason(q);
    if (!why && w->strategy->rewinds && !kp_journal_arrives())
        why = KP_REASON_REACHES_HOST;
    if (!why && w->strategy->rewinds)
        why = refuses_host(p);
    return why;
}

/* Runs the graph in a window, its nodes recorded. */
static CUresult run_by_node(struct passage *p, struct kp_launch *l, enum kp_reason *skip_reason)
{
    /* What applies to the graph as one workload does not matter here. */
    const struct kp_candidate what = {.wanted = true, .last = p->what->last};
    struct kp_question q = {
        .window = w, .setup = p->setup, .context = p->context, .launch = l, .what = &what, .by_node = p->of->n};
    enum kp_reason why = KP_REASON_NONE;
    kp_admit_judge(&q);
    enum kp_reason close_reason = w->open ? join_reason(p, &q) : KP_REASON_NONE;
    if (close_reason)
        kp_window_close(close_reason);
    if (!w->open && !kp_window_open(w, &q, &why))
        return kp_launches_pass(l, why, skip_reason);
    bool counts = !w->strategy->rewinds && w->strategy->close;
    if (!counts && !refuses_host(p))
        return record_and_issue(p, l, skip_reason);
    if (!p->of->content->nodes->allocates)
        return issue_nodes(p);
    why = counts ? KP_REASON_GRAPH_COUNTED : KP_REASON_GRAPH_ALLOCATES_HOST;
    kp_window_close(why);
    return run_whole(p, l, why, skip_reason);
}

/* Returns why a graph that allocates memory runs as one workload, if there is a reason: only its own launch maps its
 * memory, so its nodes cannot run instead. */
static enum kp_reason needs_launch(const struct passage *p, bool nodes)
{
    const struct kp_graph_nodes *g = p->of->content->nodes;
    if (!g->allocates)
        return KP_REASON_NONE;
    if (g->device != p->context->device_ordinal)
        return KP_REASON_GRAPH_OTHER_DEVICE;
    if (!nodes)
        return KP_REASON_NONE;
    if (!kp_mode_repeats(p->setup->mode))
        return KP_REASON_GRAPH_COUNTED;
    return p->of->n > kp_collector_room(p->context->collector) ? KP_REASON_GRAPH_TOO_LONG
                                                               : KP_REASON_GRAPH_ALLOCATES_ONCE;
}

static CUresult run_graph(void *arg, const struct kp_context_setup *setup, struct kp_context *c, struct kp_launch *l,
                          enum kp_reason *skip_reason)
{
    struct passage *p = arg;
    p->setup = setup;
    p->context = c;
    p->nodes = (struct kp_journal_graph){.nodes = p->of->content->nodes, .stream = kp_launch_stream(l)};
    const struct kp_question q = {.context = c, .setup = setup};
    bool counters = kp_admit_counters(&q);
    enum kp_reason through = lets_through(p);
    if (through)
        return let_through(p, l, through, skip_reason);
    struct choice how = kp_mode_repeats(setup->mode) || !counters ? judge(p) : (struct choice){.nodes = true};
    if (how.whole)
        return run_whole(p, l, how.whole, skip_reason);
    if (!kp_graph_runs_by_node(setup->driver, p->of->content))
        return run_whole(p, l, KP_REASON_GRAPH_NOT_LAUNCHED, skip_reason);
    how.nodes |= counters && p->of->n > kp_collector_room(c->collector);
    enum kp_reason why = needs_launch(p, counters && how.nodes);
    if (why)
        return run_whole(p, l, why, skip_reason);
    return counters && how.nodes ? issue_nodes(p) : run_by_node(p, l, skip_reason);
}

CUresult kp_window_launch_graph(const struct kp_context_setup *setup, struct kp_launch *l,
                                const struct kp_candidate *what, struct kp_node_launches *of,
                                enum kp_reason *skip_reason, char **bad_input)
{
    struct passage p = {.what = what, .of = of};
    const struct kp_launches_way way = {run_graph, &p};
    return kp_launches_in_context(setup, l, &way, skip_reason, bad_input);
}
