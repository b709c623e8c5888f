#include "preload/mode/timing_records.h"

#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "base/text.h"
#include "collectors/providers/observe.h"
#include "preload/rotation/rotation.h"
#include "preload/session/session.h"
#include "preload/results/batch.h"

enum { MOST = 64 }; /* launches under way, and records not yet looked at */

/* What distinguishes records of kernels. It is compared as bytes, so there must be no padding. */
struct like {
    uint64_t name;
    uint64_t context; /* as CUPTI numbers them */
    uint32_t grid[3], block[3];
};

/* A launch whose record has not come. */
static struct waiting {
    const struct kp_context_setup *setup;
    uint32_t context;
    struct like like;
    struct kp_rotation_key *key;
    size_t group;
    bool quiet; /* see kp_rotation_times */
    struct kp_result *result;
    char *base;
} waiting[MOST];
static size_t n_waiting;

/* Records that have arrived, possibly on a CUPTI thread. */
static struct kp_lock *const lock = &kp_locks[KP_LOCK_TIMED];
static struct arrived {
    struct like like;
    int64_t ns; /* 0: it was given up before the kernel had ended */
} arrived[MOST];
static size_t n_arrived;

static struct like like_of(const char *name, uint32_t context, const uint32_t grid[3], const uint32_t block[3])
{
    struct like l = {.name = kp_hash(name, strlen(name), 0), .context = context};
    memcpy(l.grid, grid, sizeof(l.grid));
    memcpy(l.block, block, sizeof(l.block));
    return l;
}

/* Returns the index of the first launch like that; n_waiting: there is none. Inside the gate, or under the lock. */
static size_t find_waiting(const struct like *like)
{
    size_t i = 0;
    while (i < n_waiting && memcmp(&waiting[i].like, like, sizeof(*like)) != 0)
        i++;
    return i;
}

static void note(const struct kp_device_record *r)
{
    const struct kp_activity *a = &r->activity;
    if (a->kind != KP_ACTIVITY_KERNEL)
        return;
    struct arrived one = {like_of(r->name, a->context_id, a->grid, a->block),
                          a->end_ns > a->start_ns ? a->end_ns - a->start_ns : 0};
    kp_lock_take(lock, KP_FOREVER);
    if (find_waiting(&one.like) < n_waiting && n_arrived < MOST)
        arrived[n_arrived++] = one; /* the rest belong to launches that were recorded for something else */
    kp_lock_give(lock);
}

bool kp_timed_waits(void)
{
    return n_waiting;
}

bool kp_timed_has_room(void)
{
    return n_waiting < MOST;
}

static bool take_arrived(struct arrived *one)
{
    kp_lock_take(lock, KP_FOREVER);
    bool any = n_arrived;
    if (any) {
        *one = arrived[0];
        memmove(arrived, arrived + 1, --n_arrived * sizeof(*arrived));
    }
    kp_lock_give(lock);
    return any;
}

/* Removes a launch; only the gate's thread does so. */
static struct waiting take_at(size_t i)
{
    struct waiting one = waiting[i];
    kp_lock_take(lock, KP_FOREVER);
    memmove(waiting + i, waiting + i + 1, (--n_waiting - i) * sizeof(*waiting));
    kp_lock_give(lock);
    return one;
}

/* Removes the first launch like that; records of a kernel come in the order of its launches. */
static bool take_waiting(const struct like *like, struct waiting *one)
{
    size_t i = find_waiting(like);
    bool any = i < n_waiting;
    if (any)
        *one = take_at(i);
    return any;
}

/* Gives up a launch that has no time. */
static void lose(struct waiting *one)
{
    kp_session_skip(KP_REASON_TIME_LOST, 1);
    kp_result_free(one->result);
    free(one->result);
    free(one->base);
}

/* Hands on what is known of a launch: its time, if it has one. */
static void hand_on(struct waiting *one, const struct kp_context *c, int64_t ns)
{
    struct kp_batch *b = ns ? kp_batch_new(1) : NULL;
    if (!b || kp_result_set_real(one->result, "gpu__time_duration.sum", "ns", (double)ns)) {
        kp_rotation_untake(one->key, one->group);
        kp_batch_finish(b, one->setup, c, NULL, kp_why_of(KP_REASON_NONE, NULL));
        lose(one);
        return;
    }
    kp_batch_group(b, one->group);
    kp_batch_add(b, one->result, one->base ? one->base : "", one->key, one->quiet);
    kp_batch_finish(b, one->setup, c, NULL, kp_why_of(KP_REASON_NONE, NULL));
    free(one->base);
}

static void forget_ended(void)
{
    for (size_t i = 0; i < n_waiting;) {
        if (kp_context_of(waiting[i].context)) {
            i++;
            continue;
        }
        struct waiting one = take_at(i);
        lose(&one);
    }
}

void kp_timed_settle(void)
{
    struct arrived a;
    struct waiting one;
    if (!n_waiting)
        return;
    forget_ended();
    kp_observe_flush(kp_context_cupti(), false);
    while (take_arrived(&a))
        if (take_waiting(&a.like, &one))
            hand_on(&one, kp_context_of(one.context), a.ns);
}

void kp_timed_end(void)
{
    kp_timed_settle();
    while (n_waiting) {
        struct waiting one = take_at(n_waiting - 1);
        lose(&one);
    }
}

/* Waits for the record of a launch that is about to be made: the record may come at once. */
static void add_waiting(const struct kp_question *q, struct kp_rotation_key *key, bool quiet, struct kp_result *r)
{
    const struct kp_known_function *f = q->function;
    const size_t group = kp_rotation_timed(q->context->rotation);
    kp_rotation_take(key, group);
    kp_lock_take(lock, KP_FOREVER);
    waiting[n_waiting++] =
        (struct waiting){.setup = q->setup,
                         .context = q->context->id,
                         .like = like_of(f->facts.mangled, q->context->id, r->launch.grid, r->launch.block),
                         .key = key,
                         .group = group,
                         .quiet = quiet,
                         .result = r,
                         .base = kp_strdup(f->base ? f->base : "")};
    kp_lock_give(lock);
}

/* The launch that was added last was not made, or not recorded. */
static void remove_last(void)
{
    struct waiting last = take_at(n_waiting - 1);
    kp_rotation_untake(last.key, last.group);
    free(last.base);
}

CUresult kp_timed_issue(const struct kp_question *q, const struct kp_launch *l, struct kp_rotation_key *key, bool quiet,
                        struct kp_result *r, bool *timed)
{
    kp_context_uses_cupti();
    *timed = !kp_providers_record_on(kp_context_cupti(), note);
    if (*timed)
        add_waiting(q, key, quiet, r);
    CUresult rc = kp_launch_issue_own(l);
    if (*timed)
        kp_providers_record_off(kp_context_cupti());
    if (*timed && rc != CUDA_SUCCESS) {
        remove_last();
        *timed = false;
    }
    if (*timed)
        r->launch.ordinal = kp_session_seen(1);
    return rc;
}
