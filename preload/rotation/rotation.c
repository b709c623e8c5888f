#include "preload/rotation/rotation.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/demangle.h"
#include "base/environment.h"
#include "base/lock.h"
#include "base/text.h"
#include "preload/gate/fast_path.h"
#include "preload/os/log.h"
#include "preload/os/outcome.h"
#include "preload/rotation/rotation_state.h"

enum {
    RECENT = 4096,     /* launches after which a key is assumed not to recur */
    MOST_FAILURES = 3, /* consecutive windows of a group without counters */
    /* The cost of starting a window, in counted launches of 1 ms each: measured on an H100. */
    BEGIN = 30, /* Start and Stop of the pass, */
    SKIP = 25,  /* of a pass that is skipped, */
    ANEW = 700, /* and for enabling the profiler, with room for KP_ROTATE_ROOM launches: before a list of another image,
                   and after a group that is no list. */
    SESSION = 350, /* The same if launches are chosen: no list needs it, and there is room for KP_CHOSEN_ROOM. */
};

/* ---- the walk ---- */

/* Returns how many launches should have counted it by now. */
static uint64_t wanted_of(const struct kp_rotation_key *k, size_t group)
{
    return k->of->beside && k->untaken ? 1 : kp_rotation_each_of(k->of, group);
}

bool kp_rotation_lacks(const struct kp_rotation_key *k, size_t group)
{
    return kp_rotation_lacks_any(k) && k->taken[group] < wanted_of(k, group) && !k->of->given_up[group];
}

bool kp_rotation_lacks_any(const struct kp_rotation_key *k)
{
    return k->lacking && !atomic_load_explicit(&k->measured, memory_order_relaxed);
}

bool kp_rotation_is_fleeting(const struct kp_rotation_key *k)
{
    return k->is_fleeting;
}

bool kp_rotation_has_any(const struct kp_rotation_key *k)
{
    size_t g = 0;
    while (g < k->of->groups && !k->taken[g])
        g++;
    return g < k->of->groups;
}

/* Returns true if the key is expected within so many launches: the distance from its last launch to the one before, or
 * the average distance, predicts the next. If it is late by as much again, its rhythm has changed. A key seen once may
 * come at any time. */
static bool is_expected(const struct kp_rotation_key *k, uint64_t now, uint64_t within)
{
    if (k->is_fleeting)
        return false;
    uint64_t since = now - k->seen_at;
    if (!k->gap)
        return since < RECENT;
    uint64_t mean = k->seen > 1 ? (k->seen_at - k->born_at) / (k->seen - 1) : k->gap;
    uint64_t soonest = k->gap < mean ? k->gap : mean, latest = k->gap < mean ? mean : k->gap;
    return soonest <= since + within && since <= 2 * latest;
}

/* The number of expected keys that lack a group. */
struct demand {
    size_t group, keys;
    uint64_t now, within;
    bool came_twice; /* only these */
};

static void add_demand(struct kp_rotation_key *k, void *arg)
{
    struct demand *d = arg;
    d->keys += kp_rotation_lacks(k, d->group) && (k->gap || !d->came_twice) && is_expected(k, d->now, d->within);
}

size_t kp_rotation_demand(const struct kp_rotation *r, size_t group, uint64_t within)
{
    struct demand d = {.group = group, .now = kp_rotation_now(), .within = within};
    kp_rotation_each_key(r, add_demand, &d);
    return d.keys;
}

struct longest {
    size_t group;
    uint64_t ns;
};

static void look_for_longest(struct kp_rotation_key *k, void *arg)
{
    struct longest *l = arg;
    uint64_t ns = atomic_load(&k->longest);
    if (ns > l->ns && kp_rotation_lacks(k, l->group))
        l->ns = ns;
}

uint64_t kp_rotation_longest(const struct kp_rotation *r, size_t group)
{
    struct longest l = {.group = group};
    kp_rotation_each_key(r, look_for_longest, &l);
    return l.ns;
}

/* Returns true if a session that counts chosen launches can stay for the group. Patched code ends other sessions: only
 * the last lists of a session may patch code. */
