/*
 * Which kinds of memory the checkpoint brings back between the repetitions of a window. Memory that it does not must
 * not be changed in a window that is issued again: launches that can reach it are counted in one pass.
 */
#ifndef KP_COLLECTORS_REPLAY_REWOUND_H
#define KP_COLLECTORS_REPLAY_REWOUND_H

#include <stddef.h>

enum kp_memory {
    KP_MEMORY_HOST_VIRTUAL, /* memory of cuMemCreate on the host, mapped by cuMemMap */
    KP_MEMORY_HEAP_BLOCKS,  /* what blocks of the device's heap contain, which kernels took by malloc */
};

/* Why launches that can reach such memory are not replayed (static text), or NULL: it is rewound. */
const char *kp_not_rewound(enum kp_memory kind);

#endif
