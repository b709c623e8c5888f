#include "preload/doors/hostmem_doors.h"

#include "preload/gate/gate.h"
#include "preload/os/guard.h"
#include "preload/os/mappings.h"
#include "preload/process.h"
#include "preload/program/hostmem.h"

/* Enters the gate; `symbol` is the driver's function, which may close a window. */
static bool enter(const char *symbol)
{
    if (kp_guard || !kp_process_active())
        return false;
    kp_gate_enter_shared(symbol);
    kp_guard++;
    return true;
}

static void leave_gate(void)
{
    kp_guard--;
    kp_gate_leave_shared();
}

/* Allocates memory of ours instead of pinned memory. */
static bool make(void **p, size_t bytes)
{
    const struct kp_driver *d = kp_process_replays() ? kp_process_driver() : NULL;
    return d && kp_hostmem_make(d, p, bytes);
}

static CUresult noted_alloc(CUresult rc, void **p, size_t bytes)
{
    if (rc == CUDA_SUCCESS)
        kp_hostmem_note_pinned(*p, bytes);
    return rc;
}

CUresult kp_cuMemHostAlloc(PFN_cuMemHostAlloc_v2020 real, bool ptsz, void **p, size_t bytes, unsigned flags)
{
    /* These flags ask for properties that one address space always has, or for speed. */
    const unsigned known = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
    CUresult rc = CUDA_SUCCESS;
    (void)ptsz;
    if (!enter("cuMemHostAlloc"))
        return real(p, bytes, flags);
    if ((flags & ~known) || !make(p, bytes))
        rc = noted_alloc(real(p, bytes, flags), p, bytes);
    leave_gate();
    return rc;
}

CUresult kp_cuMemAllocHost(PFN_cuMemAllocHost_v3020 real, bool ptsz, void **p, size_t bytes)
{
    CUresult rc = CUDA_SUCCESS;
    (void)ptsz;
    if (!enter("cuMemAllocHost"))
        return real(p, bytes);
    if (!make(p, bytes))
        rc = noted_alloc(real(p, bytes), p, bytes);
    leave_gate();
    return rc;
}

CUresult kp_cuMemAllocHost_v1(kp_pfn_alloc_host_v1 real, bool ptsz, void **p, unsigned bytes)
{
    CUresult rc = CUDA_SUCCESS;
    (void)ptsz;
    if (!enter("cuMemAllocHost_v1"))
        return real(p, bytes);
    if (!make(p, bytes))
        rc = noted_alloc(real(p, bytes), p, bytes);
    leave_gate();
    return rc;
}

/* Frees memory. Other calls free memory of ours, too, so the gate may be unarmed. */
CUresult kp_cuMemFreeHost(PFN_cuMemFreeHost_v2000 real, bool ptsz, void *p)
{
    (void)ptsz;
    bool entered = enter("cuMemFreeHost");
    CUresult rc = kp_hostmem_free(real, p);
    if (entered)
        leave_gate();
    return rc;
}

/* Notes registered memory. NCCL and MPI map their shared memory segments this way; so is a tensor in /dev/shm. A
 * restore does not write to memory that the device only reads, such as a model's mapped file. Without replays this
 * is not needed. */
static void note_registered(const void *p, size_t bytes, bool rewound)
{
    bool shared = rewound && kp_process_replays() && kp_mappings_shared(p, bytes);
    kp_hostmem_note_registered(p, bytes, rewound, shared);
}

CUresult kp_cuMemHostRegister(PFN_cuMemHostRegister_v6050 real, bool ptsz, void *p, size_t bytes, unsigned flags)
{
    (void)ptsz;
    if (!enter("cuMemHostRegister"))
        return real(p, bytes, flags);
    CUresult rc = real(p, bytes, flags);
    if (rc == CUDA_SUCCESS)
        note_registered(p, bytes, !(flags & CU_MEMHOSTREGISTER_READ_ONLY));
    leave_gate();
    return rc;
}

CUresult kp_cuMemHostUnregister(PFN_cuMemHostUnregister_v4000 real, bool ptsz, void *p)
{
    (void)ptsz;
    bool entered = enter("cuMemHostUnregister");
    CUresult rc = kp_hostmem_unregister(real, p);
    if (entered)
        leave_gate();
    return rc;
}

/* KP_VENDOR: for an address inside a mapping the driver (580) returns the mapping's begin. */
CUresult kp_cuMemHostGetDevicePointer(PFN_cuMemHostGetDevicePointer_v3020 real, bool ptsz, CUdeviceptr *out, void *p,
                                      unsigned flags)
{
    (void)ptsz;
    if (!out || flags || !kp_hostmem_is_ours((uintptr_t)p))
        return real(out, p, flags);
    *out = (CUdeviceptr)(uintptr_t)p;
    return CUDA_SUCCESS;
}
