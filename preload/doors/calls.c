#include "preload/doors/calls.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/lock.h"
#include "base/work.h"
#include "collectors/replay/shadow.h"
#include "collectors/replay/taken.h"
#include "preload/doors/pool.h"
#include "preload/gate/gate.h"
#include "preload/os/guard.h"
#include "preload/os/symbols.h"
#include "preload/process/phase.h"
#include "preload/process/process.h"
#include "preload/program/device_memory.h"
#include "preload/program/variables.h"
#include "preload/journal/defer.h"
#include "preload/gate/window_facts.h"
#include "preload/program/hostmem.h"
#include "preload/journal/op_encode.h"

enum {
#define KP_API(symbol, base, class) ROW_##symbol,
#include "preload/doors/cuda_api.def"
#undef KP_API
    ROWS,
    SLOTS = ROWS + KP_GATE_POOL
};

/* A trampoline's target. */
struct slot {
    _Atomic(void *) real;
    const char *symbol;
    enum kp_api_class class;
    /* NULL: it neither gives nor takes device memory. Threads that make the first call together each write it. */
    const struct kp_owning *_Atomic owns;
    atomic_uint words; /* from kp_api_stack_words; written in the same way */
};

/* Slots of exported symbols come first, in the order of cuda_api.def, as trampolines.S numbers them. */
static struct slot slots[SLOTS] = {
#define KP_API(symbol, base, class) {NULL, #symbol, KP_CLASS_##class, NULL, 0},
#include "preload/doors/cuda_api.def"
#undef KP_API
};

static atomic_int pool_used;

int kp_call_pool_slot(enum kp_api_class class, const char *symbol, const struct kp_owning *owns, unsigned words,
                      void *real)
{
    struct kp_lock *const lock = &kp_locks[KP_LOCK_TRAMPOLINES];
    kp_lock_take(lock, KP_FOREVER);
    int n = atomic_load(&pool_used), i = 0;
    while (i < n && atomic_load(&slots[ROWS + i].real) != real)
        i++;
    if (i == n && n < KP_GATE_POOL) {
        slots[ROWS + i].symbol = symbol;
        slots[ROWS + i].class = class;
        atomic_store(&slots[ROWS + i].owns, owns);
        atomic_store(&slots[ROWS + i].words, words);
        atomic_store(&slots[ROWS + i].real, real);
        atomic_store(&pool_used, n + 1);
    }
    kp_lock_give(lock);
    return i < KP_GATE_POOL ? i : -1;
}

/* Answers an exported door's call in a process without a driver. */
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
    atomic_store(&slots[i].owns, kp_owned_row(slots[i].symbol));
    atomic_store(&slots[i].words, kp_api_stack_words(slots[i].symbol));
    atomic_store(&slots[i].real, real);
    return real ? real : (void *)(uintptr_t)no_driver;
}

/* The state that a call enters, and must leave. NOTHING: on the way in, enter the gate after all; after that, the call
 * passes unseen. GUARD_ONLY: the first cuInit. IN_DRIVER: outside the gate. SHARED, JOINED, READING: in it, shared.
 * SHARED_HOST: like SHARED, and the call makes virtual memory on the host. READING: the call returns with a result.
 * READING_LATER, ALLOCATING: in it, exclusively; the result comes later, or a host function is called later. ANSWERED:
 * the driver is not called. */
enum entered {
    NOTHING,
    GUARD_ONLY,
    IN_DRIVER,
    SHARED,
    SHARED_HOST,
    JOINED,
    READING,
    READING_LATER,
    ALLOCATING,
    ANSWERED
};

/* ---- classes ---- */

/* Handles a call that waits or queries: replays need no protection from it, since it changes nothing. */
static enum entered enter_sync(const struct slot *s, void *real, const uint64_t *args)
{
    (void)real, (void)args;
    if (kp_window_watches() && kp_window_closes_at_sync())
        kp_process_close_window(s->symbol);
    return IN_DRIVER;
}

