#include "preload/journal/graph_memory_check.h"

/* Byte of the context's device that hold memory of graphs; 0 where the driver does not tell. */
static cuuint64_t reserved(const struct kp_window *w)
{
    const struct kp_driver *d = w->setup->driver;
    cuuint64_t bytes = 0;
    bool told = d->cuDeviceGetGraphMemAttribute &&
                d->cuDeviceGetGraphMemAttribute(w->context->device_ordinal, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT,
                                                &bytes) == CUDA_SUCCESS;
    return told ? bytes : 0;
}

void kp_mapped_note(struct kp_window *w, CUgraphExec exec)
{
    w->allocates = exec;
    w->mapped = reserved(w);
}

bool kp_mapped_still(const struct kp_window *w)
{
    return !w->allocates || reserved(w) >= w->mapped;
}
