#include "preload/journal/graph_memory_check.h"

/* Returns the bytes that graphs' allocations reserve on the context's device; 0 if the driver does not say. */
static cuuint64_t reserved(const struct kp_journal *j)
{
    const struct kp_driver *d = j->setup->driver;
    cuuint64_t bytes = 0;
    bool told = d->cuDeviceGetGraphMemAttribute(j->context->device_ordinal, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT,
                                                &bytes) == CUDA_SUCCESS;
    return told ? bytes : 0;
}

void kp_mapped_note(struct kp_journal *j, CUgraphExec exec)
{
    j->allocates = exec;
    j->mapped = reserved(j);
}

bool kp_mapped_still(const struct kp_journal *j)
{
    return !j->allocates || reserved(j) >= j->mapped;
}
