#include "preload/mode/close.h"

#include <stdlib.h>
#include <string.h>

#include "preload/results/describe.h"
#include "preload/os/worker.h"
#include "preload/session/session.h"
#include "base/debug.h"
#include "base/lock.h"
#include "base/traps.h"
#include "base/work.h"
#include "preload/os/exit_first.h"
#include "preload/os/progress.h"
#include "preload/program/ctx_wait.h"
#include "preload/who/timeline.h"
#include "preload/mode/bounded.h"
#include "preload/mode/close_reasons.h"
#include "preload/gate/window_facts.h"
#include "preload/results/harvest.h"
#include "preload/mode/strategy.h"
#include "preload/mode/timing_records.h"
#include "preload/contexts/context_scope.h"
#include "preload/mode/window.h"

static struct kp_window *const w = &kp_window_now;

struct kp_window kp_window_now;

static struct kp_harvest harvest_of(void)
{
    const struct kp_turn *turn = w->strategy->turn;
    return (struct kp_harvest){.setup = w->setup,
                               .context = w->context,
                               .no_config = w->strategy->no_config,
                               .once_reason = w->once_reason,
                               .repeated = w->strategy->rewinds && !w->strategy->whole,
                               .rotates = turn != NULL,
                               .group = turn ? turn->group : 0,
                               .opened_ns = w->opened_ns,
                               .ours_ns = w->ours_ns};
}

void kp_window_settle_result(struct kp_entry *e)
{
    const struct kp_harvest h = harvest_of();
    kp_harvest_settle(&h, e);
}

void kp_window_fill(const struct kp_entry *e, struct kp_result *r)
{
    const struct kp_harvest h = harvest_of();
    kp_harvest_fill(&h, e, r);
}

struct kp_entry *kp_window_record(struct kp_launch *l, bool wanted, const struct kp_graph *graph,
                                  struct kp_known_function *f)
{
    struct kp_result *r = wanted ? kp_describe_launch(w->setup, w->context, l, graph, f) : NULL;
    struct kp_entry *e = wanted && !r ? NULL : kp_journal_launch(l, graph, f, r);
    if (!e && r) {
        kp_result_free(r);
        free(r);
    }
    return e;
}

void kp_window_forget(enum kp_leave how)
{
    kp_journal_close(how);
    memset(w, 0, sizeof(*w));
    kp_flags_closed();
}

/* KP_VENDOR: CUPTI registers exit handlers when its parts are first used. Ours may close a last window, so they must
 * run before CUPTI's. */
static void exit_before_cupti(void)
{
    enum { FIRST_WINDOWS = 3 };
    static int closed;
    if (closed++ < FIRST_WINDOWS)
        kp_exit_first();
}

/* Returns true if the program goes on in another context of the device, whose work the window's may wait for. */
static bool is_left(void)
{
    const struct kp_driver *d = w->setup->driver;
    CUcontext current = NULL;
    CUdevice device;
    return d->cuCtxGetCurrent(&current) == CUDA_SUCCESS && current && current != w->context->ctx &&
           d->cuCtxGetDevice(&device) == CUDA_SUCCESS && device == w->context->device_ordinal;
}

/* Plans with the counters that the device offers, after it refused the plan for the whole chip. */
static void plan_again(void)
{
    struct kp_context *c = w->context;
    kp_worker_drain(KP_FOREVER);
    kp_timed_end(); /* it ends the rotation and its keys, which launches wait for */
    kp_context_plan_again(w->setup, c);
    if (c->no_counters.reason)
        kp_session_warn_once(kp_why_text(&c->no_counters));
}

/* Reports what the collector lacks apart from the counters, and plans again if the profiler refused the plan. */
static void follow_up(const struct kp_window_outcome *out)
{
    char *text;
    while (w->context->collector && (text = kp_collector_complaint(w->context->collector))) {
        kp_session_warn(KP_FAILURE_IN_PART, text);
        free(text);
    }
    if (out->replay.failed == KP_STAGE_BEGIN || out->replay.failed == KP_STAGE_START)
        plan_again();
}

