#include "preload/window/reach.h"

#include <string.h>
#include <sys/mman.h>

#include "preload/program/hostmem.h"

bool kp_reach_heap(const struct kp_driver *d, const struct kp_launch *l)
{
    const uint64_t page = 4096, lowest = 1 << 16, end = 1ull << 47;
    for (size_t at = 0; at + sizeof(uint64_t) <= l->copied; at += sizeof(uint64_t)) {
        uint64_t word;
        unsigned char resident;
        unsigned type = 0;
        memcpy(&word, (const char *)l->copy + at, sizeof(word));
        bool ours = word >= (uint64_t)(uintptr_t)l->copy && word < (uint64_t)(uintptr_t)l->copy + l->copied;
        if (word < lowest || word >= end || ours || mincore((void *)(uintptr_t)(word / page * page), page, &resident))
            continue;
        if (!d->cuPointerGetAttribute ||
            d->cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, word) != CUDA_SUCCESS)
            return true;
    }
    return false;
}

bool kp_reach_host(const struct kp_driver *d, const struct kp_launch *l, struct kp_snapshot *into, size_t most,
                   bool *kept)
{
    bool found = false;
    unsigned type = 0;
    for (size_t at = 0; at + sizeof(uint64_t) <= l->copied; at += sizeof(uint64_t)) {
        uint64_t word;
        void *base;
        size_t bytes;
        memcpy(&word, (const char *)l->copy + at, sizeof(word));
        /* The table may list memory that ended with its context. */
        if (!kp_hostmem_find(word, &base, &bytes) ||
            (d->cuPointerGetAttribute &&
             (d->cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, word) != CUDA_SUCCESS ||
              type != CU_MEMORYTYPE_HOST)))
            continue;
        found = true;
        if (into && (kp_snapshot_bytes(into) + bytes > most || !kp_snapshot_add(into, base, bytes)))
            *kept = false;
    }
    return found;
}