static enum entered enter_again(const struct slot *s, void *real, const uint64_t *args)
{
    (void)s, (void)real, (void)args;
    return IN_DRIVER;
}

static enum entered enter_module(const struct slot *s, void *real, const uint64_t *args)
{
    (void)s, (void)real, (void)args;
    return kp_window_watches() && kp_process_takes_load() ? SHARED : NOTHING;
}

static enum entered enter_load(const struct slot *s, void *real, const uint64_t *args)
{
    bool loads = kp_window_watches() && kp_process_loads((CUkernel)(uintptr_t)args[1]);
    return loads ? enter_module(s, real, args) : IN_DRIVER;
}

static __thread CUresult answer __attribute__((tls_model("initial-exec")));

/* Stands in for a driver function whose call was answered on the way in. */
static CUresult give_answer(void)
{
    return answer;
}

static enum entered enter_free(const struct slot *s, void *real, const uint64_t *args)
{
    (void)real;
    return kp_window_watches() && kp_process_frees(args[0], s->class == KP_CLASS_FREE_ASYNC, &answer) ? ANSWERED
                                                                                                      : NOTHING;
}

static enum entered enter_create(const struct slot *s, void *real, const uint64_t *args)
{
    (void)s, (void)real, (void)args;
    return kp_window_watches() && kp_process_goes_beside() ? SHARED : NOTHING;
}

/* Notes that kernels can reach host memory of which no argument tells, if a texture's address is of host memory. */
static void note_texture_at(CUdeviceptr at)
{
    void *base;
    size_t bytes;
    if (kp_hostmem_find(at, &base, &bytes))
        kp_window_virtual_memory();
}

static enum entered enter_texture(const struct slot *s, void *real, const uint64_t *args)
{
    const CUDA_RESOURCE_DESC *of = (const CUDA_RESOURCE_DESC *)(uintptr_t)args[1];
    if (of && of->resType == CU_RESOURCE_TYPE_LINEAR)
        note_texture_at(of->res.linear.devPtr);
    else if (of && of->resType == CU_RESOURCE_TYPE_PITCH2D)
        note_texture_at(of->res.pitch2D.devPtr);
    return enter_create(s, real, args);
}

static enum entered enter_reference(const struct slot *s, void *real, const uint64_t *args)
{
    (void)s, (void)real;
    note_texture_at(args[2]);
    return NOTHING;
}

static enum entered enter_graph_end(const struct slot *s, void *real, const uint64_t *args)
{
    (void)s, (void)real, (void)args;
    return kp_window_watches() && kp_process_ends_graph() ? SHARED : NOTHING;
}

/* Bytes of device memory that the open window holds, for a query that leaves it open. */
static __thread uint64_t unseen __attribute__((tls_model("initial-exec")));

static enum entered enter_ask_free(const struct slot *s, void *real, const uint64_t *args)
{
    (void)s, (void)real, (void)args;
    unseen = 0;
    if (kp_window_watches() && kp_process_tells_free(&unseen))
        return SHARED;
    unseen = 0;
    return NOTHING;
}

static enum entered enter_ask_pool(const struct slot *s, void *real, const uint64_t *args)
{
    const CUmemPool_attribute what = (CUmemPool_attribute)args[1];
    (void)s, (void)real;
    if (what >= CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT)
        kp_defer_pools_asked();
    return kp_window_watches() && kp_process_tells_pool(what) ? SHARED : NOTHING;
}

static enum kp_ended kept_of(enum kp_api_class class);
static enum kp_stale stale_of(enum kp_api_class class);

/* Nothing is launched any more of what a kept module has: its facts are forgotten now. */
static enum entered enter_end(const struct slot *s, void *real, const uint64_t *args)
{
    (void)real;
    if (!kp_window_watches() || !kp_process_ends(kept_of(s->class), args[0], &answer))
        return NOTHING;
    if (stale_of(s->class) && answer == CUDA_SUCCESS)
        kp_process_forget(stale_of(s->class), args[0]);
    return ANSWERED;
}

