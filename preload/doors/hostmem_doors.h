/* The logic of the doors of host memory, named in doors.def. Threads: any. */
#ifndef KP_PRELOAD_DOORS_HOSTMEM_DOORS_H
#define KP_PRELOAD_DOORS_HOSTMEM_DOORS_H

#include <cuda.h>
#include <cudaTypedefs.h>
#include <stdbool.h>
#include <stddef.h>

#include "preload/doors/door_call.h"

/* cuMemAllocHost before version 3.2. */
typedef CUresult(CUDAAPI *kp_pfn_alloc_host_v1)(void **p, unsigned bytes);

/* Logic of the doors, named in doors.def. `real` is the driver's function. */
CUresult kp_cuMemFreeHost(PFN_cuMemFreeHost_v2000 real, bool ptsz, void *p);
CUresult kp_cuMemHostUnregister(PFN_cuMemHostUnregister_v4000 real, bool ptsz, void *p);

CUresult kp_cuMemHostGetDevicePointer(PFN_cuMemHostGetDevicePointer_v3020 real, bool ptsz, CUdeviceptr *out, void *p,
                                      unsigned flags);
CUresult kp_cuMemHostGetFlags(PFN_cuMemHostGetFlags_v2030 real, bool ptsz, unsigned *flags, void *p);
CUresult kp_cuMemGetAddressRange(PFN_cuMemGetAddressRange_v3020 real, bool ptsz, CUdeviceptr *base, size_t *bytes,
                                 CUdeviceptr p);
CUresult kp_cuPointerGetAttribute(PFN_cuPointerGetAttribute_v4000 real, bool ptsz, void *data, CUpointer_attribute what,
                                  CUdeviceptr p);
CUresult kp_cuPointerGetAttributes(PFN_cuPointerGetAttributes_v7000 real, bool ptsz, unsigned n,
                                   CUpointer_attribute *what, void **data, CUdeviceptr p);

/* The logic of the rows. */
#define KP_GATED KP_GATED_HEAD
#include "preload/doors/hostmem_doors.def"
#undef KP_GATED

#endif
