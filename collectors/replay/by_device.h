/*
 * Sums by device: how much of its memory several contexts use. Threads: any.
 */
#ifndef KP_COLLECTORS_REPLAY_BY_DEVICE_H
#define KP_COLLECTORS_REPLAY_BY_DEVICE_H

#include <cuda.h>
#include <stdatomic.h>
#include <stdint.h>

/* Bytes; all zero at first. Devices beyond the last are not counted. */
struct kp_by_device {
    atomic_uint_fast64_t sums[64];
};

/* Returns the sum of a device; -1: of all devices. */
uint64_t kp_by_device_sum(const struct kp_by_device *b, CUdevice device);

/* Updates the part of one context: `*part`, its current share of the sum, becomes `now`. */
void kp_by_device_note(struct kp_by_device *b, CUdevice device, uint64_t *part, uint64_t now);

#endif
