/*
 * What the driver reports of device memory while a window is open, and what it would report without the window. A query
 * that can be answered closes no window.
 */
#include "collectors/run/collector.h"
#include "preload/journal/defer.h"
#include "preload/journal/state.h"

static struct kp_journal *const j = &kp_journal_now;

/* Returns true if the current device is known not to be the window's. Without a context the driver refuses the
 * program's query, too. */
static bool asks_elsewhere(const struct kp_driver *d)
{
    CUdevice device;
    CUresult rc = d->cuCtxGetDevice(&device);
    return rc == CUDA_ERROR_INVALID_CONTEXT || (rc == CUDA_SUCCESS && device != j->context->device_ordinal);
}

/* Adds what the window allocated. Returns false if some of it shares blocks with the program's memory. */
static bool add_own(uint64_t *bytes)
{
    bool whole = !j->aside_in_part;
    *bytes += j->aside;
    for (size_t k = 0; k < j->n_logs && whole; k++) {
        whole = kp_defer_whole(j->logs[k].memory, j->logs[k].bytes);
        *bytes += j->logs[k].bytes;
    }
    return whole;
}

bool kp_journal_tells_free(const struct kp_context_setup *setup, uint64_t *more)
{
    *more = 0;
    if (!j->open || !j->rewinds)
        return false;
    if (asks_elsewhere(setup->driver))
        return true;
    *more = kp_collector_copied(j->context->collector);
    return !j->allocates && add_own(more) && kp_defer_gives(more);
}

bool kp_journal_tells_pool(CUmemPool_attribute what)
{
    return j->open && j->rewinds && (what < CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT || kp_defer_none_of_pools());
}
