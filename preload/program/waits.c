#include "preload/program/waits.h"

#include "base/debug.h"
#include "base/lock.h"
#include "preload/os/progress.h"
#include "preload/program/ctx_wait.h"

/* Total of waits that timed out in a process, ms: time that the program would not need without us. Later waits are
 * short, as a program that hung is likely to hang again. */
static long wasted_ms;

static long within_budget(long ms, long least)
{
    long left = kp_span_ms(KP_SPAN_BUDGET) - wasted_ms;
    left = left < least ? least : left;
    return ms < left ? ms : left;
}

static CUresult note_wasted(CUresult rc, long since)
{
    if (rc == CUDA_ERROR_NOT_READY)
        wasted_ms += kp_now_ms() - since;
    return rc;
}

CUresult kp_wait_rehearsed(const struct kp_driver *d, CUstream stream, long ms)
{
    long start = kp_now_ms();
    return note_wasted(kp_wait_stream(d, stream, ms), start);
}

CUresult kp_wait_copy(const struct kp_driver *d)
{
    const long ms = within_budget(kp_limit_first(KP_WAIT_WORK), kp_limit_next(KP_WAIT_WORK));
    long start = kp_now_ms();
    return note_wasted(kp_wait_stream(d, CU_STREAM_LEGACY, ms), start);
}

CUresult kp_wait_briefly(const struct kp_driver *d, CUcontext ctx, long ms, long least)
{
    long start = kp_now_ms();
    return note_wasted(kp_patience_wait(d, ctx, within_budget(ms, least)), start);
}

CUresult kp_wait_context(const struct kp_driver *d, CUcontext ctx, long ms, long least)
{
    kp_progress_step("waiting for launches to end", false);
    return kp_wait_briefly(d, ctx, ms, least);
}

CUresult kp_wait_for(const struct kp_driver *d, CUcontext ctx, enum kp_wait w)
{
    return kp_wait_context(d, ctx, kp_limit_first(w), kp_limit_next(w));
}

CUresult kp_wait_quietly(const struct kp_driver *d, CUcontext ctx, enum kp_wait w)
{
    return kp_wait_briefly(d, ctx, kp_limit_first(w), kp_limit_next(w));
}

CUresult kp_wait_again(const struct kp_driver *d, CUcontext ctx, long ms, unsigned *outlasted)
{
    enum { MOST_WAITS = 3 };
    if (*outlasted >= MOST_WAITS && kp_patience_goes_on(ctx))
        return CUDA_ERROR_NOT_READY;
    CUresult rc = kp_wait_context(d, ctx, ms, ms);
    *outlasted = rc == CUDA_ERROR_NOT_READY ? *outlasted + 1 : 0;
    if (*outlasted)
        kp_debug(KP_DEBUG_WINDOW, "the work of a context has outlasted a wait of %ld ms", ms);
    return rc;
}
