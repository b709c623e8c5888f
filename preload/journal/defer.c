#include "preload/journal/defer.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/lock.h"
#include "base/work.h"
#include "preload/gate/gate.h"
#include "preload/program/device_memory.h"
#include "preload/program/waits.h"

/* Memory, or what has a handle. */
struct ended {
    CUcontext ctx;
    CUdeviceptr memory;
    enum kp_ended kind; /* of what has a handle */
    uint64_t handle;
    size_t bytes; /* of the memory; 0: not known */
    bool ours;    /* kprof has made it, and written to it */
    bool pooled;  /* it may belong to a pool */
    bool later;   /* the program has freed it in the order of a stream */
};

/* Written in the gate's exclusive section, under the lock. Other threads read under the lock. */
static struct kp_lock *const lock = &kp_locks[KP_LOCK_ENDED];
static struct ended *ended;
static size_t n_ended, cap_ended;

/* The program asks for the current or peak size of pools: memory that is kept would show there. */
static atomic_bool asked;

/* Read without the lock: usually there is none. */
static atomic_size_t n_memory, n_handles;

/* Under the lock, or in the gate's exclusive section. */
static bool has_handle(enum kp_ended kind, uint64_t handle)
{
    size_t i = 0;
    while (i < n_ended && (ended[i].memory || ended[i].kind != kind || ended[i].handle != handle))
        i++;
    return i < n_ended;
}

static bool has_memory(CUcontext ctx, CUdeviceptr memory)
{
    size_t i = 0;
    while (i < n_ended && (ended[i].ctx != ctx || ended[i].memory != memory))
        i++;
    return i < n_ended;
}

/* Returns true if the driver would free the memory. Any other address it refuses, so it must be asked. */
static bool is_allocation(const struct kp_driver *d, CUdeviceptr memory, size_t *bytes)
{
    CUdeviceptr base = 0;
    return memory && kp_owned_is_allocated(memory) && d->cuMemGetAddressRange(&base, bytes, memory) == CUDA_SUCCESS &&
           base == memory;
}

/* Returns true if the memory belongs to no pool: a pool keeps what is given back to it, for as long as it likes. */
static bool is_of_no_pool(const struct kp_driver *d, CUdeviceptr memory)
{
    CUmemoryPool pool = NULL;
    return d->cuPointerGetAttribute(&pool, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, memory) == CUDA_SUCCESS && !pool;
}

/* Returns true if the memory is on a device other than the current one: it would count as that device's free memory. */
static bool is_elsewhere(const struct kp_driver *d, CUdeviceptr memory)
{
    CUdevice device;
    int of = -1;
    return d->cuCtxGetDevice(&device) == CUDA_SUCCESS &&
           d->cuPointerGetAttribute(&of, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, memory) == CUDA_SUCCESS && of != device;
}

/* Under the lock. */
static bool has_room(void)
{
    enum { FIRST = 64 };
    size_t cap = cap_ended ? 2 * cap_ended : FIRST;
    if (n_ended < cap_ended)
        return true;
    struct ended *grown = realloc(ended, cap * sizeof(*grown));
    if (!grown)
        return false;
    ended = grown;
    cap_ended = cap;
    return true;
}

static bool keep(const struct ended *e)
{
    kp_lock_take(lock, KP_FOREVER);
    bool kept = has_room();
    if (kept)
        ended[n_ended++] = *e;
    kp_lock_give(lock);
    if (kept)
        atomic_fetch_add(e->memory ? &n_memory : &n_handles, 1);
    return kept;
}

/* Drops all but the first `kept`. Under the lock, except in a forked child. */
static void shrink(size_t kept)
{
    size_t memory = 0;
    for (size_t i = 0; i < kept; i++)
        memory += ended[i].memory != 0;
    n_ended = kept;
    atomic_store(&n_memory, memory);
    atomic_store(&n_handles, kept - memory);
}

bool kp_defer_take(const struct kp_driver *d, CUcontext ctx, CUdeviceptr memory, bool later, CUresult *answer)
{
    struct ended e = {.ctx = ctx, .memory = memory, .later = later};
    *answer = memory && has_memory(ctx, memory) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    if (*answer != CUDA_SUCCESS)
        return true;
    bool ends = later || kp_wait_for(d, ctx, KP_WAIT_WORK) == CUDA_SUCCESS;
    if (!ends || !is_allocation(d, memory, &e.bytes) || is_elsewhere(d, memory))
        return false;
    e.pooled = later || !is_of_no_pool(d, memory);
    return !(e.pooled && atomic_load(&asked)) && keep(&e);
}

/* ---- what has a handle ---- */

