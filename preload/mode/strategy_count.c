/*
 * Counts the program's own launches in one pass, and waits for each. Issues nothing again.
 */
#include "base/lock.h"
#include "preload/program/host_snapshot.h"
#include "preload/gate/gate.h"
#include "preload/gate/window_facts.h"
#include "preload/rotation/rotation.h"
#include "preload/contexts/program_runs.h"
#include "preload/mode/counter_owner.h"
#include "preload/mode/job.h"
#include "preload/mode/rotate.h"
#include "preload/mode/strategy.h"
#include "preload/contexts/unending.h"
#include "preload/program/waits.h"

/* For the launch being counted, if its list needs several passes. */
static struct kp_carried carried;

/* The first launch of a kernel is counted, and recorded, see kp_rotate_record. */
static bool recorded;

static void end_record(void)
{
    if (recorded)
        kp_rotate_end_record();
    recorded = false;
}

static bool suits_count(const struct kp_question *q)
{
    return kp_admit_counters(q);
}

/* Refuses launches that may wait for the host: counting would hang. */
static enum kp_reason admit_count(const struct kp_question *q)
{
    return q->fit.host && !q->fit.ends ? KP_REASON_REACHES_HOST : KP_REASON_NONE;
}

/* Names the files that the counters of a launch go through, if the list of this run needs several passes. */
static bool carry_count(struct kp_window *w, const struct kp_question *q)
{
    struct kp_context *c = w->context;
    bool several = c->plan->several;
    kp_collector_carry(c->collector, several ? &carried.carry : NULL);
    const char *name = q->function ? q->function->facts.mangled : "a CUDA graph";
    return !several || !kp_runs_carry(w->setup, c, name, &q->launch->shape, &carried);
}

/* Opens a window. A launch gets a separate one if it is counted because it must not be replayed, if this run is one
 * pass of several, or if the pass belongs to a provider other than the counters, which measures single kernels. */
static bool open_count(struct kp_window *w, const struct kp_question *q, struct kp_why *why, enum kp_reason *reason)
{
    const struct kp_context *c = w->context;
    bool beside = c->beside, alone = beside || c->plan->several;
    (void)reason;
    w->most = w->once_reason || alone ? 1 : kp_admit_room(w);
    if (!kp_context_one_pass(w->setup, w->context) || (beside && w->mode != KP_RANGE_AUTO) ||
        (alone && !q->what->wanted) || !carry_count(w, q))
        return false;
    recorded = q->key && kp_rotation_is_first(q->key) && kp_rotate_record(q->context);
    kp_claim_counters(w->setup->driver, c);
    int rc = kp_collector_count_begin(c->collector, w->mode, w->most, 0, why);
    if (!rc)
        return true;
    end_record();
    kp_runs_carried(&carried, false);
    return false;
}

static CUresult issue_count(struct kp_window *w, struct kp_entry *e)
{
    return kp_journal_issue(e, kp_collector_count_hooks(w->context->collector));
}

/* Waits for the launches. Launches that passed the window may wait for what the program does later: the closer has
 * checked that, except at the end of the program or the context. A kernel that may wait for the host has ended once,
 * but need not end again. */
static CUresult wait_for_end(const struct kp_window *w)
{
    const struct kp_driver *d = w->setup->driver;
    if (kp_gate_captures() > 0) /* a wait would invalidate the capture */
        return CUDA_ERROR_NOT_READY;
    if (kp_strategy_chooses(w->strategy))
        return kp_wait_quietly(d, w->context->ctx, KP_WAIT_ROTATION_END);
    if (kp_journal_may_wait())
        return kp_wait_quietly(d, w->context->ctx, KP_WAIT_COUNTED_WAITS);
    long ms = kp_flags_hurried() ? kp_limit_at_exit(KP_WAIT_COUNTED) : kp_limit_first(KP_WAIT_COUNTED);
    return kp_wait_briefly(d, w->context->ctx, ms, ms);
}

static void close_count(struct kp_window *w, struct kp_window_outcome *out)
{
    CUresult rc = wait_for_end(w);
    if (rc != CUDA_SUCCESS) {
        recorded = false; /* stopping the records might wait */
        kp_runs_carried(&carried, false);
        if (rc == CUDA_ERROR_NOT_READY && !kp_gate_captures())
            kp_journal_note_unended();
        if (rc == CUDA_ERROR_NOT_READY)
            kp_job_unended(w, kp_gate_captures() > 0 ? KP_REASON_CAPTURE_UNSTOPPED : KP_REASON_WORK_UNSTOPPED);
        else
            kp_job_failed(w, out);
        return;
    }
    struct kp_job j = kp_job_make(w);
    kp_collector_count_end(w->context->collector, &j.job, out);
    end_record();
    kp_runs_carried(&carried, out->replay.failed == KP_STAGE_NONE);
    if (!j.wanted && !out->why.reason)
        out->why = kp_why_of(KP_REASON_OUT_OF_MEMORY, NULL);
    kp_job_free(&j);
}

const struct kp_strategy kp_strategy_count = {
    .name = "count",
    .no_config = KP_REASON_RECORD_COUNTED,
    .suits = suits_count,
    .admit = admit_count,
    .open = open_count,
    .issue = issue_count,
    .close = close_count,
};
