#include "preload/window/stuck.h"

#include "collectors/code/cubin.h"
#include "preload/window/visit.h"
#include "preload/window/waits.h"

const char kp_waits_for_host[] = "waits for the host, not replayed";
static const char waits_for_more[] = "does not end by itself (waits for the host or another kernel), not replayed";

/* The last graphs with a launch that did not end by itself. */
enum { MOST_STUCK = 64 };
static CUgraphExec stuck_graphs[MOST_STUCK];
static size_t n_stuck_graphs;

const char *kp_stuck_known(const struct kp_launch *l, const struct kp_known_function *f)
{
    for (size_t i = 0; l->is_graph && i < n_stuck_graphs && i < MOST_STUCK; i++)
        if (stuck_graphs[i] == l->graph)
            return waits_for_more;
    return f ? f->waits : NULL;
}

void kp_stuck_note(struct kp_window *w, size_t at)
{
    w->stuck = w->stuck ? w->stuck : at + 1;
    if (w->items[at].function)
        w->items[at].function->waits = waits_for_more;
    else
        stuck_graphs[n_stuck_graphs++ % MOST_STUCK] = w->items[at].launch.graph;
}

void kp_stuck_note_unended(struct kp_window *w)
{
    for (size_t k = 0; k < w->n; k++) {
        struct kp_item *i = &w->items[k];
        CUstream stream = kp_launch_stream(&i->launch);
        bool first = i->is_launch;
        for (size_t before = 0; first && before < k; before++)
            first = !w->items[before].is_launch || kp_launch_stream(&w->items[before].launch) != stream;
        if (first && i->function && w->setup->driver->cuStreamQuery(stream) == CUDA_ERROR_NOT_READY)
            i->function->waits = waits_for_more;
    }
    w->context->stalled = true;
}

bool kp_stuck_may_wait(const struct kp_window *w)
{
    size_t k = 0;
    while (k < w->n && !w->items[k].reaches_host &&
           !(w->items[k].function && w->items[k].function->once & KP_WAITS_FOR_OTHERS))
        k++;
    return k < w->n;
}

bool kp_stuck_settle(const struct kp_driver *d, struct kp_context *c)
{
    c->stalled = kp_wait_context(d, c->ctx, c->stalled ? KP_ALONE_MS : KP_BEFORE_MS, KP_ALONE_MS) != CUDA_SUCCESS;
    return !c->stalled;
}

bool kp_stuck_watch(const struct kp_driver *d, struct kp_context *c, struct kp_known_function *f, long ms)
{
    bool ends = kp_wait_context(d, c->ctx, ms, KP_ALONE_MS) != CUDA_ERROR_NOT_READY;
    c->stalled = !ends; /* later launches need not wait as long to find that out */
    if (f && !ends) {
        f->ends = 0;
        f->waits = kp_waits_for_host;
    } else if (f) {
        f->ends += f->ends < KP_ENDS_ENOUGH;
        f->waits = NULL;
    }
    return ends;
}

/* Returns true if a context that has stalled still does. The thread that waits for it needs a moment to see its work
 * end. */
static bool goes_on(const struct kp_driver *d, struct kp_context *c)
{
    enum { MOMENT_MS = 10 };
    struct kp_visit v = kp_visit_begin(d, c->ctx);
    c->stalled = v.here && kp_wait_again(d, c->ctx, MOMENT_MS, &c->outlasted) == CUDA_ERROR_NOT_READY;
    kp_visit_end(d, &v);
    return c->stalled;
}

const char *kp_stuck_elsewhere(const struct kp_driver *d, const struct kp_context *c)
{
    for (struct kp_context *other = NULL; (other = kp_context_beside(c, other));)
        if (other->stalled && goes_on(d, other))
            return "made while work of another context of the device did not end";
    return NULL;
}
