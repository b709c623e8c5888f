/*
 * Counts the program's own launches in one pass, and waits for each. Issues nothing again.
 */
#include "base/lock.h"
#include "preload/window/issue.h"
#include "preload/window/job.h"
#include "preload/window/strategy.h"

static bool suits(const struct kp_question *q)
{
    return kp_admit_counters(q) && (q->setup->one_pass || q->window->obstacle);
}

/* Refuses launches that may wait for the host: counting would hang. */
static const char *admit(const struct kp_question *q)
{
    return q->fit.host && !q->fit.ends ? kp_reaches_host : NULL;
}

/* Opens a window; a launch counted because it must not be replayed gets a separate one, and so does one of a run for
 * what other providers than the counters collect, which is of kernels alone. */
static bool open_window(struct kp_window *w, const struct kp_question *q, char **why, const char **refusal)
{
    bool beside = w->context->beside;
    (void)q, (void)refusal;
    w->most = w->obstacle || beside ? 1 : kp_admit_room(w);
    return kp_context_one_pass(w->setup, w->context) && !(beside && w->mode != KP_RANGE_AUTO) &&
           !kp_collector_count_begin(w->context->collector, w->mode, w->most, why);
}

static CUresult issue(struct kp_window *w, struct kp_item *i)
{
    return kp_issue_launch(w, i, kp_collector_count_hooks(w->context->collector));
}

static void close_window(struct kp_window *w, struct kp_window_outcome *out)
{
    if (w->setup->driver->cuCtxSynchronize() != CUDA_SUCCESS) {
        kp_job_failed(w, out);
        return;
    }
    struct kp_job j = kp_job_make(w);
    kp_collector_count_end(w->context->collector, &j.job, out);
    if (!j.wanted && !out->note)
        out->note = kp_strdup("out of memory");
    kp_job_free(&j);
}

const struct kp_strategy kp_strategy_count = {
    .name = "count",
    .no_config = "read from an activity record of a run without counters, and this launch was counted as the program "
                 "ran it",
    .suits = suits,
    .admit = admit,
    .open = open_window,
    .issue = issue,
    .close = close_window,
};