/* A kept texture is gone for the program. */
static enum entered enter_ask_object(const struct slot *s, void *real, const uint64_t *args)
{
    (void)real;
    if (!kp_defer_has_handle(kept_of(s->class), args[1]))
        return IN_DRIVER;
    answer = CUDA_ERROR_INVALID_VALUE;
    return ANSWERED;
}

static enum entered enter_join(const struct slot *s, void *real, const uint64_t *args)
{
    static const enum entered states[] = {
        [KP_JOINED_NOT] = NOTHING, [KP_JOINED] = JOINED, [KP_JOINED_READ] = READING, [KP_JOINED_LATER] = READING_LATER};
    return kp_window_watches() ? states[kp_process_join(s->symbol, real, args)] : NOTHING;
}

static enum kp_gift gift_of(enum kp_api_class class);

static enum entered enter_allocate(const struct slot *s, void *real, const uint64_t *args)
{
    (void)real;
    return kp_window_watches() && kp_process_allocates(gift_of(s->class), args) ? ALLOCATING : NOTHING;
}

/* Returns true if memory is of a kind that is not rewound: any kind that is not only device memory. */
static bool is_of_host(CUmemAllocationType type, const CUmemLocation *where)
{
    return type != CU_MEM_ALLOCATION_TYPE_PINNED || where->type != CU_MEM_LOCATION_TYPE_DEVICE;
}

/* Returns true if the call makes or finds such memory: cuMemCreate, or a pool by its properties or its location. */
static bool asks_for_host(const struct slot *s, const uint64_t *args)
{
    const void *of = (const void *)(uintptr_t)args[s->class == KP_CLASS_VIRTUAL ? 2 : 1];
    if (!of || (s->class != KP_CLASS_VIRTUAL && s->class != KP_CLASS_POOL))
        return false;
    if (s->class == KP_CLASS_VIRTUAL) {
        const CUmemAllocationProp *made = of;
        return is_of_host(made->type, &made->location);
    }
    if (strcmp(s->symbol, "cuMemPoolCreate") != 0)
        return is_of_host((CUmemAllocationType)args[2], of);
    const CUmemPoolProps *pool = of;
    return is_of_host(pool->allocType, &pool->location);
}

static enum entered enter_virtual(const struct slot *s, void *real, const uint64_t *args)
{
    return asks_for_host(s, args) ? NOTHING : enter_allocate(s, real, args);
}

static enum entered enter_pool(const struct slot *s, void *real, const uint64_t *args)
{
    return asks_for_host(s, args) ? NOTHING : enter_create(s, real, args);
}

static enum entered enter_release(const struct slot *s, void *real, const uint64_t *args)
{
    (void)s, (void)real;
    return kp_window_watches() && kp_process_releases(args[0]) ? SHARED : NOTHING;
}

/* The limit of dynamic shared memory is not among the facts read from a function. */
static bool is_limit(uint64_t attribute)
{
    return (uint32_t)attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
}

/* Returns true if no launch of the open window needs more, and it sets none again: the usual case, decided without the
 * driver. */
static bool is_harmless(uint64_t attribute, uint64_t value)
{
    return is_limit(attribute) && !kp_window_sets_attributes() && !kp_window_needs_shared(NULL, (uint32_t)value);
}

/* The function behind the handle of a function or a kernel; NULL if the driver does not say. */
static CUfunction function_behind(const struct kp_driver *d, uint64_t handle, bool kernel)
{
    CUfunction f = (CUfunction)(uintptr_t)handle;
    CUmodule module;
    if (!kernel && d->cuFuncGetModule && d->cuFuncGetModule(&module, f) == CUDA_SUCCESS)
        return f;
    bool found = d->cuKernelGetFunction && d->cuKernelGetFunction(&f, (CUkernel)(uintptr_t)handle) == CUDA_SUCCESS;
    return found ? f : NULL;
}

