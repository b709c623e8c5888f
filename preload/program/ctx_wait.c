#include "preload/program/ctx_wait.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/lock.h"
#include "base/work.h"
#include "preload/os/guard.h"
#include "preload/os/worker.h"

/* A wait in progress; the waiter that sees its end frees it. */
static struct wait {
    const struct kp_driver *d;
    CUcontext ctx;
    pthread_t thread;
    atomic_bool taken; /* by the thread, which then asks the driver; or by a waiter that has no patience left */
    atomic_int done;   /* waits happen in the kernel */
    CUresult rc;
    struct wait *next;
} * waits;

static void *wait_for_context(void *arg)
{
    struct wait *w = arg;
    CUcontext popped;
    KP_GUARDED;
    w->rc = w->d->cuCtxPushCurrent(w->ctx);
    if (w->rc == CUDA_SUCCESS) {
        /* A thread that begins late must not ask: a capture may have begun by then, which that would break. */
        w->rc = atomic_exchange(&w->taken, true) ? CUDA_ERROR_NOT_READY : w->d->cuCtxSynchronize();
        w->d->cuCtxPopCurrent(&popped);
    }
    atomic_store(&w->done, 1);
    kp_wake_all(&w->done);
    return NULL;
}

static struct wait *find(CUcontext ctx)
{
    for (struct wait *w = waits; w; w = w->next)
        if (w->ctx == ctx)
            return w;
    return NULL;
}

static struct wait *begin(const struct kp_driver *d, CUcontext ctx)
{
    struct wait *w = calloc(1, sizeof(*w));
    if (!w)
        return NULL;
    w->d = d;
    w->ctx = ctx;
    if (!kp_thread_start(wait_for_context, w, &w->thread)) {
        free(w);
        return NULL;
    }
    w->next = waits;
    waits = w;
    return w;
}

static CUresult end(struct wait *w)
{
    kp_thread_join(w->thread); /* joins, so that the driver has torn down its data of the thread */
    CUresult rc = w->rc;
    struct wait **link = &waits;
    while (*link != w)
        link = &(*link)->next;
    *link = w->next;
    free(w);
    return rc;
}

static bool becomes_done(struct wait *w, long ms)
{
    long start = kp_now_ms(), left = ms;
    for (; !atomic_load(&w->done) && left > 0; left = kp_work_patience(ms) - (kp_now_ms() - start))
        kp_wait_while(&w->done, 0, left);
    return atomic_load(&w->done);
}

CUresult kp_patience_wait(const struct kp_driver *d, CUcontext ctx, long ms)
{
    long start = kp_now_ms();
    struct wait *earlier = find(ctx);
    if (earlier) {
        if (!becomes_done(earlier, ms))
            return CUDA_ERROR_NOT_READY;
        end(earlier); /* work submitted since must still be waited for */
        ms -= kp_now_ms() - start;
    }
    struct wait *w = begin(d, ctx);
    if (!w)
        return d->cuCtxSynchronize();
    if (becomes_done(w, ms))
        return end(w);
    atomic_store(&w->taken, true);
    return CUDA_ERROR_NOT_READY;
}

bool kp_patience_goes_on(CUcontext ctx)
{
    const struct wait *w = find(ctx);
    return w && !atomic_load(&w->done);
}

bool kp_patience_ends(CUcontext ctx, long ms)
{
    struct wait *w = find(ctx);
    return !w || becomes_done(w, ms);
}

void kp_patience_reap(void)
{
    for (struct wait *w = waits, *next; w; w = next) {
        next = w->next;
        if (atomic_load(&w->done))
            end(w);
    }
}

void kp_patience_forked(void)
{
    waits = NULL;
}