static bool goes_on_in_session(const struct kp_rotation *r, size_t group)
{
    bool list = group < r->lists, last = r->at < r->lists;
    if (list && kp_config_patches(&r->plan->groups[group]))
        return last && kp_config_patches(&r->plan->groups[r->at]);
    return r->at == SIZE_MAX || (list == last && !(last && kp_config_patches(&r->plan->groups[r->at])));
}

/* Returns the cost of starting a window of the group after the last one's group. Lists that share an image come in
 * turn, see kp_config. A group that is no list disables the profiler, which the next list pays for. */
static uint64_t cost_of(const struct kp_rotation *r, size_t group)
{
    if (r->chooses)
        return BEGIN + (goes_on_in_session(r, group) ? 0 : SESSION);
    if (group >= r->lists)
        return BEGIN + (r->at < r->lists ? ANEW : 0);
    const struct kp_config *next = &r->plan->groups[group];
    if (r->at == SIZE_MAX)
        return BEGIN;
    const struct kp_config *last = r->at < r->lists ? &r->plan->groups[r->at] : NULL;
    if (!last || !kp_config_same(last, next))
        return BEGIN + ANEW + SKIP * next->turn;
    size_t turns = next->turns ? next->turns : 1;
    return BEGIN + SKIP * ((next->turn + turns - last->turn - 1 + turns) % turns);
}

size_t kp_rotation_choose(const struct kp_rotation *r, const struct kp_rotation_key *k, uint64_t within)
{
    size_t best = 0;
    uint64_t most = 0, least = 1; /* number of keys, and the cost of counting them */
    bool found = false;
    for (size_t n = 0; n < r->groups; n++) {
        size_t g = n < r->lists ? (r->first + n) % r->lists : n;
        if (!kp_rotation_lacks(k, g))
            continue;
        uint64_t keys = kp_rotation_demand(r, g, within);
        uint64_t cost = (r->chooses && g < r->lists ? keys : within) + cost_of(r, g);
        if (!found || keys * least > most * cost) {
            best = g;
            most = keys;
            least = cost;
        }
        found = true;
    }
    return best;
}

void kp_rotation_counts(struct kp_rotation *r, size_t group, bool chooses)
{
    r->at = group;
    if (group < r->lists)
        r->chooses = chooses;
}

void kp_rotation_spent(struct kp_rotation *r, uint64_t ns)
{
    enum { TIMES = 10 };
    r->rests_until = kp_clock_ns() + TIMES * ns;
}

/* Counts a key that lacks anything. A key seen once may never recur: it counts for a while. */
static void add_lacking(struct kp_rotation_key *k, void *arg)
{
    struct demand *d = arg;
    bool comes = k->gap ? is_expected(k, d->now, d->within) : d->now - k->seen_at < KP_ROTATE_PATIENCE;
    d->keys += kp_rotation_lacks_any(k) && !k->apart && !k->is_fleeting && comes;
}

bool kp_rotation_rests(const struct kp_rotation *r)
{
    enum { ONE_IN = 8 };
    struct demand d = {.now = kp_rotation_now(), .within = KP_ROTATE_FAR};
    if (!r->chooses || kp_clock_ns() >= r->rests_until)
        return false;
    kp_rotation_each_key(r, add_lacking, &d);
    return ONE_IN * d.keys < atomic_load(&r->n_keys);
}

bool kp_rotation_chooses(const struct kp_rotation *r)
{
    return r->chooses;
}

bool kp_rotation_expects(const struct kp_rotation *r, size_t group, uint64_t within)
{
    return kp_rotation_demand(r, group, within) > 0;
}

bool kp_rotation_awaits(const struct kp_rotation *r, size_t group, uint64_t within)
{
    struct demand d = {.group = group, .now = kp_rotation_now(), .within = within, .came_twice = true};
    kp_rotation_each_key(r, add_demand, &d);
    return d.keys;
}

/* The search for a key that goes on. */
struct going {
    bool any;
    uint64_t now, within;
};

static void look_at_going(struct kp_rotation_key *k, void *arg)
{
    struct going *g = arg;
    g->any |= kp_rotation_lacks_any(k) && !k->apart &&
              (k->gap ? is_expected(k, g->now, g->within) : !k->is_fleeting && g->now - k->seen_at < g->within);
}

