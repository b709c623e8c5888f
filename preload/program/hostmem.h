/*
 * Host memory that the device can reach. CUPTI's checkpoint saves and restores pinned host memory along with the
 * device's, and would undo what the program wrote meanwhile (a loader thread that fills the next batch). It leaves
 * alone host memory of the virtual memory management functions (measured), which otherwise looks and behaves the same,
 * so the program's pinned allocations are made of that.
 *
 * Threads: any.
 */
#ifndef KP_PRELOAD_PROGRAM_HOSTMEM_H
#define KP_PRELOAD_PROGRAM_HOSTMEM_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collectors/facts/driver.h"

/* What the program would learn about pinned memory that is ours. */
struct kp_hostmem_facts {
    uint64_t base;
    size_t bytes;   /* as requested */
    unsigned flags; /* likewise, of cuMemHostAlloc */
};

/* For kp_hostmem_make, in addition to the flags of cuMemHostAlloc: kprof uses the memory itself, and the program never
 * sees it. */
#define KP_HOSTMEM_INTERNAL 0x80000000u

/* Makes memory of ours, *p, instead of pinned memory of the current context. Returns false if the driver must make
 * it. */
bool kp_hostmem_make(const struct kp_driver *d, void **p, size_t bytes, unsigned flags);
/* Returns true if it can be made here. */
bool kp_hostmem_can_make(const struct kp_driver *d);
/* Frees memory of ours, or any other memory through the driver's function `real`. Memory of ours that is freed while a
 * window is open that will be replayed lives until kp_hostmem_window_closed. */
CUresult kp_hostmem_free(CUresult (*real)(void *p), void *p);
/* Returns true if an open window can keep the memory at `p` when the program frees it: it is ours, and not too much is
 * kept already. */
bool kp_hostmem_may_keep(const void *p);
/* Frees what a window has kept. Without `ended`, its work may still use that: it goes with what is freed next, which
 * waits for the GPU. */
void kp_hostmem_window_closed(bool ended);

/* Note memory that the driver has pinned, or registered as `shared` with other processes. `rewound`: a restore
 * rewinds it. */
void kp_hostmem_note_pinned(const void *p, size_t bytes);
void kp_hostmem_note_registered(const void *p, size_t bytes, bool rewound, bool shared);
CUresult kp_hostmem_unregister(CUresult (*real)(void *p), void *p);

bool kp_hostmem_is_ours(uint64_t address);
/* The same; *facts of it. */
bool kp_hostmem_ours(uint64_t address, struct kp_hostmem_facts *facts);

/* Returns true if the address lies in a mapping of ours, but in nothing that the program has: after the end of its
 * memory, or in freed memory. */
bool kp_hostmem_is_gap(uint64_t address);

/* Returns true if the program has any pinned or registered memory. Without a lock. */
bool kp_hostmem_any(void);

/* Returns true if a restore would rewind pinned or registered memory that could not be replaced. Memory that ended with
 * its context counts until something else appears at its address. */
bool kp_hostmem_rewound(void);

/* Returns true if other processes may share some of that memory: a restore would undo their writes. */
bool kp_hostmem_shared(void);

/* Returns the allocation or registration around `address`, with the size that the program requested. Returns false if
 * none is known. */
bool kp_hostmem_find(uint64_t address, void **base, size_t *bytes);

/* Forgets everything in a forked child, where CUDA is unusable. */
void kp_hostmem_forked(void);

#endif
