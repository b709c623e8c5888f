#include "preload/program/hostmem.h"
#include "preload/window/record.h"
#include "preload/window/signs.h"
#include "preload/window/strategy.h"
#include "preload/window/waits.h"

/* What the program does on memory while a window is open. */

static uint64_t tickets;

static bool is_host(uint64_t address)
{
    void *base;
    size_t bytes;
    return kp_hostmem_find(address, &base, &bytes);
}

bool kp_window_join(const struct kp_context_setup *setup, const char *symbol, void *real, const uint64_t *args,
                    uint64_t *ticket)
{
    CUcontext current = NULL;
    struct kp_op op;
    if (!kp_window.open)
        return false;
    setup->driver->cuCtxGetCurrent(&current);
    bool joins = current == kp_window.context->ctx && kp_window.strategy->joins && kp_window.n < KP_MOST_ITEMS &&
                 kp_join_record(setup->driver, symbol, real, args, is_host, KP_MOST_COPIED - kp_window.copied, &op) ==
                     KP_JOIN_YES;
    struct kp_item *i = joins ? kp_record_new() : NULL;
    if (!i) {
        if (joins)
            kp_op_free(&op);
        kp_window_close(setup, symbol);
        return false;
    }
    i->op = op;
    i->epoch = kp_signs_epoch(op.waits);
    kp_record_note_stream(op.stream);
    i->ticket = *ticket = ++tickets;
    kp_window.copied += op.copied;
    return true;
}

/* Keeps what new memory contains, as an operation of the window. Device to device, so that it costs next to nothing.
 * False: it is not known to be kept; what was taken for it goes with the window. */
static bool back_up(const struct kp_driver *d, struct kp_item *i, CUdeviceptr memory, size_t bytes)
{
    if (d->cuMemAlloc(&i->backup, bytes) != CUDA_SUCCESS) {
        i->backup = 0;
        return false;
    }
    i->op = (struct kp_op){.real = (void *)(uintptr_t)d->cuMemcpyDtoDAsync,
                           .args = {memory, i->backup, bytes, (uint64_t)(uintptr_t)CU_STREAM_LEGACY}};
    return d->cuMemcpyDtoDAsync(i->backup, memory, bytes, CU_STREAM_LEGACY) == CUDA_SUCCESS &&
           kp_wait_for_context(d, kp_window.context->ctx, KP_COPY_MS, KP_SHORT_MS) == CUDA_SUCCESS;
}

void kp_window_allocated(const struct kp_context_setup *setup, const char *symbol, CUdeviceptr memory, size_t bytes)
{
    CUcontext current = NULL;
    if (!kp_window.open || !kp_window.strategy->joins)
        return;
    setup->driver->cuCtxGetCurrent(&current);
    struct kp_item *i = current == kp_window.context->ctx && kp_window.n < KP_MOST_ITEMS ? kp_record_new() : NULL;
    if (i)
        i->epoch = kp_signs_epoch(false);
    /* When it waits for long-running launches the copy is still made, in order, before anything can change the memory:
     * all that is lost is the window. */
    if (!i || !back_up(setup->driver, i, memory, bytes))
        kp_window_close(setup, symbol);
}
