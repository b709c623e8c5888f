/*
 * Device memory: pages of their own for each allocation, filled with a pattern, followed by a canary and a page that
 * cannot be touched. Freed pages stay unmapped for good, so a stale pointer faults or is recognised.
 */
#include "core.h"

#include <sys/mman.h>

#define PAGE         4096u
#define POISON       0xa5
#define CANARY       0xc3
#define SPARSE_BYTES ((size_t)16 << 20) /* filling more than this would slow every test that sweeps a cache */

static struct allocation *allocations, **allocations_end = &allocations;
static uint64_t next_serial = 1;
static size_t used_bytes[MAX_DEVICES];

static CUresult allocate(void **out, size_t size, bool pinned_host)
{
    struct context *ctx = current();
    size_t mapped = (size + PAGE - 1) / PAGE * PAGE;
    struct allocation *a;
    unsigned char *base;

    if (!out || !size)
        return CUDA_ERROR_INVALID_VALUE;
    if (!pinned_host && used_bytes[ctx->device] + size > device_memory())
        return CUDA_ERROR_OUT_OF_MEMORY;
    base = mmap(NULL, mapped + PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED || mprotect(base, mapped, PROT_READ | PROT_WRITE))
        return CUDA_ERROR_OUT_OF_MEMORY;
    a = make(sizeof(*a), KIND_ALLOCATION, ctx);
    a->info = (struct fake_allocation){base, size, next_serial++, pinned_host, size > SPARSE_BYTES};
    a->mapped = mapped;
    a->canary = mapped - size;
    if (!a->info.sparse)
        memset(base, POISON, size);
    memset(base + size, CANARY, a->canary);
    *allocations_end = a;
    allocations_end = &a->next;
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
    if (!a->info.pinned_host)
        used_bytes[object->ctx->device] -= a->info.size;
    madvise(a->info.base, a->mapped, MADV_DONTNEED);
    mprotect(a->info.base, a->mapped, PROT_NONE);
    object->dead = true;
}

/* The allocation that `pointer` lies in, dead or alive, or NULL. */
static struct allocation *allocation_of(uintptr_t pointer)
{
    for (struct allocation *a = allocations; a; a = a->next)
        if (pointer >= (uintptr_t)a->info.base && pointer < (uintptr_t)a->info.base + a->info.size)
            return a;
    return NULL;
}

static CUresult free_memory(uintptr_t pointer, bool pinned_host, const char *function)
{
    struct allocation *a = allocation_of(pointer);

    if (!pointer)
        return CUDA_SUCCESS;
    if (!a || (uintptr_t)a->info.base != pointer || a->info.pinned_host != pinned_host)
        return CUDA_ERROR_INVALID_VALUE;
    if (a->head.dead)
        fake_misuse("%s: freed twice", function);
    release_memory(&a->head);
    return CUDA_SUCCESS;
}

/* Whether `bytes` at `pointer` may be accessed as device memory. */
static CUresult check_device(CUdeviceptr pointer, size_t bytes, const char *function)
{
    struct allocation *a = allocation_of(pointer);

    if (!a || pointer + bytes > (uintptr_t)a->info.base + a->info.size)
        return CUDA_ERROR_INVALID_VALUE;
    if (a->head.dead)
        fake_misuse("%s: the memory was freed", function);
    return CUDA_SUCCESS;
}

CUresult cuMemAlloc_v2(CUdeviceptr *out, size_t bytes)
{
    ENTER_NOT_CAPTURING();
    return allocate((void **)out, bytes, false);
}

CUresult cuMemAllocManaged(CUdeviceptr *out, size_t bytes, unsigned int flags)
{
    ENTER_NOT_CAPTURING();
    (void)flags;
    return allocate((void **)out, bytes, false);
}

CUresult cuMemAllocPitch_v2(CUdeviceptr *out, size_t *pitch, size_t width, size_t height, unsigned int element)
{
    ENTER_NOT_CAPTURING();
    (void)element;
    *pitch = (width + 511) / 512 * 512;
    return allocate((void **)out, *pitch * height, false);
}

CUresult cuMemFree_v2(CUdeviceptr pointer)
{
    ENTER_NOT_CAPTURING();
    return free_memory(pointer, false, __func__);
}

