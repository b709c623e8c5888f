/*
 * Cache control: gives a launch or a range cold caches, instruction caches included, like Nsight Compute before each
 * pass.
 *
 * Before a launch the L2 is filled with clean lines that are not the program's. A kernel that reads a large buffer
 * would do that, but the profiler counts a kernel as a range, at the cost of a range; a copy is no range. One small
 * piece of memory is mapped at all addresses of its destination, so that the copy leaves only that piece modified. Its
 * reads of twice the L2 evict everything else. On the H200 DRAM bytes and hit rates then match Nsight Compute.
 *
 * Before a range the L2 is emptied, as under Nsight Compute (see evict.h): what copies of the range bring into a full
 * L2 would be read from DRAM again. Before each launch that would cost 1 ms.
 */
#ifndef KP_COLLECTORS_REPLAY_FLUSH_H
#define KP_COLLECTORS_REPLAY_FLUSH_H

#include "collectors/facts/device.h"

struct kp_flush;

/* Prepares for the current context. Returns CUDA_SUCCESS or the driver's code. */
CUresult kp_flush_open(const struct kp_driver *d, const struct kp_device *device, struct kp_flush **out);
/* Frees everything. `context_alive` false: only the host's memory. */
void kp_flush_close(struct kp_flush *f, bool context_alive);

enum kp_flush_how { KP_FLUSH_FILL, KP_FLUSH_EMPTY };

/* Flushes in `stream`: the next launch there finds cold caches, if the context has nothing else to do. KP_FLUSH_EMPTY
 * waits for the context; if the kernel driver refuses it, the L2 is filled instead. Filling allocates device memory in
 * the first call after kp_flush_give: twice the L2, less if memory is short. */
CUresult kp_flush_run(struct kp_flush *f, CUstream stream, enum kp_flush_how how);

/* Pages of device memory, each KP_PAGE_BYTES long. `at` is the address of a readable word in the first one; the word at
 * the same offset in each of the others must be readable, too. */
enum { KP_PAGE_BYTES = 2 << 20 };
struct kp_pages {
    CUdeviceptr at;
    size_t n;
};

/* Reads a word of each page in `stream`, so that the GPU has their translations, as when a launch runs alone. Fills no
 * cache except for 32 bytes per page. Does nothing if the flush is a kernel. Returns the driver's error. */
CUresult kp_flush_touch(struct kp_flush *f, CUstream stream, const struct kp_pages *pages, size_t n);

/* Returns true if kp_flush_run launches a kernel, because memory cannot be mapped twice here (known after the first
 * call). */
bool kp_flush_is_kernel(const struct kp_flush *f);

/* Frees the device memory. It is allocated only while a window is replayed, so that the program finds as much free
 * memory as without kprof. */
void kp_flush_give(struct kp_flush *f);
/* Returns how much of a device's memory all flushes use, in bytes. */
uint64_t kp_flush_held_on(CUdevice device);

#endif
