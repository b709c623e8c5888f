/*
 * Launches: which are wanted, and whether they go through the window or bypass it.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/demangle.h"
#include "base/lock.h"
#include "base/wait_limits.h"
#include "base/work.h"
#include "collectors/code/cubin.h"
#include "preload/gate/gate.h"
#include "preload/gate/fast_path.h"
#include "preload/os/exit_first.h"
#include "preload/os/guard.h"
#include "preload/os/outcome.h"
#include "preload/process/phase.h"
#include "preload/process/process.h"
#include "preload/program/filter.h"
#include "preload/program/kernel.h"
#include "preload/contexts/launch_ids.h"
#include "preload/program/loaded_modules.h"
#include "preload/contexts/other_cupti.h"
#include "preload/contexts/ranges.h"
#include "preload/rotation/rotation.h"
#include "preload/session/session.h"
#include "preload/who/timeline.h"
#include "preload/gate/window_facts.h"
#include "preload/mode/bounded.h"
#include "preload/mode/range_window.h"
#include "preload/mode/window.h"

static struct kp_process *const process = &kp_process_now;

void kp_process_skip(enum kp_reason reason, unsigned launches)
{
    kp_session_let_through(reason, launches);
}

/* Enters the gate shared, with no window open that would miss the launch, or count it as its own. A window that cannot
 * be closed has been given up: a call that does not end may wait for this launch. */
static void enter_for_launch(void)
{
    const char *what = kp_reason_text(KP_REASON_LET_THROUGH);
    kp_gate_enter_shared(what);
    while (kp_window_holds_back()) {
        kp_gate_leave_shared();
        kp_process_close_window_for(KP_REASON_LET_THROUGH);
        kp_gate_enter_shared(what);
    }
    kp_window_note_unseen();
}

static CUresult issue_guarded(const struct kp_launch *l)
{
    KP_GUARDED;
    return kp_launch_issue_own(l);
}

/* Runs a launch outside any window. */
static CUresult pass_through(const struct kp_launch *l)
{
    enter_for_launch();
    kp_phase_hold();
    CUresult rc = issue_guarded(l);
    kp_gate_leave_shared();
    return rc;
}

/* Returns true if a stream capture records the launch, which then runs nothing. */
static bool is_captured(const struct kp_launch *l)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    KP_GUARDED;
    CUresult rc = process->driver.cuStreamIsCapturing(kp_launch_stream(l), &status);
    return rc == CUDA_SUCCESS && status != CU_STREAM_CAPTURE_STATUS_NONE;
}

/* Notes what a launch outside any window means for later ones. */
static void note_outside(const struct kp_launch *l)
{
    if (kp_launched_note(&process->driver, l) && kp_kernel_once(&process->driver, l->f) & KP_ONCE_HEAP)
        kp_window_heap_blocks();
}

/* Runs a launch outside any window and counts it, unless the driver refuses it. */
static CUresult skip(const struct kp_launch *l, enum kp_reason reason)
{
    CUresult rc = pass_through(l);
    if (rc == CUDA_SUCCESS) {
        note_outside(l);
        kp_process_skip(reason, 1);
    }
    return rc;
}

/* ---- launches that pass ---- */

/* Sets the shape in a door's form. Returns false if launches of this shape never pass. */
static bool shape_of(const struct kp_launch *l, struct kp_pass_shape *s)
{
    const struct kp_shape *of = &l->shape;
    bool fits = of->dynamic_shared <= UINT32_MAX;
    s->shared = (uint32_t)of->dynamic_shared;
    for (int i = 0; i < 3; i++) {
        s->grid[i] = of->grid[i];
        s->block[i] = of->block[i];
        s->cluster[i] = (uint16_t)of->cluster[i];
        fits &= of->cluster[i] <= UINT16_MAX;
    }
    return fits;
}

/* Returns true if launches of a kernel and shape pass that is complete, or has results enough. */
static bool lets_kinds_pass(void)
{
    return kp_mode_recurs(process->setup.mode) || process->setup.mode->bounded;
}

