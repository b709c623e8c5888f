#include "preload/program/rotation.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/demangle.h"
#include "base/environment.h"
#include "base/lock.h"
#include "base/text.h"
#include "collectors/plan/alike.h"
#include "preload/os/log.h"
#include "preload/os/outcome.h"
#include "report/model/counts.h"

enum {
    KEY_BUCKETS = 256,
    PLACE_BUCKETS = 1 << 12,
    MOST_PLACES = 1 << 16, /* beyond, launches take the longer way */
    MOST_KEYS = 4096,      /* a program whose grids keep changing must not be counted for ever */
    RECENT = 4096,         /* launches after which a key does not count as one that still comes */
    MOST_FAILURES = 3,     /* windows of a group without counters, one after the other */
    CANARIES = 2,          /* of the plan */
};

/* What the driver is told of a launch; padding is 0. */
struct shape {
    uint32_t grid[3], block[3], cluster[3], unused;
    uint64_t dynamic_shared;
};

/* A function handle with a shape, for kp_rotation_passes. Never freed: other threads may be reading it. */
struct place {
    CUfunction function;
    uint64_t generation;
    struct shape shape;
    atomic_bool complete; /* of the key */
    atomic_uint_fast64_t launches;
    struct place *next;        /* in its bucket */
    struct place *next_of_key; /* never changes, as `next` */
};

struct kp_rotation_key {
    struct kp_rotation *of;
    char *mangled;
    struct shape shape;
    struct place *_Atomic places; /* added to inside the gate, read by the collecting thread, too; so is: */
    atomic_uint_fast64_t others;  /* launches without a place */
    uint64_t seen_at;             /* the clock at the last launch that came by the gate, */
    uint64_t gap;                 /* and its distance from the one before; 0 = there was none */
    uint64_t *taken;              /* of each group: launches that count it */
    size_t lacking;               /* groups that lack launches, */
    size_t untaken;               /* and those of them that no launch counts */
    const char *obstacle;         /* why its first launch was not replayed; NULL = there was none */
    uint64_t *collected;          /* of each group, by the collecting thread: launches that counted it, */
    uint64_t received;            /* all that ended, */
    struct kp_result result;
    atomic_uint_fast64_t longest; /* duration that was counted, ns */
    bool is_new;                  /* no other key has its function */
    double *canaries[CANARIES];   /* their values, of `n_canaries` launches each */
    size_t n_canaries[CANARIES];
    char *lost;       /* why the last launch that counted nothing did not, or NULL */
    bool is_begun;    /* `result` has a launch */
    bool is_over;     /* it has been passed on, */
    uint64_t id;      /* under this number */
    bool has_entry;   /* its first launch has, under that number; what it was told: */
    uint64_t first;   /* 1: the first launch has counters */
    uint64_t entered; /* of those received, the ones in the entry */
    struct kp_session_told told;
    struct kp_rotation_key *next;
};

struct kp_rotation {
    const struct kp_plan *plan;
    bool beside; /* the replay of others */
    uint64_t each;
    uint64_t time, until; /* ns; until: the clock's time at its end, 0 = no launch has been counted */
    struct kp_rotation_extras extras;
    size_t groups, lists; /* all, and those of the plan, which come first */
    size_t first;         /* list that the walk begins at */
    size_t opening;       /* group that the first launch of each function counts; SIZE_MAX = any */
    uint64_t needed;      /* launches of a key, for all groups */
    size_t *failures;     /* of each group */
    bool *given_up;
    char *_Atomic *why_given_up; /* NULL = it is not, or the reason is not known */
    size_t n_given_up, n_keys;
    atomic_bool is_over; /* the time */
    struct kp_rotation_key *keys[KEY_BUCKETS];
};

static struct place *_Atomic places[PLACE_BUCKETS];
static atomic_size_t n_places;
static atomic_uint_fast64_t generation;
static atomic_uint_fast64_t clock_now; /* launches of all keys */
static atomic_int rotations;           /* contexts: of several, a function handle does not tell which */
static atomic_int over;                /* those of them whose time is over */