static bool is_stream(const struct kp_driver *d, CUcontext ctx, uint64_t handle)
{
    CUstream stream = (CUstream)(uintptr_t)handle;
    CUcontext of = NULL;
    bool made = stream && stream != CU_STREAM_LEGACY && stream != CU_STREAM_PER_THREAD && d->cuStreamDestroy;
    return made && d->cuStreamGetCtx(stream, &of) == CUDA_SUCCESS && of == ctx;
}

static bool is_texture(const struct kp_driver *d, CUcontext ctx, uint64_t handle)
{
    CUDA_RESOURCE_DESC of;
    (void)ctx;
    return d->cuTexObjectDestroy && d->cuTexObjectGetResourceDesc &&
           d->cuTexObjectGetResourceDesc(&of, handle) == CUDA_SUCCESS;
}

static bool is_surface(const struct kp_driver *d, CUcontext ctx, uint64_t handle)
{
    CUDA_RESOURCE_DESC of;
    (void)ctx;
    return d->cuSurfObjectDestroy && d->cuSurfObjectGetResourceDesc &&
           d->cuSurfObjectGetResourceDesc(&of, handle) == CUDA_SUCCESS;
}

/* The driver looks for it in what is a module. */
static const char no_function[] = "kprof: none";

static atomic_bool of_libraries; /* some modules may belong to libraries */

void kp_defer_no_modules(void)
{
    atomic_store(&of_libraries, true);
}

static bool is_module(const struct kp_driver *d, CUcontext ctx, uint64_t handle)
{
    CUfunction none;
    (void)ctx;
    return handle && !atomic_load(&of_libraries) &&
           d->cuModuleGetFunction(&none, (CUmodule)(uintptr_t)handle, no_function) == CUDA_ERROR_NOT_FOUND;
}

static bool is_library(const struct kp_driver *d, CUcontext ctx, uint64_t handle)
{
    CUkernel none;
    (void)ctx;
    return handle && d->cuLibraryUnload && d->cuLibraryGetKernel &&
           d->cuLibraryGetKernel(&none, (CUlibrary)(uintptr_t)handle, no_function) == CUDA_ERROR_NOT_FOUND;
}

static void end_stream(const struct kp_driver *d, uint64_t handle)
{
    d->cuStreamDestroy((CUstream)(uintptr_t)handle);
}

static void end_texture(const struct kp_driver *d, uint64_t handle)
{
    d->cuTexObjectDestroy(handle);
}

static void end_surface(const struct kp_driver *d, uint64_t handle)
{
    d->cuSurfObjectDestroy(handle);
}

static void end_module(const struct kp_driver *d, uint64_t handle)
{
    d->cuModuleUnload((CUmodule)(uintptr_t)handle);
}

static void end_library(const struct kp_driver *d, uint64_t handle)
{
    d->cuLibraryUnload((CUlibrary)(uintptr_t)handle);
}

static const struct {
    bool (*is)(const struct kp_driver *d, CUcontext ctx, uint64_t handle); /* the driver would destroy it */
    void (*end)(const struct kp_driver *d, uint64_t handle);
    CUresult gone; /* the driver's answer the second time */
    bool waits;    /* for work that may use it */
} kinds[KP_ENDED_KINDS] = {
    [KP_ENDED_STREAM] = {is_stream, end_stream, CUDA_ERROR_INVALID_HANDLE, false},
    [KP_ENDED_TEXTURE] = {is_texture, end_texture, CUDA_ERROR_INVALID_VALUE, false},
    [KP_ENDED_SURFACE] = {is_surface, end_surface, CUDA_ERROR_INVALID_VALUE, false},
    [KP_ENDED_MODULE] = {is_module, end_module, CUDA_ERROR_INVALID_HANDLE, true},
    [KP_ENDED_LIBRARY] = {is_library, end_library, CUDA_ERROR_INVALID_HANDLE, true},
};

bool kp_defer_waits(enum kp_ended kind)
{
    return kinds[kind].waits;
}

bool kp_defer_handle(const struct kp_driver *d, CUcontext ctx, enum kp_ended kind, uint64_t handle, CUresult *answer)
{
    const struct ended e = {.ctx = ctx, .kind = kind, .handle = handle};
    *answer = has_handle(kind, handle) ? kinds[kind].gone : CUDA_SUCCESS;
    if (*answer != CUDA_SUCCESS)
        return true;
    return kinds[kind].is(d, ctx, handle) &&
           (!kinds[kind].waits || kp_wait_for(d, ctx, KP_WAIT_WORK) == CUDA_SUCCESS) && keep(&e);
}

void kp_defer_ours(CUcontext ctx, CUdeviceptr memory, size_t bytes)
{
    const struct ended e = {.ctx = ctx, .memory = memory, .bytes = bytes, .ours = true};
    if (memory)
        keep(&e); /* otherwise it is lost */
}