/* Finds out why launches like this one need not be looked at again. */
static void find_known(const struct kp_launch *l, struct kp_pass_known *known)
{
    *known = (struct kp_pass_known){atomic_load(&process->profiling) ? KP_PASS_NOT : KP_PASS_PROFILER, 0, NULL};
    if (!known->why)
        known->why = kp_filter_passes(process->filter, l->f, &known->also);
    bool spent = kp_bounded_is_spent();
    if (!known->why && lets_kinds_pass() && kp_filter_takes_all(process->filter, l->f))
        kp_rotation_passing(l, spent, known);
    if (!known->why && spent)
        known->why = KP_PASS_BUDGET;
}

/* Notes a kernel and shape that came when the budget was spent. */
static void note_late(const struct kp_launch *l)
{
    KP_GUARDED;
    char *mangled = kp_rotation_is_new(l) ? kp_kernel_mangled(&process->driver, l->f) : NULL;
    char *base = mangled ? kp_demangle_base(mangled) : NULL;
    if (base)
        kp_session_lacks(base, 0);
    free(base);
    free(mangled);
}

/* Makes launches like this one, which has passed, go straight to the driver if none can be wanted. `epoch` was read
 * before that was determined. */
static void learn(const struct kp_launch *l, unsigned epoch)
{
    struct kp_pass_known known;
    struct kp_pass_shape shape;
    if (l->is_graph || kp_mode_has_ranges(process->setup.mode) || process->options.only_timeline ||
        kp_timeline_is_on() || !kp_launched_is_noted(l->f) || !shape_of(l, &shape))
        return;
    find_known(l, &known);
    if (known.why)
        kp_passing_learn(l->f, &shape, &known, epoch);
    if (known.why == KP_PASS_BUDGET)
        note_late(l);
    /* Otherwise nothing is wanted any more, or nothing of a rotation for now. */
    bool others = known.why == KP_PASS_PROFILER || known.why == KP_PASS_NAME || known.why == KP_PASS_ID;
    if (known.why && !others)
        kp_process_leave_alone();
}

/* How a launch goes through the window, and what is noted if it has no result (`why` may be NULL). */
struct way {
    CUresult (*run)(void *arg, struct kp_launch *l, const struct kp_candidate *what, enum kp_reason *skip_reason,
                    char **bad_input);
    void (*settle)(void *arg, enum kp_reason why);
    void *arg;
};

static CUresult leave_out(const struct kp_launch *l, const struct way *way, enum kp_reason why)
{
    CUresult rc = pass_through(l);
    if (rc == CUDA_SUCCESS) {
        note_outside(l);
        way->settle(way->arg, why);
    }
    return rc;
}

/* Handles a launch that is wanted, or is made while a window is open. */
static CUresult through_window(struct kp_launch *l, const struct kp_candidate *what, const struct way *way)
{
    kp_process_begin();
    KP_ALONE gate = kp_gate_alone(KP_FOREVER, kp_limit_first(KP_WAIT_GATE));
    if (!gate.in)
        return leave_out(l, way, KP_REASON_BUSY);
    if (kp_gate_captures() > 0) { /* a capture has begun; no further one can begin here */
        kp_gate_end_alone(&gate);
        return is_captured(l) ? pass_through(l) : leave_out(l, way, KP_REASON_CAPTURE);
    }
    if (!kp_process_active()) { /* profiling ended while this thread waited */
        kp_gate_end_alone(&gate);
        kp_phase_hold();
        return kp_launch_call(l);
    }
    if (atomic_load(&process->ending)) { /* likewise: libraries needed for planning may be torn down already */
        kp_gate_end_alone(&gate);
        return leave_out(l, way, KP_REASON_LATE);
    }
    if (kp_other_holds()) {
        kp_gate_end_alone(&gate);
        kp_process_tell_other();
        return leave_out(l, way, KP_REASON_OTHER_USER);
    }
    char *bad_input = NULL;
    enum kp_reason skip_reason = KP_REASON_NONE;
    int64_t entered = kp_timeline_enter();
    CUresult rc = way->run(way->arg, l, what, &skip_reason, &bad_input);
    kp_timeline_leave(entered);
    if (bad_input)
        kp_phase_unprofiled(KP_FAILURE_METRIC, NULL, bad_input);
    kp_gate_end_alone(&gate);
    if (rc == CUDA_SUCCESS)
        way->settle(way->arg, skip_reason);
    return rc;
}

