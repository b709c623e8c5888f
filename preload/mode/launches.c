#include "preload/mode/launches.h"

#include <stdlib.h>

#include "base/lock.h"
#include "base/wait_limits.h"
#include "collectors/code/cubin.h"
#include "collectors/providers/library.h"
#include "preload/program/host_snapshot.h"
#include "preload/program/ctx_wait.h"
#include "preload/program/kernel.h"
#include "preload/program/variables.h"
#include "preload/session/session.h"
#include "preload/who/timeline.h"
#include "preload/results/batch.h"
#include "preload/mode/bounded.h"
#include "preload/mode/close.h"
#include "preload/mode/close_reasons.h"
#include "preload/gate/window_facts.h"
#include "preload/results/harvest.h"
#include "preload/program/host_writes.h"
#include "preload/mode/open.h"
#include "preload/graphs/host_pointers.h"
#include "preload/mode/rotate.h"
#include "preload/mode/time_launch.h"
#include "preload/mode/strategy.h"
#include "preload/contexts/unending.h"
#include "preload/contexts/context_scope.h"
#include "preload/mode/window.h"

static struct kp_window *const w = &kp_window_now;

/* Closes the window first, because its copies may hold the memory that the launch lacks. */
static CUresult without_window(struct kp_entry *e)
{
    struct kp_launch l = e->launch;
    kp_bounded_refused(e);
    e->launch.copy = NULL;
    kp_journal_drop_last();
    kp_window_close(KP_REASON_WANT_DEVICE_MEMORY);
    CUresult rc = kp_launch_issue_own(&l);
    kp_launch_free(&l);
    return rc;
}

/* Counts the duration of the call as ours if the launch has ended when it returns. */
static CUresult issue_first(struct kp_entry *e)
{
    double start = kp_now_ns();
    kp_launch_on_timeline(&e->launch);
    CUresult rc = w->strategy->issue(w, e);
    kp_timeline_launched(rc != CUDA_SUCCESS);
    if (!w->strategy->rewinds)
        w->ours_ns += kp_now_ns() - start;
    return rc;
}

/* Returns why the window closes after the launch, if there is a reason. */
static enum kp_reason closes_behind(const struct kp_question *q)
{
    if (w->strategy->rewinds && (q->fit.alone_reason || w->alone_reason))
        return q->fit.alone_reason ? q->fit.alone_reason : w->alone_reason;
    if (w->strategy->rewinds && q->fit.quiet && (q->function->loud || kp_journal_facts().much_host))
        return KP_REASON_REACHES_HOST;
    if (q->what->last || !kp_journal_facts().launches)
        return KP_REASON_LAST_LAUNCH;
    return kp_journal_facts().launches >= kp_admit_room(w) ? KP_REASON_FULL : KP_REASON_NONE;
}

/* Waits for a launch that can reach host memory: the host may change that memory once the call has returned. Returns
 * false if it does not end. */
static bool watch(const struct kp_question *q, const struct kp_entry *e)
{
    bool ends = kp_stuck_watch(w->setup->driver, w->context, e->function, q->fit.patience);
    if (ends)
        kp_journal_learn(e);
    return ends;
}

/* Leaves a window whose last launch does not end, so that nothing can be repeated. Returns why the launch has no
 * result, or none. */
static enum kp_reason leave_waiting(const struct kp_entry *e)
{
    if (kp_journal_facts().launches == 1) {
        kp_window_abandon();
        return KP_REASON_WAITS_FOR_HOST;
    }
    if (e->result)
        kp_timeline_profiled(e->result->launch.ordinal = kp_session_seen(1));
    w->unending = true;
    kp_window_close(KP_REASON_WAITS_FOR_HOST);
    return KP_REASON_NONE;
}

