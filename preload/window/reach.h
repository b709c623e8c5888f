/*
 * Host memory that a launch can reach, by the addresses among its copied arguments.
 */
#ifndef KP_PRELOAD_WINDOW_REACH_H
#define KP_PRELOAD_WINDOW_REACH_H

#include <stdbool.h>
#include <stddef.h>

#include "collectors/facts/driver.h"
#include "preload/program/launch.h"
#include "preload/window/snapshot.h"

/* Where kernels can read and write any memory of the host: whether an argument may be an address of such memory, which
 * CUDA does not know but this process has mapped. It cannot be rewound, as its extent is not known. */
bool kp_reach_heap(const struct kp_driver *d, const struct kp_launch *l);

/* Whether an argument is an address of pinned or registered memory. Such memory is added to `into` (NULL = not), up to
 * `most` byte in all; *kept is set to false where some could not be. */
bool kp_reach_host(const struct kp_driver *d, const struct kp_launch *l, struct kp_snapshot *into, size_t most,
                   bool *kept);

#endif
