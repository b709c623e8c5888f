#include "preload/program/rotation.h"

#include <errno.h>
#include <math.h>
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
#include "preload/program/kinds.h"
#include "report/model/counts.h"
#include "report/model/launch_names.h"

enum {
    KEY_BUCKETS = 256,
    PLACE_BUCKETS = 1 << 12,
    MOST_PLACES = 1 << 16, /* beyond, launches take the longer way */
    MOST_KEYS = 4096,      /* a program whose grids keep changing must not be counted for ever */
    MOST_TOLD = 512,       /* beyond, launches of a key are not told apart, as what is known of each takes memory */
    RECENT = 4096,         /* launches after which a key does not count as one that still comes */
    MOST_FAILURES = 3,     /* windows of a group without counters, one after the other */
    CANARIES = KP_KINDS_CANARIES, /* of the plan */
};

/* What the driver is told of a launch; padding is 0. */
struct shape {
    uint32_t grid[3], block[3], cluster[3], unused;
    uint64_t dynamic_shared;
};

/* The kinds of the launches of a key, each of which is a key, too. Never freed, as places are not. */
struct split {
    struct kp_trait trait;
    atomic_size_t n; /* only grows */
    struct {
        uint32_t value; /* of the trait */
        atomic_bool closed;
        atomic_uint_fast64_t launches; /* since the split */
    } at[KP_KINDS_MOST];
};

/* A function handle with a shape, for kp_rotation_passes. Never freed: other threads may be reading it. */
struct place {
    CUfunction function;
    uint64_t generation;
    struct shape shape;
    uint32_t number;      /* of the key */
    atomic_bool complete; /* the key is closed */
    atomic_uint_fast64_t launches;
    struct split *_Atomic split; /* of the key; NULL = its launches are of one kind */
    struct place *next;          /* in its bucket */
    struct place *next_of_key;   /* never changes, as `next` */
};

struct kp_rotation_key {
    struct kp_rotation *of;
    char *mangled;
    struct shape shape;
    uint32_t number;        /* from 1 on, of no other key; kinds have that of all */
    struct kp_kinds *kinds; /* what its launches had; NULL = not known, or no longer needed */
    struct split *_Atomic split;
    struct kp_rotation_key *parts[KP_KINDS_MOST]; /* the keys of its kinds, as many as the split has */
    struct kp_rotation_key *whole;                /* of a kind: the key that it is of, */
    size_t part;                                  /* its place there, */
    uint64_t before;                              /* and its launches before the split */
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
    uint64_t due;                 /* of as many as are wanted, */
    struct kp_result result;
    atomic_uint_fast64_t longest; /* duration that was counted, ns */
    bool is_new;                  /* no other key has its function */
    double *canaries[CANARIES];   /* their values, of `n_canaries` launches each */
    size_t n_canaries[CANARIES];
    char *lost;         /* why the last launch that counted nothing did not, or NULL */
    atomic_bool closed; /* no more launches are counted */
    bool is_begun;      /* `result` has a launch */
    bool is_over;       /* it has been passed on, or its kinds are, */
    bool rejoined;      /* or it is in place of its kinds, */
    uint64_t id;        /* under this number */
    bool has_entry;     /* its first launch has, under that number; what it was told: */
    uint64_t first;     /* 1: the first launch has counters */
    uint64_t entered;   /* of those received, the ones in the entry */
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
    size_t n_given_up;
    atomic_size_t n_keys;
    atomic_bool is_over; /* the time */
    struct kp_rotation_key *keys[KEY_BUCKETS];
};

static struct place *_Atomic places[PLACE_BUCKETS];
static atomic_size_t n_places;
static atomic_uint_fast64_t generation;
static atomic_uint_fast64_t clock_now; /* launches of all keys */
static atomic_int rotations;           /* contexts: of several, a function handle does not tell which */
static atomic_int over;                /* those of them whose time is over */
static atomic_uint_fast32_t last_key;  /* the number of the launch before; 0 = there was none */

/* What keys know of kinds: the gate's threads note launches, and the collecting one decides. */
static struct kp_lock *const lock = &kp_locks[KP_LOCK_KINDS];

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

/* Whether no more launches of the key are counted, of none of its kinds. */
static bool is_closed(const struct kp_rotation_key *k)
{
    const struct split *s = atomic_load(&k->split);
    size_t n = s ? atomic_load(&s->n) : 0;
    for (size_t i = 0; i < n; i++)
        if (!atomic_load(&s->at[i].closed))
            return false;
    return s || atomic_load(&k->closed);
}

