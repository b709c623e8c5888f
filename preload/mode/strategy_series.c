/*
 * A profile series: replays a window of one launch, like the replay, and before that runs variants of the launch.
 * Memory is put back to that of the program's own execution each time.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/debug.h"
#include "base/lock.h"
#include "preload/mode/close.h"
#include "preload/os/progress.h"
#include "preload/os/worker.h"
#include "preload/session/session.h"
#include "preload/who/timeline.h"
#include "preload/gate/window_facts.h"
#include "preload/results/harvest.h"
#include "preload/mode/job.h"
#include "preload/results/probe.h"
#include "preload/mode/repeat_common.h"
#include "preload/mode/strategy.h"
#include "preload/mode/variant.h"
#include "preload/program/waits.h"

/* What to vary for each launch: no variants until it is read. */
static struct kp_vary vary;

/* Reads it; the options have checked it. Returns false if memory is short. */
static bool is_read(const struct kp_options *o)
{
    char *err = NULL;
    if (!vary.n && kp_vary_read(o->vary, &vary, &err))
        vary.n = 0;
    free(err);
    return vary.n;
}

static bool suits_series(const struct kp_question *q)
{
    return q->what->wanted && q->function && !q->by_node && kp_strategy_replay.suits(q) && is_read(q->setup->options);
}

static enum kp_reason admit_series(const struct kp_question *q)
{
    (void)q;
    return KP_REASON_SERIES;
}

static bool open_series(struct kp_window *w, const struct kp_question *q, struct kp_why *why, enum kp_reason *reason)
{
    bool opened = kp_strategy_replay.open(w, q, why, reason);
    if (opened)
        w->most = 1;
    return opened;
}

static CUresult issue_series(struct kp_window *w, struct kp_entry *e)
{
    return kp_strategy_replay.issue(w, e);
}

/* ---- settings of a variant ---- */

/* What a variant sets, and the values before. */
struct settings {
    const struct kp_driver *driver;
    CUfunction f;
    struct {
        bool is_set;
        int before;
    } carveout, most_shared;
    CUlaunchAttribute *attribute; /* of the launch, which takes precedence over the function's; NULL = none */
    CUlaunchAttributeValue value; /* its previous value */
};

/* Sets an attribute of the function. Returns true if it now has that value. */
static bool set_attribute(struct settings *s, CUfunction_attribute a, int value, bool *is_set, int *before)
{
    const struct kp_driver *d = s->driver;
    *is_set =
        d->cuFuncGetAttribute(before, a, s->f) == CUDA_SUCCESS && d->cuFuncSetAttribute(s->f, a, value) == CUDA_SUCCESS;
    return *is_set;
}

static CUlaunchAttribute *carveout_of(const struct kp_launch *l)
{
    for (unsigned i = 0; i < l->config.numAttrs; i++)
        if (l->config.attrs[i].id == CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT)
            return &l->config.attrs[i];
    return NULL;
}

/* Returns why the driver does not accept a setting, if there is a reason. Undo it whatever is returned. */
static enum kp_reason set_up(struct settings *s, const struct kp_trial *t, const struct kp_launch *l)
{
    const struct kp_vary_value *carveout = t->of.of[KP_VARY_CARVEOUT];
    int most = 0;
    s->f = l->f;
    if (s->driver->cuFuncGetAttribute(&most, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, s->f) == CUDA_SUCCESS &&
        t->shape.dynamic_shared > (uint64_t)most &&
        !set_attribute(s, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)t->shape.dynamic_shared,
                       &s->most_shared.is_set, &s->most_shared.before))
        return KP_REASON_VARIANT_SHARED;
    if (!carveout)
        return KP_REASON_NONE;
    s->attribute = carveout_of(l);
    if (s->attribute) {
        s->value = s->attribute->value;
        s->attribute->value.sharedMemCarveout = (unsigned)carveout->number;
    }
    return set_attribute(s, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, (int)carveout->number,
                         &s->carveout.is_set, &s->carveout.before)
               ? KP_REASON_NONE
               : KP_REASON_VARIANT_CARVEOUT;
}

static void undo(const struct settings *s)
{
    if (s->most_shared.is_set)
        s->driver->cuFuncSetAttribute(s->f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, s->most_shared.before);
    if (s->carveout.is_set)
        s->driver->cuFuncSetAttribute(s->f, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, s->carveout.before);
    if (s->attribute)
        s->attribute->value = s->value;
}

