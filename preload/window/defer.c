#include "preload/window/defer.h"

#include <stdlib.h>

#include "preload/window/waits.h"

/* The wait for the work that may still use the memory, ms. */
enum { WORK_MS = 1000 };

static struct freed {
    CUcontext ctx;
    CUdeviceptr memory;
} * freed;
static size_t n_freed, cap_freed;

static bool is_kept(CUcontext ctx, CUdeviceptr memory)
{
    size_t i = 0;
    while (i < n_freed && (freed[i].ctx != ctx || freed[i].memory != memory))
        i++;
    return i < n_freed;
}

static bool is_allocation(const struct kp_driver *d, CUdeviceptr memory)
{
    CUdeviceptr base = 0;
    size_t bytes;
    return memory && d->cuMemGetAddressRange && d->cuMemGetAddressRange(&base, &bytes, memory) == CUDA_SUCCESS &&
           base == memory;
}

static bool has_room(void)
{
    enum { FIRST = 64 };
    if (n_freed < cap_freed)
        return true;
    size_t cap = cap_freed ? 2 * cap_freed : FIRST;
    struct freed *grown = realloc(freed, cap * sizeof(*grown));
    if (!grown)
        return false;
    freed = grown;
    cap_freed = cap;
    return true;
}

bool kp_defer_take(const struct kp_driver *d, CUcontext ctx, CUdeviceptr memory, bool later, CUresult *answer)
{
    if (is_kept(ctx, memory)) {
        *answer = CUDA_ERROR_INVALID_VALUE;
        return true;
    }
    bool ends = later || kp_wait_context(d, ctx, WORK_MS, KP_SHORT_MS) == CUDA_SUCCESS;
    if (!ends || !is_allocation(d, memory) || !has_room())
        return false;
    freed[n_freed++] = (struct freed){ctx, memory};
    *answer = CUDA_SUCCESS;
    return true;
}

void kp_defer_free(const struct kp_driver *d, CUcontext ctx)
{
    size_t kept = 0;
    for (size_t i = 0; i < n_freed; i++)
        if (freed[i].ctx == ctx)
            d->cuMemFree(freed[i].memory);
        else
            freed[kept++] = freed[i];
    n_freed = kept;
}

void kp_defer_forget(void)
{
    n_freed = 0;
}