/* Adds a place for the key, unless there are too many. The caller is inside the gate; readers need no lock. */
static struct place *add_place(struct kp_rotation_key *k, CUfunction handle, const struct kp_function *f)
{
    struct place *_Atomic *bucket = bucket_of(handle, &k->shape);
    struct split *s;
    struct place *p = atomic_load(&n_places) < MOST_PLACES ? calloc(1, sizeof(*p)) : NULL;
    if (!p)
        return NULL;
    atomic_fetch_add(&n_places, 1);
    p->function = handle;
    p->generation = atomic_load(&generation);
    p->shape = k->shape;
    p->number = k->number;
    p->next_of_key = atomic_load(&k->places);
    atomic_store(&k->places, p);
    /* Not before: the collecting thread may be telling all places meanwhile. */
    s = atomic_load(&k->split);
    atomic_store(&p->split, s && kp_trait_fits(&s->trait, f) ? s : NULL);
    atomic_store(&p->complete, is_closed(k));
    p->next = atomic_load(bucket);
    atomic_store_explicit(bucket, p, memory_order_release);
    return p;
}

/* Returns how many kinds the launches of the key are of; 0 where all are of one. */
static size_t count_parts(const struct kp_rotation_key *k)
{
    const struct split *s = atomic_load(&k->split);
    return s ? atomic_load_explicit(&s->n, memory_order_acquire) : 0;
}

