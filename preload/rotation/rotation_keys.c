/*
 * The keys of a rotation: kernels with a shape. Launches find theirs by the function's handle, without a lock.
 */
#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "base/text.h"
#include "preload/gate/fast_path.h"
#include "preload/rotation/rotation_state.h"
#include "preload/who/durations.h"

enum {
    PLACE_BUCKETS = 1 << 12,
    MOST_PLACES = 1 << 16, /* beyond that, launches go the longer way */
    ENDED = 1024,          /* launches of other shapes after which a rare shape counts as ended, */
    LEAST_ENDED = 4,       /* and as many such shapes of a function make its new ones fleeting */
};

static struct kp_rotation_place *_Atomic places[PLACE_BUCKETS];
static atomic_size_t n_places;
static atomic_uint_fast64_t generation;
atomic_uint_fast64_t kp_rotation_clock;
atomic_int kp_rotation_contexts;
static atomic_bool by_path;

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

/* Adds a place for the key, unless there are too many. The caller is inside the gate; readers need no lock. */
static struct kp_rotation_place *add_place(struct kp_rotation_key *k, CUfunction handle)
{
    struct kp_rotation_place *_Atomic *bucket = bucket_of(handle, &k->shape);
    struct kp_rotation_place *p = atomic_load(&n_places) < MOST_PLACES ? calloc(1, sizeof(*p)) : NULL;
    if (!p)
        return NULL;
    atomic_fetch_add(&n_places, 1);
    p->function = handle;
    p->generation = atomic_load(&generation);
    p->shape = k->shape;
    p->next_of_key = atomic_load(&k->places);
    atomic_store(&k->places, p);
    /* Not before: the collecting thread may be updating all places meanwhile. */
    atomic_store(&p->complete, atomic_load(&k->closed));
    p->next = atomic_load(bucket);
    atomic_store_explicit(bucket, p, memory_order_release);
    return p;
}

void kp_rotation_each_key(const struct kp_rotation *r, void (*fn)(struct kp_rotation_key *k, void *arg), void *arg)
{
    for (size_t b = 0; b < KP_ROTATION_BUCKETS; b++)
        for (struct kp_rotation_key *k = r->keys[b]; k; k = k->next)
            fn(k, arg);
}

void kp_rotation_free_key(struct kp_rotation_key *k)
{
    kp_result_free(&k->result);
    for (size_t i = 0; i < KP_ROTATION_CANARIES; i++)
        free(k->canaries[i]);
    kp_why_free(&k->lost);
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
    k->context = r->context;
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
    size_t n, ended; /* all shapes, and those that ended before all groups were counted */
};

static void look_at_shape(struct kp_rotation_key *k, void *arg)
{
    struct shapes *s = arg;
    if (strcmp(k->mangled, s->mangled) != 0)
        return;
    s->n++;
    s->ended += k->lacking && k->seen < k->of->groups && s->now - k->seen_at > ENDED;
}

/* Returns true if shapes of the function occur only a few times, for example if a length grows with each step.
 * Switching groups for each of them is slow, and no shape gets all groups. */
static bool is_fleeting(const struct kp_rotation *r, const char *mangled)
{
    struct shapes s = {.mangled = mangled, .now = kp_rotation_now()};
    if (!r->beside)
        kp_rotation_each_key(r, look_at_shape, &s);
    return s.ended >= LEAST_ENDED && 2 * s.ended > s.n;
}

static struct kp_rotation_key **bucket_of_key(struct kp_rotation *r, const struct kp_rotation_shape *s,
                                              const char *mangled)
{
    return &r->keys[kp_hash(mangled, strlen(mangled), kp_hash(s, sizeof(*s), 0)) % KP_ROTATION_BUCKETS];
}

void kp_rotation_add_key(struct kp_rotation *r, struct kp_rotation_key *k)
{
    struct kp_rotation_key **bucket = bucket_of_key(r, &k->shape, k->mangled);
    k->next = *bucket;
    *bucket = k;
    atomic_fetch_add(&r->n_keys, 1);
}

static struct kp_rotation_key *find_key(struct kp_rotation *r, const struct kp_rotation_shape *s, const char *mangled)
{
    struct kp_rotation_key *k = *bucket_of_key(r, s, mangled);
    while (k && (!same_shape(&k->shape, s) || strcmp(k->mangled, mangled) != 0))
        k = k->next;
    if (!k && atomic_load(&r->n_keys) < KP_ROTATION_KEYS && (k = kp_rotation_new_key(r, s, mangled))) {
        k->is_fleeting = is_fleeting(r, mangled);
        kp_rotation_add_key(r, k);
    }
    return k;
}