/* ---- keys ---- */

static struct shape shape_of(const struct kp_launch *l)
{
    struct shape s = {.dynamic_shared = l->shape.dynamic_shared};
    memcpy(s.grid, l->shape.grid, sizeof(s.grid));
    memcpy(s.block, l->shape.block, sizeof(s.block));
    memcpy(s.cluster, l->shape.cluster, sizeof(s.cluster));
    return s;
}

static bool same_shape(const struct shape *a, const struct shape *b)
{
    return !memcmp(a, b, sizeof(*a));
}

static struct place *_Atomic *bucket_of(CUfunction f, const struct shape *s)
{
    return &places[kp_hash(s, sizeof(*s), kp_hash(&f, sizeof(f), 0)) % PLACE_BUCKETS];
}

static struct place *find_place(CUfunction f, const struct shape *s)
{
    uint64_t now = atomic_load_explicit(&generation, memory_order_relaxed);
    struct place *p = atomic_load_explicit(bucket_of(f, s), memory_order_acquire);
    while (p && !(p->function == f && p->generation == now && same_shape(&p->shape, s)))
        p = p->next;
    return p;
}

/* Adds a place for the key, unless there are too many. The caller is inside the gate; readers need no lock. */
static struct place *add_place(struct kp_rotation_key *k, CUfunction f)
{
    struct place *_Atomic *bucket = bucket_of(f, &k->shape);
    struct place *p = atomic_load(&n_places) < MOST_PLACES ? calloc(1, sizeof(*p)) : NULL;
    if (!p)
        return NULL;
    atomic_fetch_add(&n_places, 1);
    p->function = f;
    p->generation = atomic_load(&generation);
    p->shape = k->shape;
    atomic_store(&p->complete, !k->lacking);
    p->next_of_key = atomic_load(&k->places);
    atomic_store(&k->places, p);
    p->next = atomic_load(bucket);
    atomic_store_explicit(bucket, p, memory_order_release);
    return p;
}

/* Calls `fn` for each key. */
static void each_key(const struct kp_rotation *r, void (*fn)(struct kp_rotation_key *k, void *arg), void *arg)
{
    for (size_t b = 0; b < KEY_BUCKETS; b++)
        for (struct kp_rotation_key *k = r->keys[b]; k; k = k->next)
            fn(k, arg);
}

struct function {
    const char *mangled;
    bool is_known;
};

static void look_at_function(struct kp_rotation_key *k, void *arg)
{
    struct function *f = arg;
    f->is_known |= !strcmp(k->mangled, f->mangled);
}

static bool is_new_function(const struct kp_rotation *r, const char *mangled)
{
    struct function f = {mangled, false};
    if (r->opening != SIZE_MAX)
        each_key(r, look_at_function, &f);
    return !f.is_known;
}

static struct kp_rotation_key *new_key(struct kp_rotation *r, const struct shape *s, const char *mangled)
{
    struct kp_rotation_key *k = calloc(1, sizeof(*k));
    if (!k)
        return NULL;
    k->of = r;
    k->shape = *s;
    k->mangled = kp_strdup(mangled);
    k->taken = calloc(r->groups + 1, sizeof(*k->taken));
    k->collected = calloc(r->groups + 1, sizeof(*k->collected));
    k->lacking = k->untaken = r->groups - r->n_given_up;
    k->is_new = is_new_function(r, mangled);
    if (k->mangled && k->taken && k->collected)
        return k;
    free(k->mangled);
    free(k->taken);
    free(k->collected);
    free(k);
    return NULL;
}

