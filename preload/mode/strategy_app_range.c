/*
 * A range of a program that runs once for each pass: the counters go on at its start and off at its end. Meanwhile all
 * calls pass as if no window were open. Nothing is recorded or repeated.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/lock.h"
#include "preload/gate/gate.h"
#include "preload/contexts/ranges.h"
#include "preload/contexts/program_runs.h"
#include "preload/session/session.h"
#include "preload/mode/counter_owner.h"
#include "preload/gate/window_facts.h"
#include "preload/mode/job.h"
#include "preload/mode/range_window.h"
#include "preload/results/range_result.h"
#include "preload/mode/strategy.h"
#include "preload/program/waits.h"

/* The open range. */
static struct {
    bool counts;              /* the counters are on */
    struct kp_why lost;       /* why they are not, although this run should count */
    struct kp_carried passes; /* if the list of this run needs several */
} now;

/* ---- the counters ---- */

/* Names the files that the counters go through, if the list of this run needs several passes. */
static bool carry_app_range(const struct kp_window *w)
{
    static const struct kp_shape none = {.dynamic_shared = 0};
    struct kp_context *c = w->context;
    bool several = c->plan->several;
    const char *name = kp_journal_entry(0)->result->launch.mangled;
    kp_collector_carry(c->collector, several ? &now.passes.carry : NULL);
    return !several || !kp_runs_carry(w->setup, c, name ? name : "", &none, &now.passes);
}

/* Returns why the range is not counted. Sets *reason if it cannot be. */
static struct kp_why find_open_reason(const struct kp_window *w, enum kp_reason *reason)
{
    struct kp_context *c = w->context;
    long least = kp_limit_next(KP_WAIT_MANY), patience = c->stalled ? least : kp_limit_first(KP_WAIT_MANY);
    bool carried = carry_app_range(w); /* counts the range, so in any case */
    CUresult rc =
        kp_ranges_open()->beside ? CUDA_ERROR_NOT_READY : kp_wait_context(w->setup->driver, c->ctx, patience, least);
    c->stalled = rc == CUDA_ERROR_NOT_READY;
    c->dead = rc != CUDA_SUCCESS && !c->stalled;
    *reason = c->dead ? KP_REASON_AFTER_FAILURE : KP_REASON_NONE;
    if (c->stalled)
        return kp_why_of(KP_REASON_RANGE_BUSY, NULL);
    return kp_why_of(carried ? KP_REASON_NONE : KP_REASON_RANGE_UNCARRIED, NULL);
}

static void start(const struct kp_window *w, const struct kp_question *q, enum kp_reason *reason)
{
    struct kp_context *c = w->context;
    now.counts = false;
    if (!kp_admit_counters(q) || !kp_context_one_pass(w->setup, c)) /* the first run counts nothing */
        return;
    now.lost = find_open_reason(w, reason);
    if (!now.lost.reason && !*reason)
        kp_claim_counters(w->setup->driver, c);
    now.counts =
        !now.lost.reason && !*reason && !kp_collector_count_begin(c->collector, KP_RANGE_USER, 1, 0, &now.lost);
    if (now.counts) {
        const struct kp_issue_hooks *hooks = kp_collector_count_hooks(c->collector);
        hooks->before(hooks->arg, CU_STREAM_LEGACY); /* if this fails, the counters are missing when they are read */
    } else {
        kp_runs_carried(&now.passes, false);
    }
}

static void stop(const struct kp_window *w, struct kp_window_outcome *out)
{
    static const bool wanted[] = {true};
    const struct kp_window_job job = {.mode = KP_RANGE_USER, .wanted = wanted, .n_launches = 1};
    struct kp_collector *c = w->context->collector;
    const struct kp_issue_hooks *hooks = kp_collector_count_hooks(c);
    hooks->after(hooks->arg);
    kp_collector_count_end(c, &job, out);
    kp_runs_carried(&now.passes, out->replay.failed == KP_STAGE_NONE);
}

