#include "preload/window/harvest.h"

#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "collectors/code/cubin.h"
#include "collectors/facts/topology.h"
#include "preload/os/log.h"
#include "preload/os/outcome.h"
#include "preload/os/worker.h"
#include "preload/program/graphs.h"
#include "preload/program/hostmem.h"
#include "preload/session/session.h"
#include "preload/window/batch.h"
#include "preload/window/flags.h"
#include "preload/window/strategy.h"
#include "preload/window/timed.h"

static const char no_record[] = "read from an activity record, which another user of CUPTI in this process holds, or "
                                "which this CUPTI lacks";
static const char after_graph[] =
    "read from an activity record, which lacks it for launches that run once, after a graph "
    "was instantiated";
static const char read_differed[] = "made after the program had read a value that was another one in a repetition, not "
                                    "replayed";
static const char after_failure[] = "a kernel had failed";

/* ---- the passes ---- */

void kp_harvest_judge(struct kp_window *w, const struct kp_window_outcome *out)
{
    struct kp_context *c = w->context;
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

/* ---- results ---- */

/* Returns why a launch lacks values that only an activity record has. */
static const char *why_no_config(const struct kp_window *w)
{
    if (!kp_context_cupti())
        return w->context->no_counters;
    if (w->context->dead)
        return after_failure;
    if (w->strategy->no_config)
        return w->strategy->no_config;
    return kp_graph_any() ? after_graph : no_record;
}

void kp_harvest_fill(const struct kp_window *w, const struct kp_item *i, struct kp_result *r)
{
    struct kp_shape shape = i->launch.shape;
    const struct kp_function *f = &i->function->facts;
    struct kp_launch_extra extra = {.shared_config = i->config.shared_config,
                                    .registers = i->config.registers,
                                    .shared_config_why = why_no_config(w),
                                    .curves = w->context->curves};
    if (!shape.cluster[0] && f->cluster[0])
        memcpy(shape.cluster, f->cluster, sizeof(shape.cluster));
    if (!shape.cluster_policy)
        shape.cluster_policy = f->cluster_policy;
    kp_launch_metrics(r, w->setup->driver, &w->context->device, &w->context->facts, f, &shape, &extra);
    kp_device_metrics_copy(r, &w->context->machine);
}

void kp_harvest_settle(const struct kp_window *w, struct kp_item *i)
{
    if (i->result && i->function)
        kp_harvest_fill(w, i, i->result);
    i->function = NULL; /* may be read anew by the next launch */
}

/* Returns the window's cost to the program for each launch with a result, ns. */
static double cost_of_each(const struct kp_window *w)
{
    double open_ns = kp_now_ns() - w->opened_ns, ns = w->ours_ns < open_ns ? w->ours_ns : open_ns;
    return w->wanted ? ns / (double)w->wanted : 0;
}

/* Returns why launches without counters lack them, or NULL. */
static const char *why_missing(const struct kp_window *w, const struct kp_window_outcome *out)
{
    if (w->context->no_counters)
        return w->context->no_counters;
    if (out->note)
        return out->note;
    return w->setup->one_pass || w->rotates ? NULL : w->obstacle; /* if nothing is replayed, it is no news */
}

/* Whether the counters of a launch may tell what its arguments do not: that it writes host memory. A kernel that prints
 * does so, too, and nothing tells its other writes from these. */
static bool is_unaware(const struct kp_window *w, size_t k)
{
    const struct kp_item *i = &w->items[k];
    bool repeated = k < w->end && w->strategy->rewinds && !w->strategy->whole;
    return repeated && i->function && !(i->function->once & KP_ONCE_PRINTS) && !i->reaches_host &&
           !kp_flags_met(KP_MET_MANAGED) && kp_hostmem_any();
}

void kp_harvest_hand_on(struct kp_window *w, struct kp_window_outcome *out)
{
    struct kp_batch *b = kp_batch_new(w->wanted);
    double each = cost_of_each(w);
    if (b && w->rotates)
        kp_batch_group(b, w->group);
    for (size_t k = 0; k < w->n; k++) {
        struct kp_item *i = &w->items[k];
        if (b && w->reads && k == w->end)
            kp_batch_cut(b, read_differed);
        if (!i->result)
            continue;
        if (i->function && !w->hands_off)
            kp_harvest_fill(w, i, i->result);
        i->result->launch.passes = k < w->end ? (uint32_t)out->replay.passes : 0;
        i->result->launch.profiler_ns = each;
        const char *name = i->function && *i->function->base ? i->function->base : i->result->launch.demangled;
        if (b) {
            kp_batch_add(b, i->result, name ? name : "", i->key, false);
            i->result = NULL;
            if (is_unaware(w, k)) {
                kp_batch_watch(b, !i->function->watched);
                i->function->watched = true;
            }
        }
    }
    if (!b) {
        kp_session_warn(KP_FAILURE_MEMORY, "out of memory: results of a window are lost");
        kp_session_skip(kp_lost, w->wanted);
    }
    kp_batch_finish(b, w->setup, w->context, out->counters, why_missing(w, out));
    out->counters = NULL;
}

/* ---- planning again ---- */

/* Plans with the counters that the device offers, after it refused the plan for the whole chip. */
static void plan_again(const struct kp_window *w)
{
    struct kp_context *c = w->context;
    kp_worker_drain(KP_FOREVER);
    kp_timed_end(); /* it ends the rotation, whose keys launches wait for */
    kp_context_plan_again(w->setup, c);
    if (c->no_counters)
        kp_session_warn_once(c->no_counters);
}

void kp_harvest_follow_up(struct kp_window *w, const struct kp_window_outcome *out)
{
    char *text;
    while (w->context->collector && (text = kp_collector_complaint(w->context->collector))) {
        kp_session_warn(KP_FAILURE_IN_PART, text);
        free(text);
    }
    if (out->replay.failed == KP_STAGE_BEGIN || out->replay.failed == KP_STAGE_START)
        plan_again(w);
}