/* Frees memory in the order of the legacy default stream. Returns false if that is not possible: the driver refuses it
 * for memory that belongs to no pool, and it would invalidate a capture. */
static bool free_later(const struct kp_driver *d, CUdeviceptr memory)
{
    return kp_gate_captures() <= 0 && d->cuMemFreeAsync(memory, CU_STREAM_LEGACY) == CUDA_SUCCESS;
}

/* Frees or destroys what was kept, by the function that the program called. KP_VENDOR: memory of a pool that cuMemFree
 * frees still counts in CU_MEMPOOL_ATTR_USED_MEM_CURRENT after any wait (driver 580, H100). KP_VENDOR: what cuMemFree
 * takes of a block goes to the next cuMemAlloc as it is, so ours is cleared. Returns true if there is something to wait
 * for. */
static bool end_one(const struct kp_driver *d, const struct ended *e)
{
    if (!e->memory) {
        kinds[e->kind].end(d, e->handle);
        return false;
    }
    if (e->later && free_later(d, e->memory))
        return true;
    if (e->ours)
        d->cuMemsetD8Async(e->memory, 0, e->bytes, CU_STREAM_LEGACY);
    d->cuMemFree(e->memory);
    return false;
}

/* Returns true if it is not ended with the others of a context: clearing ours would end a capture. */
static bool stays(const struct ended *e, CUcontext ctx, bool captures)
{
    return e->ctx != ctx || (e->ours && captures);
}

void kp_defer_free(const struct kp_driver *d, CUcontext ctx)
{
    size_t kept = 0;
    bool waits = false, captures = kp_gate_captures() > 0;
    for (size_t i = 0; i < n_ended; i++) /* not under the lock, because the driver may wait */
        if (!stays(&ended[i], ctx, captures))
            waits |= end_one(d, &ended[i]);
    /* A pool's usage drops once the free has run. KP_VENDOR: what it reserves is given back when the program next waits
     * for a stream, not when that is seen to be idle (driver 580, H200); without us the program has waited. */
    if (waits && kp_wait_copy(d) == CUDA_SUCCESS)
        d->cuStreamSynchronize(CU_STREAM_LEGACY);
    kp_lock_take(lock, KP_FOREVER);
    for (size_t i = 0; i < n_ended; i++)
        if (stays(&ended[i], ctx, captures))
            ended[kept++] = ended[i];
    shrink(kept);
    kp_lock_give(lock);
}

void kp_defer_forget(bool (*of)(CUcontext ctx))
{
    size_t kept = 0;
    if (!of) {
        shrink(0);
        return;
    }
    kp_lock_take(lock, KP_FOREVER);
    for (size_t i = 0; i < n_ended; i++)
        if (!of(ended[i].ctx))
            ended[kept++] = ended[i];
    shrink(kept);
    kp_lock_give(lock);
}

bool kp_defer_whole(CUdeviceptr memory, size_t bytes)
{
    static const size_t block = 2 << 20;
    return bytes && memory % block == 0 && bytes % block == 0;
}

/* Returns true if it is known what would be free without it: a texture or a surface is an entry of a table. */
static bool is_known(const struct ended *e)
{
    if (e->memory)
        return !e->pooled && kp_defer_whole(e->memory, e->bytes);
    return e->kind == KP_ENDED_TEXTURE || e->kind == KP_ENDED_SURFACE;
}

bool kp_defer_gives(uint64_t *bytes)
{
    bool whole = true;
    for (size_t i = 0; i < n_ended && whole; i++) {
        whole = is_known(&ended[i]);
        *bytes += ended[i].bytes;
    }
    return whole;
}

void kp_defer_pools_asked(void)
{
    atomic_store_explicit(&asked, true, memory_order_relaxed);
}

bool kp_defer_none_of_pools(void)
{
    size_t i = 0;
    while (i < n_ended && !ended[i].pooled)
        i++;
    return i == n_ended;
}

bool kp_defer_has(CUdeviceptr address)
{
    if (!atomic_load(&n_memory))
        return false;
    kp_work_begin();
    kp_lock_take(lock, KP_FOREVER);
    size_t i = 0;
    while (i < n_ended && (!ended[i].memory || address - ended[i].memory >= ended[i].bytes))
        i++;
    bool has = i < n_ended;
    kp_lock_give(lock);
    kp_work_end();
    return has;
}

bool kp_defer_has_handle(enum kp_ended kind, uint64_t handle)
{
    if (!atomic_load(&n_handles))
        return false;
    kp_work_begin();
    kp_lock_take(lock, KP_FOREVER);
    bool has = has_handle(kind, handle);
    kp_lock_give(lock);
    kp_work_end();
    return has;
}
