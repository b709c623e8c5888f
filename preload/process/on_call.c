/*
 * What is done with calls other than launches, where a window may be open: they join it, go on beside it, or close it.
 */
#include "preload/process/process.h"

#include <pthread.h>
#include <string.h>

#include "base/lock.h"
#include "collectors/replay/shadow.h"
#include "collectors/replay/taken.h"
#include "preload/gate/gate.h"
#include "preload/os/guard.h"
#include "preload/process/phase.h"
#include "preload/graphs/graphs.h"
#include "preload/contexts/context.h"
#include "preload/program/device_memory.h"
#include "preload/mode/timing_records.h"
#include "preload/gate/window_facts.h"
#include "preload/contexts/context_scope.h"
#include "preload/program/waits.h"

static struct kp_process *const process = &kp_process_now;

/* `symbol`: by that call; NULL: for the reason. */
static bool close_for(enum kp_reason why, const char *symbol)
{
    int before;
    bool closes = true;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    if (kp_gate_enter_exclusive(KP_FOREVER, KP_GATE_LAST_MS)) {
        kp_guard++;
        closes = kp_window_may_close();
        if (closes && symbol)
            kp_window_close_by(symbol);
        else if (closes)
            kp_window_close(why);
        kp_guard--;
        kp_gate_leave_exclusive();
    } else {
        kp_window_spoil();
        closes = false; /* a call in flight may wait for what this thread does next */
    }
    pthread_setcancelstate(before, &before);
    return closes;
}

bool kp_process_close_window(const char *symbol)
{
    return close_for(KP_REASON_CALL, symbol);
}

bool kp_process_close_window_for(enum kp_reason why)
{
    return close_for(why, NULL);
}

static __thread uint64_t last_ticket __attribute__((tls_model("initial-exec")));

static __thread int cancel_before __attribute__((tls_model("initial-exec")));

static enum kp_joined join(const char *symbol, void *real, const uint64_t *args)
{
    if (!kp_gate_enter_exclusive(KP_FOREVER, KP_GATE_LAST_MS)) {
        kp_window_spoil();
        return KP_JOINED_NOT;
    }
    kp_guard++;
    enum kp_joined joined =
        kp_process_active() ? kp_window_join(&process->setup, symbol, real, args, &last_ticket) : KP_JOINED_NOT;
    kp_guard--;
    if (joined == KP_JOINED_NOT)
        kp_gate_leave_exclusive();
    else if (joined != KP_JOINED_LATER)
        kp_gate_exclusive_to_shared();
    return joined;
}

/* Joins a call to the open window; if it cannot join, the window closes. */
enum kp_joined kp_process_join(const char *symbol, void *real, const uint64_t *args)
{
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_before);
    enum kp_joined joined = join(symbol, real, args);
    if (joined != KP_JOINED_LATER)
        pthread_setcancelstate(cancel_before, &cancel_before);
    return joined;
}

void kp_process_join_failed(void)
{
    kp_window_refused(last_ticket);
}

void kp_process_read_later(const char *symbol, CUresult rc)
{
    if (rc == CUDA_SUCCESS) {
        kp_guard++;
        if (!kp_journal_log(last_ticket))
            kp_window_read(last_ticket, symbol);
        kp_guard--;
    }
    kp_gate_leave_exclusive();
    pthread_setcancelstate(cancel_before, &cancel_before);
}

bool kp_process_log(void)
{
    kp_guard++;
    bool stays = kp_journal_log(last_ticket);
    kp_guard--;
    kp_window_synchronised();
    return stays;
}

void kp_process_read(const char *symbol)
{
    int before;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    if (kp_gate_enter_exclusive(KP_FOREVER, KP_GATE_LAST_MS)) {
        kp_guard++;
        kp_window_read(last_ticket, symbol);
        kp_guard--;
        kp_gate_leave_exclusive();
    } else {
        kp_window_spoil();
    }
    pthread_setcancelstate(before, &before);
}

