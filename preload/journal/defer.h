/*
 * Device memory and streams that the program frees and destroys while a window is open: its repetitions still use them,
 * so they end when the window has closed. Called inside the gate's exclusive section, under kp_guard.
 */
#ifndef KP_PRELOAD_JOURNAL_DEFER_H
#define KP_PRELOAD_JOURNAL_DEFER_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collectors/facts/driver.h"

/* Keeps `memory`, the begin of an allocation in context `ctx`, which is current, until kp_defer_free. Waits for the
 * context's work, as cuMemFree does; with `later` it does not. Returns true with what the driver's call would have
 * returned in *answer; false where the driver must be asked: it is no such address, or of another device, whose free
 * memory it would be; the work has not ended within a second, or it has failed. */
bool kp_defer_take(const struct kp_driver *d, CUcontext ctx, CUdeviceptr memory, bool later, CUresult *answer);

/* Keeps a stream of context `ctx`, which is current, that the program destroys; as above. */
bool kp_defer_stream(const struct kp_driver *d, CUcontext ctx, CUstream stream, CUresult *answer);

/* Keeps memory of ours, which work of context `ctx` that does not end may still use. */
void kp_defer_ours(CUcontext ctx, CUdeviceptr memory);

/* Frees and destroys what was kept of `ctx`, which is current and has no work. What the program has freed in the order
 * of a stream is freed so, and waited for: only then does its pool tell less memory as used. */
void kp_defer_free(const struct kp_driver *d, CUcontext ctx);

/* Forgets what was kept of contexts that have ended, and their memory with them; NULL: of all, in a forked child. */
void kp_defer_forget(bool (*of)(CUcontext ctx));

/* Whether an allocation fills blocks of the driver's alone: freed, it gives back what it takes, to the byte. Smaller
 * ones share a block, and what they give back depends on others. */
bool kp_defer_whole(CUdeviceptr memory, size_t bytes);

/* Adds to *bytes how much more device memory would be free without what is kept of any context. False: that is not
 * known. */
bool kp_defer_gives(uint64_t *bytes);

/* The program asks how much memory a pool has, or had at most. From then on none of pools is kept: the most would be
 * more than without us. Threads: any. */
void kp_defer_pools_asked(void);

/* Whether none of what is kept can be of a pool. */
bool kp_defer_none_of_pools(void);

/* Whether the address lies in memory that is kept: for the program it has ended. Threads: any. */
bool kp_defer_has(CUdeviceptr address);

#endif