/* ---- a variant ---- */

struct series {
    struct kp_window *w;
    struct kp_entry *item;
    struct kp_window_outcome *out; /* of the window; a variant that breaks it ends the series */
};

static void note_why(struct kp_result *r, struct kp_why why)
{
    if (!r->launch.note)
        kp_launch_set_note(&r->launch, why);
}

/* Says what a refused or failed repetition means for a variant. */
static void explain(struct series *s, struct kp_result *r, const struct kp_window_outcome *out, const char *name)
{
    enum kp_reason reason = out->replay.code == KP_ISSUE_REFUSED    ? KP_REASON_VARIANT_REFUSED
                            : out->replay.code == KP_ISSUE_TOO_LONG ? KP_REASON_VARIANT_UNENDED
                                                                    : KP_REASON_VARIANT_UNCOUNTED;
    bool known = reason == KP_REASON_VARIANT_UNCOUNTED && out->why.reason;
    struct kp_why why = known ? out->why : kp_why_of(reason, NULL);
    note_why(r, why);
    if (!out->replay.dead && !out->replay.damaged)
        return;
    s->out->replay = out->replay;
    char *text;
    if (asprintf(&text,
                 "the variant %s of a launch broke the program's context (%s): name only values that the kernel "
                 "can run with",
                 name, kp_why_text(&why)) < 0)
        text = NULL;
    s->out->why = kp_why_of(KP_REASON_VARIANT_BROKE, text);
    kp_session_warn(KP_FAILURE_DAMAGE, kp_why_text(&s->out->why));
}

/* Turns the counters into values. */
static void evaluate(struct series *s, struct kp_result *r, struct kp_window_outcome *out)
{
    const struct kp_context *c = s->w->context;
    kp_worker_drain(KP_FOREVER); /* one evaluation at a time */
    struct kp_why wrong = {KP_REASON_NONE, NULL};
    if (out->counters)
        wrong = kp_counters_evaluate(out->counters, &(struct kp_result *){r});
    if (wrong.reason)
        note_why(r, wrong);
    kp_window_fill(s->item, r);
    struct kp_why why = {r->launch.reason, r->launch.note};
    kp_plan_store_missing(c->plan, why.reason ? why : kp_why_of(KP_REASON_NOT_COLLECTED, NULL), r);
    kp_plan_derive(c->plan, r);
    kp_why_free(&wrong);
}

static void learn(struct series *s, const struct kp_window_job *job)
{
    const struct kp_launch *l = &s->item->launch;
    if (job->n_executed && kp_probe_tells(&job->executed[0]))
        s->item->config = (struct kp_known_config){.threads = l->shape.block[0] * l->shape.block[1] * l->shape.block[2],
                                                   .dynamic_shared = l->shape.dynamic_shared,
                                                   .shared_config = job->executed[0].shared_config_size,
                                                   .registers = job->executed[0].registers};
}

/* Runs the variant, which now is the window's launch, through the passes. */
static void count_variant(struct series *s, struct kp_result *r, const char *name)
{
    struct kp_window *w = s->w;
    struct kp_window_outcome out = {.why = {KP_REASON_NONE, NULL}};
    enum kp_reason waits = s->item->function->waits_reason;
    struct kp_job j = kp_job_make(w);
    j.job.probe = w->setup->configs && j.job.executed && kp_context_may_probe();
    s->item->config = (struct kp_known_config){0};
    if (j.job.probe)
        kp_probe_mark_one(s->item);
    kp_replay_passes(w, &kp_one_by_one, KP_WAIT_VARIANT, &j, &out); /* a variant may be far slower */
    learn(s, &j.job);
    s->item->function->waits_reason = waits; /* the program's own launch did end */
    if (out.replay.failed != KP_STAGE_NONE || !out.counters)
        explain(s, r, &out, name);
    r->launch.passes = (uint32_t)out.replay.passes;
    if (!out.replay.dead)
        evaluate(s, r, &out);
    kp_counters_free(out.counters);
    kp_why_free(&out.why);
    kp_job_free(&j);
}

static void fill_header(const struct series *s, struct kp_result *r, const struct kp_shape *shape)
{
    const struct kp_launch_info *own = &s->item->result->launch;
    memcpy(r->launch.grid, shape->grid, sizeof(shape->grid));
    memcpy(r->launch.block, shape->block, sizeof(shape->block));
    r->launch.context_id = own->context_id;
    r->launch.stream_id = own->stream_id;
    r->launch.device = own->device;
    r->launch.cc_major = own->cc_major;
    r->launch.cc_minor = own->cc_minor;
}