/* The first arguments of an allocation: where the address goes, or the address; byte. */
enum { ALLOCATION_ARGS = 2 };
static __thread uint64_t allocation[ALLOCATION_ARGS] __attribute__((tls_model("initial-exec")));

/* Whether the open window stays when the program gets this. */
static bool stays(enum kp_gift what, const uint64_t *args)
{
    if (what == KP_GIFT_MAPPING)
        return kp_journal_takes_mapping(&process->setup, args);
    if (what == KP_GIFT_ACCESS)
        return kp_journal_takes_access(&process->setup, args);
    return true;
}

bool kp_process_allocates(enum kp_gift what, const uint64_t *args)
{
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_before);
    if (!kp_gate_enter_exclusive(KP_FOREVER, KP_GATE_LAST_MS)) {
        kp_window_spoil();
        pthread_setcancelstate(cancel_before, &cancel_before);
        return false;
    }
    memcpy(allocation, args, sizeof(allocation));
    kp_guard++;
    bool allocates = kp_process_active() && kp_window_watches() && stays(what, args);
    kp_guard--;
    if (allocates)
        return true;
    kp_gate_leave_exclusive();
    pthread_setcancelstate(cancel_before, &cancel_before);
    return false;
}

/* Shows the open window what the program has got. */
static void show_window(const char *symbol, enum kp_gift what)
{
    const uint64_t *a = allocation;
    switch (what) {
    case KP_GIFT_MEMORY:
    case KP_GIFT_MEMORY_LATER:
        kp_window_allocated(&process->setup, symbol, *(const CUdeviceptr *)(uintptr_t)a[0], a[1],
                            what == KP_GIFT_MEMORY_LATER);
        return;
    case KP_GIFT_HANDLE: /* nothing can use it yet */
        return;
    case KP_GIFT_MAPPING:
        kp_window_mapped(symbol, a[0], a[1]);
        return;
    case KP_GIFT_ACCESS:
        kp_window_granted(&process->setup, symbol, a[0], a[1]);
    }
}

void kp_process_allocated(const char *symbol, enum kp_gift what, CUresult rc)
{
    kp_guard++;
    if (rc == CUDA_SUCCESS)
        show_window(symbol, what);
    else if (what == KP_GIFT_ACCESS)
        kp_journal_accessible(allocation[0], allocation[1]);
    kp_guard--;
    kp_gate_leave_exclusive();
    pthread_setcancelstate(cancel_before, &cancel_before);
}

/* ---- device memory that kprof has and the program needs ---- */

/* Whether a context's profiler can be disabled, which may wait for the context's work, and that for what this thread
 * does next. */
static bool may_rest(CUcontext ctx)
{
    enum { MOST_MS = 1000 };
    return kp_wait_context(&process->driver, ctx, MOST_MS, KP_SHORT_MS) == CUDA_SUCCESS;
}

/* Gives memory of all contexts back, byte each; UINT64_MAX: all, with what the profilers take. While a stream is
 * captured, the driver takes calls of this kind in relaxed mode alone: those that break no capture. */
static void give(uint64_t bytes)
{
    CUcontext current = NULL;
    process->driver.cuCtxGetCurrent(&current);
    struct kp_visit v = kp_visit_begin(&process->driver, current);
    if (v.relaxed || kp_gate_captures() <= 0)
        kp_context_give(&process->driver, bytes, bytes == UINT64_MAX && kp_gate_captures() <= 0 ? may_rest : NULL);
    kp_visit_end(&process->driver, &v);
}

/* Enters the gate's exclusive section, beside calls in flight where no window is open: those may wait for this thread.
 */
static bool enter_to_give(void)
{
    if (kp_gate_enter_beside(KP_FOREVER)) {
        if (!kp_window_is_open())
            return true;
        kp_gate_leave_exclusive();
    }
    return kp_gate_enter_exclusive(KP_FOREVER, KP_GATE_LAST_MS);
}

