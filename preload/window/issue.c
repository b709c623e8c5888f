#include "preload/window/issue.h"

#include "collectors/facts/settle.h"
#include "preload/program/capture.h"
#include "preload/window/reach.h"

CUresult kp_issue_settle(struct kp_window *w)
{
    bool wait = w->unsettled;
    w->unsettled = false;
    return wait ? kp_settle(w->setup->driver, CU_STREAM_LEGACY) : CUDA_SUCCESS;
}

/* Makes the one execution that is probed, see probe.h; later ones are plain launches. */
static CUresult issue_as_graph(struct kp_window *w, struct kp_item *i)
{
    i->as_graph = false;
    return kp_capture_run(w->setup->driver, &i->launch) ? CUDA_SUCCESS : i->launch.issue(&i->launch);
}

static void tell_reached(const struct kp_window *w, const struct kp_item *i, const struct kp_issue_hooks *hooks)
{
    struct kp_pages pages[KP_MOST_PAGES];
    size_t n = kp_reach_pages(w->setup->driver, w->context->ctx, &i->launch, pages, KP_MOST_PAGES);
    hooks->reaches(hooks->arg, pages, n);
}

CUresult kp_issue_launch(struct kp_window *w, struct kp_item *i, const struct kp_issue_hooks *hooks)
{
    if (!hooks && i->as_graph)
        return issue_as_graph(w, i);
    if (!hooks || !i->result)
        return i->launch.issue(&i->launch);
    CUresult rc = kp_issue_settle(w);
    if (rc == CUDA_SUCCESS && hooks->reaches)
        tell_reached(w, i, hooks);
    if (rc == CUDA_SUCCESS)
        rc = hooks->before(hooks->arg, kp_launch_stream(&i->launch));
    if (rc == CUDA_SUCCESS)
        rc = i->launch.issue(&i->launch);
    return rc == CUDA_SUCCESS ? hooks->after(hooks->arg) : rc;
}
