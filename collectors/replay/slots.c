#include "collectors/replay/slots.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/debug.h"
#include "collectors/replay/vmem.h"

enum {
    CHUNK_BYTES = 64 << 20,
    CHUNK_SLOTS = CHUNK_BYTES / KP_SLOT_BYTES,
    PAGE = 4096,
    MOST_THREADS = 8,
    WAIT_US = 200,
};

/* Pinned host memory. */
struct region {
    char *memory;
    size_t bytes;
    struct region *next;
};

struct kp_slots {
    const struct kp_driver *d;
    CUdevice device;
    struct kp_threads threads;
    struct chunk {
        CUdeviceptr at;
        struct kp_vmem memory; /* empty: of a region */
    } * chunks;
    size_t n_chunks, n_on_device;
    CUstream stream; /* for copies to the host; made when first needed */
    struct region *regions;
    struct stack {
        uint32_t *slots; /* the last one is used first; room for all */
        size_t n;
    } unused[2]; /* on the host, on the device */
};

struct kp_slots *kp_slots_open(const struct kp_driver *d, CUdevice device, const struct kp_threads *threads)
{
    struct kp_slots *s = calloc(1, sizeof(*s));
    if (!s)
        return NULL;
    s->d = d;
    s->device = device;
    s->threads = *threads;
    return s;
}

/* Makes the tables hold `more` chunks more. */
static bool grow(struct kp_slots *s, size_t more)
{
    struct chunk *chunks = realloc(s->chunks, (s->n_chunks + more) * sizeof(*chunks));
    if (!chunks)
        return false;
    s->chunks = chunks;
    for (int on_device = 0; on_device < 2; on_device++) {
        uint32_t *slots = realloc(s->unused[on_device].slots, (s->n_chunks + more) * CHUNK_SLOTS * sizeof(*slots));
        if (!slots)
            return false;
        s->unused[on_device].slots = slots;
    }
    return true;
}

bool kp_slots_is_on_device(const struct kp_slots *s, uint32_t slot)
{
    return s->chunks[slot / CHUNK_SLOTS].memory.at;
}

void kp_slots_give(struct kp_slots *s, uint32_t slot)
{
    struct stack *u = &s->unused[kp_slots_is_on_device(s, slot)];
    u->slots[u->n++] = slot;
}

static void add(struct kp_slots *s, const struct chunk *c)
{
    uint32_t first = (uint32_t)(s->n_chunks * CHUNK_SLOTS);
    s->chunks[s->n_chunks++] = *c;
    for (uint32_t i = CHUNK_SLOTS; i--;)
        kp_slots_give(s, first + i);
}

/* ---- on the device ---- */

/* Returns how many of `wanted` chunks were made. */
static size_t add_on_device(struct kp_slots *s, size_t wanted, uint64_t stay_free)
{
    size_t left = 0, total = 0, n = 0;
    if (s->d->cuMemGetInfo(&left, &total) != CUDA_SUCCESS || left <= stay_free)
        return 0;
    size_t most = (left - stay_free) / CHUNK_BYTES;
    struct chunk c = {.at = 0};
    while (n < wanted && n < most && kp_vmem_make(s->d, s->device, CHUNK_BYTES, &c.memory) == CUDA_SUCCESS) {
        c.at = c.memory.at;
        add(s, &c);
        n++;
    }
    s->n_on_device += n;
    return n;
}

/* ---- on the host ---- */

/* Host memory that is being made, region by region. Several threads make the system find the pages: the driver's own
 * way, page by page, costs 0.39 s per gigabyte on an H100's host, this one 0.03 with eight threads and large pages.
 * Regions whose pages are present are pinned meanwhile, which costs 0.02 more. */
struct making {
    struct region **regions;
    size_t n;
    atomic_size_t next;   /* next chunk for a thread, over all regions in order */
    atomic_size_t *there; /* bytes of each region whose pages are present */
    atomic_bool given_up;
};

enum { REGION_CHUNKS = 32 }; /* of all regions but the last */

static void *touch(void *arg)
{
    struct making *m = arg;
    size_t i;
    while ((i = atomic_fetch_add(&m->next, 1)) < m->n * REGION_CHUNKS && !atomic_load(&m->given_up)) {
        const struct region *r = m->regions[i / REGION_CHUNKS];
        size_t from = i % REGION_CHUNKS * CHUNK_BYTES;
        if (from >= r->bytes)
            continue;
        for (size_t at = 0; at < CHUNK_BYTES; at += PAGE)
            ((volatile char *)r->memory)[from + at] = 0;
        atomic_fetch_add(&m->there[i / REGION_CHUNKS], CHUNK_BYTES);
    }
    return NULL;
}

