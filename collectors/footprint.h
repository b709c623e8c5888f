/* Whether the memory that a replay must save fits anywhere. */
#ifndef KP_COLLECTORS_FOOTPRINT_H
#define KP_COLLECTORS_FOOTPRINT_H

#include <stdbool.h>
#include <stdint.h>

#include "collectors/driver.h"

/* Whether a copy of the device memory in use fits into what is free of it and, beyond that, of the host's memory. If
 * not, *why is a malloc'ed line. The checkpoint library would go on to files, and fill the disk. */
bool kp_footprint_fits(const struct kp_driver *d, char **why);

/* The host memory that this process may still take, byte: what the system has available, or what is left of the
 * control group's limit. `root` is put before the paths read ("" for the system's own). */
uint64_t kp_footprint_host(const char *root);

#endif
