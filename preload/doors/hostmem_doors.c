#include "preload/doors/hostmem_doors.h"

#include "base/work.h"
#include "preload/doors/door_call.h"
#include "preload/gate/gate.h"
#include "preload/gate/window_facts.h"
#include "preload/os/mappings.h"
#include "preload/process/process.h"
#include "preload/program/hostmem.h"
#include "preload/journal/defer.h"

/* ---- ways into the gate ---- */

static bool can_make(void)
{
    const struct kp_driver *d = kp_process_replays() ? kp_process_driver() : NULL;
    KP_GUARDED;
    return d && kp_hostmem_can_make(d);
}

/* Memory of ours is new, and nothing of an open window refers to it: the window stays open. The driver's is another
 * matter, because a restore rewinds it. */
static void enter_make_host(const struct kp_door_call *c)
{
    if (!kp_window_watches() || !can_make() || !kp_process_goes_beside())
        kp_gate_enter_shared(c->symbol);
}

/* An open window keeps memory of ours, the first argument, that it may refer to. */
static void enter_end_host(const struct kp_door_call *c)
{
    bool kept = kp_window_watches() && kp_hostmem_may_keep((const void *)(uintptr_t)c->first);
    if (!kept || !kp_process_goes_beside())
        kp_gate_enter_shared(c->symbol);
}

/* ---- our memory in place of the driver's: `instead` of doors.def ---- */

static bool make(void **p, size_t bytes, unsigned flags)
{
    const struct kp_driver *d = kp_process_replays() ? kp_process_driver() : NULL;
    kp_work_begin();
    kp_work_takes_long();
    bool made = d && kp_hostmem_make(d, p, bytes, flags);
    kp_work_end();
    return made;
}

static bool makes_host(void **p, size_t bytes, unsigned flags)
{
    /* These flags ask for properties that one address space always has, or for speed. */
    const unsigned known = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
    return !(flags & ~known) && make(p, bytes, flags);
}

static bool makes_host_plain(void **p, size_t bytes)
{
    return make(p, bytes, 0);
}

static bool makes_host_v1(void **p, unsigned bytes)
{
    return make(p, bytes, 0);
}

/* ---- notes of doors.def: what a call has done, by its result and arguments ---- */

/* An open window here was to see memory of ours, and there was none. */
static void note_pinned(CUresult rc, void *const *p, size_t bytes)
{
    if (rc != CUDA_SUCCESS)
        return;
    kp_hostmem_note_pinned(*p, bytes);
    if (kp_window_watches())
        kp_window_spoil();
}

static void noted_alloc(CUresult rc, void **p, size_t bytes, unsigned flags)
{
    (void)flags;
    note_pinned(rc, p, bytes);
}

static void noted_alloc_plain(CUresult rc, void **p, size_t bytes)
{
    note_pinned(rc, p, bytes);
}

static void noted_alloc_v1(CUresult rc, void **p, unsigned bytes)
{
    note_pinned(rc, p, bytes);
}

/* NCCL and MPI map their shared memory segments this way, and tensors in /dev/shm are mapped so, too. A restore does
 * not write to memory that the device only reads, such as a model's mapped file. Without replays this is not needed. */
static void noted_register(CUresult rc, const void *p, size_t bytes, unsigned flags)
{
    bool rewound = !(flags & CU_MEMHOSTREGISTER_READ_ONLY);
    if (rc != CUDA_SUCCESS)
        return;
    bool shared = rewound && kp_process_replays() && kp_mappings_shared(p, bytes);
    kp_hostmem_note_registered(p, bytes, rewound, shared);
}

/* ---- no rows KP_GATED: the memory may be ours even if the call is not examined ---- */

/* Frees memory, or unregisters it, by `free`, which calls the driver if need be. */
static CUresult end_memory(struct kp_door_call call, CUresult (*free)(CUresult(CUDAAPI *real)(void *p), void *p),
                           CUresult(CUDAAPI *real)(void *p), void *p)
{
    bool entered = kp_door_enter(&call);
    kp_work_begin();
    CUresult rc = free(real, p);
    kp_work_end();
    if (entered) {
        kp_door_back(&call);
        kp_window_synchronised();
        kp_door_leave();
    }
    return rc;
}

CUresult kp_cuMemFreeHost(PFN_cuMemFreeHost_v2000 real, bool ptsz, void *p)
{
    (void)ptsz;
    const struct kp_door_call call = {.symbol = "cuMemFreeHost", .first = (uintptr_t)p, .way = enter_end_host};
    return end_memory(call, kp_hostmem_free, real, p);
}

CUresult kp_cuMemHostUnregister(PFN_cuMemHostUnregister_v4000 real, bool ptsz, void *p)
{
    (void)ptsz;
    const struct kp_door_call call = {.symbol = "cuMemHostUnregister", .way = kp_door_shared};
    return end_memory(call, kp_hostmem_unregister, real, p);
}

/* ---- queries of memory: of ours the driver knows the mapping, which contains the program's memory ---- */

/* Returns the address to ask the driver about. For one that the program does not have, or no longer has, this is an
 * address unknown to the driver, so that its answer is what it would have been. */
static CUdeviceptr as_program_has(CUdeviceptr p)
{
    static const char none;
    return kp_hostmem_is_gap(p) || kp_defer_has(p) ? (CUdeviceptr)(uintptr_t)&none : p;
}

static void *as_program_has_host(void *p)
{
    return (void *)(uintptr_t)as_program_has((CUdeviceptr)(uintptr_t)p);
}

/* KP_VENDOR: for an address inside a mapping the driver (580) returns the mapping's start. */
CUresult kp_cuMemHostGetDevicePointer(PFN_cuMemHostGetDevicePointer_v3020 real, bool ptsz, CUdeviceptr *out, void *p,
                                      unsigned flags)
{
    (void)ptsz;
    if (!out || flags || !kp_hostmem_is_ours((uintptr_t)p))
        return real(out, as_program_has_host(p), flags);
    *out = (CUdeviceptr)(uintptr_t)p;
    return CUDA_SUCCESS;
}

/* KP_VENDOR: the driver (580, H100) reports all memory as mapped, because there is one address space, and none as
 * portable. */
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

/* Corrects what the driver has reported about our memory. */
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

#define KP_GATED KP_GATED_LOGIC
#include "preload/doors/hostmem_doors.def"
#undef KP_GATED