/* Calls `fn` for each key, and then for those of its kinds. */
static void each_key(const struct kp_rotation *r, void (*fn)(struct kp_rotation_key *k, void *arg), void *arg)
{
    for (size_t b = 0; b < KEY_BUCKETS; b++)
        for (struct kp_rotation_key *k = r->keys[b]; k; k = k->next) {
            fn(k, arg);
            for (size_t i = 0; i < count_parts(k); i++)
                fn(k->parts[i], arg);
        }
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

static void free_key(struct kp_rotation_key *k)
{
    kp_result_free(&k->result);
    for (size_t i = 0; i < CANARIES; i++)
        free(k->canaries[i]);
    for (size_t i = 0; i < KP_KINDS_MOST; i++)
        if (k->parts[i])
            free_key(k->parts[i]);
    kp_kinds_free(k->kinds);
    free(k->lost);
    free(k->mangled);
    free(k->taken);
    free(k->collected);
    free(k);
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
    k->due = r->needed;
    if (k->mangled && k->taken && k->collected)
        return k;
    free_key(k);
    return NULL;
}

/* Numbers a key that is not of a kind, and makes it remember what its launches had. */
static void number_key(struct kp_rotation_key *k, const struct kp_function *f)
{
    static uint32_t last; /* inside the gate */
    k->number = ++last;
    k->is_new = is_new_function(k->of, k->mangled);
    if (!k->of->beside && atomic_load(&k->of->n_keys) < MOST_TOLD)
        k->kinds = kp_kinds_new(f);
}

static struct kp_rotation_key *find_key(struct kp_rotation *r, const struct shape *s, const struct kp_function *f)
{
    const char *mangled = f->mangled;
    size_t bucket = kp_hash(mangled, strlen(mangled), kp_hash(s, sizeof(*s), 0)) % KEY_BUCKETS;
    struct kp_rotation_key *k = r->keys[bucket];
    while (k && (!same_shape(&k->shape, s) || strcmp(k->mangled, mangled) != 0))
        k = k->next;
    if (!k && atomic_load(&r->n_keys) < MOST_KEYS && (k = new_key(r, s, mangled))) {
        number_key(k, f);
        k->next = r->keys[bucket];
        r->keys[bucket] = k;
        atomic_fetch_add(&r->n_keys, 1);
    }
    return k;
}

/* Finds the kind of a launch; returns how many there are where it is of none. */
static size_t find_part(const struct split *s, const struct kp_launch *l, uint32_t before)
{
    size_t n = atomic_load_explicit(&s->n, memory_order_acquire);
    uint32_t word;
    if (!kp_trait_read(&s->trait, l, before, &word))
        return n;
    for (size_t i = 0; i < n; i++)
        if (s->at[i].value == word)
            return i;
    return n;
}

static void set_complete(struct kp_rotation_key *k, bool complete)
{
    for (struct place *p = atomic_load(&k->places); p; p = p->next_of_key)
        atomic_store(&p->complete, complete);
}

/* Begins a kind that launches are of which came only after the split. NULL: there are too many. */
static struct kp_rotation_key *add_part(struct kp_rotation_key *k, struct split *s, uint32_t value)
{
    size_t n = atomic_load(&s->n);
    bool room = n < KP_KINDS_MOST && atomic_load(&k->of->n_keys) < MOST_KEYS;
    struct kp_rotation_key *part = room ? new_key(k->of, &k->shape, k->mangled) : NULL;
    if (!part)
        return NULL;
    part->number = k->number;
    part->whole = k;
    part->part = n;
    k->parts[n] = part;
    s->at[n].value = value;
    atomic_store_explicit(&s->n, n + 1, memory_order_release);
    atomic_fetch_add(&k->of->n_keys, 1);
    set_complete(k, false);
    return part;
}

/* Returns the key of the launch's kind; `k` where it is of none, or all are of one. */
static struct kp_rotation_key *find_kind(struct kp_rotation_key *k, const struct kp_launch *l,
                                         const struct kp_function *f)
{
    uint32_t before = (uint32_t)atomic_exchange(&last_key, k->number), word;
    kp_lock_take(lock, KP_FOREVER);
    struct split *s = atomic_load(&k->split);
    if (!s && k->kinds)
        kp_kinds_see(k->kinds, l, f, before);
    kp_lock_give(lock);
    if (!s || !kp_trait_fits(&s->trait, f) || !kp_trait_read(&s->trait, l, before, &word))
        return k;
    size_t i = find_part(s, l, before);
    struct kp_rotation_key *part = i < atomic_load(&s->n) ? k->parts[i] : add_part(k, s, word);
    return part ? part : k;
}

/* Counts a launch of the key. */
static void count_launch(struct kp_rotation_key *k, struct place *p)
{
    if (k->whole)
        atomic_fetch_add(&atomic_load(&k->whole->split)->at[k->part].launches, 1);
    else if (p)
        atomic_fetch_add(&p->launches, 1);
    else
        atomic_fetch_add(&k->others, 1);
}

struct kp_rotation_key *kp_rotation_find(struct kp_rotation *r, const struct kp_launch *l, const struct kp_function *f)
{
    const struct shape s = shape_of(l);
    struct kp_rotation_key *k = find_key(r, &s, f);
    if (!k)
        return NULL;
    struct place *p = find_place(l->f, &s);
    if (!p)
        p = add_place(k, l->f, f);
    k = find_kind(k, l, f);
    count_launch(k, p);
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
    struct split *kinds = p ? atomic_load_explicit(&p->split, memory_order_acquire) : NULL;
    size_t i = kinds ? find_part(kinds, l, (uint32_t)atomic_load_explicit(&last_key, memory_order_relaxed)) : 0;
    if (kinds && i == atomic_load_explicit(&kinds->n, memory_order_relaxed))
        kinds = NULL, complete = false;
    if (kinds)
        complete = atomic_load_explicit(&kinds->at[i].closed, memory_order_relaxed);
    if (!complete && !atomic_load_explicit(&over, memory_order_relaxed))
        return NULL;
    atomic_store_explicit(&last_key, p ? p->number : 0, memory_order_relaxed);
    if (kinds)
        atomic_fetch_add_explicit(&kinds->at[i].launches, 1, memory_order_relaxed);
    else if (p)
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

/* Lets launches of the key pass from now on. */
static void close_key(struct kp_rotation_key *k)
{
    struct kp_rotation_key *whole = k->whole ? k->whole : k;
    if (k->whole)
        atomic_store(&atomic_load(&whole->split)->at[k->part].closed, true);
    else
        atomic_store(&k->closed, true);
    if (is_closed(whole))
        set_complete(whole, true);
}

/* Closes a key of which no launch will be the last to be collected, as a group was given up. The lock is taken. */
static void close_early(struct kp_rotation_key *k)
{
    kp_kinds_free(k->kinds); /* launches that pass are of no kind */
    k->kinds = NULL;
    close_key(k);
}

static void reopen(struct kp_rotation_key *k)
{
    struct kp_rotation_key *whole = k->whole ? k->whole : k;
    atomic_store(k->whole ? &atomic_load(&whole->split)->at[k->part].closed : &k->closed, false);
    set_complete(whole, false);
}

static void note_taken(struct kp_rotation_key *k, size_t group)
{
    if (!k->taken[group]++ && !k->of->given_up[group])
        k->untaken--;
    if (k->taken[group] == each_of(k->of, group) && !k->of->given_up[group])
        k->lacking--;
}

size_t kp_rotation_take(struct kp_rotation_key *k, size_t group)
{
    if (!k->of->until && k->of->time)
        k->of->until = kp_clock_ns() + k->of->time;
    note_taken(k, group);
    kp_lock_take(lock, KP_FOREVER);
    size_t number = k->kinds ? kp_kinds_keep(k->kinds) : 0;
    if (!k->lacking && k->of->n_given_up)
        close_early(k);
    kp_lock_give(lock);
    return number;
}

void kp_rotation_untake(struct kp_rotation_key *k, size_t group)
{
    if (k->taken[group]-- == each_of(k->of, group) && !k->of->given_up[group] && !k->lacking++)
        reopen(k);
    kp_lock_take(lock, KP_FOREVER);
    if (k->kinds)
        kp_kinds_drop(k->kinds);
    kp_lock_give(lock);
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
        close_early(k);
}

void kp_rotation_failed(struct kp_rotation *r, size_t group, const char *why)
{
    if (r->given_up[group] || ++r->failures[group] < MOST_FAILURES)
        return;
    kp_lock_take(lock, KP_FOREVER); /* no key gets kinds meanwhile */
    each_key(r, stop_lacking, &group);
    r->given_up[group] = true;
    r->n_given_up++;
    atomic_store(&r->why_given_up[group], why ? kp_strdup(why) : NULL);
    kp_lock_give(lock);
}

/* ---- results ---- */

static uint64_t launches_of(const struct kp_rotation_key *k)
{
    const struct split *s = atomic_load(k->whole ? &k->whole->split : &k->split);
    if (k->whole)
        return k->before + atomic_load(&s->at[k->part].launches);
    uint64_t n = atomic_load(&k->others);
    for (size_t i = 0; i < count_parts(k); i++)
        n += atomic_load(&s->at[i].launches);
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

/* Returns what a launch has counted, or NAN. */
static double value_of(const struct kp_result *counted, const char *metric)
{
    const struct kp_metric *m = kp_result_find(counted, metric);
    return m && m->kind == KP_VALUE_REAL ? m->real : NAN;
}

/* Keeps a value of what tells whether the launches are alike. */
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
    for (size_t i = 0; i < CANARIES; i++)
        keep_canary(k, i, value_of(counted, kp_plan_canaries[i]));
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

struct named {
    uint32_t number;
    const char *mangled;
};

static void note_name(struct kp_rotation_key *k, void *arg)
{
    struct named *n = arg;
    if (k->number == n->number)
        n->mangled = k->mangled;
}

/* Says which launches of the kernel and shape the key of a kind has. */
static void say_kind(const struct kp_rotation_key *k, struct kp_launch_info *l)
{
    const struct split *s = atomic_load(&k->whole->split);
    struct named before = {.number = s->at[k->part].value};
    if (s->trait.before)
        each_key(k->of, note_name, &before);
    char *base = before.mangled ? kp_demangle_base(before.mangled) : NULL;
    char *which = kp_trait_say(&s->trait, s->at[k->part].value,
                               base             ? base
                               : before.mangled ? before.mangled
                                                : "others");
    free(l->note);
    if (!which || asprintf(&l->note, KP_KIND_NOTE "%s; others of this kernel and shape differ from them", which) < 0)
        l->note = NULL;
    free(which);
    free(base);
}

/* Says why launches that are not alike are in one entry. */
static void say_together(const struct kp_rotation_key *k, char *why, size_t size)
{
    size_t len = strlen(why);
    if (!k->of->beside && !k->whole)
        snprintf(why + len, size - len, "; %s",
                 k->rejoined ? "too few came to count each kind for itself"
                             : "nothing known before they run tells them apart");
}

/* Fills the header of `r`, and what follows from the counted values. What the first launch of a key beside a replay has
 * counted is a group, too. */
static void complete(struct kp_rotation_key *k, struct kp_result *r)
{
    struct kp_launch_info *l = &r->launch;
    char why[480];
    if (k->whole)
        say_kind(k, l);
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
    if (!rc && !are_alike(k, why, sizeof(why))) {
        say_together(k, why, sizeof(why));
        rc = kp_plan_refuse(k->of->plan, why, r);
    }
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
    close_key(k);
}

/* ---- kinds of launches ---- */

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
            one->values[i] = value_of(counted, g->names[i]);
        for (size_t i = 0; i < CANARIES; i++)
            one->canaries[i] = g ? value_of(counted, kp_plan_canaries[i]) : NAN;
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
    note_taken(part, one->group);
    part->collected[one->group] += one->values != NULL;
    for (size_t i = 0; one->values && !rc && i < g->n_names; i++) {
        const struct kp_metric *m = kp_result_find(&part->whole->result, g->names[i]);
        if (!isnan(one->values[i]))
            rc = kp_result_add_value(&part->result, g->names[i], m ? m->unit : "", one->values[i]);
    }
    for (size_t i = 0; i < CANARIES; i++)
        keep_canary(part, i, one->canaries[i]);
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
        due += k->taken[g] < each_of(k->of, g) ? each_of(k->of, g) - k->taken[g] : 0;
    return due;
}

/* Makes the key of a kind, with what its launches have counted so far. NULL without memory. */
static struct kp_rotation_key *new_part(struct kp_rotation_key *k, const struct kp_kinds_choice *c, size_t at)
{
    struct kp_rotation_key *part = new_key(k->of, &k->shape, k->mangled);
    int rc = part ? kp_result_copy(&k->result, &part->result) : -ENOMEM;
    if (part) {
        part->number = k->number;
        part->whole = k;
        part->part = at;
        part->before = c->seen[at];
        part->seen_at = atomic_load(&clock_now);
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
            free_key(part);
        return NULL;
    }
    part->due = due_of(part);
    return part;
}

/* Makes the keys of all kinds. NULL without memory. */
static struct split *new_split(struct kp_rotation_key *k, const struct kp_kinds_choice *c)
{
    struct split *s = calloc(1, sizeof(*s));
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
            free_key(k->parts[i]);
        k->parts[i] = NULL;
    }
    free(s);
    return NULL;
}

/* Has the launches counted by kind from now on, where something tells the kinds apart before they run. */
static bool split_up(struct kp_rotation_key *k)
{
    struct kp_kinds_choice c;
    struct split *s = NULL;
    kp_lock_take(lock, KP_FOREVER);
    bool room = k->kinds && atomic_load(&k->of->n_keys) + KP_KINDS_MOST <= MOST_KEYS;
    if (room && kp_kinds_choose(k->kinds, kp_plan_canaries, &c))
        s = new_split(k, &c);
    if (s) {
        atomic_store(&k->split, s);
        for (struct place *p = atomic_load(&k->places); p; p = p->next_of_key)
            atomic_store(&p->split, s);
        atomic_fetch_add(&k->of->n_keys, c.n);
    }
    kp_kinds_free(k->kinds);
    k->kinds = NULL;
    kp_lock_give(lock);
    for (size_t i = 0; s && i < c.n; i++)
        if (k->parts[i]->received == k->parts[i]->due)
            pass_on(k->parts[i]);
    return s;
}

/* Tells what the key has counted, now that nothing is lacking; or begins to count its kinds. */
static void tell(struct kp_rotation_key *k)
{
    char why[480];
    if (k->whole || are_alike(k, why, sizeof(why)) || !split_up(k))
        pass_on(k);
}

/* Whether a kind has been counted by each list that all launches together were. */
static bool has_whole_part(const struct kp_rotation_key *k)
{
    for (size_t i = 0; i < count_parts(k); i++) {
        size_t g = 0;
        while (g < k->of->lists && (k->parts[i]->collected[g] || !k->collected[g]))
            g++;
        if (g == k->of->lists)
            return true;
    }
    return false;
}

/* Passes a key on that is not complete: all its launches in one, unless a kind alone has as many groups. */
static void pass_on_early(struct kp_rotation_key *k)
{
    char why[480];
    bool parted = atomic_load(&k->split) || (!are_alike(k, why, sizeof(why)) && split_up(k));
    if (parted && has_whole_part(k))
        return; /* they are passed on behind it */
    k->rejoined = parted;
    pass_on(k);
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
    return k->received == k->due || (r->beside && !k->entered && groups_counted(k) == r->groups);
}

/* Adds what a launch has counted. */
static void add_counted(struct kp_rotation_key *k, size_t group, struct kp_result *counted, const char *why)
{
    double ns = counted->launch.profiler_ns;
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
}

/* Adds what a launch of a kind has counted to the key of all kinds, which may be told in their place. It has its own
 * samples and counts by instruction. */
static void add_to_whole(struct kp_rotation_key *k, size_t group, struct kp_result *counted, const char *why)
{
    if (group < k->of->lists) {
        add_counted(k, group, counted, why);
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
    if (k->whole)
        add_to_whole(k->whole, group, counted, why);
    else
        keep(k, group, number, counted, why);
    add_counted(k, group, counted, why);
    if (is_told_now(k))
        (k->of->beside ? enter : tell)(k);
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
    k->due = k->of->needed;
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
    else if (k->is_begun && k->whole && !k->whole->rejoined)
        pass_on(k);
    else if (k->is_begun && !k->whole)
        pass_on_early(k);
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