static CUresult run_launch(void *arg, struct kp_launch *l, const struct kp_candidate *what, enum kp_reason *skip_reason,
                           char **bad_input)
{
    (void)arg;
    return kp_window_launch(&process->setup, l, what, skip_reason, bad_input);
}

/* `arg`: why the launch is not wanted, or none. */
static void settle_launch(void *arg, enum kp_reason why)
{
    const enum kp_reason unwanted = *(const enum kp_reason *)arg;
    if (unwanted || why)
        kp_process_skip(unwanted ? unwanted : why, 1);
}

static CUresult launch_through_window(struct kp_launch *l, const struct kp_candidate *what, enum kp_reason unwanted)
{
    const struct way way = {run_launch, settle_launch, (void *)&unwanted};
    CUresult rc = through_window(l, what, &way);
    if (what->last && process->options.kill && kp_outcome_is_awaited()) {
        kp_process_finish();
        kp_outcome_reached();
    }
    return rc;
}

/* Notes a device for the list printed if nothing was wanted. */
static void note_device(int ordinal)
{
    struct kp_device device;
    uint64_t bit = ordinal >= 0 && ordinal < 64 ? UINT64_C(1) << ordinal : 0;
    if (!bit || atomic_fetch_or(&process->devices_seen, bit) & bit)
        return;
    KP_GUARDED;
    if (kp_device_read(&process->driver, ordinal, &device) == CUDA_SUCCESS)
        kp_session_device(&device, "", "");
}

/* Returns why a launch is not wanted, if there is a reason. `counted`: how the filter has counted it. */
static enum kp_reason unwanted_for(struct kp_launch *l, struct kp_candidate *what, struct kp_graph *graph,
                                   struct kp_filter_counted *counted)
{
    struct kp_filter_choice choice;
    counted->n = 0;
    if (process->options.only_timeline) {
        note_device(kp_place_device(&process->driver, l));
        return KP_REASON_TIMELINE;
    }
    if (!atomic_load(&process->profiling))
        return KP_REASON_PROFILER;
    kp_filter_choose(process->filter, l, &choice);
    *counted = choice.counted;
    note_device(choice.other_device);
    if (choice.unwanted && choice.may_follow)
        kp_process_make_ready();
    if (choice.unwanted)
        return choice.unwanted;
    if (l->is_graph) {
        if (!kp_graph_find(l->graph, graph)) {
            graph->once_reason = KP_REASON_GRAPH_UNSEEN;
            graph->waits = true; /* assumed, for want of knowledge */
        }
        if (graph->by_device)
            return KP_REASON_DEVICE_GRAPH;
        what->graph = graph;
        what->once_reason = graph->once_reason;
    }
    what->outside = choice.outside;
    what->last = choice.last;
    bool spent = kp_bounded_is_spent();
    enum kp_reason passes = lets_kinds_pass() ? kp_rotation_passes(l, spent) : KP_REASON_NONE;
    return passes || !spent ? passes : KP_REASON_BUDGET;
}

enum kp_reason kp_process_unwanted_range(const struct kp_launch *at, bool inside)
{
    struct kp_filter_choice choice;
    if (process->options.only_timeline)
        return KP_REASON_TIMELINE;
    kp_filter_choose_range(process->filter, at, inside, &choice);
    note_device(choice.other_device);
    return choice.unwanted;
}

/* ---- graphs by node ---- */

/* A launch of a graph that is taken apart. */
struct apart {
    const struct kp_graph_content *content;
    const struct kp_launch *graph;
    struct kp_node_launches of;
    struct kp_filter_counted *counted; /* of each kernel */
    size_t cap;
};

/* Judges a kernel of a graph as a launch of its own. */
static int judge_node(void *arg, const struct kp_graph_node *node)
{
    struct apart *a = arg;
    struct kp_graph none;
    if (node->kind != KP_NODE_KERNEL)
        return 0;
    struct kp_filter_counted *counted = &a->counted[a->of.n];
    struct kp_node_launch *k = &a->of.kernels[a->of.n++];
    k->launch = node->launch;
    k->launch.copy = NULL; /* owned by the content */
    k->launch.copied = 0;
    k->launch.stream = k->launch.config.hStream = kp_launch_stream(a->graph);
    k->launch.caller = a->graph->caller;
    k->launch.graph_number = a->content->number;
    k->launch.node = node->number;
    k->unwanted = unwanted_for(&k->launch, &k->what, &none, counted);
    k->what.wanted = !k->unwanted;
    return 0;
}

