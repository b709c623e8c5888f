/*
 * Device memory: pages of their own for each allocation, filled with a pattern, followed by a canary and a page that
 * cannot be touched. Freed pages stay unmapped for good, so a stale pointer faults or is recognised.
 * Pinned host memory is the same, but zero; registered host memory is the program's own. Virtual memory management is
 * in virtual.c.
 */
#include "core.h"

#include <sys/mman.h>

#define PAGE         4096u
#define POISON       0xa5
#define CANARY       0xc3
#define BLOCK        ((size_t)2 << 20)  /* large allocations start at a multiple of that */
#define SPARSE_BYTES ((size_t)16 << 20) /* filling more than this would slow every test that sweeps a cache */

#define SAME_AS(name, target) __typeof__(target) name __attribute__((alias(#target)))

static struct allocation *allocations, **allocations_end = &allocations;
static void wait_for_legacy(void);

static uint64_t next_serial = 1;
static size_t used_bytes[MAX_DEVICES];

/* Where look-ups of the same page ended: sweeping a large cache uses dozens of mappings, again for each launch. Only
 * live allocations count, which never overlap. */
enum { FOUND_PLACES = 1 << 10 };
static struct allocation *found[FOUND_PLACES];
static uintptr_t lowest = UINTPTR_MAX, highest; /* the addresses of all allocations */

/* FAKE_HANDS_ON: as with the real driver, fresh memory is zero, but a small allocation shows what was in the last small
 * one that was freed, because both are parts of one block. */
static unsigned char *handed_on;

static bool hands_on(size_t size)
{
    return size < BLOCK && getenv("FAKE_HANDS_ON");
}

static void fill_fresh(unsigned char *base, size_t size)
{
    if (!getenv("FAKE_HANDS_ON"))
        memset(base, POISON, size);
    else if (handed_on && hands_on(size))
        memcpy(base, handed_on, size);
}

/* Keeps what memory that is freed contains. */
static void hand_on(const void *base, size_t size)
{
    handed_on = handed_on ? handed_on : calloc(1, BLOCK);
    if (handed_on && hands_on(size))
        memcpy(handed_on, base, size);
}

static struct allocation *list_allocation(struct context *ctx, void *base, size_t size)
{
    struct allocation *a = make(sizeof(*a), KIND_ALLOCATION, ctx);

    a->info = (struct fake_allocation){.base = base, .size = size, .serial = next_serial++};
    *allocations_end = a;
    allocations_end = &a->next;
    lowest = (uintptr_t)base < lowest ? (uintptr_t)base : lowest;
    highest = (uintptr_t)base + size > highest ? (uintptr_t)base + size : highest;
    return a;
}

static void take_all_back(void);