/* An attribute that is being set, and its current value. */
struct setting {
    uint64_t attribute, value, handle;
    bool kernel; /* the handle is one */
    CUresult asked;
    int now;
};

/* Libraries set the current value again before many launches. A higher limit leaves the launches of a window possible;
 * so does a lower one if the window's launches of this function need no more. A window that has recorded one setting
 * records all later ones, because it ends with the last that it knows. */
static bool leaves_window(const struct kp_driver *d, const struct setting *s)
{
    bool known = s->asked == CUDA_SUCCESS;
    if (known && s->now == (int)s->value)
        return true;
    if (!is_limit(s->attribute) || kp_window_sets_attributes())
        return false;
    return (known && s->now < (int)s->value) ||
           !kp_window_needs_shared(function_behind(d, s->handle, s->kernel), (uint32_t)s->value);
}

/* Returns true if an attribute is not among the facts read from a function. */
static bool is_unread(uint64_t attribute)
{
    return is_limit(attribute) || (uint32_t)attribute == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT ||
           (uint32_t)attribute == CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED;
}

/* Lets the window record an attribute that affects it. `value` is the position of its argument. */
static enum entered record_setting(const struct setting *s, void *real, const uint64_t *args, unsigned value)
{
    uint64_t before[KP_OP_ARGS];
    memcpy(before, args, sizeof(before));
    before[value] = (uint64_t)(int64_t)s->now;
    bool known = s->asked == CUDA_SUCCESS && is_unread(s->attribute);
    return known && kp_window_watches() && kp_process_sets(real, before, args) ? JOINED : NOTHING;
}

static enum entered enter_set_function(const struct slot *s, void *real, const uint64_t *args)
{
    const struct kp_driver *d = kp_process_driver();
    struct setting set = {args[1], args[2], args[0], false, CUDA_SUCCESS, 0};
    (void)s;
    if (is_harmless(set.attribute, set.value))
        return IN_DRIVER;
    if (!d)
        return NOTHING;
    KP_GUARDED;
    set.asked = d->cuFuncGetAttribute(&set.now, (CUfunction_attribute)set.attribute, (CUfunction)(uintptr_t)set.handle);
    bool leaves = leaves_window(d, &set);
    return leaves ? IN_DRIVER : record_setting(&set, real, args, 2);
}

static enum entered enter_set_kernel(const struct slot *s, void *real, const uint64_t *args)
{
    const struct kp_driver *d = kp_process_driver();
    struct setting set = {args[0], args[1], args[2], true, CUDA_SUCCESS, 0};
    (void)s;
    if (is_harmless(set.attribute, set.value))
        return IN_DRIVER;
    if (!d || !d->cuKernelGetAttribute)
        return NOTHING;
    KP_GUARDED;
    set.asked = d->cuKernelGetAttribute(&set.now, (CUfunction_attribute)set.attribute, (CUkernel)(uintptr_t)set.handle,
                                        (CUdevice)args[3]);
    bool leaves = leaves_window(d, &set);
    return leaves ? IN_DRIVER : record_setting(&set, real, args, 1);
}

/* Triton sets it for each kernel that it has just loaded. */
static enum entered enter_set_cache(const struct slot *s, void *real, const uint64_t *args)
{
    const struct kp_driver *d = kp_process_driver();
    (void)real;
    if (!d || !kp_window_watches())
        return NOTHING;
    KP_GUARDED;
    CUfunction f = function_behind(d, args[0], !strcmp(s->symbol, "cuKernelSetCacheConfig"));
    return kp_process_prefers(f) ? SHARED : NOTHING;
}

/* Returns true if the driver reports that a stream is, or is not, being captured. */
static bool tells_capture(uint64_t stream, bool captured)
{
    const struct kp_driver *d = kp_process_driver();
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    if (!d)
        return false;
    KP_GUARDED;
    CUresult rc = d->cuStreamIsCapturing((CUstream)(uintptr_t)stream, &status);
    return rc == CUDA_SUCCESS && (status != CU_STREAM_CAPTURE_STATUS_NONE) == captured;
}

