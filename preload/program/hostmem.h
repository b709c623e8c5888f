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
#include <cudaTypedefs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* cuMemAllocHost of before version 3.2. */
typedef CUresult(CUDAAPI *kp_pfn_alloc_host_v1)(void **p, unsigned bytes);

/* Logic of the doors, named in doors.def. `real` is the function behind the door. */
CUresult kp_cuMemHostAlloc(PFN_cuMemHostAlloc_v2020 real, bool ptsz, void **p, size_t bytes, unsigned flags);
CUresult kp_cuMemAllocHost(PFN_cuMemAllocHost_v3020 real, bool ptsz, void **p, size_t bytes);
CUresult kp_cuMemAllocHost_v1(kp_pfn_alloc_host_v1 real, bool ptsz, void **p, unsigned bytes);
CUresult kp_cuMemFreeHost(PFN_cuMemFreeHost_v2000 real, bool ptsz, void *p);
CUresult kp_cuMemHostRegister(PFN_cuMemHostRegister_v6050 real, bool ptsz, void *p, size_t bytes, unsigned flags);
CUresult kp_cuMemHostUnregister(PFN_cuMemHostUnregister_v4000 real, bool ptsz, void *p);

CUresult kp_cuMemHostGetDevicePointer(PFN_cuMemHostGetDevicePointer_v3020 real, bool ptsz, CUdeviceptr *out, void *p,
                                      unsigned flags);

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