static CUresult allocate(void **out, size_t size, bool pinned_host)
{
    struct context *ctx = current();
    size_t mapped = (size + PAGE - 1) / PAGE * PAGE, block = size < BLOCK ? PAGE : BLOCK;
    struct allocation *a;
    unsigned char *base;

    if (!out || !size)
        return CUDA_ERROR_INVALID_VALUE;
    if (size > SIZE_MAX / 2 || (!pinned_host && used_bytes[ctx->device] + size > device_memory())) {
        take_all_back();
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    base = mmap(NULL, mapped + block, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED)
        return CUDA_ERROR_OUT_OF_MEMORY;
    base = (unsigned char *)(((uintptr_t)base + block - PAGE) / block * block); /* a page remains after it */
    if (mprotect(base, mapped, PROT_READ | PROT_WRITE))
        return CUDA_ERROR_OUT_OF_MEMORY;
    a = list_allocation(ctx, base, size);
    a->info.pinned_host = pinned_host;
    a->info.sparse = size > SPARSE_BYTES;
    a->mapped = mapped;
    a->canary = mapped - size;
    a->host_flags = CU_MEMHOSTALLOC_DEVICEMAP;
    if (!a->info.sparse && !pinned_host)
        fill_fresh(base, size);
    memset(base + size, CANARY, a->canary);
    if (!pinned_host)
        used_bytes[ctx->device] += size;
    *out = base;
    return CUDA_SUCCESS;
}

static void release_memory(struct object *object)
{
    struct allocation *a = (struct allocation *)object;
    const unsigned char *end = (const unsigned char *)a->info.base + a->info.size;

    for (size_t i = 0; i < a->canary; i++)
        if (end[i] != CANARY)
            fake_misuse("written %zu bytes beyond an allocation of %zu bytes", i + 1, a->info.size);
    if (!a->info.pinned_host && !a->of_graph)
        used_bytes[object->ctx->device] -= a->info.size;
    if (!a->info.pinned_host && hands_on(a->info.size))
        hand_on(a->info.base, a->info.size);
    madvise(a->info.base, a->mapped, MADV_DONTNEED);
    mprotect(a->info.base, a->mapped, PROT_NONE);
    object->dead = true;
}

static bool is_in(const struct allocation *a, uintptr_t pointer)
{
    return pointer >= (uintptr_t)a->info.base && pointer - (uintptr_t)a->info.base < a->info.size;
}

/* The allocation that contains `pointer`, or NULL: the live one if addresses were reused, else a dead one. */
static struct allocation *allocation_of(uintptr_t pointer)
{
    struct allocation *dead = NULL, **place = &found[(pointer / PAGE ^ pointer / PAGE / FOUND_PLACES) % FOUND_PLACES];

    if (pointer < lowest || pointer >= highest)
        return NULL;
    if (*place && !(*place)->head.dead && is_in(*place, pointer))
        return *place;
    for (struct allocation *a = allocations; a; a = a->next) {
        if (!is_in(a, pointer))
            continue;
        if (!a->head.dead)
            return *place = a;
        dead = a;
    }
    return dead;
}

static CUresult free_memory(uintptr_t pointer, bool pinned_host, const char *function)
{
    struct allocation *a = allocation_of(pointer);

    if (!pointer)
        return CUDA_SUCCESS;
    if (!a || (uintptr_t)a->info.base != pointer || a->info.pinned_host != pinned_host || a->physical || a->registered)
        return CUDA_ERROR_INVALID_VALUE;
    if (a->head.dead && getenv("FAKE_FREES_TWICE"))
        return CUDA_ERROR_INVALID_VALUE;
    if (a->head.dead || (a->of_graph && !a->held))
        fake_misuse("%s: freed twice", function);
    if (a->of_graph)
        a->held = false;
    else
        release_memory(&a->head);
    return CUDA_SUCCESS;
}

/* Returns true if an access finds nothing at the address; that ends the current context. */
static bool faults(const struct allocation *a)
{
    bool empty = a && a->of_graph && !a->backed;

    if (empty)
        current()->sticky = CUDA_ERROR_ILLEGAL_ADDRESS;
    return empty;
}

/* Checks that `bytes` at `pointer` may be accessed as device memory: within one allocation, or in adjacent mappings. */
static CUresult check_device(CUdeviceptr pointer, size_t bytes, const char *function)
{
    for (;;) {
        const struct allocation *a = allocation_of(pointer);
        size_t here;

        if (!a)
            return CUDA_ERROR_INVALID_VALUE;
        if (a->head.dead)
            fake_misuse("%s: the memory was freed", function);
        if (a->of_graph && !a->held)
            return CUDA_ERROR_INVALID_VALUE;
        if (a->physical && !(a->devices >> current()->device & 1))
            fake_misuse("%s: device %d was given no access to the memory", function, current()->device);
        here = (uintptr_t)a->info.base + a->info.size - pointer;
        if (bytes <= here)
            return CUDA_SUCCESS;
        pointer += here;
        bytes -= here;
    }
}

/* If a piece is mapped again right after itself, only the last copy is visible. The earlier ones are skipped, and after
 * many also the last one but for a page: sweeping a large cache over a small piece of memory would slow every test. */
static void copy_bytes(void *dst, const void *src, size_t n)
{
    enum { MANY = 8 };
    int skipped = 0;

    for (;;) {
        const struct allocation *a = allocation_of((uintptr_t)dst), *next;
        size_t here = a && a->physical ? (uintptr_t)a->info.base + a->info.size - (uintptr_t)dst : n;

        if (here >= n)
            break;
        next = allocation_of((uintptr_t)dst + here);
        if (!next || next->physical != a->physical || next->info.size < a->info.size || next->info.size > n - here)
            memmove(dst, src, here);
        else
            skipped++;
        dst = (char *)dst + here;
        src = (const char *)src + here;
        n -= here;
    }
    memmove(dst, src, skipped > MANY && n > PAGE ? PAGE : n);
}

CUresult cuMemAlloc_v2(CUdeviceptr *out, size_t bytes)
{
    ENTER_NOT_CAPTURING();
    return allocate((void **)out, bytes, false);
}

CUresult cuMemAllocManaged(CUdeviceptr *out, size_t bytes, unsigned int flags)
{
    CUresult result;

    ENTER_NOT_CAPTURING();
    (void)flags;
    result = allocate((void **)out, bytes, false);
    if (!result)
        allocation_of(*out)->info.managed = 1;
    return result;
}

CUresult cuMemAllocPitch_v2(CUdeviceptr *out, size_t *pitch, size_t width, size_t height, unsigned int element)
{
    ENTER_NOT_CAPTURING();
    (void)element;
    *pitch = (width + 511) / 512 * 512;
    return allocate((void **)out, *pitch * height, false);
}

/* As with driver 580 on an H100, pool memory freed here still counts as used by the pool. */
CUresult cuMemFree_v2(CUdeviceptr pointer)
{
    struct allocation *a;
    CUresult result;

    ENTER_NOT_CAPTURING();
    wait_for_context();
    a = allocation_of(pointer);
    result = free_memory(pointer, false, __func__);
    if (!result && a && a->of_pool)
        a->used_for_good = true;
    return result;
}

CUresult cuMemAllocHost_v2(void **out, size_t bytes)
{
    ENTER_NOT_CAPTURING();
    return allocate(out, bytes, true);
}

CUresult cuMemAllocHost(void **out, unsigned int bytes)
{
    ENTER_NOT_CAPTURING();
    return allocate(out, bytes, true);
}

CUresult cuMemHostAlloc(void **out, size_t bytes, unsigned int flags)
{
    CUresult result;

    ENTER_NOT_CAPTURING();
    if (flags & ~(CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED))
        return CUDA_ERROR_INVALID_VALUE;
    result = allocate(out, bytes, true);
    if (!result)
        allocation_of((uintptr_t)*out)->host_flags |= flags & CU_MEMHOSTALLOC_WRITECOMBINED;
    return result;
}

CUresult cuMemHostGetFlags(unsigned int *flags, void *pointer)
{
    const struct allocation *a;

    ENTER(NEED_CONTEXT);
    a = allocation_of((uintptr_t)pointer);
    if (!a || a->head.dead || !a->info.pinned_host || a->registered || a->physical)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = a->host_flags;
    return CUDA_SUCCESS;
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *out, void *pointer, unsigned int flags)
{
    const struct allocation *a;

    ENTER(NEED_CONTEXT);
    (void)flags;
    a = allocation_of((uintptr_t)pointer);
    if (!a || a->head.dead || !a->info.pinned_host)
        return CUDA_ERROR_INVALID_VALUE;
    *out = (CUdeviceptr)pointer;
    return CUDA_SUCCESS;
}

CUresult cuMemFreeHost(void *pointer)
{
    ENTER_NOT_CAPTURING();
    wait_for_context();
    return free_memory((uintptr_t)pointer, true, __func__);
}

static bool overlaps(const struct allocation *a, uintptr_t base, size_t size)
{
    return !a->head.dead && base < (uintptr_t)a->info.base + a->info.size && base + size > (uintptr_t)a->info.base;
}

/* Memory that the device may only read needs no saving: it gets no context. */
CUresult cuMemHostRegister_v2(void *pointer, size_t bytes, unsigned int flags)
{
    struct allocation *registered;

    ENTER_NOT_CAPTURING();
    if (!pointer || !bytes || flags >= 2 * CU_MEMHOSTREGISTER_READ_ONLY)
        return CUDA_ERROR_INVALID_VALUE;
    for (const struct allocation *a = allocations; a; a = a->next)
        if (overlaps(a, (uintptr_t)pointer, bytes))
            return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    registered = list_allocation(flags & CU_MEMHOSTREGISTER_READ_ONLY ? NULL : current(), pointer, bytes);
    registered->info.pinned_host = 1;
    registered->registered = true;
    return CUDA_SUCCESS;
}
SAME_AS(cuMemHostRegister, cuMemHostRegister_v2);

/* An invalid handle: no test opens it. */
CUresult cuIpcGetMemHandle(CUipcMemHandle *out, CUdeviceptr pointer)
{
    CUresult result;

    ENTER(NEED_CONTEXT);
    result = check_device(pointer, 1, __func__);
    if (!result)
        memcpy(out, &pointer, sizeof(pointer));
    return result;
}

CUresult cuMemHostUnregister(void *pointer)
{
    struct allocation *a;

    ENTER_NOT_CAPTURING();
    a = allocation_of((uintptr_t)pointer);
    if (!a || a->head.dead || !a->registered || a->info.base != pointer)
        return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    release_memory(&a->head);
    return CUDA_SUCCESS;
}

CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr pointer)
{
    const struct allocation *a;

    ENTER(NEED_CONTEXT);
    a = allocation_of(pointer);
    if (!a || a->head.dead || a->of_graph || (attribute == CU_POINTER_ATTRIBUTE_HOST_POINTER && !a->info.pinned_host))
        return CUDA_ERROR_INVALID_VALUE;
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *(unsigned int *)data = a->info.pinned_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
        *(bool *)data = !a->info.pinned_host && !a->info.managed && !a->info.is_mapping;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        *(unsigned int *)data = (unsigned int)a->info.managed;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        *(CUdeviceptr *)data = pointer;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *(int *)data = a->physical ? a->physical->where.id : a->head.ctx ? a->head.ctx->device : 0;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        *(CUcontext *)data = (CUcontext)a->head.ctx;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        *(CUdeviceptr *)data = (CUdeviceptr)a->info.base;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        *(CUmemoryPool *)data = a->of_pool ? (CUmemoryPool)&used_bytes[a->head.ctx->device] : NULL;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        *(size_t *)data = a->info.size;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_NOT_SUPPORTED;
    }
}