static void set_complete(struct kp_rotation_key *k, bool complete)
{
    for (struct kp_rotation_place *p = atomic_load(&k->places); p; p = p->next_of_key)
        atomic_store(&p->complete, complete);
    if (!complete)
        kp_passing_outdate();
}

/* Notes whether launches of the key have several paths. */
static void note_path(struct kp_rotation_key *k, uint64_t path)
{
    if (!k->path)
        k->path = path;
    else if (k->path != path)
        atomic_store_explicit(&k->has_paths, true, memory_order_relaxed);
}

struct kp_rotation_key *kp_rotation_find(struct kp_rotation *r, const struct kp_launch *l, const struct kp_function *f)
{
    uint64_t path = kp_rotation_path(&l->nvtx);
    const struct kp_rotation_shape s = shape_of(l, kp_rotation_has_path(r) ? path : 0);
    struct kp_rotation_key *k = find_key(r, &s, f->mangled);
    if (!k)
        return NULL;
    note_path(k, path);
    struct kp_rotation_place *p = find_place(l->f, &s);
    if (!p)
        p = add_place(k, l->f);
    atomic_fetch_add(p ? &p->launches : &k->others, 1);
    atomic_fetch_add_explicit(&kp_rotation_clock, 1, memory_order_relaxed);
    uint64_t now = kp_rotation_now();
    k->gap = k->seen_at ? now - k->seen_at : 0;
    k->born_at = k->seen ? k->born_at : now;
    k->seen_at = now;
    k->is_fleeting &= ++k->seen < r->groups;
    return k;
}

enum kp_reason kp_rotation_passes(const struct kp_launch *l, bool spent)
{
    if (l->is_graph || atomic_load_explicit(&kp_rotation_contexts, memory_order_relaxed) != 1)
        return KP_REASON_NONE;
    bool tells = atomic_load_explicit(&by_path, memory_order_relaxed);
    const struct kp_rotation_shape s = shape_of(l, tells ? kp_rotation_path(&l->nvtx) : 0);
    struct kp_rotation_place *p = find_place(l->f, &s);
    bool complete = p && atomic_load_explicit(&p->complete, memory_order_relaxed);
    if (!p || !(complete || spent))
        return KP_REASON_NONE;
    atomic_fetch_add_explicit(&p->launches, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&kp_rotation_clock, 1, memory_order_relaxed);
    return complete ? KP_REASON_ROTATED : KP_REASON_BUDGET;
}

bool kp_rotation_is_new(const struct kp_launch *l)
{
    const struct kp_rotation_shape s = shape_of(l, 0);
    return !l->is_graph && !atomic_load(&by_path) && atomic_load(&kp_rotation_contexts) == 1 && !find_place(l->f, &s);
}

void kp_rotation_passing(const struct kp_launch *l, bool spent, struct kp_pass_known *known)
{
    if (atomic_load(&by_path) || atomic_load(&kp_rotation_contexts) != 1)
        return;
    const struct kp_rotation_shape s = shape_of(l, 0);
    struct kp_rotation_place *p = find_place(l->f, &s);
    bool complete = p && atomic_load(&p->complete);
    if (!p || !(complete || spent))
        return;
    known->of_key = true;
    known->why = complete ? KP_PASS_ROTATED : KP_PASS_BUDGET;
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
    enum { LEAST_TIMED = 10 }; /* timing costs next to nothing, and the first launches are slow */
    if (group == r->groups)
        return r->each < LEAST_TIMED ? LEAST_TIMED : r->each;
    size_t extra = kp_rotation_extra_of(r, group);
    return extra == SIZE_MAX || r->extras.adds_up(r->extras.of, extra) ? r->each : 1;
}

void kp_rotation_close(struct kp_rotation_key *k)
{
    atomic_store(&k->closed, true);
    set_complete(k, true);
}

void kp_rotation_reopen(struct kp_rotation_key *k)
{
    atomic_store(&k->closed, false);
    set_complete(k, false);
}

void kp_rotation_note_taken(struct kp_rotation_key *k, size_t group)
{
    if (!k->taken[group]++ && !k->of->given_up[group])
        k->untaken--;
    if (k->taken[group] == kp_rotation_each_of(k->of, group) && !k->of->given_up[group])
        k->lacking--;
}

void kp_rotation_stands_for(const struct kp_rotation_key *k, struct kp_launch_info *l)
{
    const struct kp_duration_of what = {k->mangled, k->context, k->shape.grid, k->shape.block, k->shape.dynamic_shared};
    kp_passing_settle();
    l->alike = atomic_load(&k->others);
    for (struct kp_rotation_place *p = atomic_load(&k->places); p; p = p->next_of_key)
        l->alike += atomic_load(&p->launches);
    l->recorded = kp_durations_of(&what, &l->recorded_ns);
}
