#include "preload/journal/host_calls.h"

#include "preload/gate/window_facts.h"
#include "preload/journal/reads.h"
#include "preload/program/waits.h"

/* Operations behind a host function that has not ended; the driver takes 1024. */
enum { MOST_BEHIND = 256 };

bool kp_hostcalls_admit(const struct kp_journal *j)
{
    return !j->whole && !j->context->calls_wait && !kp_window_closes_at_sync();
}

void kp_hostcalls_note(struct kp_journal *j)
{
    j->called_at = j->calls_host ? j->called_at : j->n;
    j->pending = j->calls_host = true;
}

/* Records an event of ours in the stream. NULL: it could not be. */
static CUevent mark(const struct kp_driver *d, CUstream stream)
{
    CUevent event;
    if (d->cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS)
        return NULL;
    if (d->cuEventRecord(event, stream) == CUDA_SUCCESS)
        return event;
    d->cuEventDestroy(event);
    return NULL;
}

void kp_hostcalls_begin(struct kp_journal *j, struct kp_item *i)
{
    kp_hostcalls_note(j);
    i->call.reached = mark(j->setup->driver, i->op.stream);
}

void kp_hostcalls_end(const struct kp_journal *j, struct kp_item *i)
{
    i->call.done = mark(j->setup->driver, i->op.stream);
}

bool kp_hostcalls_hinder(struct kp_journal *j)
{
    return j->calls_host && j->n - j->called_at >= MOST_BEHIND && !kp_reads_arrive(j);
}

/* Returns true if the function may be running; without events that is not known. */
static bool is_running(const struct kp_driver *d, const struct kp_item *i)
{
    const struct kp_host_call *c = &i->call;
    if (!c->reached || !c->done)
        return true;
    return d->cuEventQuery(c->reached) == CUDA_SUCCESS && d->cuEventQuery(c->done) == CUDA_ERROR_NOT_READY;
}

static bool is_any_running(const struct kp_journal *j)
{
    for (size_t k = 0; j->calls_host && k < j->n; k++)
        if (j->items[k].op.calls_host && is_running(j->setup->driver, &j->items[k]))
            return true;
    return false;
}

CUresult kp_hostcalls_wait(struct kp_journal *j, long *ms, bool *called)
{
    const struct kp_driver *d = j->setup->driver;
    const long most = kp_limit_first(KP_WAIT_HOST_CALL), least = kp_limit_next(KP_WAIT_HOST_CALL);
    *called = false;
    if (j->calls_host && *ms > most) {
        CUresult rc = kp_wait_context(d, j->context->ctx, most, least);
        if (rc != CUDA_ERROR_NOT_READY)
            return rc;
        *called = is_any_running(j);
    }
    if (*called) {
        *ms = most;
        j->context->calls_wait = j->context->stalled = true;
        return CUDA_ERROR_NOT_READY;
    }
    return kp_wait_context(d, j->context->ctx, *ms, least);
}

static void destroy(const struct kp_driver *d, CUevent *event)
{
    if (*event)
        d->cuEventDestroy(*event); /* which a pending one survives until it is reached */
    *event = NULL;
}

void kp_hostcalls_drop(struct kp_journal *j)
{
    for (size_t k = 0; k < j->n; k++) {
        destroy(j->setup->driver, &j->items[k].call.reached);
        destroy(j->setup->driver, &j->items[k].call.done);
    }
}