/* The answers for an address that is not the driver's. */
static void tell_nothing(void *data, CUpointer_attribute attribute)
{
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        *(unsigned int *)data = 0;
        return;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
        *(bool *)data = false;
        return;
    default:
        *(void **)data = NULL;
    }
}

/* Unlike the function for one attribute, it refuses no address. */
CUresult cuPointerGetAttributes(unsigned int n, CUpointer_attribute *wanted, void **data, CUdeviceptr pointer)
{
    CUresult result = CUDA_SUCCESS;
    const struct allocation *a = allocation_of(pointer);

    for (unsigned int i = 0; (!a || a->head.dead) && i < n; i++)
        tell_nothing(data[i], wanted[i]);
    for (unsigned int i = 0; a && !a->head.dead && !result && i < n; i++)
        result = cuPointerGetAttribute(data[i], wanted[i], pointer);
    return result;
}

CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
    ENTER(NEED_CONTEXT);
    *total = device_memory();
    *free_bytes = *total - used_bytes[current()->device];
    return CUDA_SUCCESS;
}

/* Each device has one pool, which holds allocations made in stream order. */
CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *out, CUdevice device)
{
    ENTER(NEED_INIT);
    *out = (CUmemoryPool)&used_bytes[device];
    return CUDA_SUCCESS;
}

