/* Launches of a kernel and shape that are not alike: each kind of them becomes a key. */
#include <errno.h>
#include <stdlib.h>

#include "base/lock.h"
#include "collectors/plan/alike.h"
#include "preload/gate/passing.h"
#include "preload/program/rotation_state.h"
#include "report/model/counts.h"

static struct kp_lock *const lock = &kp_locks[KP_LOCK_KINDS];

/* Keeps what a launch has counted, for its kind. Of a group behind the lists only that there was a launch. */
static void keep(struct kp_rotation_key *k, size_t group, size_t number, const struct kp_result *counted, bool nothing)
{
    const struct kp_config *g = group < k->of->lists && !nothing ? &k->of->plan->groups[group] : NULL;
    kp_lock_take(lock, KP_FOREVER);
    struct kp_kept *one = k->kinds ? kp_kinds_kept(k->kinds, number) : NULL;
    if (one) {
        one->counted = true;
        one->group = group;
        one->ns = counted->launch.profiler_ns;
        one->values = g ? malloc((g->n_names + 1) * sizeof(*one->values)) : NULL;
        for (size_t i = 0; one->values && i < g->n_names; i++)
            one->values[i] = kp_rotation_value(counted, g->names[i]);
        for (size_t i = 0; i < KP_KINDS_CANARIES; i++)
            one->canaries[i] = g ? kp_rotation_value(counted, kp_plan_canaries[i]) : NAN;
    }
    kp_lock_give(lock);
}

/* Adds what a launch of all kinds has counted to the key of its own. 0 or -ENOMEM. */
static int add_kept(struct kp_rotation_key *part, const struct kp_kept *one)
{
    int rc = 0;
    part->received++;
    part->result.launch.profiler_ns += one->ns;
    if (one->group >= part->of->lists) /* each kind is to have a launch of its own */
        return 0;
    const struct kp_config *g = &part->of->plan->groups[one->group];
    kp_rotation_note_taken(part, one->group);
    part->collected[one->group] += one->values != NULL;
    for (size_t i = 0; one->values && !rc && i < g->n_names; i++) {
        const struct kp_metric *m = kp_result_find(&part->whole->result, g->names[i]);
        if (!isnan(one->values[i]))
            rc = kp_result_add_value(&part->result, g->names[i], m ? m->unit : "", one->values[i]);
    }
    for (size_t i = 0; i < KP_KINDS_CANARIES; i++)
        kp_rotation_keep_canary(part, i, one->canaries[i]);
    return rc;
}

/* Removes what launches of all kinds have counted. */
static void drop_counted(const struct kp_rotation *r, struct kp_result *of)
{
    struct kp_result marked = {.n_metrics = 0};
    kp_result_drop_means(of);
    kp_counts_forget(of);
    for (size_t i = 0; i < r->extras.n; i++)
        r->extras.missing(r->extras.of, i, "", &marked);
    for (size_t i = 0; i < marked.n_metrics; i++)
        kp_result_remove(of, marked.metrics[i].name);
    kp_result_free(&marked);
}

/* Returns how many launches a key is to receive that has taken some. */
static uint64_t due_of(const struct kp_rotation_key *k)
{
    uint64_t due = k->received;
    for (size_t g = 0; g < k->of->groups; g++)
        due += k->taken[g] < kp_rotation_each_of(k->of, g) ? kp_rotation_each_of(k->of, g) - k->taken[g] : 0;
    return due;
}

/* Makes the key of a kind, with what its launches have counted so far. NULL without memory. */
static struct kp_rotation_key *new_part(struct kp_rotation_key *k, const struct kp_kinds_choice *c, size_t at)
{
    struct kp_rotation_key *part = kp_rotation_new_key(k->of, &k->shape, k->mangled);
    int rc = part ? kp_result_copy(&k->result, &part->result) : -ENOMEM;
    if (part) {
        part->number = k->number;
        part->whole = k;
        part->part = at;
        part->before = c->seen[at];
        part->seen_at = kp_rotation_now();
        part->gap = part->seen_at / c->seen[at]; /* as if they came evenly, until the next one tells */
        part->is_begun = !rc;
    }
    if (!rc) {
        drop_counted(k->of, &part->result);
        part->result.launch.profiler_ns = 0;
    }
    const struct kp_kept *one;
    for (size_t i = 1; !rc && (one = kp_kinds_kept(k->kinds, i)); i++)
        if (one->counted && one->at[c->number] == at)
            rc = add_kept(part, one);
    if (rc) {
        if (part)
            kp_rotation_free_key(part);
        return NULL;
    }
    part->due = due_of(part);
    return part;
}

