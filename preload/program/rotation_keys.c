/*
 * The keys of a rotation: kernels with a shape, and the kinds of their launches. Launches find theirs by the function's
 * handle, without a lock.
 */
#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "base/text.h"
#include "preload/gate/passing.h"
#include "preload/program/rotation_state.h"

enum {
    PLACE_BUCKETS = 1 << 12,
    MOST_PLACES = 1 << 16, /* beyond, launches take the longer way */
    MOST_TOLD = 512,       /* beyond, launches of a key are not told apart, as what is known of each takes memory */
    ENDED = 1024,          /* launches of others after which a shape has ended that came a few times, */
    LEAST_ENDED = 4,       /* and as many such shapes of a function make its new ones fleeting */
};

static struct kp_rotation_place *_Atomic places[PLACE_BUCKETS];
static atomic_size_t n_places;
static atomic_uint_fast64_t generation;
atomic_uint_fast64_t kp_rotation_clock;
atomic_int kp_rotation_contexts, kp_rotation_over;
static atomic_bool by_path;

/* What keys know of kinds: the gate's threads note launches, and the collecting one decides. */
static struct kp_lock *const lock = &kp_locks[KP_LOCK_KINDS];

void kp_rotation_by_path(bool on)
{
    atomic_store(&by_path, on);
}

bool kp_rotation_has_path(const struct kp_rotation *r)
{
    return atomic_load_explicit(&by_path, memory_order_relaxed) && !r->beside;
}

static struct kp_rotation_shape shape_of(const struct kp_launch *l, uint64_t path)
{
    struct kp_rotation_shape s = {.dynamic_shared = l->shape.dynamic_shared, .path = path};
    memcpy(s.grid, l->shape.grid, sizeof(s.grid));
    memcpy(s.block, l->shape.block, sizeof(s.block));
    memcpy(s.cluster, l->shape.cluster, sizeof(s.cluster));
    return s;
}

static bool same_shape(const struct kp_rotation_shape *a, const struct kp_rotation_shape *b)
{
    return !memcmp(a, b, sizeof(*a));
}

static struct kp_rotation_place *_Atomic *bucket_of(CUfunction f, const struct kp_rotation_shape *s)
{
    return &places[kp_hash(s, sizeof(*s), kp_hash(&f, sizeof(f), 0)) % PLACE_BUCKETS];
}

static struct kp_rotation_place *find_place(CUfunction f, const struct kp_rotation_shape *s)
{
    uint64_t now = atomic_load_explicit(&generation, memory_order_relaxed);
    struct kp_rotation_place *p = atomic_load_explicit(bucket_of(f, s), memory_order_acquire);
    while (p && !(p->function == f && p->generation == now && same_shape(&p->shape, s)))
        p = p->next;
    return p;
}

/* Whether no more launches of the key are counted, of none of its kinds. */
static bool is_closed(const struct kp_rotation_key *k)
{
    const struct kp_rotation_split *s = atomic_load(&k->split);
    size_t n = s ? atomic_load(&s->n) : 0;
    for (size_t i = 0; i < n; i++)
        if (!atomic_load(&s->at[i].closed))
            return false;
    return s || atomic_load(&k->closed);
}

/* Adds a place for the key, unless there are too many. The caller is inside the gate; readers need no lock. */
static struct kp_rotation_place *add_place(struct kp_rotation_key *k, CUfunction handle, const struct kp_function *f)
{
    struct kp_rotation_place *_Atomic *bucket = bucket_of(handle, &k->shape);
    struct kp_rotation_split *s;
    struct kp_rotation_place *p = atomic_load(&n_places) < MOST_PLACES ? calloc(1, sizeof(*p)) : NULL;
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

size_t kp_rotation_parts(const struct kp_rotation_key *k)
{
    const struct kp_rotation_split *s = atomic_load(&k->split);
    return s ? atomic_load_explicit(&s->n, memory_order_acquire) : 0;
}

void kp_rotation_each_key(const struct kp_rotation *r, void (*fn)(struct kp_rotation_key *k, void *arg), void *arg)
{
    for (size_t b = 0; b < KP_ROTATION_BUCKETS; b++)
        for (struct kp_rotation_key *k = r->keys[b]; k; k = k->next) {
            fn(k, arg);
            for (size_t i = 0; i < kp_rotation_parts(k); i++)
                fn(k->parts[i], arg);
        }
}

void kp_rotation_free_key(struct kp_rotation_key *k)
{
    kp_result_free(&k->result);
    for (size_t i = 0; i < KP_KINDS_CANARIES; i++)
        free(k->canaries[i]);
    for (size_t i = 0; i < KP_KINDS_MOST; i++)
        if (k->parts[i])
            kp_rotation_free_key(k->parts[i]);
    kp_kinds_free(k->kinds);
    free(k->lost);
    free(k->mangled);
    free(k->taken);
    free(k->collected);
    free(k);
}

struct kp_rotation_key *kp_rotation_new_key(struct kp_rotation *r, const struct kp_rotation_shape *s,
                                            const char *mangled)
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
    kp_rotation_free_key(k);
    return NULL;
}