/* What each device's pool reserves: a piece, from the first use until the program waits for a stream or context while
 * nothing is used; and the peak use. */
static const size_t pool_piece = (size_t)32 << 20;
static size_t pool_reserves[MAX_DEVICES], pool_used_most[MAX_DEVICES];

static size_t pool_uses(int device)
{
    size_t used = 0;

    for (const struct allocation *a = allocations; a; a = a->next)
        if (a->of_pool && !a->unsaved && (!a->head.dead || a->used_for_good) && a->head.ctx->device == device)
            used += a->info.size;
    return used;
}

static void pool_takes(int device)
{
    size_t used = pool_uses(device);

    pool_reserves[device] = pool_piece;
    pool_used_most[device] = used > pool_used_most[device] ? used : pool_used_most[device];
}

static void pool_settles(int device)
{
    if (!pool_uses(device))
        pool_reserves[device] = 0;
}

static cuuint64_t release_threshold;

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
    ENTER(NEED_INIT);
    if (attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) {
        *(cuuint64_t *)value = release_threshold;
        return CUDA_SUCCESS;
    }
    int device = (int)((const size_t *)pool - used_bytes);
    switch (attribute) {
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
        *(cuuint64_t *)value = pool_uses(device);
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        *(cuuint64_t *)value = pool_used_most[device];
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
        *(cuuint64_t *)value = pool_reserves[device];
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_NOT_SUPPORTED;
    }
}

/* The threshold changes nothing here; the peak can be set to what is used now. */
CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
    int device = (int)((const size_t *)pool - used_bytes);

    ENTER(NEED_INIT);
    if (attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
        release_threshold = *(cuuint64_t *)value;
    else if (attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH && !*(cuuint64_t *)value)
        pool_used_most[device] = pool_uses(device);
    else
        return CUDA_ERROR_NOT_SUPPORTED;
    return CUDA_SUCCESS;
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr pointer)
{
    const struct allocation *a;

    ENTER(NEED_CONTEXT);
    a = allocation_of(pointer);
    if (!a || a->head.dead || a->of_graph)
        return CUDA_ERROR_NOT_FOUND;
    if (base)
        *base = (CUdeviceptr)a->info.base;
    if (size)
        *size = a->info.size;
    return CUDA_SUCCESS;
}

static bool is_on_device(const void *at)
{
    const struct allocation *a = allocation_of((uintptr_t)at);

    return a && !a->info.pinned_host;
}