bool kp_rotation_goes_on(const struct kp_rotation *r, uint64_t within)
{
    struct going g = {.now = kp_rotation_now(), .within = within};
    kp_rotation_each_key(r, look_at_going, &g);
    return g.any;
}

/* Counts complete keys. */
static void add_complete(struct kp_rotation_key *k, void *arg)
{
    *(size_t *)arg += !kp_rotation_lacks_any(k);
}

void kp_rotation_tell(const struct kp_rotation *r, size_t group, char *text, size_t size)
{
    size_t done = 0;
    kp_rotation_each_key(r, add_complete, &done);
    snprintf(text, size, "counting group %zu of %zu; %zu of %zu kernels and shapes are complete", group + 1, r->groups,
             done, atomic_load(&r->n_keys));
}

void kp_rotation_take(struct kp_rotation_key *k, size_t group)
{
    kp_rotation_note_taken(k, group);
    if (!k->lacking && k->of->n_given_up) /* no later launch will complete it */
        kp_rotation_close(k);
}

void kp_rotation_untake(struct kp_rotation_key *k, size_t group)
{
    if (k->taken[group]-- == kp_rotation_each_of(k->of, group) && !k->of->given_up[group] && !k->lacking++)
        kp_rotation_reopen(k);
    if (!k->taken[group] && !k->of->given_up[group])
        k->untaken++;
}

bool kp_rotation_is_first(const struct kp_rotation_key *k)
{
    return k->of->beside && !k->once_reason;
}

void kp_rotation_take_first(struct kp_rotation_key *k, enum kp_reason once_reason)
{
    k->once_reason = once_reason;
}

void kp_rotation_untake_first(struct kp_rotation_key *k)
{
    k->once_reason = KP_REASON_NONE;
}

/* ---- launches with a result of their own ---- */

struct kp_rotation_served kp_rotation_served(const struct kp_rotation_key *k)
{
    return (struct kp_rotation_served){k->served, atomic_load(&k->measured), atomic_load(&k->uncounted),
                                       atomic_load(&k->closed)};
}

void kp_rotation_serve(struct kp_rotation_key *k)
{
    k->served++;
}

void kp_rotation_unserve(struct kp_rotation_key *k)
{
    k->served--;
}

void kp_rotation_was_served(struct kp_rotation_key *k, uint64_t id, bool counted)
{
    if (counted && !atomic_load(&k->measured))
        k->served_id = id;
    atomic_fetch_add(counted ? &k->measured : &k->uncounted, 1);
}

bool kp_rotation_takes_turns(const struct kp_rotation_key *k)
{
    return k->once_reason;
}

static void count_key(struct kp_rotation_key *k, void *arg)
{
    struct kp_rotation_tally *t = arg;
    bool has = atomic_load(&k->measured) || k->apart || kp_rotation_has_any(k);
    t->keys++;
    t->with_results += has;
    bool in_part = has && kp_rotation_lacks_any(k);
    t->in_part += in_part;
    char *name = has && !in_part ? NULL : kp_demangle_base(k->mangled);
    if (name)
        kp_session_lacks(name, 1);
    free(name);
}

void kp_rotation_count(const struct kp_rotation *r, struct kp_rotation_tally *t)
{
    kp_rotation_each_key(r, count_key, t);
}

static struct kp_rotation_tally ended;

void kp_rotation_count_ended(const struct kp_rotation *r)
{
    kp_rotation_count(r, &ended);
}

struct kp_rotation_tally kp_rotation_ended(void)
{
    return ended;
}

static void stop_lacking(struct kp_rotation_key *k, void *arg)
{
    const size_t *group = arg;
    k->untaken -= !k->taken[*group];
    if (k->taken[*group] < kp_rotation_each_of(k->of, *group) && !--k->lacking)
        kp_rotation_close(k);
}

