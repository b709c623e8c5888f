#include "preload/mode/range_window.h"

#include "base/text.h"
#include "preload/mode/window_state.h"
#include "collectors/providers/library.h"
#include "preload/gate/gate.h"
#include "preload/program/ctx_wait.h"
#include "preload/contexts/other_cupti.h"
#include "preload/contexts/ranges.h"
#include "preload/session/session.h"
#include "preload/mode/launches.h"
#include "preload/mode/open.h"
#include "preload/contexts/context_scope.h"
#include "preload/mode/window.h"

static struct kp_window *const w = &kp_window_now;

/* Opens the window in `c`, which is current. Returns why it does not, if there is a reason. */
static enum kp_reason open_in(const struct kp_context_setup *setup, struct kp_context *c)
{
    const struct kp_launch nothing = {.is_graph = true}; /* a graph is counted as a whole, too */
    const struct kp_candidate what = {.wanted = true};
    struct kp_question q = {.window = w, .setup = setup, .context = c, .launch = &nothing, .what = &what};
    enum kp_reason reason = KP_REASON_NONE;
    kp_session_device(&c->device, c->chip, kp_or_empty(c->device_lines));
    kp_session_collection(c->plan ? c->plan->listed : NULL,
                          kp_context_cupti() ? kp_library_version(kp_context_cupti()) : NULL);
    kp_admit_judge(&q);
    return kp_window_open(w, &q, &reason) ? KP_REASON_NONE : reason;
}

static CUcontext context_of(const struct kp_driver *d, const struct kp_launch *l)
{
    bool current;
    CUcontext ctx = NULL;
    if (l)
        return kp_launch_context(d, l, &current);
    return d->cuCtxGetCurrent(&ctx) == CUDA_SUCCESS ? ctx : NULL;
}

void kp_range_open_window(const struct kp_context_setup *setup, const struct kp_launch *l, char **bad_input)
{
    const struct kp_driver *d = setup->driver;
    bool none = kp_ranges_why() || kp_other_holds() || (w->open && kp_journal_facts().launches);
    CUcontext ctx = none ? NULL : context_of(d, l);
    if (!ctx)
        return;
    struct kp_visit v = kp_visit_begin(d, ctx);
    struct kp_context *c = kp_context_get(setup, ctx, bad_input);
    enum kp_reason why = KP_REASON_NONE;
    if (!c || *bad_input || c->dead) {
        why = c && c->dead ? KP_REASON_AFTER_FAILURE : KP_REASON_NO_CONTEXT;
    } else {
        if (w->open && l && !l->is_graph)
            kp_launches_function(setup, c, l);
        why = w->open ? KP_REASON_NONE : open_in(setup, c);
    }
    kp_visit_end(d, &v);
    if (why)
        kp_ranges_cut(why);
}

bool kp_range_is_idle(const struct kp_context_setup *setup, long ms)
{
    const struct kp_driver *d = setup->driver;
    CUcontext ctx = kp_ranges_id() ? kp_ranges_context() : context_of(d, NULL);
    if (!ctx || kp_gate_captures() > 0)
        return !ctx;
    struct kp_visit v = kp_visit_begin(d, ctx);
    bool idle = kp_patience_wait(d, ctx, ms) != CUDA_ERROR_NOT_READY;
    kp_visit_end(d, &v);
    return idle;
}

void kp_range_end(void)
{
    kp_window_close(KP_REASON_RANGE_END);
    kp_ranges_end();
}
