#include "preload/window/close.h"

#include <stdlib.h>
#include <string.h>

#include "base/debug.h"
#include "base/lock.h"
#include "base/traps.h"
#include "base/work.h"
#include "preload/os/exit_first.h"
#include "preload/os/progress.h"
#include "preload/program/ctx_wait.h"
#include "preload/who/timeline.h"
#include "preload/window/again.h"
#include "preload/window/closers.h"
#include "preload/window/defer.h"
#include "preload/window/flags.h"
#include "preload/window/harvest.h"
#include "preload/window/host_calls.h"
#include "preload/window/reads.h"
#include "preload/window/record.h"
#include "preload/window/repeat.h"
#include "preload/window/strategy.h"
#include "preload/window/timed.h"
#include "preload/window/visit.h"
#include "preload/window/window.h"

static struct kp_window *const w = &kp_window_now;

/* Frees backups; call it in the window's context. */
static void free_backups(void)
{
    for (size_t k = 0; k < w->n; k++) {
        if (w->items[k].backup)
            w->setup->driver->cuMemFree(w->items[k].backup);
        if (w->items[k].own)
            w->setup->driver->cuMemFree(w->items[k].own);
    }
}

/* Leaves the window's memory to one that closes when its launches have ended. */
static void keep_memory(void)
{
    for (size_t k = 0; k < w->n; k++) {
        if (w->items[k].backup)
            kp_defer_ours(w->context->ctx, w->items[k].backup);
        if (w->items[k].own)
            kp_defer_ours(w->context->ctx, w->items[k].own);
    }
    for (size_t k = 0; k < w->n_logs; k++)
        kp_defer_ours(w->context->ctx, w->logs[k].memory);
}

/* Gives back what the window held in its context. Of one that has failed nothing can be freed. */
static void give_back(void)
{
    if (w->context->dead)
        return;
    kp_host_calls_drop(w);
    if (w->hangs) {
        keep_memory();
        return;
    }
    free_backups();
    kp_reads_drop_log(w);
    kp_defer_free(w->setup->driver, w->context->ctx);
    kp_repeat_free_twins(w);
    kp_again_prepare(w->setup->driver);
}

/* KP_VENDOR: CUPTI registers exit handlers when its parts are first used. Ours may close a last window, so they must
 * run before CUPTI's. */
static void exit_before_cupti(void)
{
    enum { FIRST_WINDOWS = 3 };
    static int closed;
    if (closed++ < FIRST_WINDOWS)
        kp_exit_first();
}

/* Whether the program goes on in another context of the device, for whose work that of the window may wait. */
static bool is_left(void)
{
    const struct kp_driver *d = w->setup->driver;
    CUcontext current = NULL;
    CUdevice device;
    return d->cuCtxGetCurrent(&current) == CUDA_SUCCESS && current && current != w->context->ctx &&
           d->cuCtxGetDevice(&device) == CUDA_SUCCESS && device == w->context->device_ordinal;
}

static void close_in_context(struct kp_window_outcome *out)
{
    w->left = is_left();
    double start = kp_now_ns();
    int64_t since = kp_timeline_now();
    struct kp_visit v = kp_visit_begin(w->setup->driver, w->context->ctx);
    /* That of a rotation was told when it opened, by what it counts. */
    kp_progress_begin(w->rotates ? "" : "waiting for the launches of a window to end", w->strategy->close);
    kp_record_drop_refused(w);
    w->end = w->n;
    if (w->strategy->close)
        w->strategy->close(w, out);
    kp_harvest_judge(w, out);
    w->ours_ns += kp_now_ns() - start;
    kp_harvest_hand_on(w, out);
    kp_harvest_follow_up(w, out);
    give_back();
    kp_visit_end(w->setup->driver, &v);
    kp_timeline_held(since);
}

const struct kp_context *kp_window_context(void)
{
    return w->open ? w->context : NULL;
}

/* Gives the window up without a call of the driver. */
static void give_up(const char *why)
{
    struct kp_window_outcome out = {.note = NULL};
    if (!w->open)
        return;
    out.note = kp_strdup(why);
    w->end = w->n;
    w->context->dead = true; /* nothing of the context may be touched any more */
    w->hands_off = true;
    kp_harvest_hand_on(w, &out);
    free(out.note);
    kp_record_reset(w);
}

void kp_window_close(const char *why)
{
    struct kp_traps traps;
    struct kp_window_outcome out = {.note = NULL};
    kp_context_settle_ends();
    kp_timed_settle();
    if (w->open && w->context->ended)
        give_up("its context ended while the window was open, beside another thread's call that did not end");
    if (!w->open)
        return;
    kp_work_takes_long();
    kp_traps_hold(&traps); /* values are computed here */
    kp_debug(KP_DEBUG_WINDOW, "closes (%s): %s; launches %zu, with results %zu, operations %zu", w->strategy->name, why,
             w->launches, w->wanted, w->n - w->launches);
    bool noted = w->strategy->rewinds && !w->strategy->whole && w->wanted;
    w->closer = why;
    if (noted)
        kp_closers_note(why, w->launches);
    close_in_context(&out);
    kp_counters_free(out.counters);
    free(out.note);
    kp_debug(KP_DEBUG_WINDOW, "closed; it took %.1f ms of ours, opening included", w->ours_ns / 1e6);
    if (w->strategy->close)
        exit_before_cupti();
    kp_progress_end();
    if (noted)
        kp_closers_tell_early(w->ours_ns);
    kp_record_reset(w);
    kp_traps_let(&traps);
}

void kp_window_give_up(void)
{
    give_up("the program ended while the window was open, where the driver could not be called");
}

void kp_window_abandon(void)
{
    if (w->strategy->abandon)
        w->strategy->abandon(w);
    kp_repeat_free_twins(w);
    kp_record_reset(w);
}

void kp_window_forked(void)
{
    kp_flags_closed();
    kp_patience_forked();
    kp_defer_forget(NULL);
    memset(w, 0, sizeof(*w));
}
