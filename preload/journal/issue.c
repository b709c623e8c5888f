#include "preload/journal/issue.h"

#include "preload/journal/event_twins.h"
#include "collectors/facts/settle.h"
#include "preload/graphs/capture.h"
#include "preload/graphs/host_pointers.h"

CUresult kp_issue_settle(struct kp_journal *j)
{
    bool wait = j->unsettled;
    j->unsettled = false;
    return wait ? kp_settle(j->setup->driver, CU_STREAM_LEGACY) : CUDA_SUCCESS;
}

typedef CUresult (*maker)(const struct kp_launch *l);

static CUresult make_again(const struct kp_launch *l)
{
    return l->issue(l);
}

/* Makes the one execution that is probed, see probe.h; later ones are plain launches. */
static CUresult issue_as_graph(struct kp_journal *j, struct kp_entry *e, maker make)
{
    e->as_graph = false;
    return kp_capture_run(j->setup->driver, &e->launch) ? CUDA_SUCCESS : make(&e->launch);
}

static void tell_reached(const struct kp_journal *j, const struct kp_entry *e, const struct kp_issue_hooks *hooks)
{
    struct kp_pages pages[KP_MOST_PAGES];
    size_t n = kp_reach_pages(j->setup->driver, j->context->ctx, &e->launch, pages, KP_MOST_PAGES);
    hooks->reaches(hooks->arg, pages, n);
}

static CUresult issue(struct kp_journal *j, struct kp_entry *e, const struct kp_issue_hooks *hooks, maker make)
{
    if (!hooks && e->as_graph)
        return issue_as_graph(j, e, make);
    if (!hooks || !e->result)
        return make(&e->launch);
    CUresult rc = kp_issue_settle(j);
    if (rc == CUDA_SUCCESS && hooks->reaches)
        tell_reached(j, e, hooks);
    if (rc == CUDA_SUCCESS)
        rc = hooks->before(hooks->arg, kp_launch_stream(&e->launch));
    if (rc == CUDA_SUCCESS)
        rc = make(&e->launch);
    return rc == CUDA_SUCCESS ? hooks->after(hooks->arg) : rc;
}

CUresult kp_journal_issue(struct kp_entry *e, const struct kp_issue_hooks *hooks)
{
    struct kp_journal *j = &kp_journal_now;
    CUresult rc = issue(j, e, hooks, kp_launch_call);
    if (rc == CUDA_SUCCESS && j->rewinds)
        kp_event_twins_take(j, &e->launch);
    return rc;
}

CUresult kp_issue_again(struct kp_journal *j, struct kp_entry *e, const struct kp_issue_hooks *hooks)
{
    return issue(j, e, hooks, make_again);
}
