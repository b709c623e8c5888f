#include "preload/doors/hostmem_doors.h"

#include "base/work.h"
#include "preload/doors/way_in.h"
#include "preload/gate/gate.h"
#include "preload/os/guard.h"
#include "preload/os/mappings.h"
#include "preload/process/process.h"
#include "preload/program/hostmem.h"
#include "preload/journal/defer.h"

/* Enters the gate; `symbol` is the driver's function, which may close a window. */
static bool enter(const char *symbol)
{
    if (kp_guard)
        kp_work_reclaim();
    if (kp_guard || !kp_process_active())
        return false;
    kp_door_enter_shared(symbol);
    kp_guard++;
    return true;
}

static void leave_gate(void)
{
    kp_guard--;
    kp_gate_leave_shared();
}

/* Allocates memory of ours instead of pinned memory. */
static bool make(void **p, size_t bytes, unsigned flags)
{
    const struct kp_driver *d = kp_process_replays() ? kp_process_driver() : NULL;
    kp_work_begin();
    kp_work_takes_long();
    bool made = d && kp_hostmem_make(d, p, bytes, flags);
    kp_work_end();
    return made;
}

static CUresult noted_alloc(CUresult rc, void **p, size_t bytes)
{
    kp_work_begin();
    if (rc == CUDA_SUCCESS)
        kp_hostmem_note_pinned(*p, bytes);
    kp_work_end();
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
    if ((flags & ~known) || !make(p, bytes, flags))
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
    if (!make(p, bytes, 0))
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
    if (!make(p, bytes, 0))
        rc = noted_alloc(real(p, bytes), p, bytes);
    leave_gate();
    return rc;
}

/* Frees memory. Other calls free memory of ours, too, so the gate may be unarmed. */
CUresult kp_cuMemFreeHost(PFN_cuMemFreeHost_v2000 real, bool ptsz, void *p)
{
    (void)ptsz;
    bool entered = enter("cuMemFreeHost");
    kp_work_begin();
    CUresult rc = kp_hostmem_free(real, p);
    kp_work_end();
    if (entered)
        leave_gate();
    return rc;
}

/* Notes registered memory. NCCL and MPI map their shared memory segments this way; so is a tensor in /dev/shm. A
 * restore does not write to memory that the device only reads, such as a model's mapped file. Without replays this
 * is not needed. */
static void note_registered(const void *p, size_t bytes, bool rewound)
{
    kp_work_begin();
    bool shared = rewound && kp_process_replays() && kp_mappings_shared(p, bytes);
    kp_hostmem_note_registered(p, bytes, rewound, shared);
    kp_work_end();
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
    kp_work_begin();
    CUresult rc = kp_hostmem_unregister(real, p);
    kp_work_end();
    if (entered)
        leave_gate();
    return rc;
}

/* ---- what the driver tells of memory: of ours it knows the mapping, of which the program's memory is a part ---- */

/* Returns the address to ask the driver of: one that is none of its own, in the place of one that the program does not
 * have, or no more. The driver's own answer is then what it would have been. */
static CUdeviceptr as_program_has(CUdeviceptr p)
{
    static const char none;
    return kp_hostmem_is_gap(p) || kp_defer_has(p) ? (CUdeviceptr)(uintptr_t)&none : p;
}

static void *as_program_has_host(void *p)
{
    return (void *)(uintptr_t)as_program_has((CUdeviceptr)(uintptr_t)p);
}

/* KP_VENDOR: for an address inside a mapping the driver (580) returns the mapping's begin. */
CUresult kp_cuMemHostGetDevicePointer(PFN_cuMemHostGetDevicePointer_v3020 real, bool ptsz, CUdeviceptr *out, void *p,
                                      unsigned flags)
{
    (void)ptsz;
    if (!out || flags || !kp_hostmem_is_ours((uintptr_t)p))
        return real(out, as_program_has_host(p), flags);
    *out = (CUdeviceptr)(uintptr_t)p;
    return CUDA_SUCCESS;
}

/* KP_VENDOR: the driver (580, H100) tells of all memory that it is mapped, as it is with one address space. It tells of
 * none that it is for all contexts. */
CUresult kp_cuMemHostGetFlags(PFN_cuMemHostGetFlags_v2030 real, bool ptsz, unsigned *flags, void *p)
{
    struct kp_hostmem_facts facts;
    (void)ptsz;
    if (!flags || !kp_hostmem_ours((uintptr_t)p, &facts))
        return real(flags, as_program_has_host(p));
    *flags = (facts.flags & ~(unsigned)CU_MEMHOSTALLOC_PORTABLE) | CU_MEMHOSTALLOC_DEVICEMAP;
    return CUDA_SUCCESS;
}

CUresult kp_cuMemGetAddressRange(PFN_cuMemGetAddressRange_v3020 real, bool ptsz, CUdeviceptr *base, size_t *bytes,
                                 CUdeviceptr p)
{
    struct kp_hostmem_facts facts;
    (void)ptsz;
    CUresult rc = real(base, bytes, as_program_has(p));
    if (rc != CUDA_SUCCESS || !kp_hostmem_ours(p, &facts))
        return rc;
    if (base)
        *base = facts.base;
    if (bytes)
        *bytes = facts.bytes;
    return rc;
}

/* Puts right what the driver has told of memory of ours. */
static void correct(void *data, CUpointer_attribute what, CUdeviceptr p)
{
    struct kp_hostmem_facts facts;
    if (what != CU_POINTER_ATTRIBUTE_RANGE_START_ADDR && what != CU_POINTER_ATTRIBUTE_RANGE_SIZE)
        return;
    if (!data || !kp_hostmem_ours(p, &facts))
        return;
    if (what == CU_POINTER_ATTRIBUTE_RANGE_SIZE)
        *(size_t *)data = facts.bytes;
    else
        *(CUdeviceptr *)data = facts.base;
}

CUresult kp_cuPointerGetAttribute(PFN_cuPointerGetAttribute_v4000 real, bool ptsz, void *data, CUpointer_attribute what,
                                  CUdeviceptr p)
{
    (void)ptsz;
    CUresult rc = real(data, what, as_program_has(p));
    if (rc == CUDA_SUCCESS)
        correct(data, what, p);
    return rc;
}

CUresult kp_cuPointerGetAttributes(PFN_cuPointerGetAttributes_v7000 real, bool ptsz, unsigned n,
                                   CUpointer_attribute *what, void **data, CUdeviceptr p)
{
    (void)ptsz;
    CUresult rc = real(n, what, data, as_program_has(p));
    for (unsigned i = 0; rc == CUDA_SUCCESS && i < n; i++)
        correct(data[i], what[i], p);
    return rc;
}