static struct kp_rotation_key *find_key(struct kp_rotation *r, const struct shape *s, const char *mangled)
{
    size_t bucket = kp_hash(mangled, strlen(mangled), kp_hash(s, sizeof(*s), 0)) % KEY_BUCKETS;
    struct kp_rotation_key *k = r->keys[bucket];
    while (k && (!same_shape(&k->shape, s) || strcmp(k->mangled, mangled) != 0))
        k = k->next;
    if (!k && r->n_keys < MOST_KEYS && (k = new_key(r, s, mangled))) {
        k->next = r->keys[bucket];
        r->keys[bucket] = k;
        r->n_keys++;
    }
    return k;
}

struct kp_rotation_key *kp_rotation_find(struct kp_rotation *r, const struct kp_launch *l, const char *mangled)
{
    const struct shape s = shape_of(l);
    struct kp_rotation_key *k = find_key(r, &s, mangled);
    if (!k)
        return NULL;
    struct place *p = find_place(l->f, &s);
    if (!p)
        p = add_place(k, l->f);
    if (p)
        atomic_fetch_add(&p->launches, 1);
    else
        atomic_fetch_add(&k->others, 1);
    uint64_t now = atomic_fetch_add_explicit(&clock_now, 1, memory_order_relaxed) + 1;
    k->gap = k->seen_at ? now - k->seen_at : 0;
    k->seen_at = now;
    return k;
}

const char *kp_rotation_passes(const struct kp_launch *l)
{
    if (l->is_graph || atomic_load_explicit(&rotations, memory_order_relaxed) != 1)
        return NULL;
    const struct shape s = shape_of(l);
    struct place *p = find_place(l->f, &s);
    bool complete = p && atomic_load_explicit(&p->complete, memory_order_relaxed);
    if (!complete && !atomic_load_explicit(&over, memory_order_relaxed))
        return NULL;
    if (p)
        atomic_fetch_add_explicit(&p->launches, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&clock_now, 1, memory_order_relaxed);
    return complete ? KP_SKIP_ROTATED : KP_SKIP_ROTATE_TIME;
}

void kp_rotation_forget(void)
{
    atomic_fetch_add(&generation, 1);
}

/* ---- the walk ---- */

size_t kp_rotation_extra_of(const struct kp_rotation *r, size_t group)
{
    return group < r->lists ? SIZE_MAX : group - r->lists;
}

/* Returns how many launches of a key are to count a group in the end. */
static uint64_t each_of(const struct kp_rotation *r, size_t group)
{
    size_t extra = kp_rotation_extra_of(r, group);
    return extra == SIZE_MAX || r->extras.adds_up(r->extras.of, extra) ? r->each : 1;
}

/* Returns how many are to count it by now. */
static uint64_t wanted_of(const struct kp_rotation_key *k, size_t group)
{
    return k->of->beside && k->untaken ? 1 : each_of(k->of, group);
}

bool kp_rotation_lacks(const struct kp_rotation_key *k, size_t group)
{
    return k->taken[group] < wanted_of(k, group) && !k->of->given_up[group];
}

bool kp_rotation_lacks_any(const struct kp_rotation_key *k)
{
    return k->lacking;
}

bool kp_rotation_has_any(const struct kp_rotation_key *k)
{
    size_t g = 0;
    while (g < k->of->groups && !k->taken[g])
        g++;
    return g < k->of->groups;
}

/* Whether the key is expected within so many launches: as far from its last one as that was from the one before. It has
 * another rhythm if it is late by as much again. Of one seen once nothing is known, but that it may come. */
static bool is_expected(const struct kp_rotation_key *k, uint64_t now, uint64_t within)
{
    uint64_t since = now - k->seen_at;
    return k->gap ? k->gap <= since + within && since <= 2 * k->gap : since < RECENT;
}

/* How many keys lack a group that are expected. */
struct demand {
    size_t group, keys;
    uint64_t now, within;
};

static void add_demand(struct kp_rotation_key *k, void *arg)
{
    struct demand *d = arg;
    d->keys += kp_rotation_lacks(k, d->group) && is_expected(k, d->now, d->within);
}

size_t kp_rotation_demand(const struct kp_rotation *r, size_t group, uint64_t within)
{
    struct demand d = {.group = group, .now = atomic_load(&clock_now), .within = within};
    each_key(r, add_demand, &d);
    return d.keys;
}

