#include "preload/program/hostmem.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "base/room.h"
#include "base/work.h"
#include "collectors/replay/vmem.h"
#include "preload/gate/gate.h"
#include "preload/gate/window_facts.h"

enum { SMALLEST_SLOT = 512 };

/* The most memory, bytes, that an open window keeps after the program has freed it. */
enum { MOST_KEPT = 256 << 20 };

/* A mapped piece of host memory: one allocation, or (an arena) slots of one size. Arenas are never freed: a program
 * that pins small buffers pins them again, and the driver takes far longer to map than to pin. */
struct piece {
    CUdeviceptr base;
    size_t bytes;
    int node; /* of the host's memory */
    size_t slot_bytes;
    size_t slots, used; /* the slots from `used` on were never handed out, and are zero */
    size_t n_freed;
    struct piece *next; /* of `arenas` */
    uint32_t freed[];   /* of an arena: slots to reuse */
};

enum kind {
    OURS,       /* made here */
    PINNED,     /* by the driver */
    REGISTERED, /* the program's own memory */
};

struct range {
    uint64_t base;
    size_t bytes;   /* the size that the program requested */
    unsigned flags; /* of OURS: likewise */
    enum kind kind;
    bool rewound;        /* a restore rewinds it */
    bool shared;         /* rewound, and perhaps shared with other processes */
    struct piece *piece; /* of OURS */
    struct range *next;  /* in the list of ranges being freed */
    bool idle;           /* in that list: the GPU was waited for, and only repetitions of the open window may use it */
};

static struct kp_lock *const lock = &kp_locks[KP_LOCK_HOST_MEMORY];

/* Under the lock. The ranges are sorted by address and never overlap. */
static struct range **ranges;
static size_t n_ranges;
static struct piece *arenas;
static struct range *leaving; /* freed during a stream capture, or in an open window */
static size_t leaving_bytes;

/* Bounds of all pieces that ever existed. */
static atomic_uint_fast64_t lowest_piece = UINT64_MAX, beyond_pieces;

/* Bounds of all ranges: most other numbers then need no lock. */
static atomic_uint_fast64_t lowest = UINT64_MAX, beyond;
static atomic_size_t n_rewound, n_shared;
static atomic_size_t n_of_program;

/* Set before there is any memory of ours, which may be freed in every phase of the process. */
static _Atomic(const struct kp_driver *) driver;

/* ---- ranges ---- */

/* Returns the index of the first range that ends beyond `address`. Under the lock, like all of this section. */
static size_t place_of(uint64_t address)
{
    size_t from = 0, to = n_ranges;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (ranges[middle]->base + ranges[middle]->bytes > address)
            to = middle;
        else
            from = middle + 1;
    }
    return from;
}

static void changed(void)
{
    const struct range *last = n_ranges ? ranges[n_ranges - 1] : NULL;
    atomic_store(&lowest, n_ranges ? ranges[0]->base : UINT64_MAX);
    atomic_store(&beyond, last ? last->base + last->bytes : 0);
}

static bool is_of_program(const struct range *r)
{
    return !(r->flags & KP_HOSTMEM_INTERNAL);
}

static void count(const struct range *r)
{
    atomic_fetch_add(&n_of_program, is_of_program(r));
    atomic_fetch_add(&n_rewound, r->rewound);
    atomic_fetch_add(&n_shared, r->shared);
}

static struct range *remove_at(size_t i)
{
    struct range *r = ranges[i];
    n_ranges--;
    memmove(&ranges[i], &ranges[i + 1], (n_ranges - i) * sizeof(*ranges));
    atomic_fetch_sub(&n_of_program, is_of_program(r));
    atomic_fetch_sub(&n_rewound, r->rewound);
    atomic_fetch_sub(&n_shared, r->shared);
    changed();
    return r;
}

/* Removes stale ranges at the place of new memory: pinned memory and registrations end silently with their context. */
static bool evict(uint64_t base, size_t bytes)
{
    size_t i = place_of(base);
    while (i < n_ranges && ranges[i]->base < base + bytes) {
        if (ranges[i]->kind == OURS)
            return false;
        free(remove_at(i));
    }
    return true;
}

/* Returns false if `r` is not in the table. */
static bool insert(struct range *r)
{
    if (!KP_ROOM(ranges, n_ranges) || !evict(r->base, r->bytes))
        return false;
    size_t i = place_of(r->base);
    memmove(&ranges[i + 1], &ranges[i], (n_ranges - i) * sizeof(*ranges));
    ranges[i] = r;
    n_ranges++;
    count(r);
    changed();
    return true;
}

