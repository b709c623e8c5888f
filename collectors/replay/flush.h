/*
 * Cache control: what stands in the caches is replaced by clean lines that are none of the program's, and the
 * instruction caches are emptied, as Nsight Compute does before each pass.
 *
 * A kernel that reads a large buffer would do, but the profiler would count it as a range of its own, at the price of
 * one. A copy is no range. Its destination is a range of addresses behind which one and the same small piece of memory
 * stands again and again, so that what it leaves modified is no more than that piece: reads of twice the L2 evict
 * everything else. On the H200 DRAM bytes and hit rates are then those of Nsight Compute.
 */
#ifndef KP_COLLECTORS_REPLAY_FLUSH_H
#define KP_COLLECTORS_REPLAY_FLUSH_H

#include "collectors/facts/device.h"

struct kp_flush;

/* Prepares for the current context. Returns CUDA_SUCCESS or the driver's code. */
CUresult kp_flush_open(const struct kp_driver *d, const struct kp_device *device, struct kp_flush **out);
/* Gives everything back. `context_alive` false: only the host's memory. */
void kp_flush_close(struct kp_flush *f, bool context_alive);

/* Flushes in `stream`: what is launched there next finds cold caches, provided that the context has nothing else to do.
 * The first one after kp_flush_give takes device memory: twice the L2, less when memory is short. */
CUresult kp_flush_run(struct kp_flush *f, CUstream stream);

/* Whether kp_flush_run launches a kernel, because memory cannot be mapped twice here (known after the first run). */
bool kp_flush_is_kernel(const struct kp_flush *f);

/* Gives the device memory back: it is held only while a window is replayed, so that the program finds its memory as
 * large as without kprof. */
void kp_flush_give(struct kp_flush *f);

#endif