static int count_node(void *arg, const struct kp_graph_node *node)
{
    ((struct apart *)arg)->cap += node->kind == KP_NODE_KERNEL;
    return 0;
}

/* Notes kernels of a graph that have no result; `why`: all of them. */
static void skip_nodes(const struct kp_node_launches *of, enum kp_reason why)
{
    for (size_t i = 0; i < of->n; i++) {
        const struct kp_node_launch *k = &of->kernels[i];
        enum kp_reason reason = k->unwanted ? k->unwanted : why ? why : k->skip_reason;
        if (reason)
            kp_process_skip(reason, 1);
    }
}

static CUresult run_nodes(void *arg, struct kp_launch *l, const struct kp_candidate *what, enum kp_reason *skip_reason,
                          char **bad_input)
{
    return kp_window_launch_graph(&process->setup, l, what, arg, skip_reason, bad_input);
}

/* Says once for each reason why a graph is one row of the report. */
static void tell_whole(struct kp_why why)
{
    char *text;
    if (asprintf(&text, "a CUDA graph is one row of the report, not one for each kernel: %s", kp_why_text(&why)) < 0)
        return;
    KP_GUARDED;
    kp_session_warn_once(text);
    free(text);
}

static void settle_nodes(void *arg, enum kp_reason why)
{
    const struct kp_node_launches *of = arg;
    if (!of->whole)
        skip_nodes(of, why);
    else if (why)
        kp_process_skip(why, 1);
    if (of->whole)
        tell_whole(kp_why_of(of->whole, NULL));
}

/* Handles a graph whose kernels are launches of the report. */
static CUresult choose_nodes(struct kp_launch *l, const struct kp_graph *graph, struct apart *a)
{
    struct kp_candidate what = {.graph = graph, .once_reason = graph->once_reason};
    a->of.content = a->content;
    a->of.named = *process->options.kernel_name || *process->options.kernel_id;
    kp_graph_nodes_each(a->content->nodes, judge_node, a);
    for (size_t i = 0; i < a->of.n; i++) {
        what.wanted |= a->of.kernels[i].what.wanted;
        what.last |= a->of.kernels[i].what.last;
    }
    const struct way way = {run_nodes, settle_nodes, &a->of};
    CUresult rc = what.wanted ? through_window(l, &what, &way) : pass_through(l);
    if (!what.wanted && rc == CUDA_SUCCESS)
        skip_nodes(&a->of, KP_REASON_NONE);
    for (size_t i = 0; i < a->of.n; i++) {
        if (rc != CUDA_SUCCESS)
            kp_filter_refused(process->filter, &a->counted[i]);
        kp_launch_free(&a->of.kernels[i].launch);
    }
    return rc;
}

/* Returns true if a graph can be reported by its kernels; then it has been launched, and *rc is the driver's answer. */
static bool goes_by_node(struct kp_launch *l, CUresult *rc)
{
    struct kp_graph graph;
    struct apart a = {.graph = l};
    if (!kp_process_by_node() || !kp_graph_find(l->graph, &graph) || graph.outside || graph.by_device)
        return false;
    a.content = kp_graph_hold(l->graph);
    if (!a.content && graph.whole.reason)
        tell_whole(graph.whole);
    if (!a.content)
        return false;
    kp_graph_nodes_each(a.content->nodes, count_node, &a);
    a.of.kernels = a.cap ? calloc(a.cap, sizeof(*a.of.kernels)) : NULL;
    a.counted = a.cap ? calloc(a.cap, sizeof(*a.counted)) : NULL;
    bool goes = a.of.kernels && a.counted;
    if (goes)
        *rc = choose_nodes(l, &graph, &a);
    free(a.of.kernels);
    free(a.counted);
    kp_graph_let(a.content);
    return goes;
}

/* ---- ranges ---- */

