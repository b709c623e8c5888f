/* Whether the memory that a replay must save fits anywhere. */
#ifndef KP_COLLECTORS_REPLAY_FOOTPRINT_H
#define KP_COLLECTORS_REPLAY_FOOTPRINT_H

#include <stdbool.h>
#include <stdint.h>

#include "collectors/facts/driver.h"

/* Whether a copy of the device memory in use fits into its free part and, beyond that, into the free memory of the
 * host. If not, *why is a malloc'ed line. The checkpoint library would then go on to files, and fill the disk. */
bool kp_footprint_fits(const struct kp_driver *d, char **why);

/* Takes some of the device's memory where a copy of what is in use would fill it. The checkpoint library takes all
 * there is before it goes on to host memory; without a free part the profiler cannot start. The part has no address,
 * so it is not saved. Give it back with cuMemRelease once the copy is made. False: nothing was taken. */
bool kp_footprint_reserve(const struct kp_driver *d, CUdevice device, CUmemGenericAllocationHandle *out);

/* The host memory that this process may still take, byte: what the system has available, or what is left of the
 * control group's limit. `root` is put before the paths read ("" for the system's own). */
uint64_t kp_footprint_host(const char *root);

#endif
