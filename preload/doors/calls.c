#include "preload/doors/calls.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "base/lock.h"
#include "preload/doors/pool.h"
#include "preload/gate/gate.h"
#include "preload/os/guard.h"
#include "preload/os/symbols.h"
#include "preload/process.h"
#include "preload/window/window.h"

enum {
#define KP_API(symbol, base, class) ROW_##symbol,
#include "preload/doors/cuda_api.def"
#undef KP_API
    ROWS,
    SLOTS = ROWS + KP_GATE_POOL
};

/* A trampoline's target. Slots of exported symbols come first, in the order of cuda_api.def, as trampolines.S numbers
 * them. */
static struct slot {
    _Atomic(void *) real;
    const char *symbol;
    enum kp_api_class class;
} slots[SLOTS] = {
#define KP_API(symbol, base, class) {NULL, #symbol, KP_CLASS_##class},
#include "preload/doors/cuda_api.def"
#undef KP_API
};

static atomic_int pool_used;

int kp_call_pool_slot(enum kp_api_class class, const char *symbol, void *real)
{
    struct kp_lock *const lock = &kp_locks[KP_LOCK_TRAMPOLINES];
    kp_lock_take(lock, KP_FOREVER);
    int n = atomic_load(&pool_used), i = 0;
    while (i < n && atomic_load(&slots[ROWS + i].real) != real)
        i++;
    if (i == n && n < KP_GATE_POOL) {
        slots[ROWS + i].symbol = symbol;
        slots[ROWS + i].class = class;
        atomic_store(&slots[ROWS + i].real, real);
        atomic_store(&pool_used, n + 1);
    }
    kp_lock_give(lock);
    return i < KP_GATE_POOL ? i : -1;
}

/* An exported door was called in a process without a driver behind it. */
static CUresult no_driver(void)
{
    return CUDA_ERROR_NOT_INITIALIZED;
}

static void *resolve(size_t i)
{
    void *real = atomic_load(&slots[i].real);
    if (real)
        return real;
    real = kp_symbols_behind_door(slots[i].symbol);
    atomic_store(&slots[i].real, real);
    return real ? real : (void *)(uintptr_t)no_driver;
}

/* What was entered on the way in, to be left on the way out. */
/* SHARED_HOST: as SHARED, and the call makes virtual memory on the host. */
enum entered { NOTHING, GUARD_ONLY, IN_DRIVER, SHARED, SHARED_HOST, JOINED, ALLOCATING };

/* Changes that leave what was read of functions valid: the dynamic shared-memory limit is set before many launches and
 * is no part of it. A window goes on, unless its launches would no longer be possible. */
static bool forgets(const struct slot *s, const uint64_t *args)
{
    const uint32_t limit = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    if (!strcmp(s->symbol, "cuFuncSetAttribute"))
        return (uint32_t)args[1] != limit || kp_window_needs_shared((uint32_t)args[2]);
    if (!strcmp(s->symbol, "cuKernelSetAttribute"))
        return (uint32_t)args[0] != limit || kp_window_needs_shared((uint32_t)args[1]);
    return true;
}

/* A stream that is destroyed while it captures takes its capture along. */
static bool ends_capture(const struct slot *s, uint64_t stream)
{
    const struct kp_driver *d = kp_process_driver();
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    if (kp_gate_captures() <= 0 || strncmp(s->symbol, "cuStreamDestroy", strlen("cuStreamDestroy")) || !d)
        return false;
    kp_guard++;
    CUresult rc = d->cuStreamIsCapturing((CUstream)(uintptr_t)stream, &status);
    kp_guard--;
    return rc == CUDA_SUCCESS && status != CU_STREAM_CAPTURE_STATUS_NONE;
}

/* A call that waits or asks: nothing keeps it apart from replays, since it changes nothing. */
static enum entered enter_sync(const char *symbol)
{
    if (kp_window_watches() && kp_window_closes_at_sync())
        kp_process_close_window(symbol);
    return IN_DRIVER;
}

