#include "preload/window/passes.h"

#include <stdlib.h>

#include "base/lock.h"
#include "base/text.h"
#include "preload/window/issue.h"
#include "preload/window/probe.h"
#include "preload/window/waits.h"

static bool *launches_wanted(void)
{
    bool *list = calloc(kp_window.launches + 1, sizeof(*list));
    size_t n = 0;
    for (size_t k = 0; list && k < kp_window.n; k++)
        if (kp_window.items[k].is_launch)
            list[n++] = kp_window.items[k].result != NULL;
    return list;
}

void kp_passes_run(void (*run)(struct kp_window_job *job, struct kp_window_outcome *out), struct kp_window_outcome *out)
{
    /* The program's launches have ended: what one of them takes alone is no more than all took. */
    long limit = KP_REHEARSAL_MS + 2 * (long)((kp_now_ns() - kp_window.opened_ns) / 1e6);
    kp_issue_make_twins();
    struct kp_executed *records = calloc(kp_window.launches + 1, sizeof(*records));
    bool *wanted = launches_wanted();
    if (!wanted) {
        out->note = kp_strdup("out of memory");
        kp_window.launches = 0; /* a pass under way ends without results */
    }
    struct kp_window_job job = {.issue = kp_issue_all,
                                .rehearse = kp_issue_rehearse,
                                .arg = &limit,
                                .mode = kp_window.mode,
                                .wanted = wanted,
                                .n_launches = kp_window.launches,
                                .executed = records,
                                .probe = records && kp_probe_wanted()};
    run(&job, out);
    kp_probe_learn(records, job.n_executed);
    free(wanted);
    free(records);
}

void kp_passes_failed(struct kp_window_outcome *out)
{
    kp_window.context->dead = true;
    kp_collector_leave(kp_window.context->collector);
    out->note = kp_strdup("a kernel of the window failed");
}