/* Makes the launch, whose entry is the last. */
static CUresult run_recorded(const struct kp_question *q, struct kp_entry *e, enum kp_reason *skip_reason)
{
    e->reaches_host = q->fit.host && !q->fit.code;
    CUresult rc = issue_first(e);
    w->unwanted_in_a_row = q->what->wanted ? 0 : w->unwanted_in_a_row + 1;
    w->wanted_ms = q->what->wanted ? kp_now_ms() : w->wanted_ms;
    if (rc == CUDA_ERROR_OUT_OF_MEMORY && w->strategy->rewinds) {
        *skip_reason = KP_REASON_MADE_AGAIN;
        return without_window(e);
    }
    if (rc != CUDA_SUCCESS) {
        kp_rotate_refused(w, e->key);
        kp_bounded_refused(e);
        kp_journal_drop_last();
    } else if (q->fit.host && w->strategy->rewinds && !watch(q, e)) {
        *skip_reason = leave_waiting(e);
        return rc;
    } else if (e->result) {
        e->result->launch.ordinal = kp_session_seen(1);
        kp_timeline_profiled(e->result->launch.ordinal);
    }
    if (rc == CUDA_SUCCESS && w->strategy->turn)
        kp_window_settle_result(e);
    enum kp_reason close_reason = closes_behind(q);
    if (close_reason)
        kp_window_close(close_reason);
    return rc;
}

CUresult kp_launches_pass(struct kp_launch *l, enum kp_reason why, enum kp_reason *skip_reason)
{
    *skip_reason = why;
    return kp_launch_issue_own(l);
}

static CUresult run_outside(const struct kp_question *q, struct kp_launch *l, struct kp_known_function *f,
                            enum kp_reason why, enum kp_reason *skip_reason)
{
    bool watched = kp_admit_may_hang(q) && !q->fit.waits_reason && kp_stuck_settle(q->setup->driver, q->context);
    CUresult rc = kp_launches_pass(l, why, skip_reason);
    if (rc == CUDA_SUCCESS && watched)
        kp_stuck_watch(q->setup->driver, q->context, f, q->fit.patience);
    return rc;
}

/* Returns true if the launch may wait for the host, so that the window's launches would lose their counters with it. */
static bool may_hold(const struct kp_question *q)
{
    return q->function && q->function->once & KP_WAITS_FOR_OTHERS && !q->fit.ends && !q->fit.waits_reason;
}

/* Closes a window that does not accept the launch. */
static void make_way(const struct kp_question *q, const struct kp_launch *l)
{
    if (!w->open)
        return;
    enum kp_reason close_reason = kp_admit_join_reason(q);
    if (!close_reason && w->strategy->rewinds && kp_journal_facts().launches && may_hold(q))
        close_reason = KP_REASON_REACHES_HOST;
    if (!close_reason)
        close_reason = kp_journal_refuses(l, q->fit.host, q->fit.quiet);
    if (close_reason)
        kp_window_close(close_reason);
}

/* Closes a window before a launch of an unknown function, unless such launches may pass it: launches that have passed
 * may wait for it. */
static void make_way_unknown(enum kp_reason why, const struct kp_context *c)
{
    bool passes = w->open && kp_strategy_chooses(w->strategy) && (!c || !c->dead || w->context != c);
    if (passes)
        kp_window_note_unseen();
    else
        kp_window_close(why);
}

/* Makes an unwanted launch that no window accepts. A range lacks it, for a reason. */
static CUresult run_unasked(const struct kp_question *q, struct kp_launch *l, enum kp_reason *skip_reason)
{
    const struct kp_fit *fit = &q->fit;
    enum kp_reason why = fit->waits_reason  ? fit->waits_reason
                         : fit->once_reason ? fit->once_reason
                                            : fit->alone_reason;
    if (kp_mode_has_ranges(q->setup->mode))
        *skip_reason = why ? why : KP_REASON_RANGE_CUT;
    return kp_launch_issue_own(l);
}

/* Runs the launch in the open window, in a new one, or outside any window. */
static CUresult run_judged(struct kp_question *q, struct kp_launch *l, struct kp_known_function *f,
                           enum kp_reason *skip_reason)
{
    enum kp_reason why = KP_REASON_NONE;
    if (!w->open && !q->what->wanted)
        return run_unasked(q, l, skip_reason);
    if (!w->open && !kp_window_open(w, q, &why))
        return run_outside(q, l, f, why, skip_reason);
    struct kp_entry *e = kp_window_record(l, q->what->wanted, q->what->graph, f);
    if (!e) {
        kp_window_close(KP_REASON_WANT_MEMORY);
        return kp_launches_pass(l, KP_REASON_LOST, skip_reason);
    }
    kp_rotate_took(w, e, q->key);
    kp_bounded_took(w, e, q->kind);
    return run_recorded(q, e, skip_reason);
}

