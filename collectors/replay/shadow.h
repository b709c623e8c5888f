/*
 * A copy of device memory whose cost depends on what changes. Memory is divided into blocks, each with a digest. Every
 * block that does not consist of one value has a copy. The copies stay from window to window, so that a save only
 * copies the blocks whose digests have changed, and a restore puts these back.
 *
 * Our own kernels read the memory, so use it only while no other work of the context runs, and no pass counts.
 * Errors: the driver's code. After a failed save the shadow holds nothing; after any other failure some memory may be
 * restored, and some not.
 * Threads: the caller serialises calls for one shadow, with its context current.
 */
#ifndef KP_COLLECTORS_REPLAY_SHADOW_H
#define KP_COLLECTORS_REPLAY_SHADOW_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collectors/facts/device.h"
#include "collectors/facts/driver.h"
#include "collectors/replay/slots.h"

/* Memory that is saved: 16-byte aligned, like all that the driver allocates. The device may read and write it. */
struct kp_part {
    CUdeviceptr at;
    size_t bytes;
    bool constant; /* of a module: the driver's own copies restore it, because constant caches miss a kernel's stores */
};

/* What the last call did, for reports. */
struct kp_shadow_work {
    size_t blocks, changed; /* examined, and found to differ */
    uint64_t copied;        /* bytes */
};

struct kp_shadow;

/* Returns true if the driver has the functions for this. */
bool kp_shadow_available(const struct kp_driver *d);

/* Makes an empty shadow for the current context; uses no device memory yet. */
CUresult kp_shadow_open(const struct kp_driver *d, const struct kp_device *device, const struct kp_threads *threads,
                        struct kp_shadow **out);

/* Saves the parts, which are sorted by address and do not overlap. Copies what has changed since the last save, and all
 * of parts that are new. CUDA_ERROR_OUT_OF_MEMORY: `room` is not enough. */
CUresult kp_shadow_save(struct kp_shadow *s, const struct kp_part *parts, size_t n, const struct kp_slot_room *room);

/* Restores the memory as it was at the save. */
CUresult kp_shadow_restore(struct kp_shadow *s);

/* Keep the current memory in addition to what was saved; restore that; forget it. */
CUresult kp_shadow_keep(struct kp_shadow *s, const struct kp_slot_room *room);
CUresult kp_shadow_put_back(struct kp_shadow *s);
void kp_shadow_forget_kept(struct kp_shadow *s);

struct kp_shadow_work kp_shadow_last(const struct kp_shadow *s);

/* Returns how much of the device's memory it uses, in bytes. */
uint64_t kp_shadow_held(const struct kp_shadow *s);
/* Returns what all shadows use on a device, or on any (negative). Any thread. */
uint64_t kp_shadow_held_on(CUdevice device);

/* Frees `bytes` of the device's memory, or slightly more, by moving copies to the host if that may use `host` bytes;
 * otherwise frees everything, and the next save copies everything. Other work may run meanwhile. */
void kp_shadow_give(struct kp_shadow *s, uint64_t bytes, uint64_t host);

/* Frees it. `context_alive` false: the context is gone, so only host memory is freed. NULL: nothing. */
void kp_shadow_close(struct kp_shadow *s, bool context_alive);

#endif
