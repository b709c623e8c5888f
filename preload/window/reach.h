/*
 * Finds host memory that a launch can reach, by the addresses among its copied arguments.
 */
#ifndef KP_PRELOAD_WINDOW_REACH_H
#define KP_PRELOAD_WINDOW_REACH_H

#include <stdbool.h>
#include <stddef.h>

#include "collectors/facts/driver.h"
#include "preload/program/launch.h"
#include "preload/window/snapshot.h"

/* Whether an argument may be an address that CUDA does not know but this process has mapped. Relevant where kernels
 * can reach all host memory. A restore cannot rewind such memory, as its extent is unknown. */
bool kp_reach_heap(const struct kp_driver *d, const struct kp_launch *l);

/* Whether an argument is an address of pinned or registered memory. Adds such memory to `into` (NULL: not), up to
 * `most` byte in total, and sets *kept to false if that fails. */
bool kp_reach_host(const struct kp_driver *d, const struct kp_launch *l, struct kp_snapshot *into, size_t most,
                   bool *kept);

#endif