/* The streams that are captured, with their contexts, whose end also ends captures. Captures beyond the table are only
 * counted. */
enum { MOST_CAPTURES = 64 };
static struct captured {
    uint64_t stream;
    CUcontext ctx;
} captured[MOST_CAPTURES];
static size_t n_captured;
static struct kp_lock *const captured_lock = &kp_locks[KP_LOCK_TRAMPOLINES];

/* The first argument of a call that starts or ends captures. */
static __thread uint64_t capturing __attribute__((tls_model("initial-exec")));

static void note_capturing(uint64_t first)
{
    capturing = first;
}

/* The context of a stream about to be captured: the driver is asked before the capture starts. */
static __thread CUcontext capturing_in __attribute__((tls_model("initial-exec")));

static void note_capture(uint64_t first)
{
    const struct kp_driver *d = kp_process_driver();
    const CUstream stream = (CUstream)(uintptr_t)first;
    capturing = first;
    capturing_in = NULL;
    if (!d)
        return;
    KP_GUARDED;
    CUresult rc =
        stream == CU_STREAM_PER_THREAD ? d->cuCtxGetCurrent(&capturing_in) : d->cuStreamGetCtx(stream, &capturing_in);
    if (rc != CUDA_SUCCESS)
        capturing_in = NULL;
}

static void begin_capture(void)
{
    kp_gate_capture_begins();
    kp_lock_take(captured_lock, KP_FOREVER);
    if (capturing_in && n_captured < MOST_CAPTURES)
        captured[n_captured++] = (struct captured){capturing, capturing_in};
    kp_lock_give(captured_lock);
}

/* Forgets the captures of a context, or else of a stream. Returns how many there were. */
static size_t forget_captures(CUcontext ctx, uint64_t stream)
{
    size_t n = 0;
    kp_lock_take(captured_lock, KP_FOREVER);
    for (size_t i = 0; i < n_captured; i++)
        if (ctx ? captured[i].ctx != ctx : captured[i].stream != stream)
            captured[n++] = captured[i];
    size_t had = n_captured;
    n_captured = n;
    kp_lock_give(captured_lock);
    return had - n;
}

static void end_capture(uint64_t stream)
{
    forget_captures(NULL, stream);
    kp_gate_capture_ends();
}

static void end_captures_of(CUcontext ctx)
{
    for (size_t n = kp_gate_captures() > 0 ? forget_captures(ctx, 0) : 0; n; n--)
        kp_gate_capture_ends();
}

static void end_stream(uint64_t stream)
{
    if (kp_gate_captures() > 0 && tells_capture(stream, true))
        end_capture(stream);
}

/* The actions for a class of calls (classes.def) while the gate is armed, in this order. */
static const struct rule {
    /* Replaces entering the gate; NOTHING: enter the gate after all. */
    enum entered (*instead)(const struct slot *s, void *real, const uint64_t *args);
    enum kp_gift gift;  /* what the program gets by enter_allocate */
    enum kp_ended kept; /* what it loses by enter_end */
    bool once;          /* it returns something else the second time */
    bool passes;        /* if no window watches, it goes straight to the driver */
    void (*before)(void);
    enum kp_ends ends;
    bool alone;                     /* no window may be open: even one that only counts launches is closed, */
    bool in_order;                  /* except one that has read all it needs of functions and limits, */
    bool behind;                    /* or one that does not wait for what launches may wait for */
    bool unseen;                    /* what it starts, or releases, may go on during a counted launch */
    void (*inside)(uint64_t first); /* with the first argument */
    enum kp_stale stale;
    bool of_host;            /* its arguments show if it makes host or managed memory */
    void (*succeeded)(void); /* the consequences for all later calls */
} rules[] = {
#define KP_CLASS(name, way, work, ...) [KP_CLASS_##name] = {.unseen = KP_##work, ##__VA_ARGS__},
#include "preload/doors/classes.def"
#undef KP_CLASS
};

