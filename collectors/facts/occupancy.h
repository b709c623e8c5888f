/*
 * The occupancy calculation: how many blocks of a launch fit on one multiprocessor, and which limit binds. Pure
 * arithmetic. Formulas: CUDA's occupancy rules, checked against every launch of the H200, A100 and CC 8.6
 * references.
 */
#ifndef KP_COLLECTORS_FACTS_OCCUPANCY_H
#define KP_COLLECTORS_FACTS_OCCUPANCY_H

#include <stddef.h>
#include <stdint.h>

/* Named barriers of a multiprocessor, shared by its blocks. Fitted to the curves that ncu prints for the H200. */
enum { KP_BARRIERS_PER_SM = 64 };

struct kp_occupancy_in {
    int cc_major;
    uint32_t warp_size, schedulers;
    uint32_t max_warps, max_blocks; /* per multiprocessor */
    uint32_t registers;             /* per multiprocessor */
    uint32_t reserved_shared;       /* bytes per block, used by the driver */
    /* In bytes, used only for curves: per multiprocessor, per block, per block with opt-in. */
    uint64_t shared_per_sm, shared_per_block, shared_per_block_optin;
    uint32_t block_threads;
    uint32_t registers_per_thread;
    uint64_t static_shared, dynamic_shared; /* bytes per block */
    uint64_t shared_config;                 /* bytes per multiprocessor; 0 = unknown */
    uint32_t barrier_limit;                 /* blocks that the named barriers allow; 0 = unknown */
    uint32_t driver_blocks; /* resident blocks as the driver computes them; used if a limit is unknown */
};

struct kp_occupancy {
    uint32_t warps_per_block;
    uint32_t registers_per_thread_allocated;
    uint64_t shared_per_block, shared_per_block_allocated; /* bytes, the driver's part included */
    uint32_t limit_registers, limit_warps, limit_blocks;   /* blocks */
    uint32_t limit_shared;                                 /* blocks; meaningless if shared_config is 0 */
    uint32_t blocks;                                       /* resident blocks per multiprocessor */
    double warps, warps_per_scheduler, percent;            /* theoretical active warps; % of max_warps */
};

void kp_occupancy_compute(const struct kp_occupancy_in *in, struct kp_occupancy *out);

/* Curves: theoretical active warps if one property of the launch were different. */
enum kp_curve {
    KP_CURVE_REGISTERS, /* per thread: 0, 1 ... 256 */
    KP_CURVE_THREADS,   /* per block: 0 (counts as one warp), 16 ... 1024 */
    KP_CURVE_SHARED,    /* bytes per block, the driver's part included: 0, 512 ... below a multiprocessor's total */
    KP_CURVE_BARRIERS,  /* per block: 0, 1 ... 64 */
    KP_CURVES,
};

enum { KP_CURVE_POINTS = 512 }; /* no curve has more */

/* Writes the curve's points, active warps per multiprocessor, to warps[KP_CURVE_POINTS]; point i is at i * *step.
 * Returns their number. An unknown limit does not bind. Formulas: they reproduce every point of the curves of 14
 * launches on an H200. */
size_t kp_occupancy_curve(const struct kp_occupancy_in *in, enum kp_curve curve, uint32_t *warps, uint32_t *step);

/* Returns the resident blocks for `threads` threads and `shared` bytes (without the driver's part). Only registers,
 * warps, the block limit and `shared_capacity` bytes per multiprocessor limit them. The driver would answer the same
 * for a kernel without named barriers. */
uint32_t kp_occupancy_without_barriers(const struct kp_occupancy_in *in, uint32_t threads, uint64_t shared,
                                       uint64_t shared_capacity);

#endif
