/*
 * Finds host memory that a launch can reach, by the addresses among its copied arguments.
 */
#ifndef KP_PRELOAD_GRAPHS_HOST_POINTERS_H
#define KP_PRELOAD_GRAPHS_HOST_POINTERS_H

#include <stdbool.h>
#include <stddef.h>

#include "preload/journal/state.h"

/* Whether an argument may be an address that CUDA does not know but this process has mapped. Relevant where kernels
 * can reach all host memory. A restore cannot rewind such memory, as its extent is unknown. */
bool kp_reach_heap(const struct kp_driver *d, const struct kp_launch *l);

/* Whether an argument is an address of pinned or registered memory. Adds such memory to `into` (NULL: not), up to
 * `most` byte in total, and sets *kept to false if that fails. */
bool kp_reach_host(const struct kp_driver *d, const struct kp_launch *l, struct kp_snapshot *into, size_t most,
                   bool *kept);

/* Lists the pages of memory of the context `ctx` that an argument points into, `most` entries at most. Leaves out what
 * is not plain device memory: reading it could move it, or fail. Returns how many entries. */
size_t kp_reach_pages(const struct kp_driver *d, CUcontext ctx, const struct kp_launch *l, struct kp_pages *out,
                      size_t most);

/* ---- host memory that kernels leave alone ---- */

/* Adds the host memory that a launch can reach, of a function that was not seen to write any, to the window's. False:
 * it is too much to compare at each launch, or it has changed since an earlier launch of the window, which repetitions
 * would not find. */
bool kp_reach_joins(struct kp_window *w, const struct kp_launch *l);

/* Whether the window's host memory is too much to compare at each launch. */
bool kp_reach_is_much(const struct kp_window *w);

/* Notes of the function of `l`, a launch of the window that has ended, whether that memory is as it was before. */
void kp_reach_learn(struct kp_window *w, const struct kp_launch *l, struct kp_known_function *f);

#endif