static enum kp_gift gift_of(enum kp_api_class class)
{
    return rules[class].gift;
}

static enum kp_ended kept_of(enum kp_api_class class)
{
    return rules[class].kept;
}

static enum kp_stale stale_of(enum kp_api_class class)
{
    return rules[class].stale;
}

/* ---- the way in and out ---- */

/* Enters the gate for a call that none of the first `asked` windows accepts. A window that another thread opens while
 * this one waits need not close: it is asked, too. */
static enum entered enter_gate(const struct slot *s, void *real, const uint64_t *args, uint64_t asked)
{
    enum { MOST_TRIES = 16 };
    const struct rule *r = &rules[s->class];
    int tries = r->instead && !r->once ? 0 : MOST_TRIES;
    for (; tries < MOST_TRIES && !(kp_window_watches() && kp_window_count() == asked); tries++) {
        if (kp_gate_enter_unwatched(s->symbol))
            return SHARED;
        asked = kp_window_count();
        enum entered entered = r->instead(s, real, args);
        if (entered != NOTHING)
            return entered;
    }
    kp_gate_enter_shared(s->symbol);
    return SHARED;
}

/* The first arguments of a call that gives or takes memory. Its own functions make no such call. */
static __thread uint64_t owning[KP_OWNED_ARGS] __attribute__((tls_model("initial-exec")));

static void begin_owning(const struct kp_owning *row, const uint64_t *args)
{
    uint64_t bytes = kp_owned_takes(row, args);
    memcpy(owning, args, sizeof(owning));
    if (bytes && kp_shadow_held_on(-1))
        kp_process_gives_room(bytes);
}

/* Bytes of a device's memory that the program would have without kprof, in addition to the open window's; -1: of all
 * devices. */
static uint64_t ours_on(CUdevice device)
{
    return kp_shadow_held_on(device) + kp_taken_on(device);
}

/* Notes what the call has done, before other threads may enter the gate. */
static void end_owning(const struct kp_owning *row, bool asks)
{
    const struct kp_driver *d = kp_process_driver();
    CUdevice device = 0;
    if (!d)
        return;
    KP_GUARDED;
    uint64_t ours = asks ? ours_on(-1) : 0;
    if (ours && d->cuCtxGetDevice(&device) == CUDA_SUCCESS)
        ours = ours_on(device);
    kp_owned_note(d, row, owning, ours + unseen);
    unseen = 0;
}

static enum entered enter_armed(const struct slot *s, void *real, const uint64_t *args)
{
    const struct rule *r = &rules[s->class];
    const struct kp_owning *owns = atomic_load(&s->owns);
    if (owns)
        begin_owning(owns, args);
    uint64_t asked = kp_window_count();
    enum entered entered = r->instead ? r->instead(s, real, args) : NOTHING;
    if (entered != NOTHING)
        return entered;
    if (r->before)
        r->before();
    if (r->ends)
        kp_process_context_ends(r->ends, args[0], s->symbol);
    if (r->alone)
        (r->in_order ? kp_gate_enter_in_order : r->behind ? kp_gate_enter_behind : kp_gate_enter_alone)(s->symbol);
    else
        entered = enter_gate(s, real, args, asked);
    if (entered != NOTHING && entered != SHARED)
        return entered;
    if (r->behind || r->unseen)
        kp_window_note_unseen();
    if (r->inside)
        r->inside(args[0]);
    if (r->stale)
        kp_process_forget(r->stale, args[0]);
    return asks_for_host(s, args) ? SHARED_HOST : SHARED;
}

/* Returns how many words from `first` on are readable at least: `most`, unless the page after theirs cannot be read.
 * The operating system reads the signal set before it rejects the operation on it. */
