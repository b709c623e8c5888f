#include <stddef.h>

#include "collectors/providers/observe.h"
#include "preload/window/issue.h"
#include "preload/window/probe.h"
#include "preload/window/strategy.h"
#include "preload/window/waits.h"

/* Launches without counters, each in a window of its own. */

static bool admit(const struct kp_fit *fit)
{
    (void)fit;
    return true;
}

static bool takes(const struct kp_fit *fit)
{
    (void)fit;
    return false;
}

static const char *alone(const struct kp_fit *fit)
{
    (void)fit;
    return "a launch without counters";
}

/* What only an activity record tells can be read from this one execution. */
static CUresult issue(struct kp_item *i)
{
    const struct kp_cupti *cupti = kp_context_cupti();
    struct kp_executed record;
    size_t n = 0;
    bool probing = i->result && kp_probe_wanted() && !kp_probe_begin(cupti);
    CUresult rc = kp_issue_launch(i, NULL);
    if (!probing)
        return rc;
    CUresult end = rc == CUDA_SUCCESS
                       ? kp_wait_for_context(kp_window.setup->driver, kp_window.context->ctx, KP_ALONE_MS, KP_SHORT_MS)
                       : CUDA_SUCCESS;
    if (end != CUDA_SUCCESS && end != CUDA_ERROR_NOT_READY)
        kp_window.context->dead = true;
    kp_probe_end(cupti, &record, 1, &n);
    kp_probe_learn(&record, n);
    return rc;
}

const struct kp_strategy kp_strategy_plain = {
    .name = "plain",
    .admit = admit,
    .takes = takes,
    .alone = alone,
    .issue = issue,
};
