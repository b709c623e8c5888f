#include "preload/contexts/context_scope.h"

struct kp_visit kp_visit_begin(const struct kp_driver *d, CUcontext ctx)
{
    struct kp_visit v = {.mode = CU_STREAM_CAPTURE_MODE_RELAXED};
    CUcontext current = NULL;
    bool known = d->cuCtxGetCurrent(&current) == CUDA_SUCCESS;
    v.pushed = ctx && (!known || ctx != current) && d->cuCtxPushCurrent(ctx) == CUDA_SUCCESS;
    v.here = v.pushed || (known && ctx == current);
    /* Our allocations and waits must not break a capture that another thread opens in global mode. */
    v.relaxed = d->cuThreadExchangeStreamCaptureMode(&v.mode) == CUDA_SUCCESS;
    return v;
}

void kp_visit_end(const struct kp_driver *d, struct kp_visit *v)
{
    CUcontext popped;
    if (v->relaxed)
        d->cuThreadExchangeStreamCaptureMode(&v->mode);
    if (v->pushed)
        d->cuCtxPopCurrent(&popped);
}
