#include "collectors/rewound.h"

#include <stdbool.h>

/* KP_VENDOR: asked of libcheckpoint.so by tests/gpu/rewind.cu, whose rows name these kinds. Until a GPU has shown that
 * a kind is rewound, it counts as not. */
static const struct {
    bool rewound;
    const char *obstacle;
} kinds[] = {
    [KP_MEMORY_VIRTUAL] = {false, "can reach memory of cuMemCreate, which cannot be rewound, not replayed"},
    [KP_MEMORY_HEAP_BLOCKS] = {false, "can reach blocks of the device's heap, which cannot be rewound, not replayed"},
};

const char *kp_not_rewound(enum kp_memory kind)
{
    return kinds[kind].rewound ? NULL : kinds[kind].obstacle;
}
