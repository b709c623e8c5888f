/*
 * Host memory that the device can reach. CUPTI's checkpoint saves and restores pinned host memory with the device's,
 * and would so undo what the program wrote to it meanwhile (a loader thread filling the next batch). It leaves host
 * memory of the virtual memory management functions alone (measured), which otherwise looks and behaves the same: so
 * pinned allocations of the program are made of that.
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

/* Makes memory of ours, *p, instead of pinned memory of the current context. False: it could not be made, and the
 * driver is to be asked. */
bool kp_hostmem_make(const struct kp_driver *d, void **p, size_t bytes);
/* Frees memory of ours, or through the driver's function `real` what is none. */
CUresult kp_hostmem_free(CUresult (*real)(void *p), void *p);

/* Memory that the driver has pinned, or registered as `shared` with other processes. `rewound`: by a restore. */
void kp_hostmem_note_pinned(const void *p, size_t bytes);
void kp_hostmem_note_registered(const void *p, size_t bytes, bool rewound, bool shared);
CUresult kp_hostmem_unregister(CUresult (*real)(void *p), void *p);

bool kp_hostmem_is_ours(uint64_t address);

/* Whether there is pinned or registered memory that a restore would rewind: what could not be replaced. Memory that
 * ended with its context counts until something else is found at its address. */
bool kp_hostmem_rewound(void);

/* Whether some of that is mapped so that other processes may have it too: what they write would be undone. */
bool kp_hostmem_shared(void);

/* The allocation or registration that `address` lies in, with the size that the program asked for. False: none known.
 */
bool kp_hostmem_find(uint64_t address, void **base, size_t *bytes);

/* In a forked child: forgets everything, as CUDA is of no use there. */
void kp_hostmem_forked(void);

#endif