/* Launches the trial in place of the program's launch. */
static void run(struct series *s, struct kp_result *r, const struct kp_trial *t, const char *name)
{
    struct kp_entry *i = s->item;
    struct settings settings = {.driver = s->w->setup->driver};
    kp_trial_apply(t, &i->launch);
    enum kp_reason reason = set_up(&settings, t, &i->launch);
    if (reason)
        note_why(r, kp_why_of(reason, NULL));
    else
        count_variant(s, r, name);
    if (!s->out->replay.dead)
        undo(&settings);
}

/* Tries one variant; `why`: no variant can be tried. */
static void try_one(struct series *s, const struct kp_variation *of, struct kp_why why)
{
    struct kp_entry *i = s->item;
    const struct kp_launch own = i->launch;
    const struct kp_known_config config = i->config;
    struct kp_variant *v = kp_result_add_variant(i->result, of->name);
    if (!v) {
        i->result->lossy = true;
        return;
    }
    struct kp_result *r = v->of;
    const struct kp_trial t = kp_trial_make(&s->w->context->device, &i->function->facts, &own, of);
    fill_header(s, r, &t.shape);
    struct kp_why own_why = why.reason ? kp_why_copy(why) : kp_trial_reason(&t);
    note_why(r, own_why);
    kp_why_free(&own_why);
    if (!r->launch.note)
        run(s, r, &t, of->name);
    i->launch = own;
    i->config = config;
    kp_debug(KP_DEBUG_WINDOW, "variant %s: %s", of->name, r->launch.note ? r->launch.note : "counted");
}

/* ---- closing ---- */

/* Returns why no variant can be tried, if there is a reason: then memory is kept as the program's own execution left
 * it. */
static enum kp_reason prepare(struct kp_window *w)
{
    struct kp_why why = {KP_REASON_NONE, NULL};
    if (kp_flags_hurried())
        return KP_REASON_VARIANT_ENDING;
    if (!kp_collector_keep(w->context->collector, &why)) {
        kp_journal_keep_host();
        return KP_REASON_NONE;
    }
    kp_debug(KP_DEBUG_WINDOW, "no variants: %s", kp_why_text(&why));
    kp_why_free(&why);
    return KP_REASON_VARIANT_NO_ROOM;
}

static void try_all(struct series *s)
{
    struct kp_window *w = s->w;
    enum kp_reason why = prepare(w);
    char text[96];
    for (size_t k = 0; k < vary.n && !s->out->replay.dead && !s->out->replay.damaged; k++) {
        const struct kp_variation of = kp_vary_at(&vary, k);
        snprintf(text, sizeof(text), "variant %zu of %zu of a launch", k + 1, vary.n);
        kp_progress_step(text, false);
        try_one(s, &of, kp_why_of(why, NULL));
    }
    if (!why && !s->out->replay.dead)
        kp_journal_release_host();
    kp_journal_begin_repeats();
}

/* Returns true if the launch has ended, so that variants can be tried. If not, the replay reports why. */
static bool has_ended(struct kp_window *w)
{
    bool ended = !kp_flags_spoiled() && !w->unending && kp_journal_facts().records == 1 &&
                 kp_journal_entry(0)->result &&
                 kp_wait_for(w->setup->driver, w->context->ctx, KP_WAIT_RANGE_END) == CUDA_SUCCESS;
    if (ended)
        kp_replay_ended(w);
    return ended;
}

static void close_series(struct kp_window *w, struct kp_window_outcome *out)
{
    struct series s = {w, kp_journal_entry(0), out};
    if (has_ended(w)) {
        kp_timeline_pause(w->context->id);
        try_all(&s);
        kp_timeline_resume();
    }
    if (out->replay.dead)
        kp_collector_leave(w->context->collector);
    else if (out->replay.damaged)
        kp_collector_drop(w->context->collector);
    else
        kp_strategy_replay.close(w, out);
}

static void abandon_series(struct kp_window *w)
{
    kp_strategy_replay.abandon(w);
}

const struct kp_strategy kp_strategy_series = {
    .name = "series",
    .rewinds = true,
    .suits = suits_series,
    .admit = admit_series,
    .open = open_series,
    .issue = issue_series,
    .close = close_series,
    .abandon = abandon_series,
};
