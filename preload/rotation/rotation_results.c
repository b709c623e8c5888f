/* What launches of a key have counted, put together into one result of the report. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/demangle.h"
#include "base/text.h"
#include "collectors/plan/alike.h"
#include "preload/rotation/rotation_state.h"
#include "report/model/counts.h"
#include "report/model/launch_names.h"

/* Adds the values that another launch has counted. */
static int merge(struct kp_rotation_key *k, size_t group, struct kp_result *counted)
{
    int rc = 0;
    for (size_t i = 0; !rc && i < counted->n_metrics; i++) {
        const struct kp_metric *m = &counted->metrics[i];
        if (!kp_plan_is_counter(k->of->plan, m->name))
            continue;
        if (m->kind == KP_VALUE_REAL)
            rc = kp_result_add_value(&k->result, m->name, m->unit, m->real);
        else if (!kp_result_find(&k->result, m->name))
            rc = kp_result_set_why(&k->result, m->name, kp_metric_why(m));
    }
    if (rc || group < k->of->lists)
        return rc;
    rc = kp_counts_add_launch(&k->result, counted);
    return rc ? rc : kp_result_take(&k->result, counted);
}

/* Clears the marks of what an extra group would have given to a launch: another launch may have it. */
static void unmark(const struct kp_rotation *r, size_t group, struct kp_result *counted)
{
    struct kp_result marked = {.n_metrics = 0};
    size_t extra = kp_rotation_extra_of(r, group);
    if (extra == SIZE_MAX)
        return;
    r->extras.missing(r->extras.of, extra, kp_why_of(KP_REASON_NONE, NULL), &marked);
    for (size_t i = 0; i < marked.n_metrics; i++) {
        const struct kp_metric *m = kp_result_find(counted, marked.metrics[i].name);
        if (m && m->kind == KP_VALUE_NA)
            kp_result_remove(counted, marked.metrics[i].name);
    }
    kp_result_free(&marked);
}

/* Notes for each counter of the plan that one launch has counted it. */
static void mark_counted(struct kp_result *r, const struct kp_plan *plan)
{
    for (size_t i = 0; i < r->n_metrics; i++)
        if (r->metrics[i].kind == KP_VALUE_REAL && kp_plan_is_counter(plan, r->metrics[i].name))
            r->metrics[i].counted = 1;
}

/* Starts the result with the first launch: its header, and values that are no counters. */
static void begin(struct kp_rotation_key *k, struct kp_result *first)
{
    k->result = *first;
    *first = (struct kp_result){.n_metrics = 0};
    k->result.launch.profiler_ns = 0;
    k->result.launch.graph_number = k->result.launch.node =
        0; /* other launches of the key belong to other nodes, or to none */
    if (kp_rotation_has_path(k->of) && kp_rotation_keep_path(&k->result.launch.nvtx))
        k->result.lossy = true;
    k->is_begun = true;
    mark_counted(&k->result, k->of->plan);
}

uint32_t kp_rotation_groups_counted(const struct kp_rotation_key *k)
{
    uint32_t n = 0;
    for (size_t g = 0; g < k->of->groups; g++)
        n += k->collected[g] > 0;
    return n + (k->apart && k->collected[k->of->groups]);
}

/* Keeps a value of a metric that shows if the launches are alike. */
static void keep_canary(struct kp_rotation_key *k, size_t i, double value)
{
    double *grown = NULL;
    if (!i && value > (double)atomic_load(&k->longest)) /* the duration */
        atomic_store(&k->longest, (uint64_t)value);
    if (!isnan(value))
        grown = realloc(k->canaries[i], (k->n_canaries[i] + 1) * sizeof(*grown));
    if (!grown)
        return;
    grown[k->n_canaries[i]++] = value;
    k->canaries[i] = grown;
}

static void keep_canaries(struct kp_rotation_key *k, const struct kp_result *counted)
{
    for (size_t i = 0; i < KP_ROTATION_CANARIES; i++)
        keep_canary(k, i, kp_rotation_value(counted, kp_plan_canaries[i]));
}

