/*
 * Device memory of cuMemCreate that nothing has ever been mapped of: nobody can have written it, and when it is mapped,
 * there is no other way to it.
 *
 * Threads: any.
 */
#ifndef KP_PRELOAD_PROGRAM_UNMAPPED_RANGES_H
#define KP_PRELOAD_PROGRAM_UNMAPPED_RANGES_H

#include <cuda.h>
#include <stdbool.h>

/* Notes memory that was made as `what` says. That of the host, managed memory and memory of sparse
 * arrays are none of these. */
void kp_fresh_made(CUmemGenericAllocationHandle memory, const CUmemAllocationProp *what);

/* Notes that the memory was mapped, or given back. */
void kp_fresh_used(CUmemGenericAllocationHandle memory);

/* Whether it is such memory, of `device`. */
bool kp_fresh_is(CUmemGenericAllocationHandle memory, CUdevice device);

/* Forgets everything in a forked child, where CUDA is unusable. */
void kp_fresh_forked(void);

#endif
