#include <stdlib.h>

#include "base/debug.h"
#include "base/lock.h"
#include "collectors/code/cubin.h"
#include "collectors/providers/library.h"
#include "preload/os/progress.h"
#include "preload/session/session.h"
#include "preload/window/closers.h"
#include "preload/window/issue.h"
#include "preload/window/record.h"
#include "preload/window/signs.h"
#include "preload/window/strategy.h"
#include "preload/window/visit.h"
#include "preload/window/waits.h"

static const char no_context[] = "of a context that the driver gives no facts of";
static const char after_failure[] = "after a kernel had failed";

/* ---- opening ---- */

/* Opens a window for launches of this kind, with the first strategy that can. */
static void open_window(const struct kp_context_setup *setup, struct kp_context *c, const struct kp_fit *fit)
{
    const struct kp_strategy *const *s = kp_strategies;
    char *why = NULL;
    kp_progress_begin("", false);
    kp_window.open = true;
    kp_window.setup = setup;
    kp_window.context = c;
    kp_window.mode = fit->mode;
    kp_window.obstacle = fit->obstacle;
    kp_window.opened_ns = kp_now_ns();
    while (!(*s)->admit(fit) || ((*s)->open && !(*s)->open(fit, &why))) {
        if (why)
            kp_session_warn_once(why);
        free(why);
        why = NULL;
        s++;
    }
    kp_window.strategy = *s;
    kp_progress_end();
    kp_window.ours_ns = kp_now_ns() - kp_window.opened_ns;
    kp_signs_open((*s)->joins);
    kp_debug(KP_DEBUG_WINDOW, "opens (%s): context %u%s%s", (*s)->name, c->id,
             kp_window.obstacle ? ", one launch that " : "", kp_window.obstacle ? kp_window.obstacle : "");
}

/* Waits for the work that came before. Why a window cannot open on it (static text), or NULL. */
static const char *wait_for_earlier(const struct kp_context_setup *setup, struct kp_context *c)
{
    /* Once is enough: while that other work goes on, the launches that follow find out at once. */
    long patience = c->stalled ? KP_STALLED_MS : KP_OPEN_MS;
    CUresult rc = CUDA_SUCCESS;
    if (kp_admit_has_counters(setup, c))
        rc = kp_wait_for_context(setup->driver, c->ctx, patience, KP_STALLED_MS);
    c->stalled = rc == CUDA_ERROR_NOT_READY;
    if (rc == CUDA_SUCCESS)
        return NULL;
    c->dead = rc != CUDA_ERROR_NOT_READY;
    return c->dead ? after_failure : "made while other work of the context did not end";
}

/* Opens a window for the launch. NULL, or why it is to run outside of any (static text). */
static const char *open_for(const struct kp_context_setup *setup, struct kp_context *c, const struct kp_launch *l,
                            const struct kp_fit *fit)
{
    const char *why = kp_admit_hindrance(setup, fit);
    why = why ? why : wait_for_earlier(setup, c);
    if (why)
        return why;
    open_window(setup, c, fit);
    if (fit->obstacle && !kp_window.strategy->despite_obstacles)
        why = fit->obstacle;
    else if (kp_window.strategy->prepare)
        why = kp_window.strategy->prepare(l, fit);
    if (why)
        kp_record_reset();
    return why;
}

/* ---- launches ---- */

/* What the window keeps of the device's memory may be what the launch lacks. */
static CUresult without_window(struct kp_item *i)
{
    struct kp_launch l = i->launch;
    i->launch.copy = NULL;
    kp_record_drop_last();
    kp_window_close(kp_window.setup, "want of device memory");
    CUresult rc = l.issue(&l);
    kp_launch_free(&l);
    return rc;
}

static CUresult issue_first(struct kp_item *i)
{
    const struct kp_strategy *s = kp_window.strategy;
    double start = kp_now_ns();
    CUresult rc = s->issue(i);
    if (!s->joins) /* else it takes no longer than without us */
        kp_window.ours_ns += kp_now_ns() - start;
    return rc;
}

/* Behind a launch that is in the window: closes it, where nothing more may follow. */
static void close_if_last(const struct kp_candidate *what, const struct kp_fit *fit)
{
    const struct kp_strategy *s = kp_window.strategy;
    const char *alone = s->alone ? s->alone(fit) : NULL;
    if (alone || what->last || kp_window.obstacle || !kp_window.launches)
        kp_window_close(kp_window.setup, alone ? alone : "the last launch that was asked for");
    else if (kp_window.launches >= kp_admit_room(kp_window.setup, kp_window.context))
        kp_window_close(kp_window.setup, kp_closed_full);
}

