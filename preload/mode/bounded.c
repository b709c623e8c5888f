#include "preload/mode/bounded.h"

#include <stdatomic.h>

#include "base/clock.h"
#include "base/debug.h"
#include "base/lock.h"
#include "preload/contexts/unending.h"
#include "preload/gate/fast_path.h"
#include "preload/gate/window_facts.h"
#include "preload/mode/budget.h"
#include "preload/mode/strategy.h"
#include "preload/mode/timing_records.h"
#include "preload/os/log.h"
#include "preload/os/outcome.h"
#include "preload/os/worker.h"
#include "preload/rotation/rotation.h"

/* The budget of the process, and how it is kept. */
static struct kp_budget budget;
static unsigned depth;      /* of kp_bounded_enter */
static uint64_t entered_ns; /* at depth 0 */
static bool passes;         /* a kind was let through, and that was told */
static bool records;        /* what passes is recorded, or was to be */
static atomic_bool spent;   /* so was that nothing is left */

/* Returns true if the mode is bounded and the user has not lifted the bound. */
static bool is_bounded(const struct kp_context_setup *setup)
{
    return setup->mode->bounded && setup->options->budget;
}

static double seconds(uint64_t ns)
{
    return (double)ns / 1e9;
}

/* ---- what is spent ---- */

void kp_bounded_enter(const struct kp_context_setup *setup)
{
    if (!is_bounded(setup) || depth++)
        return;
    budget.total_ns = setup->options->budget;
    entered_ns = kp_clock_ns();
}

/* Adds what has passed since kprof's time began, or was last added. */
static void spend(void)
{
    uint64_t now = kp_clock_ns();
    kp_budget_spend(&budget, now - entered_ns);
    entered_ns = now;
}

static void tell_spent(void)
{
    if (atomic_exchange(&spent, true))
        return;
    kp_passing_outdate();
    kp_log_progress("the budget of %.6g s is spent: all further launches pass unmeasured; more time: --budget, less to "
                    "measure: --set quick, or --kernel-name",
                    seconds(budget.total_ns));
}

void kp_bounded_leave(const struct kp_context_setup *setup)
{
    if (!is_bounded(setup) || --depth)
        return;
    spend();
    if (kp_budget_is_spent(&budget))
        tell_spent();
    if (records || kp_window_is_open() || !(passes || kp_bounded_is_spent()))
        return;
    records = true;
    kp_context_begin_durations(setup);
}

bool kp_bounded_is_spent(void)
{
    return atomic_load_explicit(&spent, memory_order_relaxed);
}

/* ---- kinds ---- */

static enum kp_serve serve(const struct kp_rotation_served *s)
{
    const struct kp_budget_kind kind = {s->taken, s->measured, s->lost};
    return s->passes ? KP_SERVE_PASS : kp_budget_serve(&budget, &kind);
}

static void let_pass(struct kp_rotation_key *k)
{
    kp_rotation_close(k);
    if (passes || kp_bounded_is_spent())
        return;
    passes = true;
    kp_log_progress(
        "%.1f s of the budget of %.6g s are spent: launches of kernels and shapes that have results pass from "
        "here on; --budget none measures every launch",
        seconds(budget.spent_ns), seconds(budget.total_ns));
}

size_t kp_bounded_room(const struct kp_question *q)
{
    if (!is_bounded(q->setup))
        return 0;
    uint64_t room = kp_budget_room(&budget), all = kp_admit_room(q->window);
    if (room < q->by_node)
        room = q->by_node; /* the kernels of a graph stay together */
    return room < all ? (size_t)room : (size_t)all;
}

static void settle_kind(struct kp_rotation_key *k, void *arg)
{
    const struct kp_rotation_served s = kp_rotation_served(k);
    (void)arg;
    bool has_or_gets = s.measured || (kp_budget_is_spent(&budget) && s.taken > s.lost);
    if (has_or_gets && !s.passes && serve(&s) == KP_SERVE_PASS)
        let_pass(k);
}

static void settle_rotation(struct kp_rotation *r, void *arg)
{
    kp_rotation_each_key(r, settle_kind, arg);
}

bool kp_bounded_closed(const struct kp_context_setup *setup, double ns, size_t launches)
{
    if (!is_bounded(setup))
        return false;
    kp_budget_window(&budget, ns, launches);
    spend();
    kp_context_each_rotation(settle_rotation, NULL);
    kp_debug(KP_DEBUG_WINDOW, "budget: %.3f of %.6g s are spent; a launch costs %.2f ms", seconds(budget.spent_ns),
             seconds(budget.total_ns), budget.launch_ns / 1e6);
    return true;
}

