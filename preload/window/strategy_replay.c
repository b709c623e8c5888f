#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "preload/os/stdout_mute.h"
#include "preload/program/ctx_wait.h"
#include "preload/session/session.h"
#include "preload/window/closers.h"
#include "preload/window/issue.h"
#include "preload/window/passes.h"
#include "preload/window/signs.h"
#include "preload/window/strategy.h"
#include "preload/window/waits.h"

/* Memory is saved; the launches run as the program makes them, and passes follow when the window closes. */

static bool admit(const struct kp_fit *fit)
{
    (void)fit;
    return kp_admit_has_counters(kp_window.setup, kp_window.context) && !kp_window.setup->one_pass &&
           !kp_window.obstacle;
}

/* Memory that cannot be saved leaves one launch that can still be counted once. */
static bool begin(const struct kp_fit *fit, char **why)
{
    bool once = (!fit->host || fit->ends) && !kp_context_several(kp_window.setup);
    if (!kp_collector_save(kp_window.context->collector, why))
        return true;
    if (once) {
        kp_session_warn(KP_FAILURE_IN_PART, *why ? *why : "memory cannot be saved");
        kp_window.obstacle = "its memory could not be saved, not replayed";
        free(*why);
        *why = NULL;
    }
    return false;
}

static const char *prepare(const struct kp_launch *l, const struct kp_fit *fit)
{
    bool kept = true;
    if (fit->host)
        kp_admit_reaches_host(kp_window.setup->driver, l, &kp_window.host, &kept);
    if (kept)
        return NULL;
    kp_collector_drop(kp_window.context->collector);
    return "can reach more host memory than is kept for a replay";
}

/* Launches that nobody wants need no counters of their kind. */
static bool takes(const struct kp_fit *fit)
{
    return fit->mode == kp_window.mode || (!fit->wanted && fit->mode != KP_RANGE_USER);
}

static const char *alone(const struct kp_fit *fit)
{
    return fit->alone;
}

static CUresult issue(struct kp_item *i)
{
    return kp_issue_launch(i, NULL);
}

/* A launch that can reach host memory may wait for the host. It has to end by itself, or the program goes on with it.
 */
static const char *issued(struct kp_item *i, const struct kp_fit *fit)
{
    if (!fit->host || kp_wait_watch(kp_window.setup->driver, kp_window.context, i->function))
        return NULL;
    kp_collector_leave(kp_window.context->collector);
    return kp_waits_for_host;
}

/* ---- the end ---- */

/* The first launches of the streams that have not ended are those that wait, or what they wait behind. */
static void note_unended(void)
{
    for (size_t k = 0; k < kp_window.n; k++) {
        struct kp_item *i = &kp_window.items[k];
        bool first = i->is_launch;
        for (size_t before = 0; first && before < k; before++)
            first = !kp_window.items[before].is_launch ||
                    kp_record_stream(&kp_window.items[before].launch) != kp_record_stream(&i->launch);
        if (first && i->function &&
            kp_window.setup->driver->cuStreamQuery(kp_record_stream(&i->launch)) == CUDA_ERROR_NOT_READY)
            i->function->waits = kp_waits_for_more;
    }
    kp_window.context->stalled = true;
}

static void give_up_waiting(struct kp_window_outcome *out)
{
    kp_collector_leave(kp_window.context->collector);
    kp_window.hangs = true;
    if (asprintf(&out->note,
                 "the window's launches did not end within %ld s (one of them waits for something that comes later): "
                 "not replayed",
                 kp_wait_end_ms() / 1000) < 0)
        out->note = NULL;
}

/* A call of another thread changed memory: the window is given up. */
static void close_spoiled(struct kp_window_outcome *out)
{
    struct kp_collector *c = kp_window.context->collector;
    kp_window.hangs = kp_patience_wait(kp_window.setup->driver, kp_window.context->ctx, KP_EXIT_MS) != CUDA_SUCCESS;
    if (kp_window.hangs)
        kp_collector_leave(c);
    else
        kp_collector_drop(c);
    out->note = kp_strdup("a call of another thread did not end while the window was open: not replayed");
}

static void replay(struct kp_window_job *job, struct kp_window_outcome *out)
{
    struct kp_mute mute;
    if (!job->wanted)
        return;
    kp_mute_begin(&mute);
    kp_collector_replay(kp_window.context->collector, job, out);
    kp_mute_end(&mute);
}

/* A window may close where the program itself would go on: then a launch that waits for the program would never end, so
 * patience has a limit. */
static CUresult wait_for_end(void)
{
    return kp_wait_for_context(kp_window.setup->driver, kp_window.context->ctx, kp_wait_end_ms(), KP_SHORT_END_MS);
}

static void finish(struct kp_window_outcome *out)
{
    if (kp_signs_spoiled()) {
        close_spoiled(out);
        return;
    }
    CUresult rc = wait_for_end();
    if (rc == CUDA_ERROR_NOT_READY) {
        note_unended();
        give_up_waiting(out);
        return;
    }
    if (rc != CUDA_SUCCESS) {
        kp_passes_failed(out);
    } else if (kp_window.wanted) {
        kp_snapshot_keep(&kp_window.host);
        kp_passes_run(replay, out);
        kp_snapshot_settle(&kp_window.host);
    }
    if (!kp_window.context->dead)
        kp_collector_drop(kp_window.context->collector);
}

const struct kp_strategy kp_strategy_replay = {
    .name = "replay",
    .joins = true,
    .in_account = true,
    .counts = true,
    .admit = admit,
    .open = begin,
    .prepare = prepare,
    .takes = takes,
    .alone = alone,
    .issue = issue,
    .issued = issued,
    .close = finish,
};