/* In the gate's exclusive section. */
static CUresult call_with_all(const char *symbol, void *real, const uint64_t *a)
{
    typedef CUresult (*function)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);
    kp_guard++;
    if (kp_window_may_close()) {
        kp_window_close_by(symbol);
        give(UINT64_MAX);
    }
    CUresult rc = ((function)(uintptr_t)real)(a[0], a[1], a[2], a[3], a[4], a[5]); /* see kp_op_issue */
    kp_guard--;
    return rc;
}

CUresult kp_process_calls_again(const char *symbol, void *real, const uint64_t *args, bool alone)
{
    CUresult rc = CUDA_ERROR_OUT_OF_MEMORY;
    int before;
    if (alone)
        return call_with_all(symbol, real, args);
    if (!kp_shadow_held_on(-1) && !kp_taken_gives())
        return rc;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    kp_gate_leave_shared();
    if (enter_to_give()) {
        rc = call_with_all(symbol, real, args);
        kp_gate_exclusive_to_shared();
    } else {
        kp_gate_enter_shared(symbol);
    }
    pthread_setcancelstate(before, &before);
    return rc;
}

/* Returns how much memory the current device lacks for an allocation, and for what needs some unasked, byte. */
static uint64_t lacks(uint64_t bytes)
{
    static const uint64_t unasked = 512 << 20;
    size_t left = 0, total;
    if (process->driver.cuMemGetInfo(&left, &total) != CUDA_SUCCESS)
        return bytes;
    return left >= bytes && left - bytes >= unasked ? 0 : bytes + unasked - left;
}

void kp_process_gives_room(uint64_t bytes)
{
    static const uint64_t at_least = UINT64_C(1) << 30; /* what asks once asks again */
    int before;
    kp_guard++;
    bool enough = !lacks(bytes);
    kp_guard--;
    if (enough)
        return;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    if (enter_to_give()) {
        kp_guard++;
        bool closed = kp_window_may_close();
        if (closed)
            kp_window_close(KP_REASON_WANT_DEVICE_MEMORY);
        uint64_t more = closed ? lacks(bytes) : 0;
        if (more)
            give(more + at_least);
        kp_guard--;
        kp_gate_leave_exclusive();
    }
    pthread_setcancelstate(before, &before);
}

/* Enters the gate exclusively while a window watches. False: it is to be closed, or spoiled by now. */
static bool enter_beside_window(int *before)
{
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, before);
    if (kp_gate_enter_exclusive(KP_FOREVER, KP_GATE_LAST_MS)) {
        if (kp_process_active() && kp_window_watches())
            return true;
        kp_gate_leave_exclusive();
    }
    pthread_setcancelstate(*before, before);
    return false;
}

bool kp_process_loads(CUkernel kernel)
{
    kp_guard++;
    bool loads = kp_context_first_of_library(&process->driver, kernel);
    kp_guard--;
    return loads;
}

bool kp_process_takes_load(void)
{
    int before;
    if (!kp_context_sees_loads(&process->driver) || !enter_beside_window(&before))
        return false;
    kp_guard++;
    kp_window_makes_room(&process->setup);
    kp_guard--;
    kp_gate_exclusive_to_shared();
    pthread_setcancelstate(before, &before);
    return true;
}

bool kp_process_sets(void *real, const uint64_t *before, const uint64_t *after)
{
    int cancel;
    if (!enter_beside_window(&cancel))
        return false;
    kp_guard++;
    bool held = kp_journal_sets(&process->setup, real, before, after, &last_ticket);
    kp_guard--;
    if (held)
        kp_gate_exclusive_to_shared();
    else
        kp_gate_leave_exclusive();
    pthread_setcancelstate(cancel, &cancel);
    return held;
}

bool kp_process_goes_beside(void)
{
    int before;
    if (!enter_beside_window(&before))
        return false;
    kp_gate_exclusive_to_shared();
    pthread_setcancelstate(before, &before);
    return true;
}

/* Goes on in the gate, shared, where the window stays; else leaves what enter_beside_window has entered. */
static bool leave_to_call(bool stays, int before)
{
    if (stays)
        kp_gate_exclusive_to_shared();
    else
        kp_gate_leave_exclusive();
    pthread_setcancelstate(before, &before);
    return stays;
}