/* Decides on the open range, if its first launch determines its device. */
static void decide_range(const struct kp_launch *l)
{
    struct kp_range_open *r = kp_ranges_open();
    const struct kp_launch at = {.is_graph = true, .stream = l->stream};
    if (!kp_ranges_id() || !r->undecided)
        return;
    r->undecided = false;
    enum kp_reason why = kp_process_unwanted_range(&at, r->inside);
    if (why)
        kp_ranges_cut(why);
}

static CUresult run_in_range(void *arg, struct kp_launch *l, const struct kp_candidate *what,
                             enum kp_reason *skip_reason, char **bad_input)
{
    (void)arg;
    decide_range(l);
    kp_range_open_window(&process->setup, l, bad_input); /* if its start could not */
    CUresult rc = kp_window_launch(&process->setup, l, what, skip_reason, bad_input);
    if (rc == CUDA_SUCCESS && *skip_reason && !kp_ranges_why())
        kp_ranges_cut(*skip_reason); /* later work cannot be repeated without it */
    return rc;
}

/* Notes a launch that is part of a range, even if the range ends with it, or has a reason not to be. */
static void settle_in_range(void *arg, enum kp_reason why)
{
    (void)arg;
    if (why)
        kp_process_skip(why, 1);
    else
        kp_session_seen(1);
}

/* Handles a launch if ranges are the workloads: it has no result of its own. */
static CUresult choose_in_range(struct kp_launch *l)
{
    static const struct way way = {run_in_range, settle_in_range, NULL};
    struct kp_graph graph = {.once_reason = KP_REASON_NONE};
    struct kp_candidate what = {.wanted = false};
    enum kp_reason why = kp_ranges_why();
    if (why)
        return skip(l, why);
    if (l->is_graph && !kp_graph_find(l->graph, &graph)) {
        graph.once_reason = KP_REASON_GRAPH_UNSEEN;
        graph.waits = true; /* assumed, for want of knowledge */
    }
    bool outside = !l->is_graph && kp_filter_outside(process->filter, l->f);
    if (outside || graph.waits) {
        why = outside ? KP_REASON_WAITS_OUTSIDE : graph.once_reason;
        kp_process_close_window_for(why);
        return skip(l, why);
    }
    what.graph = l->is_graph ? &graph : NULL;
    what.once_reason = graph.once_reason;
    return through_window(l, &what, &way);
}

/* Opens the window of the range if its start could not. */
static void open_late(const struct kp_launch *l)
{
    char *bad_input = NULL;
    KP_ALONE gate = kp_gate_alone(KP_FOREVER, kp_limit_first(KP_WAIT_GATE));
    if (gate.in && kp_process_active() && !atomic_load(&process->ending) && kp_gate_captures() <= 0) {
        decide_range(l);
        kp_range_open_window(&process->setup, l, &bad_input);
    }
    if (bad_input)
        kp_phase_unprofiled(KP_FAILURE_METRIC, NULL, bad_input);
}

/* Returns why the open range does not count the launch, if there is a reason. Inside the gate no range ends. */
static enum kp_reason why_not_counted(const struct kp_launch *l)
{
    bool current;
    CUcontext counted = kp_ranges_context();
    if (kp_ranges_why())
        return kp_ranges_why();
    if (!counted)
        return kp_gate_captures() > 0 ? KP_REASON_CAPTURE : KP_REASON_BUSY;
    return kp_launch_context(&process->driver, l, &current) == counted ? KP_REASON_NONE : KP_REASON_OTHER_CONTEXT;
}

/* Inside the gate. *why: the open range does not count the launch. */
static CUresult issue_in_range(const struct kp_launch *l, enum kp_reason *why)
{
    KP_GUARDED;
    *why = why_not_counted(l);
    CUresult rc = kp_launch_issue_own(l);
    if (rc == CUDA_SUCCESS && !*why)
        kp_ranges_launched(l->is_graph);
    return rc;
}

