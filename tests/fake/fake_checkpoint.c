/* LINK: -ldl -lpthread */
/*
 * A look-alike of libcheckpoint.so: saves and restores every live allocation of a context of the fake driver, including
 * pinned host memory, like the real one. FAKE_FAIL and FAKE_LOG: see fake_common.h. FAKE_SAVE_TAKES: bytes of device
 * memory that a saved state uses. FAKE_SAVE_MS: how long saving takes.
 */
#include <cuda.h>
#include <cupti_result.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fake_driver.h"

#define PAGE 4096u

/* The header of the real library is C++ only; this is the layout it declares. */
typedef struct {
    size_t structSize;
    CUcontext ctx;
    size_t reserveDeviceMB, reserveHostMB;
    uint8_t allowOverwrite, optimizations;
    void *pPriv;
} CUpti_Checkpoint;

#define TRANSFER_OPTIMISATION 1

struct block {
    struct fake_allocation where;
    unsigned char *present; /* sparse: which pages hold anything; NULL: all */
    unsigned char *bytes;
    bool seen;
    struct block *next;
};

struct image {
    CUcontext ctx;
    struct block *blocks, **end;
    long taken; /* of device memory, in bytes */
};

CUptiResult cuptiCheckpointSave(CUpti_Checkpoint *const handle);
CUptiResult cuptiCheckpointRestore(CUpti_Checkpoint *const handle);
CUptiResult cuptiCheckpointFree(CUpti_Checkpoint *const handle);

#define COUNT_CALL()                                                                                                   \
    static struct fake_counter counter_ = {__func__, 0, NULL};                                                         \
    int injected_;                                                                                                     \
    if (fake_count(&counter_, &injected_))                                                                             \
    return (CUptiResult)injected_

static CUptiResult check(const CUpti_Checkpoint *handle, const char *function)
{
    const struct fake_cuda_api *api = fake_driver();

    if (!handle || handle->structSize != offsetof(CUpti_Checkpoint, pPriv) + sizeof(handle->pPriv))
        return CUPTI_ERROR_INVALID_PARAMETER;
    fake_need_live(handle->ctx ? handle->ctx : api ? api->context_current() : NULL, function);
    return CUPTI_SUCCESS;
}

/* The kernel's own record of which pages exist (bit 63) or are swapped out (bit 62). */
static void find_pages(struct block *block)
{
    size_t n = (block->where.size + PAGE - 1) / PAGE;
    uint64_t *map = calloc(n, sizeof(*map));
    int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    ssize_t got = map ? pread(fd, map, n * sizeof(*map), (uintptr_t)block->where.base / PAGE * sizeof(*map)) : -1;

    for (size_t i = 0; i < n; i++) /* not readable: includes every page */
        block->present[i] = got != (ssize_t)(n * sizeof(*map)) || map[i] >> 62;
    close(fd);
    free(map);
}

/* Saves a block of which only written pages use memory, here as there. */
static void save_pages(struct block *block)
{
    size_t size = block->where.size, pages = (size + PAGE - 1) / PAGE;

    block->present = calloc(pages, 1);
    block->bytes = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (!block->present || block->bytes == MAP_FAILED)
        fake_misuse("out of host memory");
    find_pages(block);
    for (size_t at = 0; at < size; at += PAGE)
        if (block->present[at / PAGE])
            memcpy(block->bytes + at, (const char *)block->where.base + at, size - at < PAGE ? size - at : PAGE);
}

/* Blocks that are no longer used: faulting their pages in again takes longer than all else. kprof makes these calls one
 * at a time. */
static struct block *spares;

static unsigned char *buffer_of(size_t size)
{
    struct block **at = &spares, *spare;
    unsigned char *bytes;

    while ((spare = *at) && spare->where.size != size)
        at = &spare->next;
    if (!spare)
        return malloc(size);
    bytes = spare->bytes;
    *at = spare->next;
    free(spare);
    return bytes;
}

static void save_block(const struct fake_allocation *where, void *data)
{
    struct image *image = data;
    struct block *block = calloc(1, sizeof(*block));

    if (!block)
        fake_misuse("out of host memory");
    block->where = *where;
    if (where->sparse)
        save_pages(block);
    else if ((block->bytes = buffer_of(where->size)))
        memcpy(block->bytes, where->base, where->size);
    else
        fake_misuse("out of host memory");
    *image->end = block;
    image->end = &block->next;
}