static unsigned words_that_are(const uint64_t *first, unsigned most)
{
    enum { PAGE = 4096, NO_ACTION = -1, SIGNALS = 64 / 8 };
    uintptr_t at = (uintptr_t)first, end = (at | (PAGE - 1)) + 1;
    int before = errno;
    bool goes_on = at + most * sizeof(*first) <= end || !syscall(SYS_rt_sigprocmask, NO_ACTION, end, NULL, SIGNALS) ||
                   errno != EFAULT;
    errno = before;
    return goes_on ? most : (unsigned)((end - at) / sizeof(*first));
}

/* Returns how many words of the caller's stack a call copies. In the frame of trampolines.S, six registers lie below
 * two saved words, the caller's %rbp and the return address; the arguments are above them. */
static unsigned stack_words(const struct slot *s, const uint64_t *args)
{
    enum { FIRST = 6 + 2 + 2 };
    unsigned words = atomic_load(&s->words), most = words & ~(unsigned)KP_API_AT_MOST;
    return words == most ? most : words_that_are(args + FIRST, most);
}

/* Returns true if calls of this kind change nothing that kprof notes while no window is open. */
static bool is_plain(const struct slot *s)
{
    const struct rule *r = &rules[s->class];
    return !r->before && !r->ends && !r->alone && !r->inside && !r->stale && !r->succeeded && !r->of_host &&
           s->class != KP_CLASS_CAPTURE_END && !atomic_load(&s->owns);
}

/* Enters for a call that needs no action: the usual case, without a lock. NOTHING: it needs some. */
static enum entered enter_at_once(const struct slot *s)
{
    enum kp_api_class class = s->class;
    if (!is_plain(s) || kp_window_watches())
        return NOTHING;
    if (rules[class].passes)
        return IN_DRIVER;
    if (!kp_gate_try_shared())
        return NOTHING;
    if (rules[class].unseen)
        kp_window_note_unseen();
    return SHARED;
}

/* A handler has left the call and will not return. */
static void refuse(uint64_t slot, uint32_t entered)
{
    if (entered != IN_DRIVER)
        kp_guard_raise();
    kp_call_leave(slot, CUDA_ERROR_UNKNOWN, entered);
}

static void note_entered(uint64_t slot, enum entered entered, const uint64_t *at, const uint64_t *args)
{
    if (entered == NOTHING)
        return;
    if (!kp_in_driver)
        kp_work_call_begins(at, args, refuse, slot, entered);
    if (entered != IN_DRIVER)
        kp_guard_raise();
    kp_in_driver++;
}

/* A call on its way in, and out. */
struct call {
    uint64_t slot;
    const uint64_t *at;
    uint64_t args[KP_OP_ARGS];
    void *real;
    enum entered entered;
    CUresult result;
};

static void leave(void *arg);

static void enter(void *arg)
{
    struct call *c = arg;
    struct slot *s = &slots[c->slot];
    c->real = resolve(c->slot);
    if (kp_guard)
        return;
    if (kp_gate_is_armed())
        c->entered = enter_armed(s, c->real, c->args);
    else if (s->class == KP_CLASS_INIT) { /* arms the gate if it succeeds */
        kp_process_cuda_starts();
        c->entered = GUARD_ONLY;
    }
    if (c->entered != NOTHING && kp_work_abandoned()) { /* the call will not be made */
        c->result = CUDA_ERROR_UNKNOWN;
        leave(c);
        return;
    }
    note_entered(c->slot, c->entered, c->at, c->args);
}

