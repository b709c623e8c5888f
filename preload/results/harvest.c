#include "preload/results/harvest.h"

#include <string.h>

#include "base/lock.h"
#include "collectors/code/cubin.h"
#include "collectors/facts/topology.h"
#include "preload/os/log.h"
#include "preload/os/outcome.h"
#include "preload/graphs/graphs.h"
#include "preload/program/hostmem.h"
#include "preload/session/session.h"
#include "preload/results/batch.h"
#include "preload/gate/window_facts.h"

/* ---- the passes ---- */

void kp_harvest_judge(const struct kp_harvest *h, const struct kp_window_outcome *out)
{
    struct kp_context *c = h->context;
    if (out->replay.dead)
        c->dead = true;
    if (out->replay.damaged) {
        kp_outcome_failed(KP_FAILURE_DAMAGE);
        kp_log_error(
            "device memory could not be restored for a replay (%s): do not trust the program's results from here "
            "on; no more launches are replayed",
            out->why.reason ? kp_why_text(&out->why) : "no reason given");
        if (!c->no_counters.reason)
            c->no_counters = kp_why_of(KP_REASON_RESTORE_FAILED, NULL);
    }
    if (c->no_counters.reason)
        kp_session_warn_once(kp_why_text(&c->no_counters));
    else if (out->why.reason)
        kp_session_warn_once(kp_why_text(&out->why));
}

/* ---- results ---- */

/* Returns why a launch lacks values that only an activity record has. */
static struct kp_why why_no_config(const struct kp_harvest *h)
{
    if (!kp_context_cupti())
        return h->context->no_counters;
    if (h->context->dead)
        return kp_why_of(KP_REASON_RECORD_FAILED, NULL);
    if (h->no_config)
        return kp_why_of(h->no_config, NULL);
    return kp_why_of(kp_graph_any() ? KP_REASON_RECORD_AFTER_GRAPH : KP_REASON_NO_RECORD, NULL);
}

void kp_harvest_fill(const struct kp_harvest *h, const struct kp_entry *e, struct kp_result *r)
{
    struct kp_shape shape = e->launch.shape;
    const struct kp_function *f = &e->function->facts;
    struct kp_launch_extra extra = {.shared_config = e->config.shared_config,
                                    .registers = e->config.registers,
                                    .shared_config_why = why_no_config(h),
                                    .curves = h->context->curves};
    if (!shape.cluster[0] && f->cluster[0])
        memcpy(shape.cluster, f->cluster, sizeof(shape.cluster));
    if (!shape.cluster_policy)
        shape.cluster_policy = f->cluster_policy;
    kp_launch_metrics(r, h->setup->driver, &h->context->device, &h->context->facts, f, &shape, &extra);
    kp_result_set_all(r, &h->context->machine);
}

void kp_harvest_settle(const struct kp_harvest *h, struct kp_entry *e)
{
    if (e->result && e->function)
        kp_harvest_fill(h, e, e->result);
    e->function = NULL; /* may be read anew by the next launch */
}

/* Returns the window's cost to the program for each launch with a result, ns. */
static double cost_of_each(const struct kp_harvest *h, size_t wanted)
{
    double open_ns = kp_now_ns() - h->opened_ns, ns = h->ours_ns < open_ns ? h->ours_ns : open_ns;
    return wanted ? ns / (double)wanted : 0;
}

/* Returns why launches without counters lack them, if there is a reason. */
static struct kp_why why_missing(const struct kp_harvest *h, const struct kp_window_outcome *out)
{
    if (h->context->no_counters.reason)
        return h->context->no_counters;
    if (out->why.reason)
        return out->why;
    bool is_news = kp_mode_repeats(h->setup->mode) && !h->rotates; /* if nothing is replayed, there is no news */
    return kp_why_of(is_news ? h->once_reason : KP_REASON_NONE, NULL);
}

/* Returns true if the counters of a launch may show what its arguments do not: that it writes host memory. A kernel
 * that prints does so too, and nothing distinguishes its other writes from these. */
static bool is_unaware(const struct kp_harvest *h, const struct kp_entry *e)
{
    return h->repeated && e->function && !(e->function->once & KP_ONCE_PRINTS) && !e->reaches_host &&
           !kp_flags_met(KP_MET_MANAGED) && kp_hostmem_any();
}

/* Collects the result of an entry, operation `k` of the journal. */
static void take(const struct kp_harvest *h, struct kp_batch *b, struct kp_entry *e, bool counted)
{
    const char *name = e->function && *e->function->base ? e->function->base : e->result->launch.demangled;
    kp_batch_add(b, e->result, name ? name : "", e->key, false);
    kp_batch_kind(b, e->kind);
    e->result = NULL;
    if (!counted || !is_unaware(h, e))
        return;
    kp_batch_watch(b, !e->function->watched);
    e->function->watched = true;
}

void kp_harvest_hand_on(const struct kp_harvest *h, struct kp_window_outcome *out)
{
    const struct kp_journal_facts j = kp_journal_facts();
    struct kp_batch *b = kp_batch_new(j.wanted);
    double each = cost_of_each(h, j.wanted);
    if (b && h->rotates)
        kp_batch_group(b, h->group);
    for (size_t k = 0; k < j.records; k++) {
        struct kp_entry *e = kp_journal_entry(k);
        if (b && j.reads && k == j.repeated)
            kp_batch_cut(b, KP_REASON_AFTER_READ);
        if (!e || !e->result)
            continue;
        if (e->function && !h->hands_off)
            kp_harvest_fill(h, e, e->result);
        e->result->launch.passes = k < j.repeated ? (uint32_t)out->replay.passes : 0;
        e->result->launch.profiler_ns = each;
        if (b)
            take(h, b, e, k < j.repeated);
    }
    if (!b) {
        kp_session_warn(KP_FAILURE_MEMORY, "out of memory: results of a window are lost");
        kp_session_skip(KP_REASON_LOST, j.wanted);
    }
    kp_batch_finish(b, h->setup, h->context, out->counters, why_missing(h, out));
    out->counters = NULL;
}
