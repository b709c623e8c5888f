/* How launches are counted, and what is learnt of one while it runs. */
#ifndef KP_COLLECTORS_MODEL_LAUNCHES_H
#define KP_COLLECTORS_MODEL_LAUNCHES_H

#include <stdint.h>

/* Auto range: one range a kernel, whose durations are those of the kernel; each launch then waits for its kernel.
 * User range: one for everything between push and pop; needed for graphs, which auto range does not see. */
enum kp_range_mode { KP_RANGE_AUTO, KP_RANGE_USER };

/* What only an activity record tells of a launch. */
struct kp_executed {
    char name[512];              /* mangled name (truncated) of the kernel the record is of */
    uint32_t shared_config_size; /* shared-memory configuration the kernel ran with, byte */
    uint32_t block[3];
    uint32_t dynamic_shared; /* byte */
    uint32_t registers;      /* a thread, as launched */
};

#endif