static void free_image(struct image *image)
{
    struct block *next;

    for (struct block *block = image->blocks; block; block = next) {
        next = block->next;
        if (!block->present) {
            block->next = spares;
            spares = block;
            continue;
        }
        munmap(block->bytes, (block->where.size + PAGE - 1) / PAGE * PAGE);
        free(block->present);
        free(block);
    }
    fake_driver()->take(image->ctx, -image->taken);
    free(image);
}

CUptiResult cuptiCheckpointSave(CUpti_Checkpoint *const handle)
{
    struct image *image;
    CUptiResult result;

    COUNT_CALL();
    result = check(handle, __func__);
    if (result)
        return result;
    if (handle->pPriv && !handle->allowOverwrite)
        return CUPTI_ERROR_INVALID_OPERATION;
    /* seen on an H200: it waits for kernels of other green contexts, and fails then */
    if (fake_driver()->green_settled(handle->ctx ? handle->ctx : fake_driver()->context_current()))
        return CUPTI_ERROR_OUT_OF_MEMORY;
    image = calloc(1, sizeof(*image));
    if (!image)
        return CUPTI_ERROR_OUT_OF_MEMORY;
    image->ctx = handle->ctx ? handle->ctx : fake_driver()->context_current();
    image->end = &image->blocks;
    if (fake_driver()->context_capturing(image->ctx))
        fake_misuse("%s: a stream of the context is capturing", __func__);
    fake_driver()->each_allocation(image->ctx, save_block, image);
    if (getenv("FAKE_SAVE_MS"))
        usleep(1000 * (useconds_t)atol(getenv("FAKE_SAVE_MS")));
    if (getenv("FAKE_SAVE_TAKES"))
        image->taken = atol(getenv("FAKE_SAVE_TAKES"));
    fake_driver()->take(image->ctx, image->taken);
    if (handle->pPriv)
        free_image(handle->pPriv);
    handle->pPriv = image;
    return CUPTI_SUCCESS;
}

static void mark_seen(const struct fake_allocation *where, void *data)
{
    for (struct block *block = ((struct image *)data)->blocks; block; block = block->next)
        block->seen |= block->where.serial == where->serial;
}

static void restore_block(const struct block *block)
{
    size_t pages = (block->where.size + PAGE - 1) / PAGE;
    char *base = block->where.base;

    if (!block->present)
        memcpy(base, block->bytes, block->where.size);
    for (size_t i = 0, end; block->present && i < pages; i = end) {
        size_t offset = i * PAGE, size;

        for (end = i + 1; end < pages && block->present[end] == block->present[i];)
            end++;
        size = (end < pages ? end * PAGE : block->where.size) - offset;
        if (block->present[i]) {
            memcpy(base + offset, block->bytes + offset, size);
            continue;
        }
        madvise(base + offset, size / PAGE * PAGE, MADV_DONTNEED); /* was zero, and is again */
        memset(base + offset + size / PAGE * PAGE, 0, size % PAGE);
    }
}

CUptiResult cuptiCheckpointRestore(CUpti_Checkpoint *const handle)
{
    struct image *image;
    CUptiResult result;

    COUNT_CALL();
    result = check(handle, __func__);
    if (result)
        return result;
    image = handle->pPriv;
    if (!image)
        return CUPTI_ERROR_INVALID_OPERATION;
    /* seen on the real library while a range profiler is enabled; the fake does not check if one is */
    if (handle->optimizations & TRANSFER_OPTIMISATION)
        return CUPTI_ERROR_UNKNOWN;
    if (fake_driver()->context_capturing(image->ctx))
        fake_misuse("%s: a stream of the context is capturing", __func__);
    for (struct block *block = image->blocks; block; block = block->next)
        block->seen = false;
    fake_driver()->each_allocation(image->ctx, mark_seen, image);
    for (const struct block *block = image->blocks; block; block = block->next) {
        if (!block->seen)
            fake_misuse("%s: memory that was saved has been freed since", __func__);
        restore_block(block);
    }
    return CUPTI_SUCCESS;
}

CUptiResult cuptiCheckpointFree(CUpti_Checkpoint *const handle)
{
    COUNT_CALL();
    if (!handle || !handle->pPriv)
        return CUPTI_ERROR_INVALID_PARAMETER;
    free_image(handle->pPriv);
    handle->pPriv = NULL;
    return CUPTI_SUCCESS;
}
