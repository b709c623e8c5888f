#include "preload/journal/new_memory.h"

#include "preload/journal/defer.h"

/* Return the address and the size of the new memory that an operation restores. */
static CUdeviceptr memory_of(const struct kp_item *i)
{
    return i->op.args[0];
}

static size_t bytes_of(const struct kp_item *i)
{
    return i->op.args[2];
}

bool kp_new_memory_keep(struct kp_journal *j)
{
    const struct kp_driver *d = j->setup->driver;
    for (size_t k = 0; k < j->n; k++) {
        struct kp_item *i = &j->items[k];
        if (!i->backup)
            continue;
        if (d->cuMemAlloc(&i->own, bytes_of(i)) != CUDA_SUCCESS) {
            i->own = 0;
            return false;
        }
        if (d->cuMemcpyDtoDAsync(i->own, memory_of(i), bytes_of(i), CU_STREAM_LEGACY) != CUDA_SUCCESS)
            return false;
    }
    return d->cuCtxSynchronize() == CUDA_SUCCESS;
}

CUresult kp_new_memory_put_back(const struct kp_journal *j)
{
    const struct kp_driver *d = j->setup->driver;
    CUresult rc = CUDA_SUCCESS;
    for (size_t k = 0; k < j->n && rc == CUDA_SUCCESS; k++) {
        const struct kp_item *i = &j->items[k];
        if (i->own)
            rc = d->cuMemcpyDtoDAsync(memory_of(i), i->own, bytes_of(i), CU_STREAM_LEGACY);
    }
    return rc == CUDA_SUCCESS ? d->cuCtxSynchronize() : rc;
}

void kp_new_memory_leave(const struct kp_journal *j)
{
    for (size_t k = 0; k < j->n; k++) {
        const struct kp_item *i = &j->items[k];
        kp_defer_ours(j->context->ctx, i->backup, bytes_of(i));
        kp_defer_ours(j->context->ctx, i->own, bytes_of(i));
    }
}
