/*
 * Device memory, streams, textures, surfaces and modules that the program frees, destroys and unloads while a window is
 * open: its repetitions still use them, so they end when the window has closed. Called inside the gate's exclusive
 * section, under kp_guard.
 */
#ifndef KP_PRELOAD_JOURNAL_DEFER_H
#define KP_PRELOAD_JOURNAL_DEFER_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collectors/facts/driver.h"

/* Keeps `memory`, the start of an allocation in context `ctx`, which is current, until kp_defer_free. Waits for the
 * context's work, like cuMemFree, unless `later`. Returns true with what the driver's call would have returned in
 * *answer. Returns false if the driver must be asked: the address is no start of an allocation, or is on another
 * device; the work has not ended within a second, or has failed. */
bool kp_defer_take(const struct kp_driver *d, CUcontext ctx, CUdeviceptr memory, bool later, CUresult *answer);

/* What the program destroys by its handle. */
enum kp_ended {
    KP_ENDED_STREAM,
    KP_ENDED_TEXTURE,
    KP_ENDED_SURFACE,
    KP_ENDED_MODULE,
    KP_ENDED_LIBRARY,
    KP_ENDED_KINDS
};

/* Keeps what the program destroys while context `ctx` is current; as above. Waits for the context's work only if
 * kp_defer_waits: before code goes. Nothing says that the driver does so for the rest. */
bool kp_defer_handle(const struct kp_driver *d, CUcontext ctx, enum kp_ended kind, uint64_t handle, CUresult *answer);
bool kp_defer_waits(enum kp_ended kind);

/* Notes that the program has a module of a library, which the driver refuses to unload: from then on no module is kept.
 * Threads: any. */
void kp_defer_no_modules(void);

/* Keeps memory of kprof's own, of cuMemAlloc in context `ctx`, until kp_defer_free. This is the one way to give such
 * memory back: it is cleared first, so that no allocation of the program shows what was in it. 0: nothing. */
void kp_defer_ours(CUcontext ctx, CUdeviceptr memory, size_t bytes);

/* Frees and destroys what was kept of `ctx`, which is current and has no work. Memory that the program freed in stream
 * order is freed that way and waited for: only then does its pool report less memory in use. Memory of ours stays while
 * a stream is being captured. */
void kp_defer_free(const struct kp_driver *d, CUcontext ctx);

/* Forgets what was kept of contexts that have ended, and their memory with them; NULL: all contexts, in a forked
 * child. */
void kp_defer_forget(bool (*of)(CUcontext ctx));

/* Returns true if an allocation has the driver's blocks to itself, so that freeing it gives back exactly its size.
 * Smaller allocations share a block, and what they give back depends on the rest of it. */
bool kp_defer_whole(CUdeviceptr memory, size_t bytes);

/* Adds to *bytes how much more device memory would be free without what is kept of any context. Returns false if that
 * is not known, as of streams and modules. */
bool kp_defer_gives(uint64_t *bytes);

/* Notes that the program asks for the current or peak size of a pool. From then on no pool memory is kept: the peak
 * would be higher than without us. Threads: any. */
void kp_defer_pools_asked(void);

/* Returns true if nothing that is kept can belong to a pool. */
bool kp_defer_none_of_pools(void);

/* Returns true if the address lies in memory that is kept, which the program has freed. Threads: any. */
bool kp_defer_has(CUdeviceptr address);

/* Returns true if the handle is kept, which the program has destroyed. Threads: any. */
bool kp_defer_has_handle(enum kp_ended kind, uint64_t handle);

#endif
