#include "collectors/replay/rewound.h"

#include <stdbool.h>

/* KP_VENDOR: measured on libcheckpoint.so by tests/gpu/rewind.cu. On an H200 all other kinds are rewound: cudaMalloc,
 * cuMemCreate on the device (also mapped twice or again), pools, graph allocations, arrays, variables, managed and
 * pinned memory. Heap blocks are, too, but kernels that allocated them failed when a window was replayed. */
static const struct {
    bool rewound;
    enum kp_reason reason;
} kinds[] = {
    [KP_MEMORY_HOST_VIRTUAL] = {false, KP_REASON_HOST_VIRTUAL},
    [KP_MEMORY_HEAP_BLOCKS] = {false, KP_REASON_HEAP_BLOCKS},
};

enum kp_reason kp_not_rewound(enum kp_memory kind)
{
    return kinds[kind].rewound ? KP_REASON_NONE : kinds[kind].reason;
}