static void unmake_region(struct region *r)
{
    if (r && r->memory != MAP_FAILED)
        munmap(r->memory, r->bytes);
    free(r);
}

/* Makes a region without pages, or NULL. */
static struct region *plan_region(size_t bytes)
{
    struct region *r = malloc(sizeof(*r));
    if (!r)
        return NULL;
    r->bytes = bytes;
    r->memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (r->memory == MAP_FAILED) {
        unmake_region(r);
        return NULL;
    }
    madvise(r->memory, bytes, MADV_HUGEPAGE); /* fewer faults; optional */
    madvise(r->memory, bytes, MADV_DONTFORK);
    return r;
}

/* Pins a region whose pages are present, or will be. Returns its address for the device, or 0. */
static CUdeviceptr pin(const struct kp_slots *s, struct making *m, size_t i)
{
    const struct kp_driver *d = s->d;
    const struct region *r = m->regions[i];
    CUdeviceptr at = 0;
    while (atomic_load(&m->there[i]) < r->bytes)
        usleep(WAIT_US);
    if (d->cuMemHostRegister(r->memory, r->bytes, CU_MEMHOSTREGISTER_DEVICEMAP) != CUDA_SUCCESS)
        return 0;
    if (d->cuMemHostGetDevicePointer(&at, r->memory, 0) == CUDA_SUCCESS)
        return at;
    d->cuMemHostUnregister(r->memory);
    return 0;
}

/* Adds the regions that could be pinned, in order. Returns how many. */
static size_t pin_all(struct kp_slots *s, struct making *m, CUdeviceptr *at)
{
    size_t n = 0;
    while (n < m->n && (at[n] = pin(s, m, n))) {
        m->regions[n]->next = s->regions;
        s->regions = m->regions[n];
        n++;
    }
    atomic_store(&m->given_up, true);
    return n;
}

/* Makes threads find the pages while the regions are pinned. Without threads, finds them first. */
static size_t make_present(struct kp_slots *s, struct making *m, CUdeviceptr *at)
{
    pthread_t threads[MOST_THREADS];
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    size_t wanted = cpus < 1 || !s->threads.start ? 0 : cpus < MOST_THREADS ? (size_t)cpus : MOST_THREADS, n = 0;
    while (n < wanted && s->threads.start(touch, m, &threads[n]))
        n++;
    if (!n)
        touch(m);
    size_t pinned = pin_all(s, m, at);
    while (n)
        s->threads.join(threads[--n]);
    return pinned;
}

static void forget_making(struct making *m, size_t from)
{
    for (size_t i = from; m->regions && i < m->n; i++)
        unmake_region(m->regions[i]);
    free(m->regions);
    free(m->there);
}

/* Pins host memory for `n` chunks: at[k] is the device's address of the kth REGION_CHUNKS of them. False: for fewer,
 * which are released with the rest at the end. */
static bool make_regions(struct kp_slots *s, size_t n, CUdeviceptr *at)
{
    const struct kp_driver *d = s->d;
    struct making m = {.n = (n + REGION_CHUNKS - 1) / REGION_CHUNKS};
    m.regions = calloc(m.n, sizeof(struct region *));
    m.there = calloc(m.n, sizeof(*m.there));
    bool able = m.regions && m.there && d->cuMemHostRegister && d->cuMemHostUnregister && d->cuMemHostGetDevicePointer;
    for (size_t i = 0; able && i < m.n; i++) {
        size_t left = n - i * REGION_CHUNKS;
        m.regions[i] = plan_region((left < REGION_CHUNKS ? left : REGION_CHUNKS) * CHUNK_BYTES);
        able = m.regions[i];
    }
    size_t pinned = able ? make_present(s, &m, at) : 0;
    bool all = able && pinned == m.n;
    forget_making(&m, pinned);
    return all;
}

/* Returns the device's address of the kth chunk of the regions. */
static CUdeviceptr chunk_at(const CUdeviceptr *at, size_t k)
{
    return at[k / REGION_CHUNKS] + k % REGION_CHUNKS * CHUNK_BYTES;
}

/* Like make_regions; *at is malloc'ed. */
static bool make_on_host(struct kp_slots *s, size_t n, uint64_t most, CUdeviceptr **at)
{
    *at = n && n <= most / CHUNK_BYTES ? malloc((n / REGION_CHUNKS + 1) * sizeof(**at)) : NULL;
    if (*at && make_regions(s, n, *at))
        return true;
    free(*at);
    *at = NULL;
    return false;
}