/* Gives the range up, because nothing may wait for the driver. */
static void give_up_app_range(struct kp_window *w)
{
    kp_runs_carried(&now.passes, false);
    kp_job_unended(w, kp_gate_captures() > 0 ? KP_REASON_RANGE_CAPTURE : KP_REASON_RANGE_UNENDED);
}

static void finish(struct kp_window *w, struct kp_window_outcome *out)
{
    long least = kp_limit_next(KP_WAIT_RANGE_END);
    long ms = w->close_reason == KP_REASON_RANGE_END ? least
              : kp_flags_hurried()                   ? kp_limit_at_exit(KP_WAIT_RANGE_END)
                                                     : kp_limit_first(KP_WAIT_RANGE_END);
    CUresult rc =
        kp_gate_captures() > 0 ? CUDA_ERROR_NOT_READY : kp_wait_context(w->setup->driver, w->context->ctx, ms, least);
    if (rc == CUDA_ERROR_NOT_READY) {
        give_up_app_range(w);
    } else if (rc != CUDA_SUCCESS) {
        kp_job_failed(w, out);
        kp_runs_carried(&now.passes, false);
    } else {
        stop(w, out);
    }
}

/* ---- the window ---- */

static bool open_app_range(struct kp_window *w, const struct kp_question *q, struct kp_why *why, enum kp_reason *reason)
{
    (void)why;
    *reason = q->fit.once_reason;
    /* Later runs have the ranges of the first one, with counters or without. */
    if (!*reason && q->setup->options->replay_run == 1 && !kp_admit_counters(q)) {
        *reason = KP_REASON_NO_COUNTERS;
        if (w->context->no_counters.reason)
            kp_session_warn_once(kp_why_text(&w->context->no_counters));
    }
    if (!*reason && !kp_range_result_make(w->context))
        *reason = KP_REASON_LOST;
    if (*reason)
        return false;
    start(w, q, reason);
    if (!*reason)
        kp_ranges_count_in(w->context->ctx, now.counts);
    return !*reason;
}

/* Names the range and its contents. */
static char *describe_app_range(const char *name, uint64_t launches)
{
    char *text = NULL;
    return asprintf(&text, "%s: range of %" PRIu64 " launch%s", name && *name ? name : "(no name)", launches,
                    launches == 1 ? "" : "es") < 0
               ? NULL
               : text;
}

static void set_tally(const struct kp_ranges_tally *t)
{
    struct kp_result *r = kp_journal_entry(0)->result;
    r->launch.launches = t->launches;
    r->launch.demangled = describe_app_range(r->launch.mangled, t->launches);
    r->lossy |= !r->launch.demangled || kp_result_set_count(r, "range__launches", "", t->launches) ||
                kp_result_set_count(r, "range__graphs", "", t->graphs);
}

static void close_app_range(struct kp_window *w, struct kp_window_outcome *out)
{
    struct kp_ranges_tally t = kp_ranges_tally();
    kp_ranges_count_in(NULL, false);
    if (now.counts)
        finish(w, out);
    now.counts = false;
    if (out->why.reason)
        kp_why_free(&now.lost);
    else
        out->why = now.lost;
    now.lost = kp_why_of(KP_REASON_NONE, NULL);
    if (t.launches) {
        set_tally(&t);
    } else {
        kp_range_result_drop();
        kp_counters_free(out->counters);
        out->counters = NULL;
    }
    if (w->close_reason != KP_REASON_RANGE_END) {
        kp_ranges_cut(KP_REASON_RANGE_CONTEXT_ENDED);
        if (t.launches)
            kp_range_result_cut(w->closed_by, "", t.launches);
    }
}

const struct kp_strategy kp_strategy_app_range = {
    .name = "app-range",
    .no_config = KP_REASON_RECORD_COUNTED,
    .open = open_app_range,
    .close = close_app_range,
};
