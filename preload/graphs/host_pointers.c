#include "preload/graphs/host_pointers.h"

#include <string.h>
#include <sys/mman.h>

#include "base/debug.h"
#include "preload/graphs/graph_memory.h"
#include "preload/program/hostmem.h"

/* Reads the word of the launch's arguments at byte *at, which moves to the next one. Returns false after the last. */
static bool next_word(const struct kp_launch *l, size_t *at, uint64_t *word)
{
    if (*at + sizeof(*word) > l->copied)
        return false;
    memcpy(word, (const char *)l->copy + *at, sizeof(*word));
    *at += sizeof(*word);
    return true;
}

bool kp_reach_heap(const struct kp_driver *d, const struct kp_launch *l)
{
    const uint64_t page = 4096, lowest = 1 << 16, end = 1ull << 47;
    uint64_t word;
    for (size_t at = 0; next_word(l, &at, &word);) {
        unsigned char resident;
        unsigned type = 0;
        bool ours = word >= (uint64_t)(uintptr_t)l->copy && word < (uint64_t)(uintptr_t)l->copy + l->copied;
        if (word < lowest || word >= end || ours || mincore((void *)(uintptr_t)(word / page * page), page, &resident) ||
            kp_graph_memory_holds(word))
            continue;
        if (d->cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, word) != CUDA_SUCCESS)
            return true;
    }
    return false;
}

/* Finds the allocation that a word of the arguments points into, if it is host memory that the device can reach. */
static bool points_to_host(const struct kp_driver *d, uint64_t word, void **base, size_t *bytes)
{
    unsigned type = 0;
    if (!kp_hostmem_find(word, base, bytes))
        return false;
    /* The table may list memory that ended with its context. */
    return d->cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, word) == CUDA_SUCCESS &&
           type == CU_MEMORYTYPE_HOST;
}

bool kp_reach_host(const struct kp_driver *d, const struct kp_launch *l, struct kp_snapshot *into, size_t most,
                   bool *kept)
{
    bool found = false;
    uint64_t word;
    for (size_t at = 0; next_word(l, &at, &word);) {
        void *base;
        size_t bytes;
        if (!points_to_host(d, word, &base, &bytes))
            continue;
        found = true;
        if (into && (kp_snapshot_bytes(into) + bytes > most || !kp_snapshot_add(into, base, bytes)))
            *kept = false;
    }
    return found;
}

/* ---- device memory ---- */

/* Pages of an allocation: all, or so many from the address on of a large one (measured). */
enum { MOST_PAGES = 256, PAGES_BEHIND = 16 };

/* Returns true if the address is in memory of cuMemAlloc of this context. Other kinds cannot be shared by handles of
 * IPC. */
static bool is_plain(const struct kp_driver *d, CUcontext ctx, CUdeviceptr at)
{
    CUcontext of = NULL;
    unsigned ipc = 0; /* the driver writes a bool */
    return d->cuPointerGetAttribute(&ipc, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, at) == CUDA_SUCCESS && ipc &&
           d->cuPointerGetAttribute(&of, CU_POINTER_ATTRIBUTE_CONTEXT, at) == CUDA_SUCCESS && of == ctx;
}

/* Chooses the last word of the allocation, and the word at the same offset in each page: a launch that reads the first
 * words of an array finds none of them in the L2, as under ncu. */
static struct kp_pages pages_of(CUdeviceptr base, size_t bytes, CUdeviceptr at)
{
    const size_t word = 4;
    if (bytes < word)
        return (struct kp_pages){.at = base, .n = 0};
    struct kp_pages p = {.at = base + (bytes - word) % KP_PAGE_BYTES, .n = (bytes - word) / KP_PAGE_BYTES + 1};
    if (p.n <= MOST_PAGES)
        return p;
    p.at += (at - base) / KP_PAGE_BYTES * KP_PAGE_BYTES;
    p.n -= (at - base) / KP_PAGE_BYTES;
    p.n = p.n < PAGES_BEHIND ? p.n : PAGES_BEHIND;
    return p;
}

static bool is_listed(const struct kp_pages *list, size_t n, const struct kp_pages *p)
{
    for (size_t i = 0; i < n; i++)
        if (list[i].at == p->at)
            return true;
    return false;
}

size_t kp_reach_pages(const struct kp_driver *d, CUcontext ctx, const struct kp_launch *l, struct kp_pages *out,
                      size_t most)
{
    const uint64_t lowest = 1 << 16;
    uint64_t word;
    size_t n = 0;
    for (size_t at = 0; n < most && next_word(l, &at, &word);) {
        CUdeviceptr base;
        size_t bytes;
        if (word < lowest || d->cuMemGetAddressRange(&base, &bytes, word) != CUDA_SUCCESS)
            continue;
        out[n] = pages_of(base, bytes, word);
        n += out[n].n && !is_listed(out, n, &out[n]) && is_plain(d, ctx, word);
    }
    return n;
}

/* ---- host memory that kernels leave alone ---- */

bool kp_reach_compare(const struct kp_driver *d, const struct kp_launch *l, struct kp_snapshot *with, size_t most)
{
    bool same = true;
    uint64_t word;
    for (size_t at = 0; same && next_word(l, &at, &word);) {
        bool known;
        void *base;
        size_t bytes;
        if (!points_to_host(d, word, &base, &bytes) || kp_snapshot_same(with, base, &known))
            continue;
        same = !known && kp_snapshot_bytes(with) + bytes <= most && kp_snapshot_add(with, base, bytes);
    }
    return same;
}
