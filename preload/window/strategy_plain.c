/*
 * No counters: runs one launch as the program makes it, and reports values that need no counter.
 */
#include "collectors/providers/observe.h"
#include "preload/program/graphs.h"
#include "preload/window/issue.h"
#include "preload/window/probe.h"
#include "preload/window/strategy.h"
#include "preload/window/waits.h"

static bool suits(const struct kp_question *q)
{
    return !q->fit.obstacle;
}

static bool open_window(struct kp_window *w, const struct kp_question *q, char **why, const char **refusal)
{
    (void)q, (void)why, (void)refusal;
    w->most = 1;
    return true;
}

/* Reads facts of activity records from this one execution, which stays the program's: it is no graph, see probe.h. */
static CUresult issue(struct kp_window *w, struct kp_item *i)
{
    const struct kp_cupti *cupti = kp_context_cupti();
    struct kp_executed record;
    size_t n = 0;
    bool probing = i->result && kp_probe_wanted(w) && !kp_graph_any() && !kp_probe_begin(cupti);
    CUresult rc = kp_issue_launch(w, i, NULL);
    if (!probing)
        return rc;
    CUresult end = rc == CUDA_SUCCESS ? kp_wait_context(w->setup->driver, w->context->ctx, KP_ALONE_MS, KP_SHORT_MS)
                                      : CUDA_SUCCESS;
    if (end != CUDA_SUCCESS && end != CUDA_ERROR_NOT_READY)
        w->context->dead = true;
    kp_probe_end(cupti, &record, 1, &n);
    kp_probe_learn(w, &record, n);
    return rc;
}

const struct kp_strategy kp_strategy_plain = {
    .name = "plain",
    .suits = suits,
    .open = open_window,
    .issue = issue,
};
