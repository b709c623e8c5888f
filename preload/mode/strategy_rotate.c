/*
 * Counts one group of counters for the program's own launches, and waits for each. Issues nothing again: another window
 * counts another group, of later launches of the same kernels.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "preload/os/progress.h"
#include "preload/who/durations.h"
#include "preload/rotation/rotation.h"
#include "preload/mode/counter_owner.h"
#include "preload/mode/job.h"
#include "preload/mode/rotate.h"
#include "preload/mode/strategy.h"

/* The open window. */
static struct {
    struct kp_turn turn;
    uint64_t begin_ns; /* time that starting it took */
} now;

static bool suits_rotate(const struct kp_question *q)
{
    return q->key && !kp_rotation_is_first(q->key) && kp_admit_counters(q);
}

/* Returns true if other launches of the context are repeated. */
static bool is_beside(const struct kp_window *w)
{
    return kp_mode_recurs_beside(w->setup->mode);
}

/* Returns the most launches of a window for the group. Alongside a replay a window may have one key to count, and a
 * large image would not pay off: a few launches for each. If the last window chose its launches, only the chosen ones
 * count. */
static size_t room_for(const struct kp_window *w, size_t group, size_t most)
{
    enum { FOR_EACH_KEY = 8 };
    const struct kp_rotation *r = w->context->rotation;
    bool chooses = kp_rotation_chooses(r) && kp_rotation_extra_of(r, group) == SIZE_MAX;
    if (!chooses && !is_beside(w))
        return most;
    size_t keys = kp_rotation_demand(r, group, chooses ? KP_ROTATE_FAR : most);
    size_t room = (chooses ? 1 : FOR_EACH_KEY) * (keys ? keys : 1);
    return room < most ? room : most;
}

/* A rotation may run long without a result: its windows report its progress. */
static void tell_turn(const struct kp_window *w)
{
    char text[128];
    kp_rotation_tell(w->context->rotation, now.turn.group, text, sizeof(text));
    kp_progress_step(text, false);
}

static int begin_count(struct kp_window *w, struct kp_why *why)
{
    struct kp_collector *c = w->context->collector;
    const struct kp_rotation *r = w->context->rotation;
    size_t extra = kp_rotation_extra_of(r, now.turn.group);
    kp_claim_counters(w->setup->driver, w->context);
    if (extra != SIZE_MAX)
        kp_durations_end(); /* CUPTI's activity records cannot be combined with other providers */
    return extra == SIZE_MAX
               ? kp_collector_count_begin(c, w->mode, w->most, now.turn.group, why)
               : kp_collector_beside_begin(c, extra, w->most, kp_rotation_longest(r, now.turn.group), why);
}

/* Starts to count a group that the launch lacks. If a group that is no list does not start, another takes its turn. */
static bool begin_turn(struct kp_window *w, const struct kp_question *q, struct kp_why *why)
{
    struct kp_rotation *r = w->context->rotation;
    size_t room = w->most;
    for (;;) {
        now.turn.group = kp_rotation_choose(r, q->key, kp_rotation_chooses(r) ? KP_ROTATE_FAR : room);
        w->most = room_for(w, now.turn.group, room);
        tell_turn(w);
        if (!begin_count(w, why)) {
            bool list = kp_rotation_extra_of(r, now.turn.group) == SIZE_MAX;
            size_t chosen = list ? kp_collector_chooses(w->context->collector) : w->most;
            now.turn.chooses = !is_beside(w) && chosen;
            w->most = now.turn.chooses ? chosen : w->most;
            kp_rotation_counts(r, now.turn.group, now.turn.chooses);
            return true;
        }
        kp_rotation_failed(r, now.turn.group, *why);
        if (kp_rotation_extra_of(r, now.turn.group) == SIZE_MAX || !kp_rotation_lacks_any(q->key))
            return false;
        kp_why_free(why); /* the provider has reported it */
    }
}

static bool open_rotate(struct kp_window *w, const struct kp_question *q, struct kp_why *why, enum kp_reason *reason)
{
    size_t room = kp_admit_room(w);
    w->most = room < KP_ROTATE_ROOM ? room : KP_ROTATE_ROOM;
    uint64_t from = kp_clock_ns();
    bool begun = begin_turn(w, q, why);
    now.begin_ns = kp_clock_ns() - from;
    if (!begun && !kp_rotation_lacks_any(q->key) && kp_rotation_has_any(q->key))
        *reason = KP_REASON_ROTATED;
    return begun;
}

static void close_rotate(struct kp_window *w, struct kp_window_outcome *out)
{
    uint64_t from = kp_clock_ns();
    kp_strategy_count.close(w, out);
    kp_rotation_spent(w->context->rotation, now.begin_ns + kp_clock_ns() - from);
    if (!out->counters && kp_journal_facts().wanted)
        kp_rotation_failed(w->context->rotation, now.turn.group, out->why);
}

static CUresult issue_rotate(struct kp_window *w, struct kp_entry *e)
{
    CUresult rc = kp_strategy_count.issue(w, e);
    if (rc != CUDA_SUCCESS && now.turn.chooses)
        kp_collector_count_refused(w->context->collector);
    return rc;
}

static enum kp_reason admit_rotate(const struct kp_question *q)
{
    return kp_strategy_count.admit(q);
}

const struct kp_strategy kp_strategy_rotate = {
    .name = "rotate",
    .no_config = KP_REASON_RECORD_COUNTED,
    .patience = SIZE_MAX, /* its own rule: see rotate.c */
    .turn = &now.turn,
    .suits = suits_rotate,
    .admit = admit_rotate,
    .open = open_rotate,
    .issue = issue_rotate,
    .close = close_rotate,
};

/* ---- alongside a replay ---- */

/* Returns why a launch is not counted along alongside a replay: counting waits for each launch, and only wanted ones
 * would be waited for anyway. */
static enum kp_reason why_not_beside(const struct kp_question *q)
{
    if (!q->what->wanted)
        return KP_REASON_UNASKED;
    return q->fit.once_reason ? kp_admit_open_reason(q) : KP_REASON_REPLAYABLE;
}

static enum kp_reason admit_beside(const struct kp_question *q)
{
    enum kp_reason why = why_not_beside(q);
    return why ? why : kp_strategy_count.admit(q);
}

static bool open_beside(struct kp_window *w, const struct kp_question *q, struct kp_why *why, enum kp_reason *reason)
{
    return kp_context_turns(q->setup, w->context) && open_rotate(w, q, why, reason);
}

const struct kp_strategy kp_strategy_turns = {
    .name = "rotate",
    .beside = true,
    .no_config = KP_REASON_RECORD_COUNTED,
    .patience = SIZE_MAX, /* as above */
    .turn = &now.turn,
    .suits = suits_rotate,
    .admit = admit_beside,
    .open = open_beside,
    .issue = issue_rotate,
    .close = close_rotate,
};
