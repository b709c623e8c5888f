/*
 * Finds host memory that a launch can reach, by the addresses among its copied arguments.
 */
#ifndef KP_PRELOAD_GRAPHS_HOST_POINTERS_H
#define KP_PRELOAD_GRAPHS_HOST_POINTERS_H

#include <stdbool.h>
#include <stddef.h>

#include "collectors/replay/flush.h"
#include "preload/program/host_snapshot.h"
#include "preload/program/launch.h"

/* Returns true if an argument may be an address that CUDA does not know but this process has mapped. Relevant if
 * kernels can reach all host memory. A restore cannot rewind such memory, because its extent is unknown. */
bool kp_reach_heap(const struct kp_driver *d, const struct kp_launch *l);

/* Returns true if an argument is an address of pinned or registered memory. Adds such memory to `into` (if not NULL),
 * up to `most` bytes in total, and sets *kept to false if that fails. */
bool kp_reach_host(const struct kp_driver *d, const struct kp_launch *l, struct kp_snapshot *into, size_t most,
                   bool *kept);

/* Lists the pages of memory of the context `ctx` that an argument points into, `most` entries at most. Leaves out what
 * is not plain device memory: reading it could move it, or fail. Returns the number of entries. */
size_t kp_reach_pages(const struct kp_driver *d, CUcontext ctx, const struct kp_launch *l, struct kp_pages *out,
                      size_t most);

/* Returns true if all host memory that a launch can reach is in a snapshot, and unchanged since. Missing memory is
 * added, up to `most` bytes in all. */
bool kp_reach_compare(const struct kp_driver *d, const struct kp_launch *l, struct kp_snapshot *with, size_t most);

#endif
