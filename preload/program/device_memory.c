#include "preload/program/device_memory.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "base/room.h"
#include "preload/program/unmapped_ranges.h"

enum does {
    CREATES,
    RELEASES,
    MAPS,
    GRANTS,
    UNMAPS,
    LAST_VIRTUAL = UNMAPS,
    ALLOCATES,
    ALLOCATES_LATER,
    FREES,
    FREES_LATER,
    VARIABLE,
    MAKES_ARRAY,
    ENDS_ARRAY,
    TELLS_FREE,
    ADDS_NODE,
    MANAGED,
    FOREIGN,
    GRAPH,
    SPARSE,
    OLD
};

static const struct kp_owning rows[] = {
#define KP_OWNS(symbol, does, bytes) {#symbol, does, bytes},
#include "preload/program/device_memory.def"
#undef KP_OWNS
};

/* Memory with an address. */
struct range {
    CUdeviceptr at;
    size_t bytes; /* of a mapping or a variable; the driver knows the size of an allocation */
    enum kind { ALLOCATION, OF_GRAPH, MAPPING, OF_MODULE } kind;
    cuuint64_t capture;                  /* the capture that made it, if it belongs to a graph */
    CUcontext ctx;                       /* the context that allocated it; NULL: not known, or the device's */
    CUmemGenericAllocationHandle memory; /* of a mapping */
};

static struct kp_lock *const lock = &kp_locks[KP_LOCK_OWNED];

/* Under the lock: sorted by address, one for each address. */
static struct range *ranges;
static size_t n_ranges;

/* What cannot be listed: a bit for each of `does` that has occurred; and the number of arrays. */
static atomic_uint unlisted;
static atomic_long arrays;
static atomic_bool lost; /* a range is missing because memory was short */

const struct kp_owning *kp_owned_row(const char *symbol)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        if (!strcmp(rows[i].symbol, symbol))
            return &rows[i];
    return NULL;
}

uint64_t kp_owned_takes(const struct kp_owning *row, const uint64_t *args)
{
    return row->tells && row->does != ADDS_NODE ? args[row->tells - 1] : 0;
}

/* ---- ranges; under the lock ---- */

/* Returns the index of the first range at or above `at`. */
static size_t place_of_memory(CUdeviceptr at)
{
    size_t from = 0, to = n_ranges;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (ranges[middle].at < at)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

static void insert_range(const struct range *r)
{
    size_t i = place_of_memory(r->at);
    if (i < n_ranges && ranges[i].at == r->at) {
        ranges[i] = *r; /* the one before ended unseen, with its context */
        return;
    }
    if (!KP_ROOM(ranges, n_ranges)) {
        atomic_store(&lost, true);
        return;
    }
    memmove(&ranges[i + 1], &ranges[i], (n_ranges - i) * sizeof(*ranges));
    ranges[i] = *r;
    n_ranges++;
}

/* Removes the ranges that start within `bytes` from `at`. */
static void take_out(CUdeviceptr at, size_t bytes)
{
    size_t from = place_of_memory(at), to = place_of_memory(at + bytes);
    memmove(&ranges[from], &ranges[to], (n_ranges - to) * sizeof(*ranges));
    n_ranges -= to - from;
}

/* ---- notes ---- */

static void put_range(const struct range *r)
{
    kp_lock_take(lock, KP_FOREVER);
    insert_range(r);
    kp_lock_give(lock);
}

static void note_range(CUdeviceptr at, size_t bytes, enum kind kind)
{
    put_range(&(struct range){at, bytes, kind, 0, NULL, 0});
}

/* Returns the current context, never NULL: a stand-in if the driver does not say. */
static CUcontext current(const struct kp_driver *d)
{
    static char unknown;
    CUcontext ctx = NULL;
    bool known = d->cuCtxGetCurrent && d->cuCtxGetCurrent(&ctx) == CUDA_SUCCESS && ctx;
    return known ? ctx : (CUcontext)(void *)&unknown;
}

/* Notes memory of the current context. */
static void note_allocated(const struct kp_driver *d, CUdeviceptr at)
{
    put_range(&(struct range){at, 0, ALLOCATION, 0, current(d), 0});
}

static void forget(CUdeviceptr at, size_t bytes)
{
    kp_lock_take(lock, KP_FOREVER);
    take_out(at, bytes);
    kp_lock_give(lock);
}

static const cuuint64_t no_capture = UINT64_MAX; /* an unknown one */

/* Returns the number of the capture that a stream is in, or 0. *known: the driver has answered. */
static cuuint64_t capture_of(const struct kp_driver *d, CUstream stream, bool *known)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    cuuint64_t id = 0;
    *known =
        d->cuStreamGetCaptureInfo && d->cuStreamGetCaptureInfo(stream, &status, &id, NULL, NULL, NULL) == CUDA_SUCCESS;
    return status == CU_STREAM_CAPTURE_STATUS_NONE ? 0 : id;
}