/* Whether the first launch of the key's function is still to count the group that has to see it. */
static bool opens(const struct kp_rotation_key *k)
{
    const struct kp_rotation *r = k->of;
    return r->opening != SIZE_MAX && k->is_new && !k->taken[r->opening] && !r->given_up[r->opening];
}

bool kp_rotation_waits(const struct kp_rotation_key *k, size_t group)
{
    return opens(k) && group != k->of->opening;
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
    each_key(r, look_for_longest, &l);
    return l.ns;
}

size_t kp_rotation_choose(const struct kp_rotation *r, const struct kp_rotation_key *k, uint64_t within)
{
    size_t best = 0, most = 0;
    bool found = false;
    if (opens(k))
        return r->opening;
    for (size_t n = 0; n < r->groups; n++) {
        size_t g = n < r->lists ? (r->first + n) % r->lists : n;
        if (!kp_rotation_lacks(k, g))
            continue;
        size_t keys = kp_rotation_demand(r, g, within);
        if (!found || keys > most) {
            best = g;
            most = keys;
        }
        found = true;
    }
    return best;
}

bool kp_rotation_expects(const struct kp_rotation *r, size_t group, uint64_t within)
{
    return kp_rotation_demand(r, group, within) > 0;
}

/* How many keys are complete. */
static void add_complete(struct kp_rotation_key *k, void *arg)
{
    *(size_t *)arg += !k->lacking;
}

bool kp_rotation_is_over(struct kp_rotation *r)
{
    size_t done = 0;
    if (r->is_over || !r->until || kp_clock_ns() < r->until)
        return r->is_over;
    r->is_over = true;
    atomic_fetch_add(&over, 1);
    each_key(r, add_complete, &done);
    kp_log_progress(
        "The time for the rotation is over (rotate-time, %.3g s): %zu of %zu kernels and shapes are complete; no "
        "more launches are counted",
        (double)r->time / 1e9, done, r->n_keys);
    return true;
}

static void set_complete(struct kp_rotation_key *k, bool complete)
{
    for (struct place *p = atomic_load(&k->places); p; p = p->next_of_key)
        atomic_store(&p->complete, complete);
}

void kp_rotation_take(struct kp_rotation_key *k, size_t group)
{
    if (!k->of->until && k->of->time)
        k->of->until = kp_clock_ns() + k->of->time;
    if (!k->taken[group]++ && !k->of->given_up[group])
        k->untaken--;
    if (k->taken[group] == each_of(k->of, group) && !k->of->given_up[group] && !--k->lacking)
        set_complete(k, true);
}

void kp_rotation_untake(struct kp_rotation_key *k, size_t group)
{
    if (k->taken[group]-- == each_of(k->of, group) && !k->of->given_up[group] && !k->lacking++)
        set_complete(k, false);
    if (!k->taken[group] && !k->of->given_up[group])
        k->untaken++;
}

bool kp_rotation_is_first(const struct kp_rotation_key *k)
{
    return k->of->beside && !k->obstacle;
}

void kp_rotation_take_first(struct kp_rotation_key *k, const char *obstacle)
{
    k->obstacle = obstacle;
}

void kp_rotation_untake_first(struct kp_rotation_key *k)
{
    k->obstacle = NULL;
}

static void stop_lacking(struct kp_rotation_key *k, void *arg)
{
    const size_t *group = arg;
    k->untaken -= !k->taken[*group];
    if (k->taken[*group] < each_of(k->of, *group) && !--k->lacking)
        set_complete(k, true);
}

void kp_rotation_failed(struct kp_rotation *r, size_t group, const char *why)
{
    if (r->given_up[group] || ++r->failures[group] < MOST_FAILURES)
        return;
    each_key(r, stop_lacking, &group);
    r->given_up[group] = true;
    r->n_given_up++;
    atomic_store(&r->why_given_up[group], why ? kp_strdup(why) : NULL);
}