/* Removes the range that starts at `p` from the table. NULL: no range of these kinds. */
static struct range *take(const void *p, bool registered)
{
    uint64_t address = (uintptr_t)p;
    struct range *r = NULL;
    kp_lock_take(lock, KP_FOREVER);
    size_t i = place_of(address);
    if (i < n_ranges && ranges[i]->base == address && (ranges[i]->kind == REGISTERED) == registered)
        r = remove_at(i);
    kp_lock_give(lock);
    return r;
}

/* Inserts a range; one that does not fit into the table counts permanently. */
static void put(struct range *r)
{
    kp_lock_take(lock, KP_FOREVER);
    bool kept = insert(r);
    kp_lock_give(lock);
    if (kept)
        return;
    count(r);
    free(r);
}

static void note(const struct range *what)
{
    struct range *r = malloc(sizeof(*r));
    if (!r) {
        count(what);
        return;
    }
    *r = *what;
    put(r);
}

bool kp_hostmem_any(void)
{
    return atomic_load(&n_of_program) > 0;
}

bool kp_hostmem_rewound(void)
{
    return atomic_load(&n_rewound) > 0;
}

bool kp_hostmem_shared(void)
{
    return atomic_load(&n_shared) > 0;
}

bool kp_hostmem_find(uint64_t address, void **base, size_t *bytes)
{
    if (address < atomic_load(&lowest) || address >= atomic_load(&beyond))
        return false;
    kp_lock_take(lock, KP_FOREVER);
    size_t i = place_of(address);
    bool found = i < n_ranges && ranges[i]->base <= address;
    if (found) {
        *base = (void *)(uintptr_t)ranges[i]->base;
        *bytes = ranges[i]->bytes;
    }
    kp_lock_give(lock);
    return found;
}

bool kp_hostmem_ours(uint64_t address, struct kp_hostmem_facts *facts)
{
    if (address < atomic_load(&lowest) || address >= atomic_load(&beyond))
        return false;
    kp_work_begin();
    kp_lock_take(lock, KP_FOREVER);
    size_t i = place_of(address);
    bool ours = i < n_ranges && ranges[i]->base <= address && ranges[i]->kind == OURS;
    if (ours)
        *facts = (struct kp_hostmem_facts){ranges[i]->base, ranges[i]->bytes, ranges[i]->flags};
    kp_lock_give(lock);
    kp_work_end();
    return ours;
}

bool kp_hostmem_is_ours(uint64_t address)
{
    struct kp_hostmem_facts facts;
    return kp_hostmem_ours(address, &facts);
}

static bool holds(const struct piece *piece, uint64_t address)
{
    return piece && address >= piece->base && address - piece->base < piece->bytes;
}

/* Returns true if a piece of ours holds the address; the ranges before `i` start below it. */
static bool is_in_piece(uint64_t address, size_t i)
{
    const struct piece *arena = arenas;
    const struct range *freed = leaving;
    if ((i < n_ranges && holds(ranges[i]->piece, address)) || (i && holds(ranges[i - 1]->piece, address)))
        return true;
    while (arena && !holds(arena, address))
        arena = arena->next;
    while (freed && !holds(freed->piece, address))
        freed = freed->next;
    return arena || freed;
}

bool kp_hostmem_is_gap(uint64_t address)
{
    if (address < atomic_load(&lowest_piece) || address >= atomic_load(&beyond_pieces))
        return false;
    kp_work_begin();
    kp_lock_take(lock, KP_FOREVER);
    size_t i = place_of(address);
    bool has = i < n_ranges && ranges[i]->base <= address && is_of_program(ranges[i]);
    bool gap = !has && is_in_piece(address, i);
    kp_lock_give(lock);
    kp_work_end();
    return gap;
}

/* Forgets everything in a forked child: CUDA is unusable there, and another thread's changes may be half done. Frees
 * reach the driver, which refuses them. */
void kp_hostmem_forked(void)
{
    n_ranges = 0;
    arenas = NULL;
    leaving = NULL;
    leaving_bytes = 0;
    atomic_store(&n_of_program, 0);
    atomic_store(&n_rewound, 0);
    atomic_store(&n_shared, 0);
    changed();
}

/* ---- pieces ---- */

static CUresult unmap(const struct kp_driver *d, CUdeviceptr base, size_t bytes)
{
    CUresult rc = d->cuMemUnmap(base, bytes);
    return rc == CUDA_SUCCESS ? d->cuMemAddressFree(base, bytes) : rc;
}