/* The stream of a call: for functions of per-thread default streams, 0 is the thread's own. */
static CUstream stream_of(const struct kp_owning *row, uint64_t stream)
{
    return !stream && strstr(row->symbol, "_ptsz") ? CU_STREAM_PER_THREAD : (CUstream)(uintptr_t)stream;
}

/* Notes memory allocated in stream order, or by a graph if the stream is captured. */
static void note_later(const struct kp_driver *d, const struct kp_owning *row, const uint64_t *args, CUdeviceptr at)
{
    bool known, of_pool = strstr(row->symbol, "FromPool");
    cuuint64_t capture = capture_of(d, stream_of(row, args[of_pool ? 3 : 2]), &known);
    if (!known)
        capture = no_capture;
    put_range(&(struct range){at, 0, capture ? OF_GRAPH : ALLOCATION, capture, NULL, 0});
}

/* Forgets memory that is freed in stream order. Memory that a capture frees without having made it lives until the
 * graph is launched. */
static void forget_later(const struct kp_driver *d, CUdeviceptr at, CUstream stream)
{
    bool known;
    cuuint64_t capture = capture_of(d, stream, &known);
    kp_lock_take(lock, KP_FOREVER);
    size_t i = place_of_memory(at);
    bool found = i < n_ranges && ranges[i].at == at;
    if (found && capture && ranges[i].capture != capture)
        ranges[i] = (struct range){at, 0, OF_GRAPH, no_capture, NULL, 0};
    else
        take_out(at, 1);
    kp_lock_give(lock);
}

static bool makes_memory(const CUgraphNodeParams *p)
{
    return p && p->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC;
}

void kp_owned_variable(CUdeviceptr at, size_t bytes)
{
    if (at && bytes)
        note_range(at, bytes, OF_MODULE);
}

/* The first arguments receive what the call gives: NULL if the program does not want it. */
static uint64_t received(const uint64_t *args, unsigned i)
{
    const uint64_t *to = (const uint64_t *)(uintptr_t)args[i];
    return to ? *to : 0;
}

/* Notes a call of virtual memory management. The driver is asked about access when a list is made. */
static void note_virtual(const struct kp_owning *row, const uint64_t *args)
{
    if (row->does == CREATES)
        kp_fresh_made(received(args, 0), (const CUmemAllocationProp *)(uintptr_t)args[2]);
    if (row->does == RELEASES)
        kp_fresh_used(args[0]);
    if (row->does == MAPS) {
        kp_fresh_used(args[3]);
        put_range(&(struct range){args[0], args[1], MAPPING, 0, NULL, args[3]});
    }
    if (row->does == UNMAPS)
        forget(args[0], args[1]);
}

/* Adds kprof's memory to the driver's answer. That may include what other processes allocated while kprof measured its
 * part, so the sum is capped at the total. */
static void tell_free(size_t *left, const size_t *total, uint64_t held)
{
    if (!left)
        return;
    *left += held;
    if (total && *left > *total)
        *left = *total;
}