/* The keys of a function. */
struct shapes {
    const char *mangled;
    uint64_t now;
    size_t n, ended; /* all, and those that no longer come, and came too seldom for all groups */
};

static void look_at_shape(struct kp_rotation_key *k, void *arg)
{
    struct shapes *s = arg;
    if (strcmp(k->mangled, s->mangled) != 0)
        return;
    s->n++;
    s->ended += k->lacking && k->seen < k->of->groups && s->now - k->seen_at > ENDED;
}

/* Whether shapes of the function come a few times and no more, as where a length grows from step to step. To switch
 * groups for each of them takes long, and none gets all of them. */
static bool is_fleeting(const struct kp_rotation *r, const char *mangled)
{
    struct shapes s = {.mangled = mangled, .now = kp_rotation_now()};
    if (!r->beside)
        kp_rotation_each_key(r, look_at_shape, &s);
    return s.ended >= LEAST_ENDED && 2 * s.ended > s.n;
}

/* Numbers a key that is not of a kind, and makes it remember what its launches had. */
static void number_key(struct kp_rotation_key *k, const struct kp_function *f)
{
    static uint32_t last; /* inside the gate */
    k->number = ++last;
    k->is_fleeting = is_fleeting(k->of, k->mangled);
    if (!k->of->beside && atomic_load(&k->of->n_keys) < MOST_TOLD)
        k->kinds = kp_kinds_new(f);
}

static struct kp_rotation_key *find_key(struct kp_rotation *r, const struct kp_rotation_shape *s,
                                        const struct kp_function *f)
{
    const char *mangled = f->mangled;
    size_t bucket = kp_hash(mangled, strlen(mangled), kp_hash(s, sizeof(*s), 0)) % KP_ROTATION_BUCKETS;
    struct kp_rotation_key *k = r->keys[bucket];
    while (k && (!same_shape(&k->shape, s) || strcmp(k->mangled, mangled) != 0))
        k = k->next;
    if (!k && atomic_load(&r->n_keys) < KP_ROTATION_KEYS && (k = kp_rotation_new_key(r, s, mangled))) {
        number_key(k, f);
        k->next = r->keys[bucket];
        r->keys[bucket] = k;
        atomic_fetch_add(&r->n_keys, 1);
    }
    return k;
}

/* Finds the kind of a launch; returns how many there are where it is of none. */
static size_t find_part(const struct kp_rotation_split *s, const struct kp_launch *l, uint32_t before)
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
    for (struct kp_rotation_place *p = atomic_load(&k->places); p; p = p->next_of_key)
        atomic_store(&p->complete, complete);
    if (!complete)
        kp_passing_outdate();
}

/* Begins a kind that launches are of which came only after the split. NULL: there are too many. */
static struct kp_rotation_key *add_part(struct kp_rotation_key *k, struct kp_rotation_split *s, uint32_t value)
{
    size_t n = atomic_load(&s->n);
    bool room = n < KP_KINDS_MOST && atomic_load(&k->of->n_keys) < KP_ROTATION_KEYS;
    struct kp_rotation_key *part = room ? kp_rotation_new_key(k->of, &k->shape, k->mangled) : NULL;
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
    uint32_t before = kp_passing_last, word;
    kp_passing_last = k->number;
    kp_lock_take(lock, KP_FOREVER);
    struct kp_rotation_split *s = atomic_load(&k->split);
    if (!s && k->kinds)
        kp_kinds_see(k->kinds, l, f, before);
    kp_lock_give(lock);
    if (!s || !kp_trait_fits(&s->trait, f) || !kp_trait_read(&s->trait, l, before, &word))
        return k;
    size_t i = find_part(s, l, before);
    struct kp_rotation_key *part = i < atomic_load(&s->n) ? k->parts[i] : add_part(k, s, word);
    return part ? part : k;
}

/* Notes whether launches of the key have several paths. */
static void note_path(struct kp_rotation_key *k, uint64_t path)
{
    if (!k->path)
        k->path = path;
    else if (k->path != path)
        atomic_store_explicit(&k->has_paths, true, memory_order_relaxed);
}

/* Counts a launch of the key. */
static void count_launch(struct kp_rotation_key *k, struct kp_rotation_place *p)
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
    uint64_t path = kp_rotation_path(&l->nvtx);
    const struct kp_rotation_shape s = shape_of(l, kp_rotation_has_path(r) ? path : 0);
    struct kp_rotation_key *k = find_key(r, &s, f);
    if (!k)
        return NULL;
    note_path(k, path);
    struct kp_rotation_place *p = find_place(l->f, &s);
    if (!p)
        p = add_place(k, l->f, f);
    k = find_kind(k, l, f);
    count_launch(k, p);
    atomic_fetch_add_explicit(&kp_rotation_clock, 1, memory_order_relaxed);
    uint64_t now = kp_rotation_now();
    k->gap = k->seen_at ? now - k->seen_at : 0;
    k->born_at = k->seen ? k->born_at : now;
    k->seen_at = now;
    k->is_fleeting &= ++k->seen < r->groups;
    return k;
}