/* ---- results ---- */

static uint64_t launches_of(const struct kp_rotation_key *k)
{
    uint64_t n = atomic_load(&k->others);
    for (struct place *p = atomic_load(&k->places); p; p = p->next_of_key)
        n += atomic_load(&p->launches);
    return n;
}

/* Adds the values that a further launch has counted. */
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
            rc = kp_result_set_na(&k->result, m->name, m->text ? m->text : "");
    }
    if (rc || group < k->of->lists)
        return rc;
    rc = kp_counts_add_launch(&k->result, counted);
    return rc ? rc : kp_result_take(&k->result, counted);
}

/* Takes back that a launch misses what an extra group would have given: another launch may have it. */
static void unmark(const struct kp_rotation *r, size_t group, struct kp_result *counted)
{
    struct kp_result marked = {.n_metrics = 0};
    size_t extra = kp_rotation_extra_of(r, group);
    if (extra == SIZE_MAX)
        return;
    r->extras.missing(r->extras.of, extra, "", &marked);
    for (size_t i = 0; i < marked.n_metrics; i++) {
        const struct kp_metric *m = kp_result_find(counted, marked.metrics[i].name);
        if (m && m->kind == KP_VALUE_NA)
            kp_result_remove(counted, marked.metrics[i].name);
    }
    kp_result_free(&marked);
}

/* Notes of each counter of the plan that one launch has counted it. */
static void mark_counted(struct kp_result *r, const struct kp_plan *plan)
{
    for (size_t i = 0; i < r->n_metrics; i++)
        if (r->metrics[i].kind == KP_VALUE_REAL && kp_plan_is_counter(plan, r->metrics[i].name))
            r->metrics[i].counted = 1;
}

/* Begins the result with the first launch: its header, and values that are no counters. */
static void begin(struct kp_rotation_key *k, struct kp_result *first)
{
    k->result = *first;
    *first = (struct kp_result){.n_metrics = 0};
    k->result.launch.profiler_ns = 0;
    k->result.launch.graph_number = k->result.launch.node = 0; /* others of the key are of other nodes, or of none */
    k->is_begun = true;
    mark_counted(&k->result, k->of->plan);
}

static uint32_t groups_counted(const struct kp_rotation_key *k)
{
    uint32_t n = 0;
    for (size_t g = 0; g < k->of->groups; g++)
        n += k->collected[g] > 0;
    return n;
}

/* Keeps what tells whether the launches are alike. */
static void keep_canaries(struct kp_rotation_key *k, const struct kp_result *counted)
{
    for (size_t i = 0; i < CANARIES; i++) {
        const struct kp_metric *m = kp_result_find(counted, kp_plan_canaries[i]);
        double *grown = NULL;
        if (m && m->kind == KP_VALUE_REAL)
            grown = realloc(k->canaries[i], (k->n_canaries[i] + 1) * sizeof(*grown));
        if (!grown)
            continue;
        grown[k->n_canaries[i]++] = m->real;
        k->canaries[i] = grown;
        if (!i && m->real > (double)atomic_load(&k->longest)) /* the duration */
            atomic_store(&k->longest, (uint64_t)m->real);
    }
}

/* Whether groups that different launches have counted may be mixed; else `why` not. */
static bool are_alike(struct kp_rotation_key *k, char *why, size_t size)
{
    for (size_t i = 0; i < CANARIES; i++)
        if (!kp_alike(kp_plan_canaries[i], k->canaries[i], k->n_canaries[i], why, size))
            return false;
    return true;
}

/* Says which groups were not counted. */
static void say_missing(const struct kp_rotation_key *k, const struct kp_launch_info *l, char *why, size_t size)
{
    snprintf(why, size, "its group of counters was not reached: %u of %u groups, in %llu launches%s%s%s",
             l->groups_counted, l->groups, (unsigned long long)l->counted, k->of->is_over ? ", in the time given" : "",
             k->lost ? "; " : "", k->lost ? k->lost : "");
}