bool kp_process_changes_graph(CUgraphExec exec)
{
    int before;
    if (!enter_beside_window(&before))
        return false;
    return leave_to_call(!kp_journal_repeats_graph(exec), before);
}

bool kp_process_tells_free(uint64_t *more)
{
    int before;
    if (!enter_beside_window(&before))
        return false;
    kp_guard++;
    bool told = kp_journal_tells_free(&process->setup, more);
    kp_guard--;
    return leave_to_call(told, before);
}

bool kp_process_tells_pool(CUmemPool_attribute what)
{
    int before;
    if (!enter_beside_window(&before))
        return false;
    return leave_to_call(kp_journal_tells_pool(what), before);
}

bool kp_process_releases(CUmemGenericAllocationHandle memory)
{
    int before;
    if (!enter_beside_window(&before))
        return false;
    return leave_to_call(kp_owned_is_mapped(memory), before);
}

bool kp_process_ends_stream(CUstream stream, CUresult *answer)
{
    int before;
    if (!enter_beside_window(&before))
        return false;
    kp_guard++;
    bool kept = kp_gate_captures() <= 0 && kp_journal_ends_stream(&process->setup, stream, answer);
    kp_guard--;
    kp_gate_leave_exclusive();
    pthread_setcancelstate(before, &before);
    return kept;
}

bool kp_process_frees(CUdeviceptr memory, bool later, CUresult *answer)
{
    int before;
    if (!enter_beside_window(&before))
        return false;
    kp_guard++;
    bool kept = kp_journal_frees(&process->setup, memory, later, answer);
    kp_guard--;
    kp_gate_leave_exclusive();
    pthread_setcancelstate(before, &before);
    if (kept && !later)
        kp_window_synchronised();
    return kept;
}

static void make_ready(void)
{
    if (!atomic_exchange(&process->ahead, true))
        kp_context_make_ready(&process->setup);
}

/* Tries only: calls in flight may wait for what the program does next, and there is another time. */
void kp_process_make_ready(void)
{
    int before;
    if (atomic_load(&process->ahead))
        return;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    if (kp_gate_enter_exclusive(0, 0)) {
        kp_guard++;
        if (kp_process_active() && !atomic_load(&process->ending))
            make_ready();
        kp_guard--;
        kp_gate_leave_exclusive();
    }
    pthread_setcancelstate(before, &before);
}

/* Whether a context is idle, or is soon: the gate is held meanwhile. */
static bool is_idle(CUcontext ctx)
{
    enum { MOST_MS = 2 };
    return kp_wait_briefly(&process->driver, ctx, MOST_MS, MOST_MS) == CUDA_SUCCESS;
}

/* Tries only, as above. */
void kp_process_leave_alone(void)
{
    enum { PATIENCE_MS = 2 };
    if (!process->options.cupti_leaves || !kp_context_is_in_the_way() || !kp_gate_enter_exclusive(0, PATIENCE_MS))
        return;
    kp_guard++;
    bool idle = !kp_window_is_open() && !kp_timed_waits() && kp_gate_captures() <= 0 && !kp_graph_any();
    if (idle && kp_process_active() && !atomic_load(&process->ending) && kp_context_rotations_rest())
        kp_context_leave_alone(&process->driver, is_idle);
    kp_guard--;
    kp_gate_leave_exclusive();
}

void kp_process_loads_images(void)
{
    int before;
    if (atomic_load(&process->images))
        return;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    if (kp_gate_enter_exclusive(KP_FOREVER, KP_GATE_MS)) {
        kp_guard++;
        if (kp_process_active() && !atomic_exchange(&process->images, true) && !atomic_load(&process->ending)) {
            kp_context_prepare_images(&process->setup);
            if (process->setup.ranges || (atomic_load(&process->profiling) && kp_filter_takes_first(&process->options)))
                make_ready();
        }
        kp_guard--;
        kp_gate_leave_exclusive();
    }
    pthread_setcancelstate(before, &before);
}
