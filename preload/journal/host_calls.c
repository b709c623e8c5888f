#include "preload/journal/host_calls.h"

#include "preload/gate/window_facts.h"
#include "preload/journal/reads.h"
#include "preload/mode/strategy.h"
#include "preload/program/waits.h"

enum {
    CALL_MS = 5000,   /* for a host function, where a window closes: as for the work before one that opens */
    SHORT_MS = 500,   /* the same once waits have timed out */
    MOST_BEHIND = 256 /* operations behind a host function that has not ended; the driver takes 1024 */
};

bool kp_host_calls_admit(const struct kp_window *w)
{
    return !w->strategy->whole && !w->context->calls_wait && !kp_window_closes_at_sync();
}

void kp_host_calls_note(struct kp_window *w)
{
    w->called_at = w->calls_host ? w->called_at : w->n;
    w->pending = w->calls_host = true;
}

/* Records an event of ours in the stream. NULL: it could not be. */
static CUevent mark(const struct kp_driver *d, CUstream stream)
{
    CUevent event;
    if (!d->cuEventCreate || !d->cuEventDestroy || !d->cuEventRecord || !d->cuEventQuery ||
        d->cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS)
        return NULL;
    if (d->cuEventRecord(event, stream) == CUDA_SUCCESS)
        return event;
    d->cuEventDestroy(event);
    return NULL;
}

void kp_host_calls_begin(struct kp_window *w, struct kp_item *i)
{
    kp_host_calls_note(w);
    i->call.reached = mark(w->setup->driver, i->op.stream);
}

void kp_host_calls_end(const struct kp_window *w, struct kp_item *i)
{
    i->call.done = mark(w->setup->driver, i->op.stream);
}

bool kp_host_calls_hinder(struct kp_window *w)
{
    return w->calls_host && w->n - w->called_at >= MOST_BEHIND && !kp_reads_arrive(w);
}

/* Whether the function is running. Without events that cannot be told, and it may be. */
static bool is_running(const struct kp_driver *d, const struct kp_item *i)
{
    const struct kp_host_call *c = &i->call;
    if (!c->reached || !c->done)
        return true;
    return d->cuEventQuery(c->reached) == CUDA_SUCCESS && d->cuEventQuery(c->done) == CUDA_ERROR_NOT_READY;
}

static bool is_any_running(const struct kp_window *w)
{
    for (size_t k = 0; w->calls_host && k < w->n; k++)
        if (w->items[k].op.calls_host && is_running(w->setup->driver, &w->items[k]))
            return true;
    return false;
}

CUresult kp_host_calls_wait(struct kp_window *w, long *ms, bool *called)
{
    const struct kp_driver *d = w->setup->driver;
    *called = false;
    if (w->calls_host && *ms > CALL_MS) {
        CUresult rc = kp_wait_context(d, w->context->ctx, CALL_MS, SHORT_MS);
        if (rc != CUDA_ERROR_NOT_READY)
            return rc;
        *called = is_any_running(w);
    }
    if (*called) {
        *ms = CALL_MS;
        w->context->calls_wait = w->context->stalled = true;
        return CUDA_ERROR_NOT_READY;
    }
    return kp_wait_context(d, w->context->ctx, *ms, SHORT_MS);
}

static void destroy(const struct kp_driver *d, CUevent *event)
{
    if (*event)
        d->cuEventDestroy(*event); /* which a pending one survives until it is reached */
    *event = NULL;
}

void kp_host_calls_drop(struct kp_window *w)
{
    for (size_t k = 0; k < w->n; k++) {
        destroy(w->setup->driver, &w->items[k].call.reached);
        destroy(w->setup->driver, &w->items[k].call.done);
    }
}