/* Says of extra groups that were not counted what is missing, and why. */
static int mark_extras(const struct kp_rotation_key *k, const char *why, struct kp_result *r)
{
    const struct kp_rotation *of = k->of;
    int rc = 0;
    for (size_t g = of->lists; !rc && g < of->groups; g++) {
        const char *given_up = atomic_load(&of->why_given_up[g]);
        if (!k->collected[g])
            rc = of->extras.missing(of->extras.of, g - of->lists, given_up ? given_up : why, r);
    }
    return rc;
}

/* Fills the header of `r`, and what follows from the counted values. What the first launch of a key beside a replay has
 * counted is a group, too. */
static void complete(struct kp_rotation_key *k, struct kp_result *r)
{
    struct kp_launch_info *l = &r->launch;
    char why[320];
    l->alike = launches_of(k);
    l->counted = k->received + k->first;
    l->groups = (uint32_t)(k->of->groups + k->first);
    l->groups_counted = groups_counted(k) + (uint32_t)k->first;
    l->passes = l->groups_counted;
    say_missing(k, l, why, sizeof(why));
    int rc = kp_plan_store_missing(k->of->plan, why, r);
    rc = rc ? rc : mark_extras(k, why, r);
    rc = rc ? rc : kp_plan_compose(k->of->plan, r);
    if (!rc && k->of->extras.n)
        rc = k->of->extras.derive(k->of->extras.of, r);
    rc = rc ? rc : kp_plan_derive(k->of->plan, r);
    rc = rc ? rc : kp_plan_spread(k->of->plan, r);
    if (!rc && !are_alike(k, why, sizeof(why)))
        rc = kp_plan_refuse(k->of->plan, why, r);
    if (rc || r->lossy)
        kp_session_warn_once("out of memory: values of launches are missing");
}

/* Passes the result on to the session. */
static void pass_on(struct kp_rotation_key *k)
{
    complete(k, &k->result);
    char *base = kp_demangle_base(k->mangled);
    struct kp_session_entry e = {
        .result = &k->result, .base = base ? base : k->mangled, .profiled = k->result.launch.groups_counted > 0};
    kp_session_results(&e, 1);
    free(base);
    k->id = e.id;
    k->is_over = true;
}

/* Puts what has been counted so far into the entry of the first launch. A value that a launch has counted stays where
 * it cannot be composed of others. */
static void enter(struct kp_rotation_key *k)
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
        return; /* another launch begins it */
    keep_canaries(k, first);
    free(l->note);
    l->note = kp_strdup(k->obstacle);
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

/* Whether what was counted is told now: all of it; beside a replay, once before, when each group has been counted. */
static bool is_told_now(const struct kp_rotation_key *k)
{
    const struct kp_rotation *r = k->of;
    if (r->beside && !k->has_entry)
        return false;
    return k->received == r->needed || (r->beside && !k->entered && groups_counted(k) == r->groups);
}

void kp_rotation_collect(struct kp_rotation_key *k, size_t group, struct kp_result *counted, const char *why)
{
    double ns = counted->launch.profiler_ns;
    if (k->is_over) /* cannot be: a key takes no more launches than are needed */
        return;
    k->received++;
    keep_canaries(k, counted);
    if (why) {
        free(k->lost);
        k->lost = kp_strdup(why);
        unmark(k->of, group, counted);
    } else {
        k->collected[group]++;
    }
    if (!k->is_begun)
        begin(k, counted);
    else if (merge(k, group, counted))
        k->result.lossy = true;
    k->result.launch.profiler_ns += ns;
    if (is_told_now(k))
        (k->of->beside ? enter : pass_on)(k);
}

/* ---- begin and end ---- */

/* Ranks of one program begin at different lists, so that they have more of them together when they end early. */
static size_t first_list(size_t lists)
{
    size_t len;
    const char *rank = kp_environment_rank(NULL, &len);
    return rank && lists ? strtoul(rank, NULL, 10) % lists : 0;
}