/* Makes a launch if ranges are counted as the program makes them: it goes straight to the driver. */
static CUresult pass_in_range(struct kp_launch *l)
{
    kp_process_begin();
    if (!kp_ranges_why() && !kp_ranges_context() && kp_gate_captures() <= 0)
        open_late(l);
    enum kp_reason why;
    enter_for_launch();
    CUresult rc = issue_in_range(l, &why);
    kp_gate_leave_shared();
    if (rc == CUDA_SUCCESS && why)
        kp_process_skip(why, 1);
    else if (rc == CUDA_SUCCESS)
        kp_session_seen(1);
    return rc;
}

/* Makes a launch that nobody wants. */
static CUresult pass(struct kp_launch *l, enum kp_reason unwanted, unsigned epoch)
{
    CUresult rc = skip(l, unwanted);
    if (rc == CUDA_SUCCESS)
        learn(l, epoch);
    return rc;
}

/* Makes a launch that is a workload by itself, if the filter accepts it. */
static CUresult choose_one(struct kp_launch *l, struct kp_filter_counted *counted)
{
    unsigned epoch = kp_passing_epoch();
    struct kp_graph graph = {.once_reason = KP_REASON_NONE};
    struct kp_candidate what = {.wanted = true};
    enum kp_reason unwanted = unwanted_for(l, &what, &graph, counted);
    /* Do not count it either: counting waits for the kernel's end on this thread, while the kernel's partner may wait
     * for this thread. */
    if (what.outside && (unwanted || !kp_mode_recurs(process->setup.mode)))
        return unwanted ? pass(l, unwanted, epoch) : skip(l, KP_REASON_WAITS_OUTSIDE);
    if (!unwanted)
        return graph.waits ? skip(l, graph.once_reason) : launch_through_window(l, &what, KP_REASON_NONE);
    what.wanted = false;
    if (!kp_window_is_open() || l->is_graph || kp_filter_outside(process->filter, l->f))
        return pass(l, unwanted, epoch);
    return launch_through_window(l, &what, unwanted);
}

/* Makes a launch while the program uses CUPTI. */
static CUresult skip_beside_other(const struct kp_launch *l)
{
    if (kp_mode_has_ranges(process->setup.mode) && !kp_ranges_why())
        kp_ranges_cut(KP_REASON_OTHER_USER);
    kp_process_tell_other();
    return skip(l, KP_REASON_OTHER_USER);
}

static CUresult choose(struct kp_launch *l)
{
    CUresult rc = CUDA_SUCCESS;
    struct kp_filter_counted counted;
    if (process->setup.mode->aside && !atomic_load(&process->ending))
        return kp_gate_captures() > 0 && is_captured(l) ? kp_launch_call(l) : pass_in_range(l);
    if (kp_gate_captures() > 0)
        return is_captured(l) ? kp_launch_call(l) : skip(l, KP_REASON_CAPTURE);
    if (atomic_load(&process->ending))
        return skip(l, KP_REASON_LATE);
    if (kp_other_holds())
        return skip_beside_other(l);
    if (kp_mode_has_ranges(process->setup.mode))
        return choose_in_range(l);
    if (l->is_graph && goes_by_node(l, &rc))
        return rc;
    rc = choose_one(l, &counted);
    if (rc != CUDA_SUCCESS)
        kp_filter_refused(process->filter, &counted);
    return rc;
}

static void begin(bool stores)
{
    char *err = NULL;
    kp_work_takes_long();
    kp_lock_take(process->lock, KP_FOREVER);
    KP_GUARDED;
    if (kp_process_active() && kp_session_begin(stores, &err))
        kp_phase_unprofiled(KP_FAILURES, "out of memory", err);
    atomic_store(&process->begun, true);
    if (stores)
        atomic_store(&process->stores, true);
    if (kp_timeline_is_on())
        kp_exit_first(); /* CUPTI's activity library may have registered its exit handlers by now */
    kp_lock_give(process->lock);
}

/* Records of a timeline are stored as they come. */
void kp_process_connect(void)
{
    if (!atomic_load(&process->begun))
        begin(kp_timeline_is_on());
}

void kp_process_begin(void)
{
    if (!atomic_load(&process->stores))
        begin(true);
}

CUresult kp_process_launch(struct kp_launch *l)
{
    int error = errno; /* a successful call does not change it */
    kp_process_connect();
    CUresult rc = kp_process_active() ? choose(l) : kp_launch_call(l);
    kp_launch_free(l);
    errno = error;
    return rc;
}
