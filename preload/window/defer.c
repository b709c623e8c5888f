#include "preload/window/defer.h"

#include <stdlib.h>

#include "preload/window/waits.h"

/* The wait for the work that may still use the memory, ms. */
enum { WORK_MS = 1000 };

/* One of both: memory, or a stream. */
static struct ended {
    CUcontext ctx;
    CUdeviceptr memory;
    CUstream stream;
} * ended;
static size_t n_ended, cap_ended;

static bool is_kept(const struct ended *e)
{
    size_t i = 0;
    while (i < n_ended && (ended[i].ctx != e->ctx || ended[i].memory != e->memory || ended[i].stream != e->stream))
        i++;
    return i < n_ended;
}

static bool is_allocation(const struct kp_driver *d, CUdeviceptr memory)
{
    CUdeviceptr base = 0;
    size_t bytes;
    return memory && d->cuMemGetAddressRange && d->cuMemGetAddressRange(&base, &bytes, memory) == CUDA_SUCCESS &&
           base == memory;
}

static bool keep(const struct ended *e)
{
    enum { FIRST = 64 };
    if (n_ended == cap_ended) {
        size_t cap = cap_ended ? 2 * cap_ended : FIRST;
        struct ended *grown = realloc(ended, cap * sizeof(*grown));
        if (!grown)
            return false;
        ended = grown;
        cap_ended = cap;
    }
    ended[n_ended++] = *e;
    return true;
}

bool kp_defer_take(const struct kp_driver *d, CUcontext ctx, CUdeviceptr memory, bool later, CUresult *answer)
{
    const struct ended e = {.ctx = ctx, .memory = memory};
    *answer = is_kept(&e) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    if (*answer != CUDA_SUCCESS)
        return true;
    bool ends = later || kp_wait_context(d, ctx, WORK_MS, KP_SHORT_MS) == CUDA_SUCCESS;
    return ends && is_allocation(d, memory) && keep(&e);
}

bool kp_defer_stream(const struct kp_driver *d, CUcontext ctx, CUstream stream, CUresult *answer)
{
    const struct ended e = {.ctx = ctx, .stream = stream};
    CUcontext of = NULL;
    *answer = is_kept(&e) ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
    if (*answer != CUDA_SUCCESS)
        return true;
    bool made = stream && stream != CU_STREAM_LEGACY && stream != CU_STREAM_PER_THREAD && d->cuStreamDestroy;
    return made && d->cuStreamGetCtx(stream, &of) == CUDA_SUCCESS && of == ctx && keep(&e);
}

void kp_defer_ours(CUcontext ctx, CUdeviceptr memory)
{
    const struct ended e = {.ctx = ctx, .memory = memory};
    keep(&e); /* else it is lost */
}

void kp_defer_free(const struct kp_driver *d, CUcontext ctx)
{
    size_t kept = 0;
    for (size_t i = 0; i < n_ended; i++)
        if (ended[i].ctx != ctx)
            ended[kept++] = ended[i];
        else if (ended[i].stream)
            d->cuStreamDestroy(ended[i].stream);
        else
            d->cuMemFree(ended[i].memory);
    n_ended = kept;
}

void kp_defer_forget(bool (*of)(CUcontext ctx))
{
    size_t kept = 0;
    for (size_t i = 0; of && i < n_ended; i++)
        if (!of(ended[i].ctx))
            ended[kept++] = ended[i];
    n_ended = kept;
}
