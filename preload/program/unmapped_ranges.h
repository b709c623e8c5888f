/*
 * Device memory of cuMemCreate that was never mapped: nobody can have written it, and once it is mapped, there is no
 * other way to it.
 *
 * Threads: any.
 */
#ifndef KP_PRELOAD_PROGRAM_UNMAPPED_RANGES_H
#define KP_PRELOAD_PROGRAM_UNMAPPED_RANGES_H

#include <cuda.h>
#include <stdbool.h>

/* Notes memory that was made as `what` says. Host memory, managed memory and memory of sparse arrays do not count. */
void kp_fresh_made(CUmemGenericAllocationHandle memory, const CUmemAllocationProp *what);

/* Notes that the memory was mapped, or given back. */
void kp_fresh_used(CUmemGenericAllocationHandle memory);

/* Returns true if it is such memory on `device`. */
bool kp_fresh_is(CUmemGenericAllocationHandle memory, CUdevice device);

/* Forgets everything in a forked child, where CUDA is unusable. */
void kp_fresh_forked(void);

#endif