/* Returns true if the groups that different launches have counted may be mixed; otherwise *why has the reason, for
 * kp_why_free. */
static bool are_alike(struct kp_rotation_key *k, struct kp_why *why)
{
    for (size_t i = 0; i < KP_ROTATION_CANARIES; i++)
        if (!kp_alike(kp_plan_canaries[i], k->canaries[i], k->n_canaries[i], why))
            return false;
    return true;
}

/* Returns why groups were not counted, for kp_why_free. */
static struct kp_why say_missing(const struct kp_rotation_key *k, const struct kp_launch_info *l)
{
    if (k->apart)
        return kp_why_of(k->apart, NULL);
    return kp_why_make(KP_REASON_GROUP_NOT_REACHED, "%u of %u groups, in %llu launch%s%s%s", l->groups_counted,
                       l->groups, (unsigned long long)l->counted, l->counted == 1 ? "" : "es",
                       k->lost.reason ? "; " : "", k->lost.reason ? kp_why_text(&k->lost) : "");
}

/* Marks what is missing because extra groups were not counted, and why. */
static int mark_extras(const struct kp_rotation_key *k, struct kp_why why, struct kp_result *r)
{
    const struct kp_rotation *of = k->of;
    int rc = 0;
    for (size_t g = of->lists; !rc && g < of->groups; g++) {
        const struct kp_why *given_up = atomic_load(&of->why_given_up[g]);
        if (!k->collected[g])
            rc = of->extras.missing(of->extras.of, g - of->lists, given_up ? *given_up : why, r);
    }
    return rc;
}

/* Says which launches of the kernel and shape the key has, if not all. */
static void say_which(const struct kp_rotation_key *k, struct kp_launch_info *l)
{
    bool has_path = kp_rotation_has_path(k->of);
    if (k->apart && !l->note)
        kp_launch_set_note(l, kp_why_of(k->apart, NULL));
    char *path = has_path ? kp_rotation_say_path(&l->nvtx) : NULL;
    if (!has_path)
        return;
    free(l->note);
    l->reason = KP_REASON_NONE;
    if (!path || asprintf(&l->note, KP_KIND_NOTE "%s", path) < 0)
        l->note = NULL;
    free(path);
}

/* Adds to *why how to count launches separately that are not alike. */
static void say_apart(const struct kp_rotation_key *k, struct kp_why *why)
{
    char *text;
    if (k->of->beside || kp_rotation_has_path(k->of) || !atomic_load_explicit(&k->has_paths, memory_order_relaxed))
        return;
    if (asprintf(&text, "%s; they come from several NVTX ranges, which --rotate-key nvtx counts separately",
                 kp_why_text(why)) < 0)
        return;
    free(why->text);
    why->text = text;
}

/* Fills the header of `r`, and what follows from the counted values. The counts of the first launch of a key alongside
 * a replay are a group, too. */
static void complete(struct kp_rotation_key *k, struct kp_result *r)
{
    struct kp_launch_info *l = &r->launch;
    say_which(k, l);
    kp_rotation_stands_for(k, l);
    l->counted = k->received + k->first;
    l->groups = k->apart ? 1 : (uint32_t)(k->of->groups + k->first);
    l->groups_counted = kp_rotation_groups_counted(k) + (uint32_t)k->first;
    l->passes = k->apart ? 0 : l->groups_counted;
    struct kp_why why = say_missing(k, l);
    int rc = kp_plan_store_missing(k->of->plan, why, r);
    rc = rc ? rc : mark_extras(k, why, r);
    kp_why_free(&why);
    rc = rc ? rc : kp_plan_compose(k->of->plan, r);
    if (!rc && k->of->extras.n)
        rc = k->of->extras.derive(k->of->extras.of, r);
    rc = rc ? rc : kp_plan_derive(k->of->plan, r);
    rc = rc ? rc : kp_plan_spread(k->of->plan, r);
    if (!rc && !k->apart && !are_alike(k, &why)) {
        say_apart(k, &why);
        rc = kp_plan_refuse(k->of->plan, why, r);
        kp_why_free(&why);
    }
    if (rc || r->lossy)
        kp_session_warn_once("out of memory: values of launches are missing");
}

