/*
 * What is done with calls other than launches, if a window may be open: they join it, leave it open, or close it.
 */
#include "preload/process/process.h"

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

/* Enters the gate alone, for the open window. A call in flight that does not end may wait for what this thread does
 * next: then the window is spoilt. */
static struct kp_alone enter_for_window(void)
{
    struct kp_alone gate = kp_gate_alone(KP_FOREVER, kp_limit_first(KP_WAIT_GATE_LAST));
    if (!gate.in)
        kp_window_spoil();
    return gate;
}

/* `symbol`: the call that closes it; NULL: closed for the reason. */
static bool close_for(enum kp_reason why, const char *symbol)
{
    KP_ALONE gate = enter_for_window();
    bool closes = gate.in && kp_window_may_close();
    if (closes && symbol)
        kp_window_close_by(symbol);
    else if (closes)
        kp_window_close(why);
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

/* Joins a call to the open window; if it cannot join, the window closes. */
enum kp_joined kp_process_join(const char *symbol, void *real, const uint64_t *args)
{
    KP_ALONE gate = enter_for_window();
    enum kp_joined joined = gate.in && kp_process_active()
                                ? kp_window_join(&process->setup, symbol, real, args, &last_ticket)
                                : KP_JOINED_NOT;
    gate.then = joined == KP_JOINED_NOT ? KP_THEN_OUT : joined == KP_JOINED_LATER ? KP_THEN_ALONE : KP_THEN_SHARED;
    return joined;
}

void kp_process_join_failed(void)
{
    kp_window_refused(last_ticket);
}

void kp_process_read_later(const char *symbol, CUresult rc)
{
    KP_ALONE gate = kp_gate_alone_still();
    if (rc == CUDA_SUCCESS && !kp_journal_log(last_ticket))
        kp_window_read(last_ticket, symbol);
}

bool kp_process_log(void)
{
    KP_GUARDED;
    bool stays = kp_journal_log(last_ticket);
    kp_window_synchronised();
    return stays;
}

void kp_process_read(const char *symbol)
{
    KP_ALONE gate = enter_for_window();
    if (gate.in)
        kp_window_read(last_ticket, symbol);
}

/* The first arguments of an allocation: where the address goes, or the address; bytes. Of one of rows: where the pitch
 * goes; the width; how many there are. */
enum { ALLOCATION_ARGS = 4 };
static __thread uint64_t allocation[ALLOCATION_ARGS] __attribute__((tls_model("initial-exec")));

/* Returns true if the open window stays open when the program gets this. */
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
    KP_ALONE gate = enter_for_window();
    memcpy(allocation, args, sizeof(allocation));
    bool allocates = gate.in && kp_process_active() && kp_window_watches() && stays(what, args);
    if (allocates)
        gate.then = KP_THEN_ALONE;
    return allocates;
}

/* Shows the open window what the program has got. */
static void show_window(const char *symbol, enum kp_gift what)
{
    const uint64_t *a = allocation;
    switch (what) {
    case KP_GIFT_ROWS:
        kp_window_allocated(&process->setup, symbol, *(const CUdeviceptr *)(uintptr_t)a[0],
                            *(const size_t *)(uintptr_t)a[1] * a[3], false);
        return;
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
    KP_ALONE gate = kp_gate_alone_still();
    if (rc == CUDA_SUCCESS)
        show_window(symbol, what);
    else if (what == KP_GIFT_ACCESS)
        kp_journal_accessible(allocation[0], allocation[1]);
}

/* ---- device memory that kprof uses and the program needs ---- */

/* Returns true if a context's profiler can be disabled, which may wait for the context's work, which in turn may wait
 * for what this thread does next. */
static bool may_rest(CUcontext ctx)
{
    return kp_wait_for(&process->driver, ctx, KP_WAIT_WORK) == CUDA_SUCCESS;
}

/* Frees up to `bytes` of memory of each context; UINT64_MAX: all, including that of the profilers. While a stream is
 * captured, the driver accepts such calls only in relaxed mode, in which they break no capture. */
static void give(uint64_t bytes)
{
    CUcontext current = NULL;
    process->driver.cuCtxGetCurrent(&current);
    struct kp_visit v = kp_visit_begin(&process->driver, current);
    if (v.relaxed || kp_gate_captures() <= 0)
        kp_context_give(&process->driver, bytes, bytes == UINT64_MAX && kp_gate_captures() <= 0 ? may_rest : NULL);
    kp_visit_end(&process->driver, &v);
}

/* Enters the gate alone, but if no window is open, despite calls in flight: those may wait for this thread. */
static struct kp_alone enter_to_give(void)
{
    struct kp_alone gate = kp_gate_alone_beside(KP_FOREVER);
    if (gate.in && !kp_window_is_open())
        return gate;
    kp_gate_end_alone(&gate);
    return kp_gate_alone(KP_FOREVER, kp_limit_first(KP_WAIT_GATE_LAST));
}

/* Alone in the gate. */
static CUresult call_with_all(const char *symbol, void *real, const uint64_t *a)
{
    typedef CUresult (*function)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);
    if (kp_window_may_close()) {
        kp_window_close_by(symbol);
        give(UINT64_MAX);
    }
    return ((function)(uintptr_t)real)(a[0], a[1], a[2], a[3], a[4], a[5]); /* see kp_op_issue */
}

