/*
 * The kernels that find out which blocks of device memory have changed, and that copy blocks. They are compiled when
 * first needed, and run in a stream of their own; calls wait for it.
 *
 * Errors: the driver's code. Threads: the caller serialises calls, with the context current and idle.
 */
#ifndef KP_COLLECTORS_REPLAY_SCAN_H
#define KP_COLLECTORS_REPLAY_SCAN_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collectors/facts/driver.h"
#include "collectors/replay/vmem.h"

/* Bytes of a block, as the kernel needs them; the last block of a part may have fewer. */
enum { KP_BLOCK_BYTES = 64 << 10 };

/* A block in the table on the device. `bytes` is a multiple of 16; `constant` is not for the kernel: how many bytes the
 * driver copies back, or 0. */
struct kp_block {
    uint64_t at;
    uint32_t bytes, constant;
};

/* One copy. `repeats`: the 16 bytes at `from` fill all of `to`. */
struct kp_move {
    uint64_t to, from;
    uint32_t bytes, repeats;
};

/* Bytes that the device has for each block: its digest, and its first 16 bytes. */
enum { KP_DIGEST_BYTES = 32, KP_UNIT_BYTES = 16 };

/* A table of digests and first values, one entry per block. */
struct kp_digests {
    CUdeviceptr digests, units;
};

/* What a scan found: the number of a block; the top bit is set if it consists of one value. */
enum { KP_FOUND_UNIFORM = 31 };

struct kp_scan;

/* Makes the kernels for a device with `sms` multiprocessors. */
CUresult kp_scan_open(const struct kp_driver *d, CUdevice device, unsigned sms, struct kp_scan **out);

/* Scans `n` blocks into `now`, and compares them with `before`. *found (room for n) gets the blocks that differ, in any
 * order, *n_found their number. `list` has room for n numbers on the device. */
CUresult kp_scan_run(struct kp_scan *s, CUdeviceptr blocks, uint32_t n, const struct kp_digests *before,
                     const struct kp_digests *now, CUdeviceptr list, uint32_t *found, uint32_t *n_found);

/* Makes moves, which must not depend on each other, and waits for them. */
CUresult kp_scan_move(struct kp_scan *s, const struct kp_move *moves, size_t n);

/* Returns how much of the device's memory this uses, in bytes. */
uint64_t kp_scan_held(const struct kp_scan *s);

void kp_scan_close(struct kp_scan *s, bool context_alive);

#endif