/* The launch itself, with its record already the last of the window. */
static CUresult run_recorded(const struct kp_candidate *what, const struct kp_fit *fit, const char **skipped)
{
    const struct kp_strategy *s = kp_window.strategy;
    struct kp_item *i = &kp_window.items[kp_window.n - 1];
    CUresult rc = issue_first(i);
    kp_window.unwanted_in_a_row = what->wanted ? 0 : kp_window.unwanted_in_a_row + 1;
    if (rc == CUDA_ERROR_OUT_OF_MEMORY && s->joins) {
        *skipped = "made again when the window had given its memory back";
        return without_window(i);
    }
    if (rc != CUDA_SUCCESS) {
        kp_record_drop_last();
    } else if (s->issued && (*skipped = s->issued(i, fit))) {
        kp_record_reset();
        return rc;
    } else if (i->result) {
        i->result->launch.ordinal = kp_session_seen(1);
    }
    close_if_last(what, fit);
    return rc;
}

static CUresult pass(struct kp_launch *l, const char *why, const char **skipped)
{
    *skipped = why;
    return l->issue(l);
}

static CUresult launch_in(const struct kp_context_setup *setup, struct kp_context *c, struct kp_launch *l,
                          const struct kp_candidate *what, const char **skipped)
{
    struct kp_known_function *f = NULL;
    const char *why = NULL;
    /* The first function of a module brings the module's variables along, which the saved memory must hold. */
    if (!l->is_graph && !kp_context_module_known(setup, c, l->f))
        kp_window_close(setup, "the first launch of a module's kernels");
    if (!l->is_graph && (!(f = kp_context_function(setup, c, l->f)) || kp_launch_copy(l, &f->facts))) {
        kp_window_close(setup, "a kernel that the driver gives no facts of");
        return pass(l, "of a kernel that the driver gives no facts of", skipped);
    }
    if (f && f->once & KP_ONCE_HEAP)
        kp_window_heap_blocks();
    struct kp_fit fit = kp_admit_judge(setup, c, l, what, f);
    const char *waits = kp_issue_known_to_wait(l, f);
    const char *closer = waits ? waits : kp_admit_misfit(c, l, &fit);
    c->stalled |= waits != NULL; /* what follows need not wait long to find that out */
    if (closer)
        kp_window_close(setup, closer);
    if (!kp_window.open && !what->wanted)
        return l->issue(l);
    if (!kp_window.open && (why = waits ? waits : open_for(setup, c, l, &fit))) {
        CUresult rc = pass(l, why, skipped);
        if (rc == CUDA_SUCCESS && kp_admit_may_hang(setup, &fit) && !waits)
            kp_wait_watch(setup->driver, c, f);
        return rc;
    }
    if (!kp_record_launch(l, what, f)) {
        kp_window_close(setup, "want of memory");
        return pass(l, "lost for want of memory", skipped);
    }
    return run_recorded(what, &fit, skipped);
}

CUresult kp_window_launch(const struct kp_context_setup *setup, struct kp_launch *l, const struct kp_candidate *what,
                          const char **skipped, char **bad_input)
{
    const struct kp_driver *d = setup->driver;
    bool current;
    CUcontext ctx = kp_launch_context(d, l, &current);
    *skipped = NULL;
    *bad_input = NULL;
    if (!ctx)
        return pass(l, no_context, skipped);
    struct kp_visit v = kp_visit_begin(d, ctx);
    struct kp_context *c = kp_context_get(setup, ctx, bad_input);
    CUresult rc;
    if (!c || *bad_input || c->dead) {
        kp_window_close(setup, "a launch in another context");
        rc = pass(l, c && c->dead ? after_failure : no_context, skipped);
    } else {
        kp_session_device(&c->device, c->chip, c->plan ? c->plan->breakdowns : "");
        kp_session_collection(c->plan ? c->plan->listed : NULL,
                              kp_context_cupti() ? kp_library_version(kp_context_cupti()) : NULL);
        rc = launch_in(setup, c, l, what, skipped);
    }
    kp_launch_free(l);
    kp_visit_end(d, &v);
    return rc;
}
