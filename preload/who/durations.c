#include "preload/who/durations.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "base/text.h"
#include "base/work.h"
#include "collectors/providers/observe.h"

enum {
    KINDS = 1 << 13,
    SLOTS = 2 * KINDS, /* a power of 2 */
};

/* Launches of one kernel and shape. The key is compared as bytes, so there must be no padding in it. */
struct sum {
    struct key {
        uint64_t name; /* its hash */
        uint64_t context, dynamic_shared;
        uint32_t grid[3], block[3];
    } key;
    uint64_t launches; /* 0: the slot is free */
    uint64_t ns;
};

static struct {
    struct kp_lock *lock;
    const struct kp_cupti *c;
    bool beside;
    void (*on_full)(void);
    struct sum *sums; /* this and the following under the lock */
    size_t n;
    uint64_t records;
} all = {.lock = &kp_locks[KP_LOCK_DURATIONS]};

static atomic_bool on, full;

bool kp_durations_are_on(void)
{
    return atomic_load_explicit(&on, memory_order_relaxed);
}

bool kp_durations_are_full(void)
{
    return atomic_load(&full);
}

static struct key key_of(const struct kp_duration_of *what)
{
    struct key k = {.name = kp_hash(what->mangled, strlen(what->mangled), 0),
                    .context = what->context,
                    .dynamic_shared = what->dynamic_shared};
    memcpy(k.grid, what->grid, sizeof(k.grid));
    memcpy(k.block, what->block, sizeof(k.block));
    return k;
}

/* Returns the sum of the key, or a free slot for it. Under the lock. */
static struct sum *find_sum(const struct key *k)
{
    size_t i = kp_hash(k, sizeof(*k), 0);
    struct sum *s = &all.sums[i & (SLOTS - 1)];
    while (s->launches && memcmp(&s->key, k, sizeof(*k)) != 0)
        s = &all.sums[++i & (SLOTS - 1)];
    return s;
}

static void add_to_sum(const struct key *k, uint64_t ns)
{
    struct sum *s = find_sum(k);
    if (!s->launches && all.n == KINDS)
        return;
    all.n += !s->launches;
    s->key = *k;
    s->launches++;
    s->ns += ns;
}

void kp_durations_add(const struct kp_device_record *r)
{
    const struct kp_activity *a = &r->activity;
    /* A record without times belongs to a kernel that had not ended. */
    if (!kp_durations_are_on() || a->kind != KP_ACTIVITY_KERNEL || !a->start_ns || a->end_ns < a->start_ns)
        return;
    const struct kp_duration_of what = {r->name, a->context_id, a->grid, a->block, r->dynamic_shared};
    const struct key k = key_of(&what);
    kp_lock_take(all.lock, KP_FOREVER);
    bool fits = all.records < KP_DURATIONS_MOST, last = ++all.records == KP_DURATIONS_MOST;
    if (fits)
        add_to_sum(&k, (uint64_t)(a->end_ns - a->start_ns));
    kp_lock_give(all.lock);
    if (!last)
        return;
    atomic_store(&full, true);
    all.on_full();
}

int kp_durations_begin(const struct kp_cupti *c, bool beside, void (*on_full)(void))
{
    if (!kp_observe_available(c))
        return -ENOTSUP;
    kp_lock_take(all.lock, KP_FOREVER);
    all.sums = all.sums ? all.sums : calloc(SLOTS, sizeof(*all.sums));
    bool made = all.sums;
    kp_lock_give(all.lock);
    if (!made)
        return -ENOMEM;
    all.c = c;
    all.beside = beside;
    all.on_full = on_full;
    atomic_store(&on, true);
    int rc = beside ? 0 : kp_observe_begin(c, kp_durations_add, true);
    atomic_store(&on, !rc);
    return rc;
}

/* Returns true if CUPTI records for this. */
static bool records(void)
{
    return kp_durations_are_on() && !all.beside;
}

void kp_durations_pause(void)
{
    if (records())
        kp_observe_pause(all.c);
}

void kp_durations_resume(void)
{
    if (records() && (kp_durations_are_full() || kp_observe_resume(all.c)))
        kp_durations_stop();
}

void kp_durations_flush(bool give_up)
{
    if (!records())
        return;
    kp_observe_flush(all.c, false);
    if (give_up)
        kp_observe_flush(all.c, true);
}

void kp_durations_end(void)
{
    kp_durations_pause();
    kp_durations_stop();
}

void kp_durations_stop(void)
{
    atomic_store(&on, false);
}

uint64_t kp_durations_of(const struct kp_duration_of *what, double *ns)
{
    const struct key k = key_of(what);
    kp_lock_take(all.lock, KP_FOREVER);
    const struct sum none = {.launches = 0}, s = all.sums ? *find_sum(&k) : none; /* none: it never began */
    kp_lock_give(all.lock);
    *ns = (double)s.ns;
    return s.launches;
}