/* Returns the group that the first launch of each function counts. Beside a replay that launch is counted otherwise. */
static size_t opening_of(const struct kp_rotation *r)
{
    for (size_t i = 0; !r->beside && i < r->extras.n; i++)
        if (r->extras.is_first(r->extras.of, i))
            return r->lists + i;
    return SIZE_MAX;
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
    r->opening = opening_of(r);
    for (size_t g = 0; g < n; g++)
        r->needed += each_of(r, g);
    return 0;
}

static void free_rotation(struct kp_rotation *r)
{
    for (size_t g = 0; r->why_given_up && g < r->groups; g++)
        free(atomic_load(&r->why_given_up[g]));
    free((void *)r->why_given_up);
    free(r->failures);
    free(r->given_up);
    free(r);
}

struct kp_rotation *kp_rotation_new(const struct kp_plan *plan, const struct kp_rotation_extras *extras, uint64_t each,
                                    uint64_t time)
{
    struct kp_rotation *r = calloc(1, sizeof(*r));
    if (!r)
        return NULL;
    r->each = each;
    r->time = time;
    if (set_lists(r, plan, extras)) {
        free_rotation(r);
        return NULL;
    }
    atomic_fetch_add(&rotations, 1);
    return r;
}

struct kp_rotation *kp_rotation_new_beside(uint64_t each)
{
    struct kp_rotation *r = calloc(1, sizeof(*r));
    if (!r)
        return NULL;
    r->beside = true;
    r->each = each;
    r->opening = SIZE_MAX;
    atomic_fetch_add(&rotations, 1);
    return r;
}

/* Makes room for the groups of a key. *arg is cleared without memory. */
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
    set_complete(k, !k->lacking);
}

int kp_rotation_set_plan(struct kp_rotation *r, const struct kp_plan *plan, const struct kp_rotation_extras *extras)
{
    bool fine = !set_lists(r, plan, extras);
    if (fine)
        each_key(r, add_groups, &fine);
    if (!fine) { /* no key may use what it lacks */
        r->groups = 0;
        r->plan = NULL;
    }
    return fine ? 0 : -ENOMEM;
}

bool kp_rotation_has_plan(const struct kp_rotation *r)
{
    return r->plan;
}

/* Tells the rest of a key beside a replay, and whether it lacks anything that was asked for. */
static void end_entry(struct kp_rotation_key *k)
{
    if (k->received > k->entered)
        enter(k);
    else if (k->entered)
        kp_session_alike(k->id, launches_of(k));
    if (k->first && (!k->of->groups || groups_counted(k) < k->of->groups))
        kp_outcome_failed(KP_FAILURE_IN_PART);
}

/* Keys that are over only lack how many launches they stand for. */
static void end_key(struct kp_rotation_key *k, void *arg)
{
    (void)arg;
    if (k->has_entry)
        end_entry(k);
    else if (k->is_over)
        kp_session_alike(k->id, launches_of(k));
    else if (k->is_begun)
        pass_on(k);
}

static void free_key(struct kp_rotation_key *k)
{
    kp_result_free(&k->result);
    for (size_t i = 0; i < CANARIES; i++)
        free(k->canaries[i]);
    free(k->lost);
    free(k->mangled);
    free(k->taken);
    free(k->collected);
    free(k);
}

void kp_rotation_pass_on(struct kp_rotation *r)
{
    each_key(r, end_key, NULL);
}

void kp_rotation_end(struct kp_rotation *r)
{
    if (!r)
        return;
    kp_rotation_forget(); /* places lose their keys */
    kp_rotation_pass_on(r);
    for (size_t b = 0; b < KEY_BUCKETS; b++)
        while (r->keys[b]) {
            struct kp_rotation_key *k = r->keys[b];
            r->keys[b] = k->next;
            free_key(k);
        }
    atomic_fetch_sub(&rotations, 1);
    if (r->is_over)
        atomic_fetch_sub(&over, 1);
    free_rotation(r);
}
