#include "preload/window/harvest.h"

#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "base/text.h"
#include "collectors/facts/topology.h"
#include "preload/os/log.h"
#include "preload/os/outcome.h"
#include "preload/session/session.h"
#include "preload/window/batch.h"
#include "preload/window/record.h"
#include "preload/window/strategy.h"

static const char no_probe[] =
    "read from an activity record, which another user of CUPTI in this process holds, or which "
    "this CUPTI lacks";
static const char after_failure_probe[] = "a kernel had failed";

/* The values of a launch that need no counter. Attributes of the launch win over those of the function. */
static void fill_launch(struct kp_item *i)
{
    struct kp_shape shape = i->launch.shape;
    const struct kp_function *f = &i->function->facts;
    struct kp_launch_extra extra = {.shared_config = i->config.shared_config,
                                    .registers = i->config.registers,
                                    .shared_config_why = !kp_context_cupti()       ? kp_window.context->no_counters
                                                         : kp_window.context->dead ? after_failure_probe
                                                         : kp_window.strategy->config_why
                                                             ? kp_window.strategy->config_why
                                                             : no_probe,
                                    .curves = kp_window.context->curves};
    if (!shape.cluster[0] && f->cluster[0])
        memcpy(shape.cluster, f->cluster, sizeof(shape.cluster));
    if (!shape.cluster_policy)
        shape.cluster_policy = f->cluster_policy;
    kp_launch_metrics(i->result, kp_window.setup->driver, &kp_window.context->device, &kp_window.context->facts, f,
                      &shape, &extra);
    kp_device_metrics_copy(i->result, &kp_window.context->machine);
}

/* Hands the results on: to the worker, which evaluates and stores them. */
void kp_harvest(struct kp_window_outcome *out)
{
    struct kp_context *c = kp_window.context;
    struct kp_batch *b = kp_batch_new(kp_window.wanted);
    double each = kp_window.wanted ? (kp_now_ns() - kp_window.opened_ns) : 0;
    if (kp_window.ours_ns < each)
        each = kp_window.ours_ns;
    each = kp_window.wanted ? each / (double)kp_window.wanted : 0;
    sigset_t before = kp_signals_hold();
    for (size_t k = 0; k < kp_window.n; k++) {
        struct kp_item *i = &kp_window.items[k];
        if (!i->result)
            continue;
        if (i->function && !kp_window.hands_off)
            fill_launch(i);
        i->result->launch.passes = (uint32_t)out->replay.passes;
        i->result->launch.profiler_ns = each;
        const char *name = i->function && *i->function->base ? i->function->base : i->result->launch.demangled;
        if (b) {
            kp_batch_add(b, i->result, name ? name : "");
            i->result = NULL;
        }
    }
    kp_signals_let(&before);
    if (!b)
        kp_session_warn(KP_FAILURE_MEMORY, "out of memory: results of a window are lost");
    const char *obstacle =
        kp_window.setup->one_pass ? NULL : kp_window.obstacle; /* where nothing is replayed it is no news */
    const char *why = c->no_counters ? c->no_counters : out->note ? out->note : obstacle;
    kp_batch_finish(b, kp_window.setup, c, out->counters, why);
    out->counters = NULL;
}

void kp_harvest_judge(const struct kp_window_outcome *out)
{
    struct kp_context *c = kp_window.context;
    if (out->replay.dead)
        c->dead = true;
    if (out->replay.damaged) {
        kp_outcome_failed(KP_FAILURE_DAMAGE);
        kp_log_error(
            "device memory could not be restored for a replay (%s): the program's results from here on are not "
            "to be trusted; no more launches are replayed",
            out->note ? out->note : "no reason given");
        if (!c->no_counters)
            c->no_counters = kp_strdup("a restore of the device memory failed earlier");
    }
    if (c->no_counters)
        kp_session_warn_once(c->no_counters);
    else if (out->note)
        kp_session_warn_once(out->note);
}

void kp_harvest_complaints(void)
{
    char *text;
    while (kp_window.context->collector && (text = kp_collector_complaint(kp_window.context->collector))) {
        kp_session_warn(KP_FAILURE_IN_PART, text);
        free(text);
    }
}
