#include "preload/window/open.h"

#include <stdlib.h>

#include "base/debug.h"
#include "base/lock.h"
#include "base/work.h"
#include "preload/os/progress.h"
#include "preload/program/variables.h"
#include "preload/session/session.h"
#include "preload/who/timeline.h"
#include "preload/window/flags.h"
#include "preload/window/record.h"
#include "preload/window/rotate.h"
#include "preload/window/strategy.h"
#include "preload/window/stuck.h"
#include "preload/window/waits.h"

/* The longest wait for the work before a window after a wait that timed out, ms. */
enum { STALLED_MS = 10 };

static uint64_t serials;

const char kp_after_failure[] = "after a kernel had failed";

/* Waits for the work before the launch. Returns why it cannot have a window, or NULL. One long timeout is enough:
 * while that work goes on, later launches wait only shortly. */
static const char *wait_for_work_before(const struct kp_question *q)
{
    if (q->setup->ranges && q->setup->run)
        return NULL; /* such a range is in the report in any case: see strategy_app_range.c */
    struct kp_context *c = q->context;
    long patience = c->stalled ? STALLED_MS : KP_BEFORE_MS;
    /* A window of a rotation tells what it counts instead. */
    CUresult (*wait)(const struct kp_driver *, CUcontext, long, long) =
        q->setup->rotates ? kp_wait_briefly : kp_wait_context;
    CUresult rc = kp_admit_counters(q) ? wait(q->setup->driver, c->ctx, patience, STALLED_MS) : CUDA_SUCCESS;
    c->stalled = rc == CUDA_ERROR_NOT_READY;
    if (rc == CUDA_SUCCESS)
        return NULL;
    c->dead = !c->stalled;
    return c->dead ? kp_after_failure : KP_SKIP_UNENDED;
}

/* Asks the strategies in order. Returns whether one counts the window. */
static bool choose_strategy(struct kp_window *w, struct kp_question *q, const char **refusal)
{
    *refusal = NULL;
    w->strategy = NULL;
    for (const struct kp_strategy *const *s = kp_strategies; *s && !w->strategy && !*refusal; s++) {
        char *why = NULL;
        const char *obstacle = w->obstacle;
        if ((*s)->suits(q) && (*s)->open(w, q, &why, refusal))
            w->strategy = *s;
        else if (w->obstacle != obstacle && !*refusal)
            *refusal = kp_rotate_find_turn(q);
        if (why)
            kp_session_warn_once(why);
        free(why);
    }
    if (!w->strategy && !*refusal)
        *refusal = q->fit.obstacle;
    return w->strategy;
}

bool kp_window_open(struct kp_window *w, struct kp_question *q, const char **refusal)
{
    *refusal = kp_admit_hindrance(q);
    if (!*refusal && kp_admit_counters(q))
        *refusal = kp_stuck_elsewhere(q->setup->driver, q->context);
    if (!*refusal)
        *refusal = wait_for_work_before(q);
    if (*refusal)
        return false;
    kp_progress_begin("", false);
    kp_work_takes_long();
    w->open = true;
    w->setup = q->setup;
    w->context = q->context;
    w->mode = q->fit.mode;
    w->obstacle = q->fit.obstacle;
    w->serial = ++serials;
    w->variables = kp_variables_count();
    w->questions = kp_variables_questions();
    w->opened_ns = kp_now_ns();
    w->ran_ms = 0;
    kp_context_uses_cupti();
    bool idle = kp_admit_counters(q);
    if (idle)
        kp_timeline_ours_begin(w->context->id);
    bool opened = choose_strategy(w, q, refusal);
    if (idle)
        kp_timeline_ours_end();
    kp_progress_end();
    if (!opened) {
        kp_record_reset(w);
        return false;
    }
    w->ours_ns = kp_now_ns() - w->opened_ns;
    if (!w->strategy->aside)
        kp_flags_opened(w->strategy->rewinds, !w->rotates, w->strategy->whole, w->chooses);
    kp_debug(KP_DEBUG_WINDOW, "opens (%s): context %u%s%s", w->strategy->name, w->context->id,
             w->obstacle ? ", one launch that " : "", w->obstacle ? w->obstacle : "");
    return true;
}
