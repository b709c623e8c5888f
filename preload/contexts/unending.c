#include "preload/contexts/unending.h"

#include "collectors/code/cubin.h"
#include "preload/contexts/context_scope.h"
#include "preload/program/waits.h"

/* The last graphs with a launch that did not end by itself. */
enum { MOST_STUCK = 64 };
static CUgraphExec stuck_graphs[MOST_STUCK];
static size_t n_stuck_graphs;

enum kp_reason kp_stuck_known(const struct kp_launch *l, const struct kp_known_function *f)
{
    for (size_t i = 0; l->is_graph && i < n_stuck_graphs && i < MOST_STUCK; i++)
        if (stuck_graphs[i] == l->graph)
            return KP_REASON_WAITS_FOR_MORE;
    return f ? f->waits_reason : KP_REASON_NONE;
}

void kp_stuck_note(const struct kp_launch *l, struct kp_known_function *f)
{
    if (f)
        f->waits_reason = KP_REASON_WAITS_FOR_MORE;
    else
        stuck_graphs[n_stuck_graphs++ % MOST_STUCK] = l->graph;
}

enum kp_reason kp_stuck_before(const struct kp_driver *d, struct kp_context *c, bool quiet)
{
    long least = kp_limit_next(KP_WAIT_BEFORE), ms = c->stalled ? least : kp_limit_first(KP_WAIT_BEFORE);
    CUresult rc = (quiet ? kp_wait_briefly : kp_wait_context)(d, c->ctx, ms, least);
    c->stalled = rc == CUDA_ERROR_NOT_READY;
    if (rc == CUDA_SUCCESS)
        return KP_REASON_NONE;
    c->dead = !c->stalled;
    return c->dead ? KP_REASON_AFTER_FAILURE : KP_REASON_UNENDED;
}

bool kp_stuck_settle(const struct kp_driver *d, struct kp_context *c)
{
    long least = kp_limit_next(KP_WAIT_SETTLE), ms = c->stalled ? least : kp_limit_first(KP_WAIT_SETTLE);
    c->stalled = kp_wait_context(d, c->ctx, ms, least) != CUDA_SUCCESS;
    return !c->stalled;
}

void kp_stuck_learn(struct kp_known_function *f, bool ended)
{
    f->ends = ended ? f->ends + (f->ends < KP_ENDS_ENOUGH) : 0;
    f->waits_reason = ended ? KP_REASON_NONE : KP_REASON_WAITS_FOR_HOST;
}

bool kp_stuck_watch(const struct kp_driver *d, struct kp_context *c, struct kp_known_function *f, enum kp_wait w)
{
    bool ends = kp_wait_for(d, c->ctx, w) != CUDA_ERROR_NOT_READY;
    c->stalled = !ends; /* later launches need not wait that long to find this out */
    if (f)
        kp_stuck_learn(f, ends);
    return ends;
}

/* Returns true if a context that has stalled still does. The thread that waits for it needs a moment to see its work
 * end. */
static bool goes_on(const struct kp_driver *d, struct kp_context *c)
{
    struct kp_visit v = kp_visit_begin(d, c->ctx);
    c->stalled =
        v.here && kp_wait_again(d, c->ctx, kp_limit_first(KP_WAIT_MOMENT), &c->outlasted) == CUDA_ERROR_NOT_READY;
    kp_visit_end(d, &v);
    return c->stalled;
}

enum kp_reason kp_stuck_elsewhere(const struct kp_driver *d, const struct kp_context *c)
{
    for (struct kp_context *other = NULL; (other = kp_context_beside(c, other));)
        if (other->stalled && goes_on(d, other))
            return KP_REASON_UNENDED_ELSEWHERE;
    return KP_REASON_NONE;
}
