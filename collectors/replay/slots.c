#include "collectors/replay/slots.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "collectors/replay/vmem.h"

enum {
    CHUNK_BYTES = 64 << 20,
    CHUNK_SLOTS = CHUNK_BYTES / KP_SLOT_BYTES,
    HUGE_PAGE = 2 << 20,
    PAGE = 4096,
    MOST_THREADS = 8,
};

/* Pinned memory of the host. */
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
        uint32_t *slots; /* the last one is taken first; room for all */
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

static void push(struct kp_slots *s, uint32_t slot)
{
    struct stack *u = &s->unused[kp_slots_is_on_device(s, slot)];
    u->slots[u->n++] = slot;
}

static void add(struct kp_slots *s, const struct chunk *c)
{
    uint32_t first = (uint32_t)(s->n_chunks * CHUNK_SLOTS);
    s->chunks[s->n_chunks++] = *c;
    for (uint32_t i = CHUNK_SLOTS; i--;)
        push(s, first + i);
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

/* A thread's share of memory that is to be there. */
struct share {
    char *memory;
    size_t bytes;
};

static void *touch(void *arg)
{
    const struct share *s = arg;
    for (size_t at = 0; at < s->bytes; at += PAGE)
        ((volatile char *)s->memory)[at] = 0;
    return NULL;
}

/* Has the system find the pages, on several threads: the driver's own way, page by page, takes 0.39 s a gigabyte on an
 * H100's host, this one 0.03 with eight threads and large pages, and pinning 0.02 more. */
static void make_present(const struct kp_slots *s, char *memory, size_t bytes)
{
    struct share shares[MOST_THREADS];
    pthread_t threads[MOST_THREADS];
    bool started[MOST_THREADS] = {false};
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    size_t n = cpus < 1 || !s->threads.start ? 1 : cpus < MOST_THREADS ? (size_t)cpus : MOST_THREADS;
    size_t each = (bytes / n + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    for (size_t i = 0; i < n; i++) {
        size_t from = i * each < bytes ? i * each : bytes;
        shares[i] = (struct share){memory + from, bytes - from < each ? bytes - from : each};
        started[i] = i && s->threads.start(touch, &shares[i], &threads[i]);
    }
    for (size_t i = 0; i < n; i++)
        if (started[i])
            s->threads.join(threads[i]);
        else
            touch(&shares[i]);
}

/* Pins memory of the host. The region is made for it, or NULL. */
static struct region *make_region(const struct kp_slots *s, size_t bytes, CUdeviceptr *at)
{
    const struct kp_driver *d = s->d;
    struct region *r = malloc(sizeof(*r));
    if (!r || !d->cuMemHostRegister || !d->cuMemHostUnregister || !d->cuMemHostGetDevicePointer) {
        free(r);
        return NULL;
    }
    r->bytes = bytes;
    r->memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (r->memory == MAP_FAILED) {
        free(r);
        return NULL;
    }
    madvise(r->memory, bytes, MADV_HUGEPAGE); /* fewer faults; without it all goes on */
    madvise(r->memory, bytes, MADV_DONTFORK);
    make_present(s, r->memory, bytes);
    if (d->cuMemHostRegister(r->memory, bytes, CU_MEMHOSTREGISTER_DEVICEMAP) == CUDA_SUCCESS) {
        if (d->cuMemHostGetDevicePointer(at, r->memory, 0) == CUDA_SUCCESS)
            return r;
        d->cuMemHostUnregister(r->memory);
    }
    munmap(r->memory, bytes);
    free(r);
    return NULL;
}

static bool add_on_host(struct kp_slots *s, size_t n, uint64_t most)
{
    CUdeviceptr at = 0;
    size_t bytes = n * CHUNK_BYTES;
    struct region *r = bytes <= most ? make_region(s, bytes, &at) : NULL;
    if (!r)
        return false;
    r->next = s->regions;
    s->regions = r;
    for (size_t i = 0; i < n; i++)
        add(s, &(struct chunk){.at = at + i * CHUNK_BYTES});
    return true;
}

/* ---- from the device to the host ---- */

/* Copies the last `n` chunks of the device. */
static CUresult copy_chunks(struct kp_slots *s, size_t n, const struct region *r)
{
    const struct kp_driver *d = s->d;
    char *to = r->memory;
    CUresult rc = s->stream ? CUDA_SUCCESS : d->cuStreamCreate(&s->stream, CU_STREAM_NON_BLOCKING);
    for (size_t i = s->n_chunks; rc == CUDA_SUCCESS && n && i--;)
        if (s->chunks[i].memory.at) {
            rc = d->cuMemcpyDtoHAsync(to, s->chunks[i].at, CHUNK_BYTES, s->stream);
            to += CHUNK_BYTES;
            n--;
        }
    CUresult end = s->stream ? d->cuStreamSynchronize(s->stream) : rc; /* also of those before one that failed */
    return rc == CUDA_SUCCESS ? end : rc;
}

/* Has the chunks that were copied be where their copies are. */
static void swap_chunks(struct kp_slots *s, size_t n, CUdeviceptr at)
{
    for (size_t i = s->n_chunks; n && i--;)
        if (s->chunks[i].memory.at) {
            kp_vmem_free(s->d, &s->chunks[i].memory);
            s->chunks[i].at = at;
            at += CHUNK_BYTES;
            s->n_on_device--;
            n--;
        }
}

/* Brings slots that were on the device to the others. */
static void sort_unused(struct kp_slots *s)
{
    struct stack *device = &s->unused[true];
    size_t n = device->n;
    device->n = 0;
    for (size_t i = 0; i < n; i++)
        push(s, device->slots[i]);
}

bool kp_slots_leave_device(struct kp_slots *s, uint64_t bytes, uint64_t most)
{
    size_t n = (bytes + CHUNK_BYTES - 1) / CHUNK_BYTES;
    CUdeviceptr at = 0;
    if (bytes > kp_slots_on_device(s) || n > s->n_on_device || n * (uint64_t)CHUNK_BYTES > most ||
        !s->d->cuMemcpyDtoHAsync)
        return false;
    struct region *r = make_region(s, n * CHUNK_BYTES, &at);
    if (!r)
        return false;
    r->next = s->regions; /* freed with the others, used or not */
    s->regions = r;
    if (copy_chunks(s, n, r) != CUDA_SUCCESS)
        return false;
    swap_chunks(s, n, at);
    sort_unused(s);
    return true;
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

void kp_slots_give(struct kp_slots *s, uint32_t slot)
{
    push(s, slot);
}

CUdeviceptr kp_slots_at(const struct kp_slots *s, uint32_t slot)
{
    return s->chunks[slot / CHUNK_SLOTS].at + (CUdeviceptr)(slot % CHUNK_SLOTS) * KP_SLOT_BYTES;
}

uint64_t kp_slots_on_device(const struct kp_slots *s)
{
    return (uint64_t)s->n_on_device * CHUNK_BYTES;
}

uint64_t kp_slots_on_host(const struct kp_slots *s)
{
    return (uint64_t)(s->n_chunks - s->n_on_device) * CHUNK_BYTES;
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
