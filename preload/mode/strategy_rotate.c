/*
 * Counts one group of counters for the program's own launches, and waits for each. Issues nothing again: another window
 * counts another group, of later launches of the same kernels.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "preload/os/progress.h"
#include "preload/rotation/rotation.h"
#include "preload/mode/counter_owner.h"
#include "preload/mode/job.h"
#include "preload/mode/rotate.h"
#include "preload/mode/strategy.h"

static bool suits(const struct kp_question *q)
{
    return q->key && !kp_rotation_is_first(q->key) && kp_admit_counters(q);
}

/* Returns the most launches of a window for the group. Beside a replay a window may have one key to count, so that a
 * large image would not pay: a few launches for each. Where the last window chose its launches, they are those alone
 * that count. */
static size_t room_for(const struct kp_window *w, size_t group, size_t most)
{
    enum { FOR_EACH_KEY = 8 };
    const struct kp_rotation *r = w->context->rotation;
    bool chooses = kp_rotation_chooses(r) && kp_rotation_extra_of(r, group) == SIZE_MAX;
    if (!chooses && !w->setup->falls_back)
        return most;
    size_t keys = kp_rotation_demand(r, group, chooses ? KP_ROTATE_FAR : most);
    size_t room = (chooses ? 1 : FOR_EACH_KEY) * (keys ? keys : 1);
    return room < most ? room : most;
}

/* A rotation may take long without a result: its windows say how far it has come. */
static void tell_turn(const struct kp_window *w)
{
    char text[128];
    kp_rotation_tell(w->context->rotation, w->group, text, sizeof(text));
    kp_progress_step(text, false);
}

static int begin_count(struct kp_window *w, struct kp_why *why)
{
    struct kp_collector *c = w->context->collector;
    const struct kp_rotation *r = w->context->rotation;
    size_t extra = kp_rotation_extra_of(r, w->group);
    kp_claim_counters(w->setup->driver, w->context);
    return extra == SIZE_MAX ? kp_collector_count_begin(c, w->mode, w->most, w->group, why)
                             : kp_collector_beside_begin(c, extra, w->most, kp_rotation_longest(r, w->group), why);
}

/* Begins to count a group that the launch lacks. Another takes the turn of one that is no list and does not begin. */
static bool begin_turn(struct kp_window *w, const struct kp_question *q, struct kp_why *why)
{
    struct kp_rotation *r = w->context->rotation;
    size_t room = w->most;
    for (;;) {
        w->group = kp_rotation_choose(r, q->key, kp_rotation_chooses(r) ? KP_ROTATE_FAR : room);
        w->most = room_for(w, w->group, room);
        tell_turn(w);
        if (!begin_count(w, why)) {
            bool list = kp_rotation_extra_of(r, w->group) == SIZE_MAX;
            size_t chosen = list ? kp_collector_chooses(w->context->collector) : w->most;
            w->chooses = !w->setup->falls_back && chosen;
            w->most = w->chooses ? chosen : w->most;
            kp_rotation_counts(r, w->group, w->chooses);
            return true;
        }
        kp_rotation_failed(r, w->group, *why);
        if (kp_rotation_extra_of(r, w->group) == SIZE_MAX || !kp_rotation_lacks_any(q->key))
            return false;
        kp_why_free(why); /* the provider's own complaint tells it */
    }
}

static bool open_window(struct kp_window *w, const struct kp_question *q, struct kp_why *why, enum kp_reason *reason)
{
    size_t room = kp_admit_room(w);
    if (q->setup->falls_back && !kp_context_turns(q->setup, w->context))
        return false;
    w->most = room < KP_ROTATE_ROOM ? room : KP_ROTATE_ROOM;
    uint64_t from = kp_clock_ns();
    w->rotates = begin_turn(w, q, why);
    w->begin_ns = kp_clock_ns() - from;
    if (!w->rotates && !kp_rotation_lacks_any(q->key) && kp_rotation_has_any(q->key))
        *reason = KP_REASON_ROTATED;
    return w->rotates;
}

static void close_window(struct kp_window *w, struct kp_window_outcome *out)
{
    uint64_t from = kp_clock_ns();
    kp_strategy_count.close(w, out);
    kp_rotation_spent(w->context->rotation, w->begin_ns + kp_clock_ns() - from);
    if (!out->counters && kp_journal_facts().wanted)
        kp_rotation_failed(w->context->rotation, w->group, out->why);
}

/* Returns why a launch is not taken along beside a replay: that waits for each, and only those that were asked for
 * would be waited for anyway. */
static enum kp_reason why_not_beside(const struct kp_question *q)
{
    if (!q->what->wanted)
        return KP_REASON_UNASKED;
    return q->fit.once_reason ? kp_admit_open_reason(q) : KP_REASON_REPLAYABLE;
}

static enum kp_reason admit(const struct kp_question *q)
{
    enum kp_reason why = q->setup->falls_back ? why_not_beside(q) : KP_REASON_NONE;
    return why ? why : kp_strategy_count.admit(q);
}

static CUresult issue(struct kp_window *w, struct kp_entry *e)
{
    CUresult rc = kp_strategy_count.issue(w, e);
    if (rc != CUDA_SUCCESS && w->chooses)
        kp_collector_count_refused(w->context->collector);
    return rc;
}

const struct kp_strategy kp_strategy_rotate = {
    .name = "rotate",
    .no_config = KP_REASON_RECORD_COUNTED,
    .patience = SIZE_MAX, /* of its own: see rotate.c */
    .suits = suits,
    .admit = admit,
    .open = open_window,
    .issue = issue,
    .close = close_window,
};
