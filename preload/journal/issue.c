#include "preload/journal/issue.h"

#include "preload/journal/event_twins.h"
#include "collectors/facts/settle.h"
#include "preload/graphs/capture.h"
#include "preload/graphs/host_pointers.h"

static CUstream item_stream(const struct kp_item *i)
{
    return i->is_launch ? kp_launch_stream(&i->entry.launch) : i->op.stream;
}

CUresult kp_issue_end_streams(const struct kp_journal *j)
{
    enum { MOST = 16 };
    CUstream ended[MOST];
    size_t n = 0;
    CUresult rc = CUDA_SUCCESS;
    for (size_t k = 0; k < j->end && rc != CUDA_ERROR_NOT_READY; k++) {
        CUstream stream = item_stream(&j->items[k]);
        size_t known = 0;
        while (known < n && ended[known] != stream)
            known++;
        if (known < n)
            continue;
        rc = kp_settle_stream(j->setup->driver, stream);
        if (n < MOST)
            ended[n++] = stream;
    }
    return rc == CUDA_ERROR_NOT_READY ? rc : CUDA_SUCCESS;
}

CUresult kp_issue_end(const struct kp_journal *j)
{
    CUstream only = j->has_stream && !j->several && j->stream ? j->stream : CU_STREAM_LEGACY;
    CUresult rc = j->several ? kp_issue_end_streams(j) : CUDA_SUCCESS;
    return rc == CUDA_SUCCESS ? kp_settle(j->setup->driver, only) : rc;
}

CUresult kp_issue_settle(struct kp_journal *j)
{
    bool wait = j->unsettled;
    j->unsettled = false;
    return wait ? kp_issue_end(j) : CUDA_SUCCESS;
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
    if (rc == CUDA_SUCCESS && j->rewinds && j->several)
        rc = kp_issue_end_streams(j);
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
