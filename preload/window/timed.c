#include "preload/window/timed.h"

#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "base/text.h"
#include "collectors/providers/observe.h"
#include "preload/program/rotation.h"
#include "preload/session/session.h"
#include "preload/who/timeline.h"
#include "preload/window/batch.h"
#include "preload/window/close.h"
#include "preload/window/harvest.h"
#include "preload/window/launches.h"
#include "preload/window/record.h"
#include "preload/window/rotate.h"
#include "preload/window/strategy.h"

static const char waits_outside[] = "it waits for the host, other processes or devices, and the program would wait for "
                                    "a launch that is counted: only timed";

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

/* Makes the result of the launch as a window would. NULL without memory. */
static struct kp_result *describe(const struct kp_question *q, struct kp_launch *l)
{
    struct kp_window w = {.setup = q->setup, .context = q->context, .strategy = &kp_strategy_count};
    struct kp_result *r = NULL;
    if (kp_record_launch(&w, l, true, NULL, (struct kp_known_function *)q->function)) {
        kp_harvest_fill(&w, &w.items[0], w.items[0].result);
        r = w.items[0].result;
        w.items[0].result = NULL;
        *l = w.items[0].launch; /* it keeps its arguments, as they are copied with it */
        w.items[0].is_launch = false;
    }
    free(w.items);
    return r;
}

static void wait_for_record(const struct kp_question *q, struct kp_rotation_key *key, size_t group, bool quiet,
                            struct kp_result *r)
{
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

static CUresult issue(struct kp_launch *l, bool recorded)
{
    bool on = recorded && !kp_record_on(kp_context_cupti(), note);
    CUresult rc = kp_launch_issue_own(l);
    if (on)
        kp_record_off(kp_context_cupti());
    return rc;
}

CUresult kp_timed_launch(const struct kp_question *q, struct kp_launch *l, const char **skipped)
{
    struct kp_rotation *r = q->function ? kp_context_rotation(q->setup, q->context) : NULL;
    bool over = !r || kp_rotation_is_over(r);
    struct kp_rotation_key *key = over ? NULL : kp_rotation_find(r, l, &q->function->facts);
    if (key)
        kp_rotation_apart(key, waits_outside);
    kp_rotate_pass(q);
    kp_timed_settle();
    size_t group = r ? kp_rotation_timed(r) : 0;
    bool quiet = false, lacks = key && kp_rotation_lacks(key, group);
    bool can = n_waiting < MOST && kp_context_may_probe() && !kp_timeline_is_on();
    struct kp_result *result = lacks && can && kp_rotation_times(key, &quiet) ? describe(q, l) : NULL;
    CUresult rc = issue(l, result);
    *skipped = result ? NULL : key && !lacks ? KP_SKIP_ROTATED : waits_outside;
    if (result && rc == CUDA_SUCCESS) {
        wait_for_record(q, key, group, quiet && !q->window->open, result);
    } else if (result) {
        kp_result_free(result);
        free(result);
    }
    return rc;
}
