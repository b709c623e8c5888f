#include "preload/window/timed.h"

#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "base/text.h"
#include "collectors/providers/observe.h"
#include "preload/program/rotation.h"
#include "preload/session/session.h"
#include "preload/window/batch.h"

enum { MOST = 64 }; /* launches under way, and records not yet looked at */

/* What tells records of kernels apart. */
struct like {
    uint64_t name;
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

/* Records that have come, also on a thread of CUPTI's. */
static struct kp_lock *const lock = &kp_locks[KP_LOCK_TIMED];
static struct arrived {
    struct like like;
    int64_t ns; /* 0: it was given up before the kernel had ended */
} arrived[MOST];
static size_t n_arrived;

static struct like like_of(const char *name, const uint32_t grid[3], const uint32_t block[3])
{
    struct like l = {.name = kp_hash(name, strlen(name), 0)};
    memcpy(l.grid, grid, sizeof(l.grid));
    memcpy(l.block, block, sizeof(l.block));
    return l;
}

static void note(const struct kp_device_record *r)
{
    const struct kp_activity *a = &r->activity;
    if (a->kind != KP_ACTIVITY_KERNEL)
        return;
    struct arrived one = {like_of(r->name, a->grid, a->block), a->end_ns > a->start_ns ? a->end_ns - a->start_ns : 0};
    kp_lock_take(lock, KP_FOREVER);
    if (n_arrived < MOST)
        arrived[n_arrived++] = one;
    kp_lock_give(lock);
}

bool kp_timed_has_room(void)
{
    return n_waiting < MOST;
}

CUresult kp_timed_issue(const struct kp_launch *l, bool recorded)
{
    bool on = recorded && !kp_record_on(kp_context_cupti(), note);
    CUresult rc = kp_launch_issue_own(l);
    if (on)
        kp_record_off(kp_context_cupti());
    return rc;
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

/* Takes the first launch like that; records of a kernel come in the order of its launches. */
static bool take_waiting(const struct like *like, struct waiting *one)
{
    size_t i = 0;
    while (i < n_waiting && memcmp(&waiting[i].like, like, sizeof(*like)) != 0)
        i++;
    if (i == n_waiting)
        return false; /* of a launch that was recorded for something else */
    *one = waiting[i];
    memmove(waiting + i, waiting + i + 1, (--n_waiting - i) * sizeof(*waiting));
    return true;
}

static void drop(struct waiting *one)
{
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
        kp_batch_finish(b, one->setup, c, NULL, NULL);
        drop(one);
        return;
    }
    kp_batch_group(b, one->group);
    kp_batch_add(b, one->result, one->base ? one->base : "", one->key, one->quiet);
    kp_batch_finish(b, one->setup, c, NULL, NULL);
    free(one->base);
}

static void forget_ended(void)
{
    size_t kept = 0;
    for (size_t i = 0; i < n_waiting; i++)
        if (kp_context_of(waiting[i].context))
            waiting[kept++] = waiting[i];
        else
            drop(&waiting[i]);
    n_waiting = kept;
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

void kp_timed_wait(const struct kp_question *q, struct kp_rotation_key *key, bool quiet, struct kp_result *r)
{
    const size_t group = kp_rotation_timed(q->context->rotation);
    const struct kp_known_function *f = q->function;
    r->launch.ordinal = kp_session_seen(1);
    kp_rotation_take(key, group);
    waiting[n_waiting++] = (struct waiting){.setup = q->setup,
                                            .context = q->context->id,
                                            .like = like_of(f->facts.mangled, r->launch.grid, r->launch.block),
                                            .key = key,
                                            .group = group,
                                            .quiet = quiet,
                                            .result = r,
                                            .base = kp_strdup(f->base ? f->base : "")};
}