/* Runs the launch, now that its function is known. */
static CUresult run_known(struct kp_question *q, struct kp_candidate *what, struct kp_launch *l,
                          struct kp_known_function *f, enum kp_reason *skip_reason)
{
    kp_admit_judge(q);
    q->context->stalled |=
        q->fit.waits_reason != KP_REASON_NONE; /* later launches need not wait long to find that out */
    enum kp_reason why;
    if (kp_rotate_lets_by(q, what, &why)) {
        w->unwanted_in_a_row++;
        return kp_launches_pass(l, why, skip_reason);
    }
    make_way(q, l);
    kp_bounded_forget_ended(q);
    enum kp_reason rotated = kp_rotate_beside(q, what);
    CUresult rc = run_judged(q, l, f, skip_reason);
    if (rotated && !*skip_reason)
        *skip_reason = rotated;
    return rc;
}

/* Returns true if the first launch of a module's kernels could bring variables into the open window unseen. */
static bool may_miss_variables(const struct kp_context_setup *setup, struct kp_context *c, CUfunction f)
{
    return w->open && w->strategy->rewinds && !kp_context_module_known(setup, c, f);
}

/* Returns true if the window holds the variables that the first launch of a module's kernels brings along. */
static bool holds_variables(const struct kp_context_setup *setup, const struct kp_known_function *f)
{
    const char *mangled = f->facts.mangled;
    return kp_context_sees_loads() && ((*mangled && !kp_variables_come_with(mangled)) ||
                                       kp_journal_holds_variables(setup, f->facts.handle, mangled));
}

struct kp_known_function *kp_launches_function(const struct kp_context_setup *setup, struct kp_context *c,
                                               const struct kp_launch *l)
{
    bool may_miss = may_miss_variables(setup, c, l->f);
    struct kp_known_function *f = kp_context_function(setup, c, l->f);
    if (f && may_miss && !holds_variables(setup, f))
        kp_window_close(KP_REASON_FIRST_OF_MODULE);
    if (f && f->once & KP_ONCE_HEAP)
        kp_window_heap_blocks();
    if (!w->open)
        kp_batch_settle();
    if (f)
        f->writes_host = kp_hostwrites_known(f->facts.mangled);
    return f;
}

/* Returns true if no launch of the function has been made inside the gate. */
static bool is_first_of(struct kp_known_function *f)
{
    bool first = f && !f->launched;
    if (f)
        f->launched = true;
    return first;
}

CUresult kp_launches_run(const struct kp_context_setup *setup, struct kp_context *c, struct kp_launch *l,
                         const struct kp_candidate *what, enum kp_reason *skip_reason)
{
    struct kp_known_function *f = NULL;
    if (!l->is_graph && (!(f = kp_launches_function(setup, c, l)) || kp_launch_copy(l, &f->facts))) {
        make_way_unknown(KP_REASON_UNKNOWN_KERNEL, c);
        return kp_launches_pass(l, KP_REASON_NO_FACTS, skip_reason);
    }
    struct kp_candidate now = *what;
    struct kp_question q = {.window = w, .setup = setup, .context = c, .launch = l, .what = &now, .function = f};
    if (what->outside)
        return kp_timing_launch(&q, l, skip_reason);
    bool recorded = is_first_of(f) && kp_mode_recurs(setup->mode) && kp_rotate_record(c);
    enum kp_reason rotated = kp_rotate_judge(&q, &now);
    if (!rotated)
        rotated = kp_bounded_judge(&q, &now);
    CUresult rc = run_known(&q, &now, l, f, skip_reason);
    if (recorded)
        kp_rotate_end_record();
    if (rotated && !*skip_reason)
        *skip_reason = rotated;
    return rc;
}

