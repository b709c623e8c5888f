#include "preload/program/ctx_wait.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/lock.h"
#include "base/wait_limits.h"
#include "base/work.h"
#include "preload/os/guard.h"
#include "preload/os/worker.h"

/* The state of a wait: its thread has not started; asks the driver; must not ask any more, because the waiter has given
 * up; has ended. */
enum { NEW, ASKS, LATE, DONE };

/* A wait in progress; the waiter that sees its end frees it. */
static struct wait {
    const struct kp_driver *d;
    CUcontext ctx;
    pthread_t thread;
    atomic_int state;     /* waits happen in the kernel */
    atomic_long begun_ms; /* kp_now_ms() when the thread started */
    CUresult rc;
    struct wait *next;
} * waits;

static void *wait_for_context(void *arg)
{
    struct wait *w = arg;
    CUcontext popped;
    int new = NEW;
    KP_GUARDED;
    atomic_store(&w->begun_ms, kp_now_ms());
    /* A late thread must not ask: that would invalidate a capture begun meanwhile. */
    bool asks = atomic_compare_exchange_strong(&w->state, &new, ASKS);
    w->rc = asks ? w->d->cuCtxPushCurrent(w->ctx) : CUDA_ERROR_NOT_READY;
    if (w->rc == CUDA_SUCCESS) {
        w->rc = w->d->cuCtxSynchronize();
        w->d->cuCtxPopCurrent(&popped);
    }
    atomic_store(&w->state, DONE);
    kp_wake_all(&w->state);
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
    if (!kp_worker_thread_start(wait_for_context, w, &w->thread)) {
        free(w);
        return NULL;
    }
    w->next = waits;
    waits = w;
    return w;
}

static CUresult end(struct wait *w)
{
    kp_worker_thread_join(w->thread); /* joins, so that the driver has torn down its data of the thread */
    CUresult rc = w->rc;
    struct wait **link = &waits;
    while (*link != w)
        link = &(*link)->next;
    *link = w->next;
    free(w);
    return rc;
}

static bool is_done(const struct wait *w)
{
    return atomic_load(&w->state) == DONE;
}

/* Returns how long a caller that started at `start` with a limit of `ms` keeps waiting. A busy machine starts a thread
 * late, and the limit is for the driver: so it counts from the start of the thread. */
static long left_of(const struct wait *w, long start, long ms)
{
    long now = kp_now_ms(), begun = atomic_load(&w->begun_ms);
    if (atomic_load(&w->state) == NEW)
        return now - start < kp_work_patience(kp_limit_first(KP_WAIT_THREAD_BEGINS)) ? ms : 0;
    return kp_work_patience(ms) - (now - (begun > start ? begun : start));
}

static bool becomes_done(struct wait *w, long ms)
{
    long start = kp_now_ms(), left = ms;
    for (int state; (state = atomic_load(&w->state)) != DONE && left > 0; left = left_of(w, start, ms))
        kp_lock_wait_while(&w->state, state, left);
    return is_done(w);
}

CUresult kp_wait_stream(const struct kp_driver *d, CUstream stream, long ms)
{
    long start = kp_now_ms(), waited = 0;
    CUresult rc = d->cuStreamQuery(stream);
    for (int spins = 0; rc == CUDA_ERROR_NOT_READY && waited < kp_work_patience(ms); rc = d->cuStreamQuery(stream)) {
        if (spins++ > 100)
            kp_nap(waited);
        waited = kp_now_ms() - start;
    }
    return rc;
}

/* Waits for the current context without a thread. Work of streams that do not wait for the legacy one has no limit. */
static CUresult wait_here(const struct kp_driver *d, long ms)
{
    CUresult rc = kp_wait_stream(d, CU_STREAM_LEGACY, ms);
    return rc == CUDA_SUCCESS ? d->cuCtxSynchronize() : rc;
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
        ms = ms > 0 ? ms : 1;
    }
    struct wait *w = begin(d, ctx);
    if (!w)
        return wait_here(d, ms);
    if (becomes_done(w, ms))
        return end(w);
    int new = NEW;
    atomic_compare_exchange_strong(&w->state, &new, LATE);
    return CUDA_ERROR_NOT_READY;
}

bool kp_patience_goes_on(CUcontext ctx)
{
    const struct wait *w = find(ctx);
    return w && !is_done(w);
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
        if (is_done(w))
            end(w);
    }
}

void kp_patience_forked(void)
{
    waits = NULL;
}