void kp_rotation_failed(struct kp_rotation *r, size_t group, struct kp_why why)
{
    if (r->given_up[group] || ++r->failures[group] < MOST_FAILURES)
        return;
    kp_rotation_each_key(r, stop_lacking, &group);
    r->given_up[group] = true;
    r->n_given_up++;
    struct kp_why *kept = why.reason ? malloc(sizeof(*kept)) : NULL;
    if (kept)
        *kept = kp_why_copy(why);
    atomic_store(&r->why_given_up[group], kept);
}

/* ---- launches that are not counted ---- */

void kp_rotation_apart(struct kp_rotation_key *k, enum kp_reason why)
{
    if (k->apart)
        return;
    for (size_t g = 0; g < k->of->groups; g++)
        k->taken[g] = kp_rotation_each_of(k->of, g);
    k->apart = why;
    k->lacking = k->untaken = 1;
    k->due = kp_rotation_each_of(k->of, kp_rotation_timed(k->of));
}

size_t kp_rotation_timed(const struct kp_rotation *r)
{
    return r->groups;
}

bool kp_rotation_times(const struct kp_rotation_key *k, bool *quiet)
{
    enum { FEW = 128 };
    bool milestone = k->seen == 1 || (k->seen >= FEW && !(k->seen & (k->seen - 1)));
    *quiet = !kp_rotation_goes_on(k->of, KP_ROTATE_FAR);
    return kp_rotation_lacks(k, kp_rotation_timed(k->of)) && (*quiet || milestone);
}

/* ---- start and end ---- */

/* Ranks of one program start at different lists, so that together they have more lists if they end early. */
static size_t first_list(size_t lists)
{
    size_t len;
    const char *rank = kp_environment_rank(NULL, &len);
    return rank && lists ? strtoul(rank, NULL, 10) % lists : 0;
}

static int set_lists(struct kp_rotation *r, const struct kp_plan *plan, const struct kp_rotation_extras *extras)
{
    size_t n = plan->n_groups + (extras ? extras->n : 0);
    r->failures = calloc(n + 1, sizeof(*r->failures));
    r->given_up = calloc(n + 1, sizeof(*r->given_up));
    r->why_given_up = calloc(n + 1, sizeof(*r->why_given_up));
    if (!r->failures || !r->given_up || !r->why_given_up)
        return -ENOMEM;
    r->plan = plan;
    if (extras)
        r->extras = *extras;
    r->lists = plan->n_groups;
    r->groups = n;
    r->first = first_list(r->lists);
    r->at = SIZE_MAX;
    for (size_t g = 0; g < n; g++)
        r->needed += kp_rotation_each_of(r, g);
    return 0;
}

static void free_rotation(struct kp_rotation *r)
{
    for (size_t g = 0; r->why_given_up && g < r->groups; g++) {
        struct kp_why *why = atomic_load(&r->why_given_up[g]);
        if (why)
            kp_why_free(why);
        free(why);
    }
    free((void *)r->why_given_up);
    free(r->failures);
    free(r->given_up);
    free(r);
}

struct kp_rotation *kp_rotation_new(const struct kp_plan *plan, const struct kp_rotation_extras *extras, uint64_t each)
{
    struct kp_rotation *r = calloc(1, sizeof(*r));
    if (!r)
        return NULL;
    r->each = each;
    if (set_lists(r, plan, extras)) {
        free_rotation(r);
        return NULL;
    }
    atomic_fetch_add(&kp_rotation_contexts, 1);
    kp_passing_outdate();
    return r;
}

struct kp_rotation *kp_rotation_new_beside(uint64_t each)
{
    struct kp_rotation *r = calloc(1, sizeof(*r));
    if (!r)
        return NULL;
    r->beside = true;
    r->each = each;
    r->at = SIZE_MAX;
    atomic_fetch_add(&kp_rotation_contexts, 1);
    kp_passing_outdate();
    return r;
}

/* Makes room for the groups of a key. Clears *arg if memory is short. */
static void add_groups(struct kp_rotation_key *k, void *arg)
{
    size_t n = k->of->groups + 1;
    uint64_t *taken = calloc(n, sizeof(*taken)), *collected = calloc(n, sizeof(*collected));
    if (!taken || !collected) {
        free(taken);
        free(collected);
        *(bool *)arg = false;
        return;
    }
    free(k->taken);
    free(k->collected);
    k->taken = taken;
    k->collected = collected;
    k->lacking = k->untaken = k->of->groups;
    k->due = k->of->needed;
}