/* Closes the window. Returns the time that it cost the program, ns. */
static double close_in_context(struct kp_window_outcome *out)
{
    w->left = is_left();
    double start = kp_now_ns();
    int64_t since = kp_timeline_now();
    struct kp_visit v = kp_visit_begin(w->setup->driver, w->context->ctx);
    /* A rotation's window printed what it counts when it opened. */
    kp_progress_begin(w->strategy->turn ? "" : "waiting for the launches of a window to end", w->strategy->close);
    kp_journal_stop();
    if (w->strategy->close)
        w->strategy->close(w, out);
    w->ours_ns += kp_now_ns() - start;
    const struct kp_harvest h = harvest_of();
    kp_harvest_judge(&h, out);
    kp_harvest_hand_on(&h, out);
    follow_up(out);
    const struct kp_driver *d = w->setup->driver;
    kp_window_forget(KP_LEAVE_CLOSED);
    kp_visit_end(d, &v);
    kp_timeline_held(since);
    return h.ours_ns;
}

const struct kp_context *kp_window_context(void)
{
    return w->open ? w->context : NULL;
}

/* Gives the window up without a driver call. */
static void give_up(enum kp_reason why)
{
    struct kp_window_outcome out = {.why = {KP_REASON_NONE, NULL}};
    if (!w->open)
        return;
    out.why = kp_why_of(why, NULL);
    w->context->dead = true; /* nothing of the context may be touched any more */
    kp_journal_stop();
    struct kp_harvest h = harvest_of();
    h.hands_off = true;
    kp_harvest_hand_on(&h, &out);
    kp_why_free(&out.why);
    kp_window_forget(KP_LEAVE_UNTOUCHED);
}

/* Closes the window; `what` is the text of the reason, or the driver's function. */
static void close_for(enum kp_reason why, const char *what)
{
    struct kp_traps traps;
    struct kp_window_outcome out = {.why = {KP_REASON_NONE, NULL}};
    kp_context_settle_ends();
    kp_timed_settle();
    if (w->open && w->context->ended)
        give_up(KP_REASON_CONTEXT_ENDED);
    if (!w->open)
        return;
    const struct kp_journal_facts j = kp_journal_facts();
    const struct kp_strategy *s = w->strategy;
    const struct kp_context_setup *setup = w->setup;
    kp_bounded_enter(setup);
    kp_work_takes_long();
    kp_traps_hold(&traps); /* values are computed here */
    kp_debug(KP_DEBUG_WINDOW, "closes (%s): %s; launches %zu, with results %zu, operations %zu", s->name, what,
             j.launches, j.wanted, j.records - j.launches);
    bool noted = s->rewinds && !s->whole && j.wanted;
    w->close_reason = why;
    w->closed_by = what;
    if (noted)
        kp_close_reasons_note(why, what, j.launches);
    double took_ns = close_in_context(&out);
    kp_counters_free(out.counters);
    kp_why_free(&out.why);
    kp_debug(KP_DEBUG_WINDOW, "closed; it took %.1f ms of our time, opening included", took_ns / 1e6);
    if (s->close)
        exit_before_cupti();
    kp_progress_end();
    bool bounded = kp_bounded_closed(setup, took_ns, j.wanted);
    if (noted && !bounded)
        kp_close_reasons_tell_early(took_ns);
    kp_bounded_leave(setup);
    kp_traps_let(&traps);
}

void kp_window_close(enum kp_reason why)
{
    close_for(why, kp_reason_text(why));
}

void kp_window_close_by(const char *symbol)
{
    close_for(KP_REASON_CALL, symbol);
}

void kp_window_give_up(void)
{
    give_up(KP_REASON_PROGRAM_ENDED);
}

void kp_window_abandon(void)
{
    if (w->strategy->abandon)
        w->strategy->abandon(w);
    kp_window_forget(KP_LEAVE_ABANDONED);
}

void kp_window_forked(void)
{
    kp_flags_closed();
    kp_patience_forked();
    kp_journal_forked();
    memset(w, 0, sizeof(*w));
}