void kp_rotation_tell_key(struct kp_rotation_key *k)
{
    complete(k, &k->result);
    char *base = kp_demangle_base(k->mangled);
    struct kp_session_entry e = {
        .result = &k->result, .base = base ? base : k->mangled, .profiled = k->result.launch.groups_counted > 0};
    kp_session_results(&e, 1);
    free(base);
    k->id = e.id;
    k->is_over = true;
    kp_rotation_close(k);
}

void kp_rotation_enter(struct kp_rotation_key *k)
{
    struct kp_result whole, counted;
    int rc = kp_result_copy(&k->result, &whole);
    if (!rc && kp_counts_copy(&k->result, &whole)) {
        kp_result_free(&whole);
        rc = -ENOMEM;
    }
    if (rc) {
        kp_session_warn(KP_FAILURE_MEMORY, "out of memory: values of launches are missing");
        return;
    }
    complete(k, &whole);
    if (!kp_result_copy(&k->result, &counted)) {
        kp_result_take(&whole, &counted);
        kp_result_free(&counted);
    }
    char *base = kp_demangle_base(k->mangled);
    kp_session_replace(&whole, base ? base : k->mangled, &k->told);
    free(base);
    k->entered = k->received;
}

void kp_rotation_begin(struct kp_rotation_key *k, const struct kp_plan *plan, const struct kp_result *first)
{
    struct kp_launch_info *l = &k->result.launch;
    if (k->is_begun || kp_result_copy(first, &k->result))
        return; /* another launch starts it */
    keep_canaries(k, first);
    kp_launch_set_note(l, kp_why_of(k->once_reason, NULL));
    l->graph_number = l->node = 0;
    mark_counted(&k->result, plan);
    k->is_begun = true;
}

void kp_rotation_begun(struct kp_rotation_key *k, const struct kp_session_entry *entry)
{
    struct kp_launch_info *l = &k->result.launch;
    k->has_entry = k->is_begun;
    k->id = l->id = entry->id;
    k->first = entry->profiled;
    k->told = (struct kp_session_told){k->first, l->passes, l->profiler_ns};
}

/* Forgets the times that launches had before the first quiet one. */
static void begin_quiet(struct kp_rotation_key *k)
{
    k->quiet = true;
    if (k->received)
        kp_session_skip(KP_REASON_ROTATE_TIMED, k->received);
    k->due -= k->received;
    k->received = k->collected[k->of->groups] = 0;
    kp_result_remove(&k->result, kp_plan_canaries[0]);
}

/* Adds what a launch has counted; `why`: the reason if it has not. */
static void add(struct kp_rotation_key *k, size_t group, struct kp_result *counted, struct kp_why why)
{
    double ns = counted->launch.profiler_ns;
    k->received++;
    keep_canaries(k, counted);
    if (why.reason) {
        kp_why_free(&k->lost);
        k->lost = kp_why_copy(why);
        unmark(k->of, group, counted);
    } else {
        k->collected[group]++;
    }
    if (!k->is_begun)
        begin(k, counted);
    else if (merge(k, group, counted))
        k->result.lossy = true;
    k->result.launch.profiler_ns += ns;
}

/* Returns true if the counts are reported now: when all are complete; alongside a replay also once before, when each
 * group has been counted. */
static bool is_told_now(const struct kp_rotation_key *k)
{
    const struct kp_rotation *r = k->of;
    if (r->beside && !k->has_entry)
        return false;
    return k->received == k->due || (r->beside && !k->entered && kp_rotation_groups_counted(k) == r->groups);
}

void kp_rotation_collect(struct kp_rotation_key *k, size_t group, bool quiet, struct kp_result *counted,
                         struct kp_why why)
{
    if (k->is_over) /* cannot be: a key accepts no more launches than are needed */
        return;
    if (k->apart && quiet && !k->quiet)
        begin_quiet(k);
    add(k, group, counted, why);
    if (is_told_now(k))
        (k->of->beside ? kp_rotation_enter : kp_rotation_tell_key)(k);
}