/* Makes the keys of all kinds. NULL without memory. */
static struct kp_rotation_split *new_split(struct kp_rotation_key *k, const struct kp_kinds_choice *c)
{
    struct kp_rotation_split *s = calloc(1, sizeof(*s));
    bool fine = s;
    if (s)
        s->trait = c->trait;
    for (size_t i = 0; fine && i < c->n; i++) {
        s->at[i].value = c->values[i];
        fine = (k->parts[i] = new_part(k, c, i));
    }
    if (fine) {
        atomic_store(&s->n, c->n);
        return s;
    }
    for (size_t i = 0; i < KP_KINDS_MOST; i++) {
        if (k->parts[i])
            kp_rotation_free_key(k->parts[i]);
        k->parts[i] = NULL;
    }
    free(s);
    return NULL;
}

/* Has the launches counted by kind from now on, where something tells the kinds apart before they run. */
static bool split_up(struct kp_rotation_key *k)
{
    struct kp_kinds_choice c;
    struct kp_rotation_split *s = NULL;
    kp_lock_take(lock, KP_FOREVER);
    bool room = k->kinds && atomic_load(&k->of->n_keys) + KP_KINDS_MOST <= KP_ROTATION_KEYS;
    if (room && kp_kinds_choose(k->kinds, kp_plan_canaries, &c))
        s = new_split(k, &c);
    if (s) {
        atomic_store(&k->split, s);
        for (struct kp_rotation_place *p = atomic_load(&k->places); p; p = p->next_of_key)
            atomic_store(&p->split, s);
        kp_passing_outdate();
        atomic_fetch_add(&k->of->n_keys, c.n);
    }
    kp_kinds_free(k->kinds);
    k->kinds = NULL;
    kp_lock_give(lock);
    for (size_t i = 0; s && i < c.n; i++)
        if (k->parts[i]->received == k->parts[i]->due)
            kp_rotation_tell_key(k->parts[i]);
    return s;
}

/* Tells what the key has counted, now that nothing is lacking; or begins to count its kinds. */
static void tell(struct kp_rotation_key *k)
{
    char why[480];
    if (k->whole || kp_rotation_alike(k, why, sizeof(why)) || !split_up(k))
        kp_rotation_tell_key(k);
}

/* Whether a kind has been counted by each list that all launches together were. */
static bool has_whole_part(const struct kp_rotation_key *k)
{
    for (size_t i = 0; i < kp_rotation_parts(k); i++) {
        size_t g = 0;
        while (g < k->of->lists && (k->parts[i]->collected[g] || !k->collected[g]))
            g++;
        if (g == k->of->lists)
            return true;
    }
    return false;
}

void kp_rotation_tell_early(struct kp_rotation_key *k)
{
    char why[480];
    bool parted = atomic_load(&k->split) || (!kp_rotation_alike(k, why, sizeof(why)) && split_up(k));
    if (parted && has_whole_part(k))
        return; /* they are passed on behind it */
    k->rejoined = parted;
    kp_rotation_tell_key(k);
}

/* Whether what was counted is told now: all of it; beside a replay, once before, when each group has been counted. */
static bool is_told_now(const struct kp_rotation_key *k)
{
    const struct kp_rotation *r = k->of;
    if (r->beside && !k->has_entry)
        return false;
    return k->received == k->due || (r->beside && !k->entered && kp_rotation_groups_counted(k) == r->groups);
}

/* Adds what a launch of a kind has counted to the key of all kinds, which may be told in their place. It has its own
 * samples and counts by instruction. */
static void add_to_whole(struct kp_rotation_key *k, size_t group, struct kp_result *counted, const char *why)
{
    if (group < k->of->lists) {
        kp_rotation_add(k, group, counted, why);
        return;
    }
    k->received++;
    k->result.launch.profiler_ns += counted->launch.profiler_ns;
}

void kp_rotation_collect(struct kp_rotation_key *k, size_t group, size_t number, struct kp_result *counted,
                         const char *why)
{
    if (k->is_over) /* cannot be: a key takes no more launches than are needed */
        return;
    if (k->apart && number && !k->quiet)
        kp_rotation_begin_quiet(k);
    if (k->whole)
        add_to_whole(k->whole, group, counted, why);
    else
        keep(k, group, number, counted, why);
    kp_rotation_add(k, group, counted, why);
    if (is_told_now(k))
        (k->of->beside ? kp_rotation_enter : tell)(k);
}