const char *kp_rotation_passes(const struct kp_launch *l)
{
    if (l->is_graph || atomic_load_explicit(&kp_rotation_contexts, memory_order_relaxed) != 1)
        return NULL;
    bool tells = atomic_load_explicit(&by_path, memory_order_relaxed);
    const struct kp_rotation_shape s = shape_of(l, tells ? kp_rotation_path(&l->nvtx) : 0);
    struct kp_rotation_place *p = find_place(l->f, &s);
    bool complete = p && atomic_load_explicit(&p->complete, memory_order_relaxed);
    struct kp_rotation_split *kinds = p ? atomic_load_explicit(&p->split, memory_order_acquire) : NULL;
    size_t i = kinds ? find_part(kinds, l, kp_passing_last) : 0;
    if (kinds && i == atomic_load_explicit(&kinds->n, memory_order_relaxed))
        kinds = NULL, complete = false;
    if (kinds)
        complete = atomic_load_explicit(&kinds->at[i].closed, memory_order_relaxed);
    if (!complete && !atomic_load_explicit(&kp_rotation_over, memory_order_relaxed))
        return NULL;
    kp_passing_last = p ? p->number : 0;
    if (kinds)
        atomic_fetch_add_explicit(&kinds->at[i].launches, 1, memory_order_relaxed);
    else if (p)
        atomic_fetch_add_explicit(&p->launches, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&kp_rotation_clock, 1, memory_order_relaxed);
    return complete ? KP_SKIP_ROTATED : KP_SKIP_ROTATE_TIME;
}

void kp_rotation_passing(const struct kp_launch *l, struct kp_pass_known *known)
{
    if (atomic_load(&by_path) || atomic_load(&kp_rotation_contexts) != 1)
        return;
    const struct kp_rotation_shape s = shape_of(l, 0);
    struct kp_rotation_place *p = find_place(l->f, &s);
    bool complete = p && atomic_load(&p->complete);
    if (!p || atomic_load(&p->split) || !(complete || atomic_load(&kp_rotation_over)))
        return;
    known->why = complete ? KP_PASS_ROTATED : KP_PASS_TIME;
    known->key = p->number;
    known->also = &p->launches;
}

uint64_t kp_rotation_now(void)
{
    return atomic_load_explicit(&kp_rotation_clock, memory_order_relaxed) + kp_passing_of_keys();
}

void kp_rotation_forget(void)
{
    atomic_fetch_add(&generation, 1);
    kp_passing_outdate();
}

/* ---- what all parts ask ---- */

size_t kp_rotation_extra_of(const struct kp_rotation *r, size_t group)
{
    return group < r->lists ? SIZE_MAX : group - r->lists;
}

uint64_t kp_rotation_each_of(const struct kp_rotation *r, size_t group)
{
    enum { LEAST_TIMED = 10 }; /* it costs next to nothing, and the first of them are slow */
    if (group == r->groups)
        return r->each < LEAST_TIMED ? LEAST_TIMED : r->each;
    size_t extra = kp_rotation_extra_of(r, group);
    return extra == SIZE_MAX || r->extras.adds_up(r->extras.of, extra) ? r->each : 1;
}

void kp_rotation_close(struct kp_rotation_key *k)
{
    struct kp_rotation_key *whole = k->whole ? k->whole : k;
    if (k->whole)
        atomic_store(&atomic_load(&whole->split)->at[k->part].closed, true);
    else
        atomic_store(&k->closed, true);
    if (is_closed(whole))
        set_complete(whole, true);
}

void kp_rotation_reopen(struct kp_rotation_key *k)
{
    struct kp_rotation_key *whole = k->whole ? k->whole : k;
    atomic_store(k->whole ? &atomic_load(&whole->split)->at[k->part].closed : &k->closed, false);
    set_complete(whole, false);
}

void kp_rotation_note_taken(struct kp_rotation_key *k, size_t group)
{
    if (!k->taken[group]++ && !k->of->given_up[group])
        k->untaken--;
    if (k->taken[group] == kp_rotation_each_of(k->of, group) && !k->of->given_up[group])
        k->lacking--;
}

uint64_t kp_rotation_launches(const struct kp_rotation_key *k)
{
    kp_passing_settle();
    const struct kp_rotation_split *s = atomic_load(k->whole ? &k->whole->split : &k->split);
    if (k->whole)
        return k->before + atomic_load(&s->at[k->part].launches);
    uint64_t n = atomic_load(&k->others);
    for (size_t i = 0; i < kp_rotation_parts(k); i++)
        n += atomic_load(&s->at[i].launches);
    for (struct kp_rotation_place *p = atomic_load(&k->places); p; p = p->next_of_key)
        n += atomic_load(&p->launches);
    return n;
}
