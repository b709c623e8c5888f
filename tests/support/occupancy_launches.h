/* The recorded launches of occupancy_launches.def, for the tests of the occupancy calculation and of the launch
 * metrics. */
#ifndef KP_TESTS_SUPPORT_OCCUPANCY_LAUNCHES_H
#define KP_TESTS_SUPPORT_OCCUPANCY_LAUNCHES_H

#include <stddef.h>
#include <stdint.h>

#include "collectors/facts/device.h"

/* One row, in the order of its columns. */
struct kp_test_launch {
    const struct kp_device *device;
    const char *kernel;
    uint32_t grid, threads, registers;
    uint64_t static_shared, dynamic_shared, shared_config;
    uint32_t barrier_limit, registers_allocated;
    uint32_t limit_registers, limit_shared, limit_warps, limit_blocks;
    double warps, percent; /* percent with two decimals */
    const char *waves;
};

extern const struct kp_device kp_test_h200, kp_test_cc86, kp_test_a100, kp_test_b200;
extern const struct kp_test_launch kp_test_launches[];
extern const size_t kp_test_n_launches;

#endif