/* The third argument of cuMemCreate. */
static bool is_on_host(const CUmemAllocationProp *what)
{
    return what && what->location.type != CU_MEM_LOCATION_TYPE_DEVICE;
}

static enum entered enter_armed(struct slot *s, void *real, const uint64_t *args)
{
    if (s->class == KP_CLASS_SYNC)
        return enter_sync(s->symbol);
    bool loads = s->class == KP_CLASS_LOAD && kp_window_watches() && kp_process_loads((CUkernel)(uintptr_t)args[1]);
    if (s->class == KP_CLASS_LOAD && !loads)
        return IN_DRIVER;
    if (s->class == KP_CLASS_FORGET && !forgets(s, args))
        return IN_DRIVER;
    if (s->class == KP_CLASS_JOIN && kp_window_watches() && kp_process_join(s->symbol, real, args))
        return JOINED;
    if (s->class == KP_CLASS_ALLOC && kp_window_watches() && kp_process_allocates(args))
        return ALLOCATING;
    if (s->class == KP_CLASS_IMAGE)
        kp_process_loads_images();
    if (s->class == KP_CLASS_CTX_END)
        kp_process_context_ends(s->symbol, args[0]);
    /* What was launched is asked for once its window closes: its function must still be there. */
    if (s->class == KP_CLASS_HOLD || s->class == KP_CLASS_CAPTURE_BEGIN || s->class == KP_CLASS_FORGET)
        kp_gate_enter_alone(s->symbol);
    else
        kp_gate_enter_shared(s->symbol);
    if (ends_capture(s, args[0]))
        kp_gate_capture_ends();
    if (s->class == KP_CLASS_CTX_END || s->class == KP_CLASS_FORGET)
        kp_process_forget(s->symbol, args[0]);
    return s->class == KP_CLASS_VIRTUAL && is_on_host((const void *)(uintptr_t)args[2]) ? SHARED_HOST : SHARED;
}

struct kp_call_entry kp_call_enter(uint64_t slot, const uint64_t *args)
{
    struct slot *s = &slots[slot];
    struct kp_call_entry e = {.real = resolve(slot), .entered = NOTHING};
    if (kp_guard)
        return e;
    if (kp_gate_is_armed())
        e.entered = enter_armed(s, e.real, args);
    else if (s->class == KP_CLASS_INIT) /* arms the gate once it has succeeded */
        e.entered = GUARD_ONLY;
    if (e.entered != NOTHING && e.entered != IN_DRIVER)
        kp_guard++;
    if (e.entered != NOTHING)
        kp_in_driver++;
    return e;
}

/* What a successful call means for all that follows. */
static void note(enum kp_api_class class)
{
    if (class == KP_CLASS_CAPTURE_BEGIN)
        kp_gate_capture_begins();
    else if (class == KP_CLASS_SHARE)
        kp_window_shared_memory();
    else if (class == KP_CLASS_MANAGED)
        kp_window_managed_memory();
}

CUresult kp_call_leave(uint64_t slot, CUresult result, uint64_t entered)
{
    enum kp_api_class class = slots[slot].class;
    bool capture_error =
        result >= CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED && result <= CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    kp_in_driver--;
    if (entered == IN_DRIVER) {
        if (class == KP_CLASS_SYNC && result == CUDA_SUCCESS)
            kp_window_synchronised();
        return result;
    }
    kp_guard--;
    if (result == CUDA_SUCCESS)
        note(class);
    if (result == CUDA_SUCCESS && entered == SHARED_HOST)
        kp_window_virtual_memory();
    if (class == KP_CLASS_CAPTURE_END && (result == CUDA_SUCCESS || capture_error))
        kp_gate_capture_ends();
    if (entered == JOINED && result != CUDA_SUCCESS)
        kp_process_join_failed();
    if (entered == ALLOCATING)
        result = kp_process_allocated(atomic_load(&slots[slot].real), result);
    if (entered == SHARED || entered == SHARED_HOST || entered == JOINED)
        kp_gate_leave_shared();
    if (class == KP_CLASS_INIT && result == CUDA_SUCCESS)
        kp_process_cuda_started();
    return result;
}