CUresult kp_process_calls_again(const char *symbol, void *real, const uint64_t *args, bool alone)
{
    if (!alone && !kp_shadow_held_on(-1) && !kp_taken_gives())
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (!alone)
        kp_gate_leave_shared();
    KP_ALONE gate = alone ? kp_gate_alone_still() : enter_to_give();
    gate.then = alone ? KP_THEN_ALONE : KP_THEN_SHARED;
    if (gate.in)
        return call_with_all(symbol, real, args);
    kp_gate_enter_shared(symbol);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

/* Returns how much memory the current device lacks for an allocation, and for implicit uses, bytes. */
static uint64_t lacks(uint64_t bytes)
{
    static const uint64_t unasked = 512 << 20;
    size_t left = 0, total;
    KP_GUARDED;
    if (process->driver.cuMemGetInfo(&left, &total) != CUDA_SUCCESS)
        return bytes;
    return left >= bytes && left - bytes >= unasked ? 0 : bytes + unasked - left;
}

void kp_process_gives_room(uint64_t bytes)
{
    static const uint64_t at_least = UINT64_C(1) << 30; /* a program that allocates once does so again */
    if (!lacks(bytes))
        return;
    KP_ALONE gate = enter_to_give();
    if (!gate.in || !kp_window_may_close())
        return;
    kp_window_close(KP_REASON_WANT_DEVICE_MEMORY);
    uint64_t more = lacks(bytes);
    if (more)
        give(more + at_least);
}

/* Enters the gate alone while a window watches. If it cannot, the window must be closed, or is already spoilt. */
static struct kp_alone enter_beside_window(void)
{
    struct kp_alone gate = kp_gate_alone(KP_FOREVER, kp_limit_first(KP_WAIT_GATE_LAST));
    if (gate.in && !(kp_process_active() && kp_window_watches()))
        kp_gate_end_alone(&gate);
    return gate;
}

/* Goes on in the gate, shared, if the window stays open. */
static bool call_if(bool stays, struct kp_alone *gate)
{
    if (stays)
        gate->then = KP_THEN_SHARED;
    return stays;
}

bool kp_process_loads(CUkernel kernel)
{
    KP_GUARDED;
    return kp_context_first_of_library(&process->driver, kernel);
}

/* Lets the call go on without closing the open window, unless the driver may need the memory that the window holds. */
static bool go_with_room(void)
{
    KP_ALONE gate = enter_beside_window();
    if (gate.in)
        kp_window_makes_room(&process->setup);
    return call_if(gate.in, &gate);
}

bool kp_process_takes_load(void)
{
    return kp_context_sees_loads() && go_with_room();
}

bool kp_process_makes_graph(void)
{
    return go_with_room();
}

bool kp_process_sets(void *real, const uint64_t *before, const uint64_t *after)
{
    KP_ALONE gate = enter_beside_window();
    return call_if(gate.in && kp_journal_sets(&process->setup, real, before, after, &last_ticket), &gate);
}

bool kp_process_goes_beside(void)
{
    KP_ALONE gate = enter_beside_window();
    return call_if(gate.in, &gate);
}

bool kp_process_ends_graph(void)
{
    KP_ALONE gate = enter_beside_window();
    return call_if(gate.in && !kp_journal_facts().allocates, &gate);
}

bool kp_process_prefers(CUfunction f)
{
    KP_ALONE gate = enter_beside_window();
    return call_if(gate.in && kp_journal_prefers(&process->setup, f), &gate);
}

bool kp_process_changes_graph(CUgraphExec exec)
{
    KP_ALONE gate = enter_beside_window();
    return call_if(gate.in && !kp_journal_repeats_graph(exec), &gate);
}

bool kp_process_tells_free(uint64_t *more)
{
    KP_ALONE gate = enter_beside_window();
    return call_if(gate.in && kp_journal_tells_free(&process->setup, more), &gate);
}

bool kp_process_tells_pool(CUmemPool_attribute what)
{
    KP_ALONE gate = enter_beside_window();
    return call_if(gate.in && kp_journal_tells_pool(what), &gate);
}

bool kp_process_releases(CUmemGenericAllocationHandle memory)
{
    KP_ALONE gate = enter_beside_window();
    return call_if(gate.in && kp_owned_is_mapped(memory), &gate);
}

bool kp_process_ends(enum kp_ended kind, uint64_t handle, CUresult *answer)
{
    KP_ALONE gate = enter_beside_window();
    bool kept = gate.in && kp_gate_captures() <= 0 && kp_journal_ends(&process->setup, kind, handle, answer);
    kp_gate_end_alone(&gate);
    if (kept && kp_defer_waits(kind))
        kp_window_synchronised();
    return kept;
}

bool kp_process_frees(CUdeviceptr memory, bool later, CUresult *answer)
{
    KP_ALONE gate = enter_beside_window();
    bool kept = gate.in && kp_journal_frees(&process->setup, memory, later, answer);
    kp_gate_end_alone(&gate);
    if (kept && !later)
        kp_window_synchronised();
    return kept;
}

static void make_ready(void)
{
    if (!atomic_exchange(&process->ahead, true))
        kp_context_make_ready(&process->setup);
}

/* Only tries: calls in flight may wait for what the program does next, and there will be another chance. */
void kp_process_make_ready(void)
{
    if (atomic_load(&process->ahead))
        return;
    KP_ALONE gate = kp_gate_alone(0, 0);
    if (gate.in && kp_process_active() && !atomic_load(&process->ending))
        make_ready();
}

/* Returns true if a context is idle, or is soon: the gate is held meanwhile. */
static bool is_idle(CUcontext ctx)
{
    return kp_wait_quietly(&process->driver, ctx, KP_WAIT_STEP_ASIDE) == CUDA_SUCCESS;
}

/* Only tries, like kp_process_make_ready. */
void kp_process_leave_alone(void)
{
    if (!process->options.cupti_leaves || !kp_context_is_in_the_way())
        return;
    KP_ALONE gate = kp_gate_alone(0, kp_limit_first(KP_WAIT_STEP_ASIDE));
    if (!gate.in)
        return;
    bool idle = !kp_window_is_open() && !kp_timed_waits() && kp_gate_captures() <= 0 && !kp_graph_any();
    if (idle && kp_process_active() && !atomic_load(&process->ending) && kp_context_rotations_rest())
        kp_context_leave_alone(&process->driver, is_idle);
}

void kp_process_loads_images(void)
{
    if (atomic_load(&process->images))
        return;
    KP_ALONE gate = kp_gate_alone(KP_FOREVER, kp_limit_first(KP_WAIT_GATE));
    if (!gate.in || !kp_process_active() || atomic_exchange(&process->images, true) || atomic_load(&process->ending))
        return;
    kp_context_prepare_images(&process->setup);
    if (kp_mode_has_ranges(process->setup.mode) ||
        (atomic_load(&process->profiling) && kp_filter_takes_first(&process->options)))
        make_ready();
}