CUresult cuMemAllocHost_v2(void **out, size_t bytes)
{
    ENTER_NOT_CAPTURING();
    return allocate(out, bytes, true);
}

CUresult cuMemHostAlloc(void **out, size_t bytes, unsigned int flags)
{
    ENTER_NOT_CAPTURING();
    (void)flags;
    return allocate(out, bytes, true);
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *out, void *pointer, unsigned int flags)
{
    ENTER(NEED_CONTEXT);
    (void)flags;
    *out = (CUdeviceptr)pointer;
    return CUDA_SUCCESS;
}

CUresult cuMemFreeHost(void *pointer)
{
    ENTER_NOT_CAPTURING();
    return free_memory((uintptr_t)pointer, true, __func__);
}

CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
    ENTER(NEED_CONTEXT);
    *total = device_memory();
    *free_bytes = *total - used_bytes[current()->device];
    return CUDA_SUCCESS;
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr pointer)
{
    const struct allocation *a;

    ENTER(NEED_CONTEXT);
    a = allocation_of(pointer);
    if (!a || a->head.dead)
        return CUDA_ERROR_NOT_FOUND;
    if (base)
        *base = (CUdeviceptr)a->info.base;
    if (size)
        *size = a->info.size;
    return CUDA_SUCCESS;
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr dst, const void *src, size_t bytes)
{
    CUresult result;

    ENTER_NOT_CAPTURING();
    result = check_device(dst, bytes, __func__);
    if (!result)
        memcpy((void *)dst, src, bytes);
    return result;
}

CUresult cuMemcpyDtoH_v2(void *dst, CUdeviceptr src, size_t bytes)
{
    CUresult result;

    ENTER_NOT_CAPTURING();
    result = check_device(src, bytes, __func__);
    if (!result)
        memcpy(dst, (const void *)src, bytes);
    return result;
}

CUresult cuMemcpyDtoD_v2(CUdeviceptr dst, CUdeviceptr src, size_t bytes)
{
    ENTER_NOT_CAPTURING();
    if (check_device(dst, bytes, __func__) || check_device(src, bytes, __func__))
        return CUDA_ERROR_INVALID_VALUE;
    memmove((void *)dst, (const void *)src, bytes);
    return CUDA_SUCCESS;
}

/* Unified addressing: any two pointers. */
CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t bytes)
{
    ENTER_NOT_CAPTURING();
    memmove((void *)dst, (const void *)src, bytes);
    return CUDA_SUCCESS;
}

static void fill(void *dst, unsigned int value, size_t element_size, size_t n)
{
    struct allocation *a = allocation_of((uintptr_t)dst);

    /* zero pages need not be there: keeps a sweep buffer cheap to save */
    if (a && a->info.sparse && !value && dst == a->info.base && n * element_size == a->info.size) {
        madvise(dst, a->info.size / PAGE * PAGE, MADV_DONTNEED);
        memset((char *)dst + a->info.size / PAGE * PAGE, 0, a->info.size % PAGE);
        return;
    }
    for (size_t i = 0; i < n; i++)
        memcpy((char *)dst + i * element_size, &value, element_size);
}

CUresult cuMemsetD8_v2(CUdeviceptr dst, unsigned char value, size_t n)
{
    CUresult result;

    ENTER_NOT_CAPTURING();
    result = check_device(dst, n, __func__);
    if (!result)
        fill((void *)dst, value, 1, n);
    return result;
}

CUresult cuMemsetD32_v2(CUdeviceptr dst, unsigned int value, size_t n)
{
    CUresult result;

    ENTER_NOT_CAPTURING();
    result = check_device(dst, 4 * n, __func__);
    if (!result)
        fill((void *)dst, value, 4, n);
    return result;
}

#define SAME_AS(name, target) __typeof__(target) name __attribute__((alias(#target)))
SAME_AS(cuMemcpyHtoD_v2_ptds, cuMemcpyHtoD_v2);
SAME_AS(cuMemcpyDtoH_v2_ptds, cuMemcpyDtoH_v2);
SAME_AS(cuMemcpyDtoD_v2_ptds, cuMemcpyDtoD_v2);
SAME_AS(cuMemcpy_ptds, cuMemcpy);
SAME_AS(cuMemsetD8_v2_ptds, cuMemsetD8_v2);
SAME_AS(cuMemsetD32_v2_ptds, cuMemsetD32_v2);
