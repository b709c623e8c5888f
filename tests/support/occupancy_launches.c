#include "tests/support/occupancy_launches.h"

/* Device attributes from the driver (occupancy facts, and NVIDIA's table of technical specifications for each compute
 * capability). */
#define DEVICE(major, minor, sms, warps, blocks, shared)                                                               \
    {                                                                                                                  \
        .cc_major = major, .cc_minor = minor, .sm_count = sms, .warp_size = 32, .max_warps = warps,                    \
        .max_blocks = blocks, .registers = 65536, .schedulers = 4, .shared_per_sm = shared, .shared_per_block = 49152, \
        .shared_per_block_optin = shared - 1024, .reserved_shared = 1024                                               \
    }

const struct kp_device kp_test_h200 = DEVICE(9, 0, 132, 64, 32, 233472);
const struct kp_device kp_test_cc86 = DEVICE(8, 6, 28, 48, 16, 102400);
const struct kp_device kp_test_a100 = DEVICE(8, 0, 108, 64, 32, 167936);
const struct kp_device kp_test_b200 = DEVICE(10, 0, 148, 64, 32, 233472);

#define H200 &kp_test_h200
#define CC86 &kp_test_cc86
#define A100 &kp_test_a100

const struct kp_test_launch kp_test_launches[] = {
#define KP_LAUNCH(device, ...) {device, __VA_ARGS__},
#include "tests/support/occupancy_launches.def"
};

const size_t kp_test_n_launches = sizeof(kp_test_launches) / sizeof(*kp_test_launches);
