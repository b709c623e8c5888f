#include "preload/window/range.h"

#include "collectors/providers/library.h"
#include "preload/program/ranges.h"
#include "preload/session/session.h"
#include "preload/window/flags.h"
#include "preload/window/open.h"
#include "preload/window/visit.h"
#include "preload/window/window.h"

static const char no_context[] = "of a context that the driver gives no facts of";

/* Opens the window in `c`, which is current. Returns why it does not (static text), or NULL. */
static const char *open_in(const struct kp_context_setup *setup, struct kp_context *c)
{
    const struct kp_launch nothing = {.is_graph = true}; /* a graph is counted as a whole, too */
    const struct kp_candidate what = {.wanted = true};
    struct kp_question q = {&kp_window_now, setup, c, &nothing, &what, NULL, {.obstacle = NULL}, 0, NULL};
    const char *refusal = NULL;
    kp_session_device(&c->device, c->chip, c->plan ? c->plan->breakdowns : "");
    kp_session_collection(c->plan ? c->plan->listed : NULL,
                          kp_context_cupti() ? kp_library_version(kp_context_cupti()) : NULL);
    kp_admit_judge(&q);
    return kp_window_open(&kp_window_now, &q, &refusal) ? NULL : refusal;
}

void kp_range_open_window(const struct kp_context_setup *setup, const struct kp_launch *l, char **bad_input)
{
    const struct kp_driver *d = setup->driver;
    bool current;
    CUcontext ctx = NULL;
    if (kp_ranges_why() || kp_window_is_open())
        return;
    if (l)
        ctx = kp_launch_context(d, l, &current);
    else if (d->cuCtxGetCurrent(&ctx) != CUDA_SUCCESS)
        return;
    if (!ctx)
        return;
    struct kp_visit v = kp_visit_begin(d, ctx);
    struct kp_context *c = kp_context_get(setup, ctx, bad_input);
    const char *why = !c || *bad_input ? no_context : c->dead ? kp_after_failure : open_in(setup, c);
    kp_visit_end(d, &v);
    if (why)
        kp_ranges_cut(why);
}

void kp_range_end(void)
{
    kp_window_close(kp_range_over);
    kp_ranges_end();
}