/* Grants access to the host and, because all contexts share one address space, to every device. */
static CUresult grant(const struct kp_driver *d, CUdeviceptr base, size_t bytes, const CUmemLocation *host)
{
    int devices = 0;
    CUresult rc = d->cuDeviceGetCount(&devices);
    if (rc != CUDA_SUCCESS)
        return rc;
    CUmemAccessDesc *access = calloc(1 + (size_t)devices, sizeof(*access));
    if (!access)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (int i = 0; i <= devices; i++) {
        access[i].flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        access[i].location = (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = i - 1};
    }
    access[0].location = *host;
    rc = d->cuMemSetAccess(base, bytes, access, 1 + (size_t)devices);
    free(access);
    return rc;
}

static CUresult map(const struct kp_driver *d, const CUmemAllocationProp *what, size_t bytes, CUdeviceptr *base)
{
    CUmemGenericAllocationHandle memory;
    CUdeviceptr address = 0;
    CUresult rc = d->cuMemCreate(&memory, bytes, what, 0);
    if (rc != CUDA_SUCCESS)
        return rc;
    rc = d->cuMemAddressReserve(&address, bytes, 0, 0, 0);
    if (rc == CUDA_SUCCESS && (rc = d->cuMemMap(address, bytes, 0, memory, 0)) != CUDA_SUCCESS)
        d->cuMemAddressFree(address, bytes);
    else if (rc == CUDA_SUCCESS && (rc = grant(d, address, bytes, &what->location)) != CUDA_SUCCESS)
        unmap(d, address, bytes);
    d->cuMemRelease(memory); /* it lives as long as its mapping */
    *base = address;
    return rc;
}

/* Widens the bounds of all pieces. */
static void widen(const struct piece *piece)
{
    kp_lock_take(lock, KP_FOREVER);
    if (piece->base < atomic_load(&lowest_piece))
        atomic_store(&lowest_piece, piece->base);
    if (piece->base + piece->bytes > atomic_load(&beyond_pieces))
        atomic_store(&beyond_pieces, piece->base + piece->bytes);
    kp_lock_give(lock);
}

static struct piece *new_piece(const struct kp_driver *d, const CUmemAllocationProp *what, size_t bytes,
                               size_t slot_bytes)
{
    size_t slots = bytes / slot_bytes;
    struct piece *piece = malloc(sizeof(*piece) + slots * sizeof(*piece->freed));
    if (!piece)
        return NULL;
    *piece = (struct piece){.bytes = bytes, .node = what->location.id, .slot_bytes = slot_bytes, .slots = slots};
    if (map(d, what, bytes, &piece->base) != CUDA_SUCCESS) {
        free(piece);
        return NULL;
    }
    widen(piece);
    return piece;
}

static CUresult free_piece(const struct kp_driver *d, struct piece *piece)
{
    CUresult rc = unmap(d, piece->base, piece->bytes);
    free(piece);
    return rc;
}

static bool is_arena(const struct piece *piece)
{
    return piece->slots > 1;
}

/* ---- making ---- */

static bool is_capable(const struct kp_driver *d)
{
    return d->cuDeviceGetCount && kp_vmem_available(d);
}

/* Returns true if the driver itself might refuse, because a stream is being captured: then the driver must be asked. */
static bool capture_forbids(const struct kp_driver *d)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED, back;
    if (!kp_gate_captures())
        return false;
    if (!d->cuThreadExchangeStreamCaptureMode || d->cuThreadExchangeStreamCaptureMode(&mode) != CUDA_SUCCESS)
        return true;
    back = mode;
    d->cuThreadExchangeStreamCaptureMode(&back);
    return mode != CU_STREAM_CAPTURE_MODE_RELAXED;
}

/* Places memory on the node next to the current device. Fails without a context, like the driver's own function. */
static CUresult place(const struct kp_driver *d, CUmemAllocationProp *what)
{
    CUdevice device;
    int node = 0;
    CUresult rc = d->cuCtxGetDevice(&device);
    if (rc != CUDA_SUCCESS)
        return rc;
    if (d->cuDeviceGetAttribute(&node, CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID, device) != CUDA_SUCCESS || node < 0)
        node = 0;
    memset(what, 0, sizeof(*what));
    what->type = CU_MEM_ALLOCATION_TYPE_PINNED;
    what->location = (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_HOST_NUMA, .id = node};
    return CUDA_SUCCESS;
}