static bool add_on_host(struct kp_slots *s, size_t n, uint64_t most)
{
    CUdeviceptr *at;
    uint64_t start = kp_clock_ns();
    if (!make_on_host(s, n, most, &at))
        return false;
    for (size_t i = 0; i < n; i++)
        add(s, &(struct chunk){.at = chunk_at(at, i)});
    free(at);
    kp_debug(KP_DEBUG_REPLAY, "%.1f GB of the host's memory pinned in %.0f ms", (double)n * CHUNK_BYTES / 1e9,
             (double)(kp_clock_ns() - start) / 1e6);
    return true;
}

/* ---- from the device to the host ---- */

/* Copies the last `n` chunks of the device. */
static CUresult copy_chunks(struct kp_slots *s, size_t n, const CUdeviceptr *at)
{
    const struct kp_driver *d = s->d;
    CUresult rc = s->stream ? CUDA_SUCCESS : d->cuStreamCreate(&s->stream, CU_STREAM_NON_BLOCKING);
    size_t k = 0;
    for (size_t i = s->n_chunks; rc == CUDA_SUCCESS && k < n && i--;)
        if (s->chunks[i].memory.at)
            rc = d->cuMemcpyDtoHAsync((void *)(uintptr_t)chunk_at(at, k++), s->chunks[i].at, CHUNK_BYTES, s->stream);
    CUresult end = s->stream ? d->cuStreamSynchronize(s->stream) : rc; /* also those copied before the failure */
    return rc == CUDA_SUCCESS ? end : rc;
}

/* Makes copied chunks refer to their copies. */
static void swap_chunks(struct kp_slots *s, size_t n, const CUdeviceptr *at)
{
    size_t k = 0;
    for (size_t i = s->n_chunks; k < n && i--;)
        if (s->chunks[i].memory.at) {
            kp_vmem_free(s->d, &s->chunks[i].memory);
            s->chunks[i].at = chunk_at(at, k++);
            s->n_on_device--;
        }
}

/* Sorts free slots that were on the device into the others. */
static void sort_unused(struct kp_slots *s)
{
    struct stack *device = &s->unused[true];
    size_t n = device->n;
    device->n = 0;
    for (size_t i = 0; i < n; i++)
        kp_slots_give(s, device->slots[i]);
}

bool kp_slots_leave_device(struct kp_slots *s, uint64_t bytes, uint64_t most)
{
    size_t n = (bytes + CHUNK_BYTES - 1) / CHUNK_BYTES;
    CUdeviceptr *at;
    if (bytes > kp_slots_on_device(s) || !s->d->cuMemcpyDtoHAsync || !make_on_host(s, n, most, &at))
        return false;
    bool copied = copy_chunks(s, n, at) == CUDA_SUCCESS;
    if (copied) {
        swap_chunks(s, n, at);
        sort_unused(s);
    }
    free(at);
    return copied;
}

/* ---- slots ---- */

bool kp_slots_reserve(struct kp_slots *s, size_t n, const struct kp_slot_room *room)
{
    size_t there = s->unused[false].n + s->unused[true].n;
    if (n <= there)
        return true;
    size_t more = (n - there + CHUNK_SLOTS - 1) / CHUNK_SLOTS;
    if (!grow(s, more))
        return false;
    size_t made = add_on_device(s, more, room->device_left);
    return made == more || add_on_host(s, more - made, room->host);
}

size_t kp_slots_reserve_device(struct kp_slots *s, size_t n, const struct kp_slot_room *room)
{
    const struct stack *there = &s->unused[true];
    size_t more = n > there->n ? (n - there->n + CHUNK_SLOTS - 1) / CHUNK_SLOTS : 0;
    if (more && grow(s, more))
        add_on_device(s, more, room->device_left);
    return there->n;
}

uint32_t kp_slots_take(struct kp_slots *s)
{
    struct stack *u = &s->unused[s->unused[true].n > 0];
    return u->slots[--u->n];
}

CUdeviceptr kp_slots_at(const struct kp_slots *s, uint32_t slot)
{
    return s->chunks[slot / CHUNK_SLOTS].at + (CUdeviceptr)(slot % CHUNK_SLOTS) * KP_SLOT_BYTES;
}

uint64_t kp_slots_on_device(const struct kp_slots *s)
{
    return (uint64_t)s->n_on_device * CHUNK_BYTES;
}

void kp_slots_close(struct kp_slots *s, bool context_alive)
{
    if (!s)
        return;
    for (size_t i = 0; context_alive && i < s->n_chunks; i++)
        kp_vmem_free(s->d, &s->chunks[i].memory);
    if (context_alive && s->stream)
        s->d->cuStreamDestroy(s->stream);
    while (s->regions) {
        struct region *r = s->regions;
        s->regions = r->next;
        if (context_alive)
            s->d->cuMemHostUnregister(r->memory);
        munmap(r->memory, r->bytes);
        free(r);
    }
    free(s->chunks);
    free(s->unused[false].slots);
    free(s->unused[true].slots);
    free(s);
}