int kp_rotation_set_plan(struct kp_rotation *r, const struct kp_plan *plan, const struct kp_rotation_extras *extras)
{
    bool fine = !set_lists(r, plan, extras);
    if (fine)
        kp_rotation_each_key(r, add_groups, &fine);
    if (!fine) { /* no key may use the missing room */
        r->groups = 0;
        r->plan = NULL;
    }
    return fine ? 0 : -ENOMEM;
}

void kp_rotation_of_context(struct kp_rotation *r, uint64_t id)
{
    r->context = id;
}

bool kp_rotation_has_plan(const struct kp_rotation *r)
{
    return r->plan;
}

/* Tells the session what the result of that number stands for: all launches of the key. */
static void tell_launches(const struct kp_rotation_key *k, uint64_t id)
{
    struct kp_launch_info l = {.id = id};
    kp_rotation_stands_for(k, &l);
    kp_session_alike(&l);
}

/* Does so for the first of those with a result of their own: it and the launches without one. */
static void tell_passed(const struct kp_rotation_key *k)
{
    struct kp_launch_info l = {.id = k->served_id};
    kp_rotation_stands_for(k, &l);
    if (l.alike <= k->served)
        return;
    l.alike -= k->served - 1;
    kp_session_alike(&l);
}

/* Reports the rest of a key alongside a replay, and if it lacks anything requested. */
static void end_entry(struct kp_rotation_key *k)
{
    if (k->received > k->entered)
        kp_rotation_enter(k);
    else if (k->entered)
        tell_launches(k, k->id);
    if (k->first && (!k->of->groups || kp_rotation_groups_counted(k) < k->of->groups))
        kp_outcome_failed(KP_FAILURE_IN_PART);
}

/* Finished keys only lack the number of launches that they stand for. */
static void end_key(struct kp_rotation_key *k, void *arg)
{
    (void)arg;
    if (atomic_load(&k->measured))
        tell_passed(k);
    else if (k->has_entry)
        end_entry(k);
    else if (k->is_over)
        tell_launches(k, k->id);
    else if (k->is_begun)
        kp_rotation_tell_key(k);
}

void kp_rotation_pass_on(struct kp_rotation *r)
{
    kp_rotation_each_key(r, end_key, NULL);
}

void kp_rotation_end(struct kp_rotation *r)
{
    if (!r)
        return;
    kp_rotation_forget(); /* places lose their keys */
    kp_rotation_pass_on(r);
    for (size_t b = 0; b < KP_ROTATION_BUCKETS; b++)
        while (r->keys[b]) {
            struct kp_rotation_key *k = r->keys[b];
            r->keys[b] = k->next;
            kp_rotation_free_key(k);
        }
    atomic_fetch_sub(&kp_rotation_contexts, 1);
    kp_passing_outdate();
    free_rotation(r);
}

/* ---- from one rotation to another ---- */

struct kp_rotation_key *kp_rotation_take_served(struct kp_rotation *r)
{
    struct kp_rotation_key *taken = NULL;
    for (size_t b = 0; b < KP_ROTATION_BUCKETS; b++)
        for (struct kp_rotation_key **at = &r->keys[b], *k; (k = *at);) {
            if (!atomic_load(&k->measured)) {
                at = &k->next;
                continue;
            }
            *at = k->next;
            k->next = taken;
            taken = k;
            atomic_fetch_sub(&r->n_keys, 1);
        }
    return taken;
}

void kp_rotation_give_served(struct kp_rotation *r, struct kp_rotation_key *keys)
{
    bool fine = r != NULL;
    while (keys) {
        struct kp_rotation_key *k = keys;
        keys = k->next;
        if (r) {
            k->of = r;
            add_groups(k, &fine);
        }
        if (!fine) {
            end_key(k, NULL);
            kp_rotation_free_key(k);
            continue;
        }
        kp_rotation_close(k);
        kp_rotation_add_key(r, k);
    }
}