/* Allocates a slot; *again: it was used before. Call under the lock. */
static uint64_t take_slot(struct piece *piece, bool *again)
{
    *again = piece->n_freed > 0;
    size_t slot = *again ? piece->freed[--piece->n_freed] : piece->used++;
    return piece->base + slot * piece->slot_bytes;
}

/* Allocates a slot of an existing arena. */
static struct piece *slot_of(size_t slot_bytes, int node, uint64_t *base)
{
    bool again = false;
    kp_lock_take(lock, KP_FOREVER);
    struct piece *piece = arenas;
    while (piece &&
           (piece->slot_bytes != slot_bytes || piece->node != node || (!piece->n_freed && piece->used == piece->slots)))
        piece = piece->next;
    if (piece)
        *base = take_slot(piece, &again);
    kp_lock_give(lock);
    if (again)
        memset((void *)(uintptr_t)*base, 0, slot_bytes);
    return piece;
}

static size_t round_up(size_t bytes, size_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

/* Gets memory for `r`: its base and its piece. */
static bool provide(const struct kp_driver *d, struct range *r)
{
    CUmemAllocationProp what;
    size_t unit = 0, slot = SMALLEST_SLOT;
    if (place(d, &what) != CUDA_SUCCESS ||
        d->cuMemGetAllocationGranularity(&unit, &what, CU_MEM_ALLOC_GRANULARITY_MINIMUM) != CUDA_SUCCESS || !unit ||
        r->bytes > SIZE_MAX - unit)
        return false;
    /* Powers of two are aligned to themselves, and so to pages, as programs may expect. */
    while (slot < r->bytes && slot < unit)
        slot *= 2;
    bool small = slot < unit;
    r->piece = small ? slot_of(slot, what.location.id, &r->base) : NULL;
    if (r->piece)
        return true;
    size_t bytes = small ? unit : round_up(r->bytes, unit);
    r->piece = new_piece(d, &what, bytes, small ? slot : bytes);
    if (!r->piece)
        return false;
    kp_lock_take(lock, KP_FOREVER);
    bool again;
    r->base = take_slot(r->piece, &again);
    if (is_arena(r->piece)) {
        r->piece->next = arenas;
        arenas = r->piece;
    }
    kp_lock_give(lock);
    return true;
}

/* Frees the memory of `r`, and `r`. */
static CUresult release(const struct kp_driver *d, struct range *r)
{
    struct piece *piece = r->piece;
    CUresult rc = CUDA_SUCCESS;
    if (is_arena(piece)) {
        kp_lock_take(lock, KP_FOREVER);
        piece->freed[piece->n_freed++] = (uint32_t)((r->base - piece->base) / piece->slot_bytes);
        kp_lock_give(lock);
    } else {
        rc = free_piece(d, piece);
    }
    free(r);
    return rc;
}

bool kp_hostmem_can_make(const struct kp_driver *d)
{
    return is_capable(d) && !capture_forbids(d);
}

/* Makes memory of ours instead of pinned memory. Unlike pinned memory, it does not end with the current context; a
 * program that destroys its context does not notice, and may still free it. */
bool kp_hostmem_make(const struct kp_driver *d, void **p, size_t bytes, unsigned flags)
{
    if (!p || !bytes || !d || !kp_hostmem_can_make(d))
        return false;
    struct range *r = calloc(1, sizeof(*r));
    if (!r)
        return false;
    atomic_store(&driver, d);
    r->bytes = bytes;
    r->flags = flags;
    r->kind = OURS;
    if (!provide(d, r)) {
        free(r);
        return false;
    }
    void *base = (void *)(uintptr_t)r->base;
    kp_lock_take(lock, KP_FOREVER);
    bool kept = insert(r);
    kp_lock_give(lock);
    if (kept)
        *p = base;
    else
        release(d, r);
    return kept;
}

/* ---- freeing ---- */

/* Returns the error by which the driver forbids freeing pinned memory while a stream is being captured; CUDA_SUCCESS:
 * it does not. Asks about an address unknown to the driver, which ends the capture just as the program's call would. */
static CUresult capture_refuses(const struct kp_driver *d, CUresult (*real)(void *p))
{
    static char none;
    CUresult rc = capture_forbids(d) ? real(&none) : CUDA_SUCCESS;
    bool of_capture = rc >= CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED && rc <= CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    return of_capture ? rc : CUDA_SUCCESS;
}

/* Waits until the GPU is done with the memory that is freed. Returns false if it could not. */
static bool wait_for_gpu(const struct kp_driver *d)
{
    CUcontext ctx = NULL;
    return d->cuCtxGetCurrent(&ctx) == CUDA_SUCCESS && (!ctx || d->cuCtxSynchronize() == CUDA_SUCCESS);
}

/* Returns the driver's error for any memory, as where a kernel has failed; CUDA_SUCCESS: there is none. */
static CUresult error_of(CUresult (*real)(void *p))
{
    static char none;
    CUresult rc = real(&none);
    return rc == CUDA_ERROR_INVALID_VALUE ? CUDA_SUCCESS : rc;
}

static void leave(struct range *list, bool idle)
{
    kp_lock_take(lock, KP_FOREVER);
    while (list) {
        struct range *r = list;
        list = r->next;
        r->idle = idle;
        r->next = leaving;
        leaving = r;
        leaving_bytes += r->bytes;
    }
    kp_lock_give(lock);
}

/* Returns what was left; `idle`: only what is. */
static struct range *take_leaving(bool idle)
{
    struct range *list = NULL;
    kp_lock_take(lock, KP_FOREVER);
    for (struct range **at = &leaving, *r; (r = *at);) {
        if (idle && !r->idle) {
            at = &r->next;
            continue;
        }
        *at = r->next;
        r->next = list;
        list = r;
        leaving_bytes -= r->bytes;
    }
    kp_lock_give(lock);
    return list;
}

static CUresult release_all(const struct kp_driver *d, struct range *list)
{
    CUresult rc = CUDA_SUCCESS;
    while (list) {
        struct range *next = list->next;
        CUresult freed = release(d, list);
        rc = rc == CUDA_SUCCESS ? freed : rc;
        list = next;
    }
    return rc;
}

/* Frees `r` of ours, once the GPU is done with it, and ranges deferred before. A stream capture defers it, because
 * waiting would end the capture. So does an open window, whose repetitions may use it. */
static CUresult free_ours(CUresult (*real)(void *p), struct range *r)
{
    const struct kp_driver *d = atomic_load(&driver);
    CUresult refused = capture_refuses(d, real);
    if (refused != CUDA_SUCCESS) {
        put(r);
        return refused;
    }
    if (kp_gate_captures()) {
        leave(r, false);
        return CUDA_SUCCESS;
    }
    r->next = take_leaving(false);
    bool waited = wait_for_gpu(d);
    if (waited && !kp_window_watches())
        return release_all(d, r);
    leave(r, waited);
    return waited ? CUDA_SUCCESS : error_of(real);
}

void kp_hostmem_window_closed(bool ended)
{
    struct range *list = take_leaving(true);
    if (ended)
        release_all(atomic_load(&driver), list);
    else
        leave(list, false);
}

bool kp_hostmem_may_keep(const void *p)
{
    kp_lock_take(lock, KP_FOREVER);
    size_t i = place_of((uintptr_t)p);
    bool ours = i < n_ranges && ranges[i]->base == (uintptr_t)p && ranges[i]->kind == OURS;
    bool may = ours && leaving_bytes <= MOST_KEPT && ranges[i]->bytes <= MOST_KEPT - leaving_bytes;
    kp_lock_give(lock);
    return may;
}

/* Frees or unregisters `r`, or (NULL) memory in no table, through the driver. Removes `r` first, because another thread
 * may get the same memory next, and restores it if the driver refuses. */
static CUresult through(CUresult (*real)(void *p), void *p, struct range *r)
{
    CUresult rc = real(p);
    if (r && rc != CUDA_SUCCESS)
        put(r);
    else
        free(r);
    return rc;
}

/* Frees memory of ours in every phase of the process. */
CUresult kp_hostmem_free(CUresult (*real)(void *p), void *p)
{
    struct range *r = take(p, false);
    return r && r->kind == OURS ? free_ours(real, r) : through(real, p, r);
}

CUresult kp_hostmem_unregister(CUresult (*real)(void *p), void *p)
{
    return through(real, p, take(p, true));
}

void kp_hostmem_note_pinned(const void *p, size_t bytes)
{
    note(&(struct range){.base = (uintptr_t)p, .bytes = bytes, .kind = PINNED, .rewound = true});
}

void kp_hostmem_note_registered(const void *p, size_t bytes, bool rewound, bool shared)
{
    note(&(struct range){
        .base = (uintptr_t)p, .bytes = bytes, .kind = REGISTERED, .rewound = rewound, .shared = shared});
}
