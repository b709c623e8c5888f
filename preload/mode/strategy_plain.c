/*
 * No counters: runs one launch as the program makes it, and reports values that need no counter.
 */
#include "collectors/providers/observe.h"
#include "preload/graphs/graphs.h"
#include "preload/results/probe.h"
#include "preload/mode/strategy.h"
#include "preload/contexts/unending.h"
#include "preload/program/waits.h"

static bool suits_plain(const struct kp_question *q)
{
    return !q->fit.once_reason;
}

static bool open_plain(struct kp_window *w, const struct kp_question *q, struct kp_why *why, enum kp_reason *reason)
{
    (void)q, (void)why, (void)reason;
    w->most = 1;
    return true;
}

/* Returns true if counters were requested, which it cannot count. */
static bool lacks_counters(const struct kp_window *w)
{
    const struct kp_context *c = w->context;
    return c->collector && !c->no_counters.reason && kp_plan_counts(c->plan);
}

/* Waits for a launch whose record is expected, and for one that may wait for others: later calls must not have to find
 * that out by a long wait. */
static CUresult wait_for(const struct kp_window *w, const struct kp_entry *e)
{
    const struct kp_driver *d = w->setup->driver;
    if (!kp_journal_may_wait())
        return kp_wait_for(d, w->context->ctx, KP_WAIT_ALONE);
    return kp_stuck_watch(d, w->context, e->function, KP_WAIT_ALONE) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

/* Reads facts of activity records from this one execution, which stays the program's and is no graph, see probe.h. */
static CUresult issue_plain(struct kp_window *w, struct kp_entry *e)
{
    const struct kp_cupti *cupti = kp_context_cupti();
    struct kp_executed record;
    size_t n = 0;
    bool probing = e->result && kp_probe_wanted(w->setup) && !kp_graph_any() && !kp_providers_probe_begin(cupti);
    CUresult rc = kp_journal_issue(e, NULL);
    bool waits = probing || (lacks_counters(w) && kp_journal_may_wait());
    CUresult end = rc == CUDA_SUCCESS && waits ? wait_for(w, e) : CUDA_SUCCESS;
    if (end != CUDA_SUCCESS && end != CUDA_ERROR_NOT_READY)
        w->context->dead = true;
    if (rc == CUDA_SUCCESS && lacks_counters(w) && (w->context->unsavable || kp_context_beside(w->context, NULL)))
        w->context->stalled = !waits || end == CUDA_ERROR_NOT_READY;
    if (!probing)
        return rc;
    kp_providers_probe_end(cupti, &record, 1, &n);
    kp_probe_learn(&record, n);
    return rc;
}

const struct kp_strategy kp_strategy_plain = {
    .name = "plain",
    .suits = suits_plain,
    .open = open_plain,
    .issue = issue_plain,
};