void kp_owned_note(const struct kp_driver *d, const struct kp_owning *row, const uint64_t *args, uint64_t held)
{
    if (row->does <= LAST_VIRTUAL) {
        note_virtual(row, args);
        return;
    }
    switch ((enum does)row->does) {
    case ALLOCATES:
        note_allocated(d, received(args, 0));
        return;
    case ALLOCATES_LATER:
        note_later(d, row, args, received(args, 0));
        return;
    case FREES:
        forget(args[0], 1);
        return;
    case FREES_LATER:
        forget_later(d, args[0], stream_of(row, args[1]));
        return;
    case VARIABLE:
        kp_owned_variable(received(args, 0), received(args, 1));
        return;
    case MAKES_ARRAY:
        atomic_fetch_add(&arrays, 1);
        return;
    case ENDS_ARRAY:
        atomic_fetch_sub(&arrays, 1);
        return;
    case TELLS_FREE:
        tell_free((size_t *)(uintptr_t)args[0], (const size_t *)(uintptr_t)args[1], held);
        return;
    case ADDS_NODE:
        if (makes_memory((const CUgraphNodeParams *)(uintptr_t)args[row->tells - 1]))
            atomic_fetch_or(&unlisted, 1u << GRAPH);
        return;
    default:
        atomic_fetch_or(&unlisted, 1u << row->does);
    }
}

bool kp_owned_is_mapped(CUmemGenericAllocationHandle memory)
{
    kp_lock_take(lock, KP_FOREVER);
    size_t i = 0;
    while (i < n_ranges && (ranges[i].kind != MAPPING || ranges[i].memory != memory))
        i++;
    bool is = i < n_ranges;
    kp_lock_give(lock);
    return is;
}

bool kp_owned_is_allocated(CUdeviceptr at)
{
    kp_lock_take(lock, KP_FOREVER);
    size_t i = place_of_memory(at);
    bool is = i < n_ranges && ranges[i].at == at && (ranges[i].kind == ALLOCATION || ranges[i].kind == OF_GRAPH);
    kp_lock_give(lock);
    return is;
}

void kp_owned_forked(void)
{
    kp_fresh_forked();
    n_ranges = 0;
    atomic_store(&arrays, 0);
    atomic_store(&unlisted, 0);
    atomic_store(&lost, false);
}

/* ---- the list ---- */

static enum kp_reason unlisted_reason(void)
{
    static const struct {
        enum does what;
        enum kp_reason why;
    } reasons[] = {
        {MANAGED, KP_REASON_MANAGED},     {FOREIGN, KP_REASON_OWNED_FOREIGN}, {GRAPH, KP_REASON_OWNED_GRAPH},
        {SPARSE, KP_REASON_OWNED_SPARSE}, {OLD, KP_REASON_OWNED_OLD},
    };
    const unsigned bits = atomic_load(&unlisted);
    for (size_t i = 0; i < sizeof(reasons) / sizeof(*reasons); i++)
        if (bits >> reasons[i].what & 1)
            return reasons[i].why;
    if (atomic_load(&arrays) > 0)
        return KP_REASON_OWNED_ARRAYS;
    return atomic_load(&lost) ? KP_REASON_OWNED_LOST : KP_REASON_NONE;
}

/* What the driver says about memory that is to be listed. An error alone is no answer. */
enum said { THERE, ELSEWHERE, UNSAID };

/* Returns true if the answer to a question is "there is nothing". */
static bool is_nothing(CUresult rc)
{
    return rc == CUDA_ERROR_INVALID_VALUE || rc == CUDA_ERROR_NOT_FOUND;
}

/* Says if memory of unknown type has ended, with its context or its module: then nothing has its address. A mapping
 * ends only by calls that are seen. */
static enum said ended(const struct kp_driver *d, const struct range *r, CUresult rc)
{
    CUdeviceptr base = 0;
    size_t bytes = 0;
    bool is = r->kind != MAPPING && is_nothing(rc) && is_nothing(d->cuMemGetAddressRange(&base, &bytes, r->at));
    return is ? ELSEWHERE : UNSAID;
}

static enum said is_of(const struct kp_driver *d, const struct range *r, CUdevice device)
{
    int ordinal = -1;
    unsigned type = 0;
    CUresult rc = d->cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, r->at);
    if (rc != CUDA_SUCCESS)
        return ended(d, r, rc);
    if (type != CU_MEMORYTYPE_DEVICE)
        return ELSEWHERE;
    if (d->cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, r->at) != CUDA_SUCCESS)
        return UNSAID;
    return ordinal == device ? THERE : ELSEWHERE;
}

/* Says if kernels may write a mapping. A read-only one does not change. */
static enum said is_written(const struct kp_driver *d, CUdeviceptr at, CUdevice device)
{
    const CUmemLocation where = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device};
    unsigned long long flags = 0;
    if (!d->cuMemGetAccess || d->cuMemGetAccess(&flags, &where, at) != CUDA_SUCCESS)
        return UNSAID;
    return flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE ? THERE : ELSEWHERE;
}

