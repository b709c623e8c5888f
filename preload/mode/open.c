#include "preload/mode/open.h"

#include <stdlib.h>

#include "preload/mode/bounded.h"
#include "preload/mode/close.h"
#include "base/debug.h"
#include "base/lock.h"
#include "base/work.h"
#include "preload/os/progress.h"
#include "preload/program/variables.h"
#include "preload/session/session.h"
#include "preload/who/timeline.h"
#include "preload/gate/window_facts.h"
#include "preload/mode/rotate.h"
#include "preload/mode/strategy.h"
#include "preload/contexts/unending.h"
#include "preload/program/waits.h"

/* Waits for the work before the launch. Returns why it cannot have a window, if there is a reason. */
static enum kp_reason wait_for_work_before(const struct kp_question *q)
{
    if (q->setup->mode->aside)
        return KP_REASON_NONE; /* such a range is in the report in any case: see strategy_app_range.c */
    if (kp_admit_counters(q))
        return kp_stuck_before(q->setup->driver, q->context, kp_mode_recurs(q->setup->mode));
    q->context->stalled = false;
    return KP_REASON_NONE;
}

/* Asks a strategy. Returns true if it counts the window. */
static bool takes(const struct kp_strategy *s, struct kp_window *w, const struct kp_question *q, enum kp_reason *reason)
{
    struct kp_why why = {KP_REASON_NONE, NULL};
    if (s->suits && !s->suits(q))
        return false;
    kp_journal_open(w->setup, w->context, s->rewinds, s->whole);
    bool opens = s->open(w, q, &why, reason);
    if (opens)
        w->strategy = s;
    if (why.reason)
        kp_session_warn_once(kp_why_text(&why));
    kp_why_free(&why);
    return opens;
}

/* Asks the strategies of the mode in order, and those for launches that must not be repeated once that is known of this
 * one. Returns true if one counts the window. */
static bool choose_strategy(struct kp_window *w, struct kp_question *q, enum kp_reason *reason)
{
    const struct kp_mode *mode = q->setup->mode, *other = mode->otherwise;
    const struct kp_strategy *const *s = w->once_reason && other ? other->strategies : mode->strategies;
    *reason = KP_REASON_NONE;
    w->strategy = NULL;
    while (*s && !*reason) {
        enum kp_reason once_reason = w->once_reason;
        if (takes(*s++, w, q, reason))
            break;
        if (w->once_reason != once_reason && !*reason) {
            *reason = kp_rotate_find_turn(q);
            s = other ? other->strategies : s;
        }
    }
    if (!w->strategy && !*reason)
        *reason = q->fit.once_reason;
    return w->strategy;
}

bool kp_window_open(struct kp_window *w, struct kp_question *q, enum kp_reason *reason)
{
    *reason = kp_admit_open_reason(q);
    if (!*reason && kp_admit_counters(q))
        *reason = kp_stuck_elsewhere(q->setup->driver, q->context);
    if (!*reason)
        *reason = wait_for_work_before(q);
    if (*reason)
        return false;
    kp_progress_begin("", false);
    kp_work_takes_long();
    w->open = true;
    w->setup = q->setup;
    w->context = q->context;
    w->mode = q->fit.mode;
    w->most = kp_bounded_room(q);
    w->once_reason = q->fit.once_reason;
    w->opened_ns = kp_now_ns();
    w->ran_ms = 0;
    kp_context_uses_cupti();
    bool idle = kp_admit_counters(q);
    if (idle)
        kp_timeline_ours_begin(w->context->id);
    bool opened = choose_strategy(w, q, reason);
    if (idle)
        kp_timeline_ours_end();
    kp_progress_end();
    if (!opened) {
        kp_window_forget(KP_LEAVE_UNTOUCHED);
        return false;
    }
    w->ours_ns = kp_now_ns() - w->opened_ns;
    if (!w->setup->mode->aside)
        kp_flags_opened(w->strategy->rewinds, !w->strategy->turn, w->strategy->whole, kp_strategy_chooses(w->strategy));
    kp_debug(KP_DEBUG_WINDOW, "opens (%s): context %u%s%s", w->strategy->name, w->context->id,
             w->once_reason ? ", one launch that " : "", kp_reason_text(w->once_reason));
    return true;
}
