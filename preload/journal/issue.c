#include "preload/journal/issue.h"

#include "collectors/facts/settle.h"
#include "preload/graphs/capture.h"
#include "preload/graphs/host_pointers.h"

CUresult kp_issue_settle(struct kp_window *w)
{
    bool wait = w->unsettled;
    w->unsettled = false;
    return wait ? kp_settle(w->setup->driver, CU_STREAM_LEGACY) : CUDA_SUCCESS;
}

typedef CUresult (*maker)(const struct kp_launch *l);

static CUresult make_again(const struct kp_launch *l)
{
    return l->issue(l);
}

/* Makes the one execution that is probed, see probe.h; later ones are plain launches. */
static CUresult issue_as_graph(struct kp_window *w, struct kp_item *i, maker make)
{
    i->as_graph = false;
    return kp_capture_run(w->setup->driver, &i->launch) ? CUDA_SUCCESS : make(&i->launch);
}

static void tell_reached(const struct kp_window *w, const struct kp_item *i, const struct kp_issue_hooks *hooks)
{
    struct kp_pages pages[KP_MOST_PAGES];
    size_t n = kp_reach_pages(w->setup->driver, w->context->ctx, &i->launch, pages, KP_MOST_PAGES);
    hooks->reaches(hooks->arg, pages, n);
}

static CUresult issue(struct kp_window *w, struct kp_item *i, const struct kp_issue_hooks *hooks, maker make)
{
    if (!hooks && i->as_graph)
        return issue_as_graph(w, i, make);
    if (!hooks || !i->result)
        return make(&i->launch);
    CUresult rc = kp_issue_settle(w);
    if (rc == CUDA_SUCCESS && hooks->reaches)
        tell_reached(w, i, hooks);
    if (rc == CUDA_SUCCESS)
        rc = hooks->before(hooks->arg, kp_launch_stream(&i->launch));
    if (rc == CUDA_SUCCESS)
        rc = make(&i->launch);
    return rc == CUDA_SUCCESS ? hooks->after(hooks->arg) : rc;
}

CUresult kp_issue_launch(struct kp_window *w, struct kp_item *i, const struct kp_issue_hooks *hooks)
{
    return issue(w, i, hooks, kp_launch_call);
}

CUresult kp_issue_again(struct kp_window *w, struct kp_item *i, const struct kp_issue_hooks *hooks)
{
    return issue(w, i, hooks, make_again);
}