/* Returns true if work of the context on which a wait timed out has still not ended: it may wait for what the program
 * does next, and for this launch. We issue nothing meanwhile. The waiting thread needs a moment to see the end, which
 * the launch's stream shows earlier; but only one of several launches waits for that. */
static bool is_held(const struct kp_context_setup *setup, CUcontext ctx, const struct kp_launch *l)
{
    static long last_ms;
    const struct kp_driver *d = setup->driver;
    if (w->open || kp_mode_has_ranges(setup->mode) || !kp_patience_goes_on(ctx))
        return false;
    if (kp_now_ms() - last_ms < kp_span_ms(KP_SPAN_HELD_APART) || d->cuStreamQuery(kp_launch_stream(l)) != CUDA_SUCCESS)
        return true;
    bool ends = kp_patience_ends(ctx, kp_limit_first(KP_WAIT_MOMENT));
    last_ms = ends ? 0 : kp_now_ms();
    return !ends;
}

static void note_held(const struct kp_driver *d, const struct kp_launch *l)
{
    if (!l->is_graph && kp_kernel_once(d, l->f) & KP_ONCE_HEAP)
        kp_window_heap_blocks();
}

static CUresult run_in_context(const struct kp_context_setup *setup, struct kp_launch *l,
                               const struct kp_launches_way *way, enum kp_reason *skip_reason, char **bad_input)
{
    const struct kp_driver *d = setup->driver;
    bool current;
    CUcontext ctx = kp_launch_context(d, l, &current);
    *skip_reason = KP_REASON_NONE;
    *bad_input = NULL;
    if (!ctx) {
        make_way_unknown(KP_REASON_UNKNOWN_CONTEXT, NULL);
        return kp_launches_pass(l, KP_REASON_NO_CONTEXT, skip_reason);
    }
    struct kp_visit v = kp_visit_begin(d, ctx);
    struct kp_context *c = v.here ? kp_context_get(setup, ctx, bad_input) : NULL;
    enum kp_reason why;
    CUresult rc;
    if (!c || *bad_input || c->dead) {
        make_way_unknown(KP_REASON_ELSEWHERE, c);
        rc = kp_launches_pass(l, c && c->dead ? KP_REASON_AFTER_FAILURE : KP_REASON_NO_CONTEXT, skip_reason);
    } else if (is_held(setup, ctx, l)) {
        note_held(d, l);
        rc = kp_launches_pass(l, KP_REASON_UNENDED, skip_reason);
    } else if (!w->open && (why = kp_bounded_follow(setup, c))) {
        note_held(d, l);
        rc = kp_launches_pass(l, why, skip_reason);
    } else {
        kp_session_device(&c->device, c->chip, c->plan ? c->plan->breakdowns : "");
        kp_session_collection(c->plan ? c->plan->listed : NULL,
                              kp_context_cupti() ? kp_library_version(kp_context_cupti()) : NULL);
        rc = way->run(way->arg, setup, c, l, skip_reason);
    }
    kp_launch_free(l);
    kp_visit_end(d, &v);
    return rc;
}

CUresult kp_launches_in_context(const struct kp_context_setup *setup, struct kp_launch *l,
                                const struct kp_launches_way *way, enum kp_reason *skip_reason, char **bad_input)
{
    kp_bounded_enter(setup);
    CUresult rc = run_in_context(setup, l, way, skip_reason, bad_input);
    kp_bounded_leave(setup);
    return rc;
}

static CUresult run_one(void *arg, const struct kp_context_setup *setup, struct kp_context *c, struct kp_launch *l,
                        enum kp_reason *skip_reason)
{
    return kp_launches_run(setup, c, l, arg, skip_reason);
}

CUresult kp_window_launch(const struct kp_context_setup *setup, struct kp_launch *l, const struct kp_candidate *what,
                          enum kp_reason *skip_reason, char **bad_input)
{
    const struct kp_launches_way way = {run_one, (void *)what};
    return kp_launches_in_context(setup, l, &way, skip_reason, bad_input);
}
