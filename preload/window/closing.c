#include <stdlib.h>
#include <string.h>

#include "base/debug.h"
#include "base/lock.h"
#include "base/text.h"
#include "preload/os/exit_first.h"
#include "preload/os/progress.h"
#include "preload/os/worker.h"
#include "preload/program/ctx_wait.h"
#include "preload/session/session.h"
#include "preload/window/closers.h"
#include "preload/window/harvest.h"
#include "preload/window/record.h"
#include "preload/window/signs.h"
#include "preload/window/strategy.h"
#include "preload/window/visit.h"

/* The profiler refused the plan: perhaps the device lacks some of the counters, or offers none to this user. */
static void plan_again(const struct kp_context_setup *setup, struct kp_context *c)
{
    kp_worker_drain(KP_FOREVER);
    kp_context_plan_again(setup, c);
    if (c->no_counters)
        kp_session_warn_once(c->no_counters);
}

/* In the window's context. */
static void free_memory_and_events(void)
{
    const struct kp_driver *d = kp_window.setup->driver;
    if (kp_window.context->dead || kp_window.hangs)
        return;
    for (size_t k = 0; k < kp_window.n; k++)
        if (kp_window.items[k].backup)
            d->cuMemFree(kp_window.items[k].backup);
    for (size_t k = 0; k < kp_window.n_twins; k++)
        d->cuEventDestroy(kp_window.twins[k].event);
}

/* KP_VENDOR: CUPTI registers exit handlers of its own when parts of it are first used. Ours, which may close a last
 * window, has to run before them. */
static void exit_before_cupti(void)
{
    enum { FIRST_WINDOWS = 3 };
    static int closed;
    if (closed++ < FIRST_WINDOWS)
        kp_exit_first();
}

void kp_window_close(const struct kp_context_setup *setup, const char *why)
{
    struct kp_window_outcome out;
    if (!kp_window.open)
        return;
    const struct kp_strategy *s = kp_window.strategy;
    bool accounted = s->in_account && kp_window.wanted;
    kp_debug(KP_DEBUG_WINDOW, "closes (%s): %s; launches %zu, with results %zu, operations %zu", s->name, why,
             kp_window.launches, kp_window.wanted, kp_window.n - kp_window.launches);
    if (accounted)
        kp_closers_note(why, kp_window.launches);
    memset(&out, 0, sizeof(out));
    double start = kp_now_ns();
    struct kp_visit v = kp_visit_begin(setup->driver, kp_window.context->ctx);
    kp_progress_begin("waiting for the launches of a window to end", s->counts);
    kp_record_drop_refused();
    if (s->close)
        s->close(&out);
    kp_harvest_judge(&out);
    kp_window.ours_ns += kp_now_ns() - start;
    kp_harvest(&out);
    kp_harvest_complaints();
    if (out.replay.failed == KP_STAGE_BEGIN || out.replay.failed == KP_STAGE_START)
        plan_again(setup, kp_window.context);
    free_memory_and_events();
    kp_visit_end(setup->driver, &v);
    kp_counters_free(out.counters);
    free(out.note);
    if (s->counts)
        exit_before_cupti();
    kp_progress_end();
    if (accounted)
        kp_closers_tell_early(kp_window.ours_ns);
    kp_record_reset();
}

void kp_window_give_up(void)
{
    struct kp_window_outcome out;
    if (!kp_window.open)
        return;
    memset(&out, 0, sizeof(out));
    out.note = kp_strdup("the program ended while the window was open, where the driver could not be called");
    kp_window.context->dead = true; /* nothing of it is to be touched any more */
    kp_window.hands_off = true;
    kp_harvest(&out);
    free(out.note);
    kp_record_reset();
}

void kp_window_forked(void)
{
    kp_signs_closed();
    kp_patience_forked();
    memset(&kp_window, 0, sizeof(kp_window));
}
