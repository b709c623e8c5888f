/* How launches are counted, and facts that only a running launch shows. */
#ifndef KP_COLLECTORS_MODEL_LAUNCHES_H
#define KP_COLLECTORS_MODEL_LAUNCHES_H

#include <stdbool.h>
#include <stdint.h>

/* Auto range: one range per kernel, with the kernel's duration; each launch then waits for its kernel. User range: one
 * for everything between push and pop; needed for graphs, which auto range does not see. */
enum kp_range_mode { KP_RANGE_AUTO, KP_RANGE_USER };

/* Facts about a launch that only an activity record has. */
struct kp_executed {
    char name[512];              /* mangled name (truncated) of the record's kernel */
    uint32_t shared_config_size; /* shared-memory configuration the kernel ran with, in bytes */
    uint32_t block[3];
    uint32_t dynamic_shared; /* bytes */
    uint32_t registers;      /* per thread, as launched */
    bool in_graph;           /* a node of a graph */
};

#endif