/* Says if a range still has its place in an allocation of the driver: its address may have been reused. */
static enum said is_placed(const struct kp_driver *d, const struct range *r, struct kp_part *p)
{
    CUdeviceptr base = 0;
    size_t bytes = 0;
    if (d->cuMemGetAddressRange(&base, &bytes, r->at) != CUDA_SUCCESS)
        return UNSAID;
    if (r->kind == OF_MODULE)
        return r->at - base + r->bytes <= bytes ? THERE : ELSEWHERE;
    p->bytes = bytes;
    return base == r->at ? THERE : ELSEWHERE;
}

/* Makes a part of a range that the driver confirms. */
static enum said confirm(const struct kp_driver *d, const struct range *r, CUdevice device, struct kp_part *p)
{
    enum said of = is_of(d, r, device);
    *p = (struct kp_part){.at = r->at, .bytes = r->bytes, .constant = r->kind == OF_MODULE};
    if (of != THERE)
        return of;
    return r->kind == MAPPING ? is_written(d, r->at, device) : is_placed(d, r, p);
}

/* Returns why variables of a module cannot be listed, if there is a reason. The host may touch managed ones, too. */
static enum kp_reason is_managed(const struct kp_driver *d, const struct range *r)
{
    unsigned managed = 0;
    if (r->kind != OF_MODULE)
        return KP_REASON_NONE;
    if (d->cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, r->at) != CUDA_SUCCESS)
        return KP_REASON_OWNED_UNSAID;
    return managed ? KP_REASON_MANAGED : KP_REASON_NONE;
}

/* Appends a part. A variable that lies in an earlier part is already there, or its module is gone. */
static size_t append(struct kp_part *parts, size_t n, const struct kp_part *p)
{
    enum { UNIT = 16 };
    struct kp_part *last = n ? &parts[n - 1] : NULL;
    CUdeviceptr from = p->at / UNIT * UNIT, to = p->at + p->bytes;
    CUdeviceptr end = last ? last->at + last->bytes : 0;
    if (last && from < end && last->constant) {
        last->bytes = to > end ? to - last->at : last->bytes;
        return n;
    }
    if (last && from < end)
        return n;
    parts[n] = *p;
    if (p->constant)
        parts[n] = (struct kp_part){.at = from, .bytes = to - from, .constant = true};
    return n + 1;
}

/* Adds a range to the parts. Returns why it cannot be listed, if there is a reason. */
static enum kp_reason list_one(const struct kp_driver *d, const struct range *r, CUdevice device, CUcontext ctx,
                               struct kp_part *parts, size_t *n)
{
    struct kp_part p;
    if (r->kind == OF_GRAPH)
        return KP_REASON_OWNED_GRAPH;
    enum said said = confirm(d, r, device, &p);
    if (said == UNSAID)
        return KP_REASON_OWNED_UNSAID;
    if (said == ELSEWHERE)
        return KP_REASON_NONE;
    if (r->ctx && r->ctx != ctx)
        return KP_REASON_OWNED_ELSEWHERE; /* another context's memory may be out of reach, and its work goes on */
    enum kp_reason why = is_managed(d, r);
    if (!why)
        *n = append(parts, *n, &p);
    return why;
}

bool kp_owned_list(const struct kp_driver *d, CUdevice device, struct kp_part **parts, size_t *n, enum kp_reason *why)
{
    CUcontext ctx = current(d);
    *why = d->cuPointerGetAttribute && d->cuMemGetAddressRange ? unlisted_reason() : KP_REASON_OWNED_UNDESCRIBED;
    *n = 0;
    *parts = NULL;
    if (*why)
        return false;
    kp_lock_take(lock, KP_FOREVER);
    *parts = malloc((n_ranges + 1) * sizeof(**parts));
    for (size_t i = 0; *parts && i < n_ranges && !*why; i++)
        *why = list_one(d, &ranges[i], device, ctx, *parts, n);
    kp_lock_give(lock);
    if (!*parts)
        *why = KP_REASON_OWNED_NO_LIST;
    if (*why) {
        free(*parts);
        *parts = NULL;
    }
    return !*why;
}