/* Reports a copy, or with `src` NULL a memset, in the current context. */
static void transferred(const void *dst, const void *src, size_t bytes, uint64_t stream_id, int from_graph)
{
    static const int directions[2][2] = {{9, 1}, {2, 8}}; /* from the device, to the device */
    struct fake_transfer t = {.bytes = bytes, .stream_id = stream_id, .from_graph = from_graph};

    if (!transfer_hook || !current())
        return;
    t.call = running ? running : ++last_serial;
    t.ctx_id = current()->id;
    t.device = current()->device;
    t.direction = src ? directions[is_on_device(src)][is_on_device(dst)] : 0;
    transfer_hook(&t);
}

/* The number of the legacy default stream. */
enum { DEFAULT_STREAM_ID = 7 };

CUresult cuMemcpyHtoD_v2(CUdeviceptr dst, const void *src, size_t bytes)
{
    CUresult result;

    ENTER_NOT_CAPTURING();
    wait_for_legacy();
    result = check_device(dst, bytes, __func__);
    if (!result)
        memcpy((void *)dst, src, bytes);
    if (!result)
        transferred((void *)dst, src, bytes, DEFAULT_STREAM_ID, 0);
    return result;
}

CUresult cuMemcpyDtoH_v2(void *dst, CUdeviceptr src, size_t bytes)
{
    CUresult result;

    ENTER_NOT_CAPTURING();
    wait_for_legacy();
    result = check_device(src, bytes, __func__);
    if (!result)
        memcpy(dst, (const void *)src, bytes);
    if (!result)
        transferred(dst, (const void *)src, bytes, DEFAULT_STREAM_ID, 0);
    return result;
}

CUresult cuMemcpyDtoD_v2(CUdeviceptr dst, CUdeviceptr src, size_t bytes)
{
    ENTER_NOT_CAPTURING();
    wait_for_legacy();
    if (check_device(dst, bytes, __func__) || check_device(src, bytes, __func__))
        return CUDA_ERROR_INVALID_VALUE;
    copy_bytes((void *)dst, (const void *)src, bytes);
    transferred((void *)dst, (const void *)src, bytes, DEFAULT_STREAM_ID, 0);
    return CUDA_SUCCESS;
}

/* Unified addressing: any two pointers. */
CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t bytes)
{
    ENTER_NOT_CAPTURING();
    wait_for_legacy();
    memmove((void *)dst, (const void *)src, bytes);
    transferred((void *)dst, (const void *)src, bytes, DEFAULT_STREAM_ID, 0);
    return CUDA_SUCCESS;
}

static void fill(void *dst, unsigned int value, size_t element_size, size_t n)
{
    struct allocation *a = allocation_of((uintptr_t)dst);

    /* zero pages need not exist: keeps a sweep buffer cheap to save */
    if (a && a->info.sparse && !value && dst == a->info.base && n * element_size == a->info.size) {
        madvise(dst, a->info.size / PAGE * PAGE, MADV_DONTNEED);
        memset((char *)dst + a->info.size / PAGE * PAGE, 0, a->info.size % PAGE);
        return;
    }
    if (element_size == 1 || !value)
        memset(dst, (int)value, n * element_size);
    for (size_t i = element_size == 1 || !value ? n : 0; i < n; i++)
        memcpy((char *)dst + i * element_size, &value, element_size);
}

CUresult cuMemsetD8_v2(CUdeviceptr dst, unsigned char value, size_t n)
{
    CUresult result;

    ENTER_NOT_CAPTURING();
    wait_for_legacy();
    result = check_device(dst, n, __func__);
    if (!result)
        fill((void *)dst, value, 1, n);
    if (!result)
        transferred((void *)dst, NULL, n, DEFAULT_STREAM_ID, 0);
    return result;
}

CUresult cuMemsetD32_v2(CUdeviceptr dst, unsigned int value, size_t n)
{
    CUresult result;

    ENTER_NOT_CAPTURING();
    wait_for_legacy();
    result = check_device(dst, 4 * n, __func__);
    if (!result)
        fill((void *)dst, value, 4, n);
    if (!result)
        transferred((void *)dst, NULL, 4 * n, DEFAULT_STREAM_ID, 0);
    return result;
}

SAME_AS(cuMemcpyHtoD_v2_ptds, cuMemcpyHtoD_v2);
SAME_AS(cuMemcpyDtoH_v2_ptds, cuMemcpyDtoH_v2);
SAME_AS(cuMemcpyDtoD_v2_ptds, cuMemcpyDtoD_v2);
SAME_AS(cuMemcpy_ptds, cuMemcpy);
SAME_AS(cuMemsetD8_v2_ptds, cuMemsetD8_v2);
SAME_AS(cuMemsetD32_v2_ptds, cuMemsetD32_v2);