struct kp_call_entry kp_call_enter(uint64_t slot, const uint64_t *args)
{
    struct slot *s = &slots[slot];
    struct call c = {.slot = slot, .at = args, .real = atomic_load(&s->real), .entered = NOTHING};
    if (kp_guard || kp_in_driver)
        kp_work_reclaim();
    bool armed = kp_gate_is_armed();
    if (c.real && !kp_guard && armed)
        note_entered(slot, c.entered = enter_at_once(s), args, args);
    if (!c.real || (!kp_guard && c.entered == NOTHING && (armed || s->class == KP_CLASS_INIT))) {
        c.real = c.real ? c.real : (void *)(uintptr_t)no_driver;
        memcpy(c.args, args, sizeof(c.args));
        kp_work_run(enter, &c, sizeof(c));
    }
    if (!kp_guard || c.entered != NOTHING)
        kp_phase_hold();
    if (c.entered == ANSWERED)
        c.real = (void *)(uintptr_t)give_answer;
    return (struct kp_call_entry){c.real, c.entered, c.entered == NOTHING ? 0 : stack_words(s, args)};
}

/* Repeats a call for memory that has found too little: a window, or what is kept from one to the next, may hold it. */
static CUresult call_again(const struct slot *s, uint64_t entered)
{
    if (entered != ALLOCATING && entered != SHARED && entered != SHARED_HOST)
        return CUDA_ERROR_OUT_OF_MEMORY;
    return kp_process_calls_again(s->symbol, atomic_load(&s->real), owning, entered == ALLOCATING);
}

/* Acts on the call's result. */
static void note_answer(const struct slot *s, uint64_t entered, CUresult result)
{
    enum kp_api_class class = s->class;
    bool capture_error =
        result >= CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED && result <= CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    if (result == CUDA_SUCCESS && rules[class].succeeded)
        rules[class].succeeded();
    const struct kp_owning *owns = atomic_load(&s->owns);
    if (result == CUDA_SUCCESS && owns)
        end_owning(owns, class == KP_CLASS_ASK_FREE);
    if (result == CUDA_SUCCESS && entered == SHARED_HOST)
        kp_window_virtual_memory();
    /* A capture goes on if another thread, or another stream, must end it. */
    if (class == KP_CLASS_CAPTURE_END && (result == CUDA_SUCCESS || (capture_error && tells_capture(capturing, false))))
        end_capture(capturing);
    if (class == KP_CLASS_CTX_END && result == CUDA_SUCCESS)
        end_captures_of((CUcontext)(uintptr_t)capturing);
    if ((entered == JOINED || entered == READING || entered == READING_LATER) && result != CUDA_SUCCESS)
        kp_process_join_failed();
}

static void leave(void *arg)
{
    struct call *c = arg;
    const struct slot *s = &slots[c->slot];
    enum entered entered = c->entered;
    if (c->result == CUDA_ERROR_OUT_OF_MEMORY && atomic_load(&s->owns))
        c->result = call_again(s, entered);
    note_answer(s, entered, c->result);
    if (entered == ALLOCATING)
        kp_process_allocated(s->symbol, gift_of(s->class), c->result);
    if (entered == READING_LATER)
        kp_process_read_later(s->symbol, c->result);
    bool closes = entered == READING && c->result == CUDA_SUCCESS && !kp_process_log();
    if (entered == SHARED || entered == SHARED_HOST || entered == JOINED || entered == READING)
        kp_gate_leave_shared();
    if (closes)
        kp_process_read(s->symbol);
    if (s->class == KP_CLASS_INIT)
        (c->result == CUDA_SUCCESS ? kp_process_cuda_started : kp_process_cuda_failed)();
}

CUresult kp_call_leave(uint64_t slot, CUresult result, uint32_t entered)
{
    const struct slot *s = &slots[slot];
    kp_in_driver--;
    if (entered == IN_DRIVER) {
        if (s->class == KP_CLASS_SYNC && result == CUDA_SUCCESS)
            kp_window_synchronised();
        return result;
    }
    kp_guard_lower(NULL);
    if (entered == SHARED && is_plain(s)) {
        kp_gate_leave_shared();
        return result;
    }
    struct call c = {.slot = slot, .entered = (enum entered)entered, .result = result};
    kp_work_run(leave, &c, sizeof(c));
    return c.result;
}
