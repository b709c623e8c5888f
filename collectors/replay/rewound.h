/*
 * The kinds of memory that the checkpoint restores between the repetitions of a window. A window that is issued
 * again must not change any other memory: launches that can reach it are counted in one pass.
 */
#ifndef KP_COLLECTORS_REPLAY_REWOUND_H
#define KP_COLLECTORS_REPLAY_REWOUND_H

#include <stddef.h>

#include "report/model/reasons.h"

enum kp_memory {
    KP_MEMORY_HOST_VIRTUAL, /* host memory of cuMemCreate or of a pool; or of a managed pool */
    KP_MEMORY_HEAP_BLOCKS,  /* content of blocks of the device's heap, which kernels allocated by malloc */
};

/* Returns why launches that can reach such memory are not replayed; no reason if it is rewound. */
enum kp_reason kp_not_rewound(enum kp_memory kind);

#endif
