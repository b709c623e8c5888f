#include <stddef.h>

#include "base/lock.h"
#include "preload/window/closers.h"
#include "preload/window/issue.h"
#include "preload/window/passes.h"
#include "preload/window/strategy.h"

/* One pass, as the launches come: for what must not be replayed, and for the set `quick`. */

static bool admit(const struct kp_fit *fit)
{
    (void)fit;
    return kp_admit_has_counters(kp_window.setup, kp_window.context) &&
           (kp_window.setup->one_pass || kp_window.obstacle);
}

static bool begin(const struct kp_fit *fit, char **why)
{
    struct kp_context *c = kp_window.context;
    size_t room = kp_window.obstacle ? 1 : kp_admit_room(kp_window.setup, c);
    return kp_context_one_pass(kp_window.setup, c) && !kp_collector_count_begin(c->collector, fit->mode, room, why);
}

static bool takes(const struct kp_fit *fit)
{
    return fit->mode == kp_window.mode;
}

static const char *alone(const struct kp_fit *fit)
{
    return fit->host && !fit->ends ? kp_closed_by_host_memory : NULL;
}

static CUresult issue(struct kp_item *i)
{
    return kp_issue_launch(i, kp_collector_count_hooks(kp_window.context->collector));
}

static void end(struct kp_window_job *job, struct kp_window_outcome *out)
{
    kp_collector_count_end(kp_window.context->collector, job, out);
}

/* What is counted has ended already. */
static void finish(struct kp_window_outcome *out)
{
    if (kp_window.setup->driver->cuCtxSynchronize() != CUDA_SUCCESS) {
        kp_passes_failed(out);
        return;
    }
    kp_snapshot_keep(&kp_window.host);
    kp_passes_run(end, out);
    kp_snapshot_settle(&kp_window.host);
}

const struct kp_strategy kp_strategy_count = {
    .name = "count",
    .counts = true,
    .despite_obstacles = true,
    .config_why = "read from an activity record of a run without counters, and this launch was counted as the program "
                  "ran it",
    .admit = admit,
    .open = begin,
    .takes = takes,
    .alone = alone,
    .issue = issue,
    .close = finish,
};