enum kp_reason kp_bounded_follow(const struct kp_context_setup *setup, struct kp_context *c)
{
    if (!is_bounded(setup))
        return KP_REASON_NONE;
    if (setup->mode->next && kp_budget_is_dear(&budget)) {
        kp_log_progress("%.1f s of the budget of %.6g s are spent, and a launch costs %.0f ms: nothing is replayed any "
                        "more, and launches of kernels and shapes without results take turns with groups of counters; "
                        "--budget none replays every launch",
                        seconds(budget.spent_ns), seconds(budget.total_ns), budget.launch_ns / 1e6);
        passes = true;
        kp_context_change_mode(setup, setup->mode->next);
    }
    if (c->mode == setup->mode)
        return KP_REASON_NONE;
    enum kp_reason why = kp_stuck_before(setup->driver, c, true); /* closing its profiler waits for all of it */
    if (why)
        return why;
    kp_worker_drain(KP_FOREVER);
    kp_timed_end(); /* it ends the rotation and its keys, which launches wait for */
    kp_context_follow_mode(setup, c);
    return KP_REASON_NONE;
}

/* ---- launches ---- */

static struct kp_rotation_key *find_kind(const struct kp_context_setup *setup, struct kp_context *c,
                                         const struct kp_launch *l, const struct kp_known_function *f)
{
    struct kp_rotation *r = f ? kp_context_rotation(setup, c) : NULL;
    return r ? kp_rotation_find(r, l, &f->facts) : NULL;
}

enum kp_reason kp_bounded_judge(struct kp_question *q, struct kp_candidate *what)
{
    if (!what->wanted || !is_bounded(q->setup))
        return KP_REASON_NONE;
    bool nothing = kp_bounded_is_spent(), recurs = kp_mode_recurs(q->setup->mode);
    q->kind = recurs ? NULL : find_kind(q->setup, q->context, q->launch, q->function);
    if (!q->kind) {
        what->wanted &= !nothing;
        return nothing ? KP_REASON_BUDGET : KP_REASON_NONE;
    }
    const struct kp_rotation_served s = kp_rotation_served(q->kind);
    enum kp_serve how = serve(&s);
    if (how == KP_SERVE_PASS) {
        if (s.measured)
            let_pass(q->kind);
        what->wanted = false;
        return nothing && !s.measured ? KP_REASON_BUDGET : KP_REASON_ROTATED;
    }
    bool turns = how == KP_SERVE_TURNS || kp_rotation_takes_turns(q->kind);
    q->turns_reason = turns && kp_mode_repeats(q->setup->mode) ? KP_REASON_REPLAYS_FAIL : KP_REASON_NONE;
    return KP_REASON_NONE;
}

void kp_bounded_forget_ended(struct kp_question *q)
{
    if (!q->context->rotation)
        q->kind = NULL;
}

void kp_bounded_took(const struct kp_window *w, struct kp_entry *e, struct kp_rotation_key *kind)
{
    if (!kind || !e->result || w->strategy->turn || w->once_reason)
        return;
    e->kind = kind;
    kp_rotation_serve(kind);
}

void kp_bounded_took_node(const struct kp_window *w, struct kp_entry *e)
{
    if (is_bounded(w->setup) && !kp_mode_recurs(w->setup->mode) && e->result)
        kp_bounded_took(w, e, find_kind(w->setup, w->context, &e->launch, e->function));
}

void kp_bounded_refused(const struct kp_entry *e)
{
    if (e->kind)
        kp_rotation_unserve(e->kind);
}

/* ---- the end ---- */

static void count_kinds(struct kp_rotation *r, void *arg)
{
    kp_rotation_count(r, arg);
}

void kp_bounded_tell(void)
{
    if (!passes && !kp_bounded_is_spent())
        return;
    struct kp_rotation_tally t = kp_rotation_ended();
    kp_context_each_rotation(count_kinds, &t);
    const double added = seconds(budget.spent_ns);
    bool all = t.with_results == t.keys && !t.in_part;
    if (kp_bounded_is_spent() || !all)
        kp_outcome_failed(KP_FAILURE_IN_PART);
    if (kp_bounded_is_spent())
        kp_log_progress(
            "%zu of %zu kernels and shapes that came before the budget was spent have results; profiling added "
            "%.1f s",
            t.with_results, t.keys, added);
    else if (all)
        kp_log_progress("all %zu kernels and shapes have results; profiling added %.1f s", t.keys, added);
    else
        kp_log_progress(
            "%zu of %zu kernels and shapes have results, %zu of these a part of them; profiling added %.1f s",
            t.with_results, t.keys, t.in_part, added);
}
