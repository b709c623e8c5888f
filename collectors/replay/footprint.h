/* Checks if the memory that a replay must save fits anywhere. */
#ifndef KP_COLLECTORS_REPLAY_FOOTPRINT_H
#define KP_COLLECTORS_REPLAY_FOOTPRINT_H

#include <stdbool.h>
#include <stdint.h>

#include "collectors/facts/driver.h"
#include "report/model/reasons.h"

/* Returns how much of a device with `total` bytes stays free while a window is open, in bytes. */
uint64_t kp_footprint_margin(uint64_t total);

/* Returns true if a copy of the device memory in use fits into its free part and, beyond that, into the free memory of
 * the host, and is made there in at most `most_ns` (0: no limit). If not, *why says so, for kp_why_free. When memory
 * runs out, the checkpoint library would use files, and fill the disk. */
bool kp_footprint_fits(const struct kp_driver *d, uint64_t most_ns, struct kp_why *why);

/* Reserves some of the device's memory if a copy of the memory in use would fill it. The checkpoint library uses all
 * of it before host memory; but without a free part the profiler cannot start. The reserved part has no address, so
 * it is not saved. Release it with cuMemRelease once the copy is made. False: nothing was reserved. */
bool kp_footprint_reserve(const struct kp_driver *d, CUdevice device, CUmemGenericAllocationHandle *out);

/* Returns how much host memory a copy may use, in bytes: some of what is free is left to the program. */
uint64_t kp_footprint_host_share(void);

/* Returns the host memory that this process may still use, in bytes: the system's available memory, or the rest of the
 * control group's limit. `root` is put before the paths read ("" for the system's own). */
uint64_t kp_footprint_host(const char *root);

#endif
