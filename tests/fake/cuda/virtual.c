/*
 * Virtual memory management: memory is shared pages, and a mapping is one more of these, so that one piece mapped twice
 * shows the same bytes. (A file in memory would also work, but not in a program with a limit on file sizes.) Freed
 * address ranges stay unmapped for good. What a driver refuses is refused; removing memory in use ends the process.
 */
#include "core.h"

#include <sys/mman.h>

#define GRANULARITY ((size_t)2 << 20)

static struct reservation *reservations;

static bool is_host(const CUmemLocation *where)
{
    return where->type == CU_MEM_LOCATION_TYPE_HOST || where->type == CU_MEM_LOCATION_TYPE_HOST_NUMA;
}

/* The fake machine has one node. */
static CUresult check_place(const CUmemAllocationProp *prop)
{
    if (!prop || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED || prop->requestedHandleTypes)
        return CUDA_ERROR_INVALID_VALUE;
    if (prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE)
        return prop->location.id >= 0 && prop->location.id < n_devices() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
    return is_host(&prop->location) && !prop->location.id ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *prop,
                                       CUmemAllocationGranularity_flags option)
{
    ENTER(NEED_INIT);
    (void)option;
    *granularity = GRANULARITY;
    return check_place(prop);
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *out, size_t size, const CUmemAllocationProp *prop,
                     unsigned long long flags)
{
    struct physical *memory;
    CUresult result;
    void *pages;

    ENTER(NEED_INIT);
    result = check_place(prop);
    if (result)
        return result;
    if (!size || size % GRANULARITY || flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (!is_host(&prop->location) && used_bytes[prop->location.id] + size > device_memory())
        return CUDA_ERROR_OUT_OF_MEMORY;
    pages = mmap(NULL, size, PROT_NONE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pages == MAP_FAILED)
        return CUDA_ERROR_OUT_OF_MEMORY;
    memory = make(sizeof(*memory), KIND_PHYSICAL, NULL);
    memory->size = size;
    memory->where = prop->location;
    memory->pages = pages;
    if (!is_host(&memory->where))
        used_bytes[memory->where.id] += size;
    *out = (CUmemGenericAllocationHandle)(uintptr_t)memory;
    return CUDA_SUCCESS;
}

/* The memory is gone once its handle is released and it has no mapping. */
static void give_up(const struct physical *memory)
{
    if (memory->head.dead && !memory->mappings && !is_host(&memory->where))
        used_bytes[memory->where.id] -= memory->size;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    ENTER(NEED_INIT);
    TAKE(physical, memory, KIND_PHYSICAL, (void *)(uintptr_t)handle);
    memory->head.dead = true;
    munmap(memory->pages, memory->size);
    give_up(memory);
    return CUDA_SUCCESS;
}

CUresult cuMemAddressReserve(CUdeviceptr *out, size_t size, size_t alignment, CUdeviceptr hint,
                             unsigned long long flags)
{
    struct reservation *r;
    uintptr_t start;

    ENTER(NEED_INIT);
    (void)hint;
    if (!out || !size || size % GRANULARITY || (alignment & (alignment - 1)) || flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (alignment < GRANULARITY)
        alignment = GRANULARITY;
    start = (uintptr_t)mmap(NULL, size + alignment, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (start == (uintptr_t)MAP_FAILED)
        return CUDA_ERROR_OUT_OF_MEMORY;
    r = make(sizeof(*r), KIND_RESERVATION, NULL);
    r->base = (start + alignment - 1) / alignment * alignment;
    r->size = size;
    r->next = reservations;
    reservations = r;
    *out = r->base;
    return CUDA_SUCCESS;
}

static struct reservation *reservation_of(uintptr_t pointer, size_t size)
{
    for (struct reservation *r = reservations; r; r = r->next)
        if (!r->head.dead && pointer >= r->base && size <= r->size && pointer - r->base <= r->size - size)
            return r;
    return NULL;
}

CUresult cuMemAddressFree(CUdeviceptr pointer, size_t size)
{
    struct reservation *r;

    ENTER(NEED_INIT);
    r = reservation_of(pointer, size);
    if (!r || r->base != pointer || r->size != size)
        return CUDA_ERROR_INVALID_VALUE;
    for (const struct allocation *a = allocations; a; a = a->next)
        if (overlaps(a, pointer, size))
            fake_misuse("%s: memory is still mapped there", __func__);
    r->head.dead = true;
    return CUDA_SUCCESS;
}

CUresult cuMemMap(CUdeviceptr pointer, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags)
{
    struct allocation *mapping;

    ENTER(NEED_INIT);
    TAKE(physical, memory, KIND_PHYSICAL, (void *)(uintptr_t)handle);
    if (!size || size % GRANULARITY || pointer % GRANULARITY || size > memory->size || offset || flags ||
        !reservation_of(pointer, size))
        return CUDA_ERROR_INVALID_VALUE;
    for (const struct allocation *a = allocations; a; a = a->next)
        if (overlaps(a, pointer, size))
            fake_misuse("%s: memory is mapped there already", __func__);
    /* of size 0: of shared pages that makes a second mapping */
    if (mremap(memory->pages, 0, size, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)pointer) == MAP_FAILED)
        return CUDA_ERROR_OUT_OF_MEMORY;
    mapping = list_allocation(NULL, (void *)pointer, size);
    mapping->info.pinned_host = is_host(&memory->where);
    mapping->info.is_mapping = true;
    mapping->mapped = size;
    mapping->physical = memory;
    memory->mappings++;
    return CUDA_SUCCESS;
}

/* Returns how many of the `size` bytes at `pointer` are mapped. A mapping that reaches beyond them ends the process,
 * because only whole mappings can be unmapped. */
static size_t mapped_bytes(uintptr_t pointer, size_t size, const char *function)
{
    size_t bytes = 0;

    for (const struct allocation *a = allocations; a; a = a->next) {
        if (!a->physical || !overlaps(a, pointer, size))
            continue;
        if ((uintptr_t)a->info.base < pointer || (uintptr_t)a->info.base + a->info.size > pointer + size)
            fake_misuse("%s: a part of a mapping", function);
        bytes += a->info.size;
    }
    return bytes;
}

/* One dead entry stands for all mappings of a range: sweeping a large cache makes many, again for each window. */
static void bury(uintptr_t pointer, size_t size)
{
    struct allocation *grave = NULL, *a;

    memset(found, 0, sizeof(found));
    for (struct allocation **link = &allocations; (a = *link);) {
        if (!overlaps(a, pointer, size)) {
            link = &a->next;
            continue;
        }
        a->physical->mappings--;
        give_up(a->physical);
        if (!grave) {
            grave = a;
            link = &a->next;
            continue;
        }
        *link = a->next;
        if (!a->next)
            allocations_end = link;
        unmake(&a->head);
    }
    grave->info.base = (void *)pointer;
    grave->info.size = size;
    grave->head.dead = true;
}

CUresult cuMemUnmap(CUdeviceptr pointer, size_t size)
{
    ENTER(NEED_INIT);
    if (!size || mapped_bytes(pointer, size, __func__) != size)
        fake_misuse("%s: not mapped throughout", __func__);
    bury(pointer, size);
    if (mmap((void *)pointer, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) ==
        MAP_FAILED)
        fake_misuse("out of host memory");
    return CUDA_SUCCESS;
}

static CUresult grant(struct allocation *mapping, const CUmemAccessDesc *desc)
{
    bool on = desc->flags != CU_MEM_ACCESS_FLAGS_PROT_NONE;

    if (desc->location.type == CU_MEM_LOCATION_TYPE_DEVICE) {
        uint64_t bit = UINT64_C(1) << desc->location.id;

        if (desc->location.id < 0 || desc->location.id >= n_devices())
            return CUDA_ERROR_INVALID_DEVICE;
        mapping->devices = on ? mapping->devices | bit : mapping->devices & ~bit;
    } else {
        if (!is_host(&desc->location) || !mapping->info.pinned_host)
            return CUDA_ERROR_INVALID_VALUE;
        mapping->host = on;
    }
    /* kernels run on the host */
    if (mprotect(mapping->info.base, mapping->info.size,
                 mapping->host || mapping->devices ? PROT_READ | PROT_WRITE : PROT_NONE))
        fake_misuse("out of host memory");
    return CUDA_SUCCESS;
}

CUresult cuMemSetAccess(CUdeviceptr pointer, size_t size, const CUmemAccessDesc *desc, size_t n)
{
    CUresult result = CUDA_SUCCESS;

    ENTER(NEED_INIT);
    if (!desc || !n || !size || mapped_bytes(pointer, size, __func__) != size)
        return CUDA_ERROR_INVALID_VALUE;
    for (struct allocation *a = allocations; a; a = a->next)
        for (size_t i = 0; i < n && !result && overlaps(a, pointer, size); i++)
            result = grant(a, &desc[i]);
    return result;
}

CUresult cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location, CUdeviceptr pointer)
{
    const struct allocation *a;
    bool on;

    ENTER(NEED_INIT);
    a = allocation_of(pointer);
    if (!a || a->head.dead || !a->physical)
        return CUDA_ERROR_INVALID_VALUE;
    on = is_host(location) ? a->host : a->devices >> location->id & 1;
    *flags = on ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return CUDA_SUCCESS;
}

struct fake_virtual fake_cuda_virtual(void)
{
    int held __attribute__((cleanup(unlock), unused)) = lock();
    struct fake_virtual live = {0, 0, 0, 0};

    for (const struct object *o = objects[KIND_RESERVATION]; o; o = o->next)
        live.reservations += !o->dead;
    for (const struct object *o = objects[KIND_ALLOCATION]; o; o = o->next)
        live.mappings += !o->dead && ((const struct allocation *)o)->physical;
    for (const struct object *o = objects[KIND_PHYSICAL]; o; o = o->next) {
        live.handles += !o->dead;
        live.physical += !o->dead || ((const struct physical *)o)->mappings;
    }
    return live;
}
