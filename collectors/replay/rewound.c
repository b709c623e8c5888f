#include "collectors/replay/rewound.h"

#include <stdbool.h>

/* KP_VENDOR: measured on libcheckpoint.so by tests/gpu/rewind.cu. On an H200 all other kinds are rewound:
 * cudaMalloc, cuMemCreate on the device (mapped twice or anew, too), pools, graph allocations, arrays, variables,
 * managed and pinned memory. Blocks of the heap are, too, but kernels that took them failed when a window was
 * replayed. */
static const struct {
    bool rewound;
    const char *obstacle;
} kinds[] = {
    [KP_MEMORY_HOST_VIRTUAL] = {false, "can reach memory of cuMemCreate or of a pool that is the host's or managed, "
                                       "which is not rewound, not replayed"},
    [KP_MEMORY_HEAP_BLOCKS] = {false, "can reach blocks of the device's heap, which cannot be rewound, not replayed"},
};

const char *kp_not_rewound(enum kp_memory kind)
{
    return kinds[kind].rewound ? NULL : kinds[kind].obstacle;
}
