/* The gate and its trampolines, with a process of this test's own behind them: arguments and results pass intact, a
 * replay and the program's calls keep apart, and each class of function does what its row says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/lock.h"
#include "preload/doors/pool.h"
#include "preload/doors/trampolines.h"
#include "preload/gate/exclusive.h"
#include "preload/gate/gate.h"
#include "preload/os/guard.h"
#include "preload/process/phase.h"
#include "preload/process/process.h"
#include "preload/program/device_memory.h"
#include "preload/program/variables.h"
#include "preload/gate/window_facts.h"
#include "tests/support/end_support.h"

/* ---- the process, and its window ---- */

static struct {
    unsigned started, forgotten, ended, closed, joins, join_failures, logged, read, read_later, settings, questions;
    uint64_t set_before[6];
    bool trusted;
    enum kp_joined reads; /* the kind of read that a join is; 0 = none */
    const char *ended_by, *joined;
    enum kp_ends ended_which;
    uint64_t ended_first;
    int guard_when_ended;
    bool stuck, takes; /* the window does not close; it takes what could join */
    bool stays;        /* it is not to close now */
    int unseen;
    void *joined_real;
    uint64_t joined_args[6];
    unsigned shared, managed, virtual_memory, images, synchronised;
    uint64_t needs_shared; /* a launch of the window does */
    CUfunction launched;   /* of this function; NULL: of any */
    CUkernel loads;        /* whose library is not there yet */
    unsigned asked;
    enum kp_stale forgotten_what;
    uint64_t forgotten_first;
    enum kp_gift gift;
    unsigned asked_to_allocate, allocated, loads_taken, called_again;
    bool called_alone;
    uint64_t again_args[2];
    uint64_t freed; /* what the window keeps of it */
    CUresult allocation_rc, allocation_answer;
} process;

static atomic_bool watches, counts, settled, closes_at_sync, loads_noted;
static atomic_uint opened;

uint64_t kp_window_count(void)
{
    return atomic_load(&opened);
}

bool kp_window_watches(void)
{
    return atomic_load(&watches);
}

bool kp_window_closes_at_sync(void)
{
    return atomic_load(&closes_at_sync);
}

bool kp_window_is_open(void)
{
    return atomic_load(&watches) || atomic_load(&counts);
}

bool kp_window_takes_all(void)
{
    return kp_window_is_open();
}

void kp_window_note_unseen(void)
{
    process.unseen++;
}

bool kp_window_keeps(void)
{
    return kp_window_is_open() && !atomic_load(&settled);
}

bool kp_window_needs_shared(CUfunction f, uint64_t bytes)
{
    return process.needs_shared > bytes && (!f || !process.launched || f == process.launched);
}

bool kp_window_sets_attributes(void)
{
    return false;
}

bool kp_process_loads(CUkernel kernel)
{
    process.asked++;
    return kernel == process.loads;
}

bool kp_process_takes_load(void)
{
    process.loads_taken++;
    if (!process.takes)
        return false;
    assert_true(kp_gate_enter_exclusive(60000, 30000));
    kp_gate_exclusive_to_shared();
    return true;
}

bool kp_process_tells_free(uint64_t *more)
{
    (void)more;
    return false;
}

bool kp_process_tells_pool(CUmemPool_attribute what)
{
    (void)what;
    return false;
}

bool kp_process_goes_beside(void)
{
    return false;
}

bool kp_process_ends_graph(void)
{
    return false;
}

bool kp_process_prefers(CUfunction f)
{
    (void)f;
    return false;
}

bool kp_process_changes_graph(CUgraphExec exec)
{
    (void)exec;
    return false;
}

bool kp_process_releases(CUmemGenericAllocationHandle memory)
{
    (void)memory;
    return false;
}

bool kp_process_ends(enum kp_ended kind, uint64_t handle, CUresult *answer)
{
    (void)kind, (void)handle, (void)answer;
    return false;
}

bool kp_process_frees(CUdeviceptr memory, bool later, CUresult *answer)
{
    (void)later;
    *answer = CUDA_ERROR_INVALID_VALUE;
    return process.takes && memory == process.freed;
}

void kp_window_spoil(void)
{
    atomic_store(&watches, false);
}

void kp_window_shared_memory(void)
{
    process.shared++;
}

void kp_window_virtual_memory(void)
{
    process.virtual_memory++;
}

void kp_window_synchronised(void)
{
    process.synchronised++;
}

void kp_process_loads_images(void)
{
    process.images++;
    atomic_store(&loads_noted, true);
}

void kp_window_managed_memory(void)
{
    process.managed++;
}

void kp_process_gives_room(uint64_t bytes)
{
    (void)bytes;
    fail_msg("no memory is kept");
}

/* As the process does it: alone, or, when another thread stays in a call, not at all. */
bool kp_process_close_window(const char *why)
{
    assert_non_null(why);
    if (process.stays) {
        process.closed++;
        return false;
    }
    bool alone = kp_gate_enter_exclusive(60000, process.stuck ? 5 : 30000);
    process.closed++;
    atomic_store(&watches, false);
    atomic_store(&counts, false);
    if (alone)
        kp_gate_leave_exclusive();
    return true;
}

enum kp_joined kp_process_join(const char *symbol, void *real, const uint64_t *args)
{
    assert_true(kp_gate_enter_exclusive(60000, 30000));
    process.joins++;
    process.joined = symbol;
    process.joined_real = real;
    memcpy(process.joined_args, args, sizeof(process.joined_args));
    if (process.takes && process.reads == KP_JOINED_LATER)
        return KP_JOINED_LATER;
    if (process.takes) {
        kp_gate_exclusive_to_shared();
        return process.reads ? process.reads : KP_JOINED;
    }
    atomic_store(&watches, false); /* it has been closed */
    kp_gate_leave_exclusive();
    return KP_JOINED_NOT;
}

bool kp_process_sets(void *real, const uint64_t *before, const uint64_t *after)
{
    process.joined_real = real;
    memcpy(process.set_before, before, sizeof(process.set_before));
    memcpy(process.joined_args, after, sizeof(process.joined_args));
    process.settings++;
    if (process.takes) {
        assert_true(kp_gate_enter_exclusive(60000, 30000));
        kp_gate_exclusive_to_shared();
    }
    return process.takes;
}

void kp_variables_asked(void)
{
    process.questions++;
}

bool kp_process_log(void)
{
    assert_false(kp_gate_enter_exclusive(60000, 0)); /* no window closes before it has the result */
    process.logged++;
    return process.trusted;
}

void kp_process_read(const char *symbol)
{
    assert_true(kp_gate_enter_exclusive(60000, 0)); /* the call has left the gate */
    kp_gate_leave_exclusive();
    process.joined = symbol;
    process.read++;
}

void kp_process_read_later(const char *symbol, CUresult rc)
{
    process.joined = symbol;
    process.read_later += rc == CUDA_SUCCESS;
    kp_gate_leave_exclusive();
}

void kp_process_join_failed(void)
{
    /* The record cannot have been issued again by now. */
    assert_true(process.reads == KP_JOINED_LATER || !kp_gate_enter_exclusive(60000, 0));
    process.join_failures++;
}

bool kp_process_allocates(enum kp_gift what, const uint64_t *args)
{
    process.gift = what;
    process.asked_to_allocate++;
    if (!process.takes)
        return false;
    assert_true(kp_gate_enter_exclusive(60000, 30000));
    memcpy(process.joined_args, args, sizeof(process.joined_args));
    return true;
}

void kp_process_allocated(const char *symbol, enum kp_gift what, CUresult rc)
{
    (void)symbol;
    assert_int_equal(what, process.gift);
    process.allocated++;
    process.allocation_rc = rc;
    process.guard_when_ended = kp_guard;
    kp_gate_leave_exclusive();
}

CUresult kp_process_calls_again(const char *symbol, void *real, const uint64_t *args, bool alone)
{
    (void)symbol;
    process.called_again++;
    process.called_alone = alone;
    process.joined_real = real;
    memcpy(process.again_args, args, sizeof(process.again_args));
    return process.allocation_answer;
}

bool kp_process_replays(void)
{
    return true;
}

void kp_phase_hold(void)
{
}

bool kp_process_active(void)
{
    return false;
}

void kp_process_cuda_starts(void)
{
}

void kp_process_cuda_failed(void)
{
}

void kp_process_cuda_started(void)
{
    process.started++;
}

static const struct kp_driver *the_driver;

const struct kp_driver *kp_process_driver(void)
{
    return the_driver;
}

CUresult kp_process_launch(struct kp_launch *l)
{
    return l->issue(l);
}

void kp_process_skip(enum kp_reason reason, unsigned launches)
{
    (void)reason;
    (void)launches;
}

void kp_process_profile(bool on)
{
    (void)on;
}

void kp_process_context_ends(enum kp_ends which, uint64_t first, const char *symbol)
{
    process.ended++;
    process.ended_which = which;
    process.ended_by = symbol;
    process.ended_first = first;
    process.guard_when_ended = kp_guard;
}

void kp_process_forget(enum kp_stale what, uint64_t first)
{
    process.forgotten++;
    process.forgotten_what = what;
    process.forgotten_first = first;
}

void kp_process_finish(void)
{
}

static const struct kp_gate_window window = {kp_window_is_open, kp_window_takes_all, kp_window_watches, kp_window_keeps,
                                             kp_process_close_window};

static int reset(void **state)
{
    (void)state;
    alarm(60); /* a gate that never opens again ends the test */
    memset(&process, 0, sizeof(process));
    atomic_store(&watches, false);
    atomic_store(&counts, false);
    atomic_store(&settled, false);
    atomic_store(&closes_at_sync, false);
    kp_guard = 0;
    kp_in_driver = 0;
    kp_gate_reset();
    kp_gate_set_window(&window);
    kp_gate_arm(true);
    return 0;
}

/* What is known of a function's stack arguments where no table has it. */
enum { UNKNOWN = 16 | KP_API_AT_MOST };

static void *wrap_with(enum kp_api_class class, const char *symbol, unsigned words, void *real)
{
    void *given = kp_trampoline_for(class, symbol, NULL, words, real);
    assert_ptr_not_equal(given, real);
    return given;
}

static void *wrap(enum kp_api_class class, const char *symbol, void *real)
{
    return wrap_with(class, symbol, UNKNOWN, real);
}

#define ADDRESS(function)       ((void *)(uintptr_t)(function))
#define WRAPPED(type, function) ((type)(uintptr_t)wrap(KP_CLASS_GATE, "", ADDRESS(function)))

/* ---- arguments ---- */

enum { MOST = 16 };

static uint64_t seen[MOST];
static bool aligned;

#define NOTE_FRAME() (aligned = (uintptr_t)__builtin_frame_address(0) % 16 == 0)

/* Functions of 0 to 16 arguments that note them. */
#define P(n)   uint64_t a##n
#define S(n)   seen[n] = a##n;
#define P1     P(0)
#define P2     P1, P(1)
#define P3     P2, P(2)
#define P4     P3, P(3)
#define P5     P4, P(4)
#define P6     P5, P(5)
#define P7     P6, P(6)
#define P8     P7, P(7)
#define P9     P8, P(8)
#define P10    P9, P(9)
#define P11    P10, P(10)
#define P12    P11, P(11)
#define P13    P12, P(12)
#define P14    P13, P(13)
#define P15    P14, P(14)
#define P16    P15, P(15)
#define S1     S(0)
#define S2     S1 S(1)
#define S3     S2 S(2)
#define S4     S3 S(3)
#define S5     S4 S(4)
#define S6     S5 S(5)
#define S7     S6 S(6)
#define S8     S7 S(7)
#define S9     S8 S(8)
#define S10    S9 S(9)
#define S11    S10 S(10)
#define S12    S11 S(11)
#define S13    S12 S(12)
#define S14    S13 S(13)
#define S15    S14 S(14)
#define S16    S15 S(15)
#define RESULT 0x8000123400005678u

#define TAKES(n)                                                                                                       \
    static __attribute__((noinline)) uint64_t takes_##n(P##n)                                                          \
    {                                                                                                                  \
        NOTE_FRAME();                                                                                                  \
        S##n return RESULT + n;                                                                                        \
    }

static __attribute__((noinline)) uint64_t takes_0(void)
{
    NOTE_FRAME();
    return RESULT;
}

TAKES(1)
TAKES(2)
TAKES(3)
TAKES(4)
TAKES(5)
TAKES(6)
TAKES(7)
TAKES(8)
TAKES(9)
TAKES(10)
TAKES(11)
TAKES(12)
TAKES(13)
TAKES(14)
TAKES(15)
TAKES(16)

/* Different in every byte, so that none can stand for another. */
#define V(n) (0x0101010101010101u * (n + 1) + ((uint64_t)n << 56))
#define V1   V(0)
#define V2   V1, V(1)
#define V3   V2, V(2)
#define V4   V3, V(3)
#define V5   V4, V(4)
#define V6   V5, V(5)
#define V7   V6, V(6)
#define V8   V7, V(7)
#define V9   V8, V(8)
#define V10  V9, V(9)
#define V11  V10, V(10)
#define V12  V11, V(11)
#define V13  V12, V(12)
#define V14  V13, V(13)
#define V15  V14, V(14)
#define V16  V15, V(15)

static void check_arguments(uint64_t result, size_t n)
{
    assert_int_equal((uint32_t)result, (uint32_t)(RESULT + n)); /* what is called returns a CUresult */
    assert_true(aligned);
    for (size_t i = 0; i < n; i++)
        if (seen[i] != V(i))
            fail_msg("of %zu arguments, number %zu came as %#lx", n, i, (unsigned long)seen[i]);
    memset(seen, 0, sizeof(seen));
    aligned = false;
}

/* Every other function is known to the word. */
static void *wrap_count(unsigned n, void *real)
{
    return wrap_with(KP_CLASS_GATE, "", n % 2 == 0 ? UNKNOWN : n > 6 ? n - 6 : 0, real);
}

#define PASS(n) check_arguments(((uint64_t(*)(P##n))(uintptr_t)wrap_count(n, ADDRESS(takes_##n)))(V##n), n)

static void pass_all(void)
{
    check_arguments(WRAPPED(uint64_t(*)(void), takes_0)(), 0);
    PASS(1);
    PASS(2);
    PASS(3);
    PASS(4);
    PASS(5);
    PASS(6);
    PASS(7);
    PASS(8);
    PASS(9);
    PASS(10);
    PASS(11);
    PASS(12);
    PASS(13);
    PASS(14);
    PASS(15);
    PASS(16);
}

static void test_arguments(void **state)
{
    (void)state;
    pass_all();         /* entered and left */
    kp_gate_arm(false); /* jumped through */
    pass_all();
    kp_gate_arm(true);
    kp_guard++; /* the same for kprof's own calls */
    pass_all();
    kp_guard--;
    assert_int_equal(kp_guard, 0);
}

struct by_value {
    uint32_t x, y, z;
};

static struct {
    uint64_t i[7], s[3];
    double d[8], e[2];
    float f;
    struct by_value v;
} mixed;

/* All six integer and eight vector registers, and the stack. */
static __attribute__((noinline)) int takes_mixed(uint64_t i0, double d0, uint64_t i1, double d1, uint64_t i2, double d2,
                                                 uint64_t i3, double d3, uint64_t i4, double d4, uint64_t i5, double d5,
                                                 uint64_t s0, double d6, uint64_t s1, double d7, double e0, uint64_t s2,
                                                 double e1)
{
    NOTE_FRAME();
    memcpy(mixed.i, (uint64_t[]){i0, i1, i2, i3, i4, i5}, 6 * sizeof(uint64_t));
    memcpy(mixed.s, (uint64_t[]){s0, s1, s2}, sizeof(mixed.s));
    memcpy(mixed.d, (double[]){d0, d1, d2, d3, d4, d5, d6, d7}, sizeof(mixed.d));
    memcpy(mixed.e, (double[]){e0, e1}, sizeof(mixed.e));
    return -77;
}

static __attribute__((noinline)) int takes_small(float f, struct by_value v, uint8_t c)
{
    mixed.f = f;
    mixed.v = v;
    return c;
}

typedef int (*mixed_function)(uint64_t, double, uint64_t, double, uint64_t, double, uint64_t, double, uint64_t, double,
                              uint64_t, double, uint64_t, double, uint64_t, double, double, uint64_t, double);

static void test_doubles_and_structures(void **state)
{
    (void)state;
    for (int armed = 0; armed < 2; armed++) {
        kp_gate_arm(armed);
        memset(&mixed, 0, sizeof(mixed));
        assert_int_equal(WRAPPED(mixed_function, takes_mixed)(1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5, 5.5, 6, 6.5, 7, 7.5, 8,
                                                              8.5, 9.5, 9, 10.5),
                         -77);
        assert_true(aligned);
        for (int i = 0; i < 6; i++)
            assert_int_equal(mixed.i[i], i + 1);
        for (int i = 0; i < 3; i++)
            assert_int_equal(mixed.s[i], i + 7);
        for (int i = 0; i < 8; i++)
            assert_true(mixed.d[i] == i + 1.5);
        assert_true(mixed.e[0] == 9.5 && mixed.e[1] == 10.5);
        struct by_value v = {1, 2, 0xffffffff};
        assert_int_equal(WRAPPED(int (*)(float, struct by_value, uint8_t), takes_small)(0.25f, v, 200), 200);
        assert_true(mixed.f == 0.25f);
        assert_memory_equal(&mixed.v, &v, sizeof(v));
    }
}

/* ---- the end of the stack ---- */

static ucontext_t home, fiber;

static void call_from_first_frame(void)
{
    check_arguments(WRAPPED(uint64_t(*)(void), takes_0)(), 0);
    PASS(1);
    PASS(7);
    PASS(8);
    PASS(15);
    PASS(16);
}

/* Above the caller's frame there need not be anything: it may be the first one of a stack whose neighbour has a guard
 * page. */
static void test_first_frame_of_a_stack(void **state)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), size = 64 * page;
    char *stack = mmap(NULL, size + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    (void)state;
    assert_ptr_not_equal(stack, MAP_FAILED);
    assert_int_equal(mprotect(stack + size, page, PROT_NONE), 0);
    assert_int_equal(getcontext(&fiber), 0);
    fiber.uc_stack = (stack_t){.ss_sp = stack, .ss_size = size};
    fiber.uc_link = &home;
    makecontext(&fiber, call_from_first_frame, 0);
    assert_int_equal(swapcontext(&home, &fiber), 0);
    munmap(stack, size + page);
}

/* ---- what is wrapped ---- */

static int plain(void)
{
    return 0;
}

static void test_classes_that_are_not_wrapped(void **state)
{
    (void)state;
    assert_ptr_equal(kp_trampoline_for(KP_CLASS_PURE, "cuDeviceGet", NULL, 0, ADDRESS(plain)), ADDRESS(plain));
    assert_null(kp_trampoline_for(KP_CLASS_GATE, "cuMemFree", NULL, 0, NULL));
}

static int plain_too(void)
{
    return 1;
}

static void test_one_trampoline_a_function(void **state)
{
    (void)state;
    void *first = wrap(KP_CLASS_GATE, "cuMemFree", ADDRESS(plain)),
         *second = wrap(KP_CLASS_GATE, "", ADDRESS(plain_too));
    assert_ptr_equal(kp_trampoline_for(KP_CLASS_GATE, "cuMemFree", NULL, UNKNOWN, ADDRESS(plain)), first);
    assert_ptr_not_equal(first, second);
    assert_int_equal(((int (*)(void))(uintptr_t)first)(), 0);
    assert_int_equal(((int (*)(void))(uintptr_t)second)(), 1);
}

/* Runs last: nothing can be given back. */
static void test_no_trampoline_left(void **state)
{
    static char functions[KP_GATE_POOL];
    unsigned bare = 0;
    (void)state;
    for (size_t i = 0; i < KP_GATE_POOL; i++)
        bare += kp_trampoline_for(KP_CLASS_GATE, "", NULL, UNKNOWN, &functions[i]) == (void *)&functions[i];
    assert_true(bare > 0 && bare < KP_GATE_POOL);
    assert_ptr_equal(kp_trampoline_for(KP_CLASS_GATE, "", NULL, UNKNOWN, ADDRESS(takes_mixed)),
                     kp_trampoline_for(KP_CLASS_GATE, "", NULL, UNKNOWN, ADDRESS(takes_mixed)));
    PASS(16); /* those handed out before still lead where they did */
}

/* An exported door with no driver in the process. */
static void test_no_driver(void **state)
{
    (void)state;
    for (int armed = 0; armed < 2; armed++) {
        kp_gate_arm(armed);
        assert_int_equal(cuMemsetD8(0, 0, 0), CUDA_ERROR_NOT_INITIALIZED);
        assert_int_equal(cuStreamBeginCapture(NULL, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_ERROR_NOT_INITIALIZED);
    }
    assert_int_equal(kp_gate_captures(), 0);
}

/* ---- classes ---- */

static struct {
    CUresult result;
    int guard, in_driver;
    unsigned calls, forgotten_before, ended_before, closed_before, joins_before;
    bool alone; /* whether another replay could have begun during the call */
} callee;

static CUresult answers(uint64_t first, uint64_t second)
{
    (void)first;
    (void)second;
    callee.calls++;
    callee.guard = kp_guard;
    callee.in_driver = kp_in_driver;
    callee.closed_before = process.closed;
    callee.joins_before = process.joins;
    callee.forgotten_before = process.forgotten;
    callee.ended_before = process.ended;
    callee.alone = kp_gate_enter_exclusive(60000, 5);
    if (callee.alone)
        kp_gate_leave_exclusive();
    return callee.result;
}

/* The pool keeps one class a function: each class is called through a function of its own. */
#define CALLED_AS(name, class, symbol)                                                                                 \
    static CUresult real_##name(uint64_t first, uint64_t second)                                                       \
    {                                                                                                                  \
        return answers(first, second);                                                                                 \
    }                                                                                                                  \
    static CUresult name(CUresult result, uint64_t first, uint64_t second)                                             \
    {                                                                                                                  \
        memset(&callee, 0, sizeof(callee));                                                                            \
        callee.result = result;                                                                                        \
        CUresult rc =                                                                                                  \
            ((CUresult(*)(uint64_t, uint64_t))(uintptr_t)wrap(class, symbol, ADDRESS(real_##name)))(first, second);    \
        assert_int_equal(callee.calls, 1);                                                                             \
        assert_int_equal(kp_guard, 0);                                                                                 \
        assert_int_equal(kp_in_driver, 0);                                                                             \
        return rc;                                                                                                     \
    }

CALLED_AS(call_gate, KP_CLASS_GATE, "cuMemFree")
CALLED_AS(call_context_end, KP_CLASS_CTX_END, "cuCtxDestroy")
CALLED_AS(call_device_end, KP_CLASS_DEVICE_END, "cuDevicePrimaryCtxReset")
CALLED_AS(call_all_end, KP_CLASS_ALL_END, "cuGreenCtxDestroy")
CALLED_AS(call_stream_end, KP_CLASS_STREAM_END, "cuStreamDestroy")
CALLED_AS(call_set, KP_CLASS_SET, "cuCtxSetLimit")
CALLED_AS(call_forget, KP_CLASS_UNLOAD, "cuModuleUnload")
CALLED_AS(call_set_function_attribute, KP_CLASS_SET_FUNCTION, "cuFuncSetAttribute")
CALLED_AS(call_set_kernel_attribute, KP_CLASS_SET_KERNEL, "cuKernelSetAttribute")
CALLED_AS(call_capture_begin, KP_CLASS_CAPTURE_BEGIN, "cuStreamBeginCapture")
CALLED_AS(call_capture_end, KP_CLASS_CAPTURE_END, "cuStreamEndCapture")
CALLED_AS(call_init, KP_CLASS_INIT, "cuInit")
CALLED_AS(call_sync, KP_CLASS_SYNC, "cuStreamSynchronize")
CALLED_AS(call_hold, KP_CLASS_HOLD, "cuStreamWaitValue32")
CALLED_AS(call_host_function, KP_CLASS_CALL_HOST, "cuLaunchHostFunc")
CALLED_AS(call_load, KP_CLASS_LOAD, "cuKernelGetFunction")
CALLED_AS(call_alloc, KP_CLASS_ALLOC, "cuMemAlloc")
CALLED_AS(call_join, KP_CLASS_JOIN, "cuMemsetD8Async")
CALLED_AS(call_copy, KP_CLASS_JOIN_WORK, "cuMemcpyDtoDAsync")
CALLED_AS(call_work, KP_CLASS_WORK, "cuMemcpy3DAsync")
CALLED_AS(call_share, KP_CLASS_SHARE, "cuIpcGetMemHandle")
CALLED_AS(call_managed, KP_CLASS_MANAGED, "cuMemAllocManaged")
CALLED_AS(call_image, KP_CLASS_IMAGE, "cuCtxCreate")
CALLED_AS(call_module, KP_CLASS_MODULE, "cuModuleLoadData")
CALLED_AS(call_global, KP_CLASS_GLOBAL, "cuModuleGetGlobal_v2")

static void test_gate(void **state)
{
    (void)state;
    assert_int_equal(call_gate(CUDA_ERROR_INVALID_VALUE, 1, 2), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(callee.guard, 1); /* what the driver calls in turn is not the program's */
    assert_int_equal(callee.in_driver, 1);
    assert_false(callee.alone);
    assert_true(kp_gate_enter_exclusive(60000, 0)); /* it was left */
    kp_gate_leave_exclusive();
    kp_gate_arm(false);
    assert_int_equal(call_gate(CUDA_SUCCESS, 1, 2), CUDA_SUCCESS);
    assert_int_equal(callee.guard, 0);
    assert_true(callee.alone);
}

static void test_context_end(void **state)
{
    (void)state;
    assert_int_equal(call_context_end(CUDA_SUCCESS, 0xc0ffee, 0), CUDA_SUCCESS);
    assert_int_equal(process.ended, 1);
    assert_int_equal(callee.ended_before, 1); /* before the driver ends it */
    assert_string_equal(process.ended_by, "cuCtxDestroy");
    assert_int_equal(process.ended_which, KP_ENDS_CONTEXT);
    assert_int_equal(process.forgotten_what, KP_STALE_HANDLES);
    assert_int_equal(process.ended_first, 0xc0ffee);
    assert_int_equal(process.guard_when_ended, 0);
    assert_false(callee.alone);
    kp_gate_arm(false);
    call_context_end(CUDA_SUCCESS, 0xc0ffee, 0);
    assert_int_equal(process.ended, 1);
}

/* Whose first argument is no context. */
static void test_other_context_ends(void **state)
{
    (void)state;
    call_device_end(CUDA_SUCCESS, 1, 0);
    assert_int_equal(process.ended_which, KP_ENDS_DEVICE);
    assert_int_equal(process.ended_first, 1);
    call_all_end(CUDA_SUCCESS, 0xc0ffee, 0);
    assert_int_equal(process.ended_which, KP_ENDS_ALL);
    assert_int_equal(process.ended, 2);
    assert_int_equal(process.forgotten, 2);
    assert_int_equal(process.forgotten_what, KP_STALE_HANDLES);
}

static CUstreamCaptureStatus capture_status;

static CUresult is_capturing(CUstream stream, CUstreamCaptureStatus *status)
{
    assert_int_equal((uintptr_t)stream, 0x57);
    assert_int_not_equal(kp_guard, 0);
    *status = capture_status;
    return CUDA_SUCCESS;
}

/* The context of stream 0x57. */
static const CUcontext of_stream = (CUcontext)(uintptr_t)0xc1;

static CUresult get_context(CUstream stream, CUcontext *ctx)
{
    assert_int_not_equal(kp_guard, 0);
    *ctx = (uintptr_t)stream == 0x57 ? of_stream : NULL;
    return CUDA_SUCCESS;
}

/* One that captures takes its capture along. */
static void test_stream_end(void **state)
{
    const struct kp_driver with_captures = {.cuStreamIsCapturing = is_capturing, .cuStreamGetCtx = get_context};
    (void)state;
    the_driver = &with_captures;
    call_capture_begin(CUDA_SUCCESS, 0x57, 0);
    capture_status = CU_STREAM_CAPTURE_STATUS_NONE;
    call_stream_end(CUDA_SUCCESS, 0x57, 0);
    assert_int_equal(kp_gate_captures(), 1);
    capture_status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
    call_gate(CUDA_SUCCESS, 0x57, 0);
    assert_int_equal(kp_gate_captures(), 1);
    call_stream_end(CUDA_SUCCESS, 0x57, 0);
    assert_int_equal(kp_gate_captures(), 0);
    the_driver = NULL;
}

static void test_set(void **state)
{
    (void)state;
    atomic_store(&counts, true);
    call_set(CUDA_SUCCESS, 1, 2);
    assert_int_equal(process.closed, 1);
    assert_int_equal(process.forgotten, 1);
    assert_int_equal(process.forgotten_what, KP_STALE_SETTINGS);
    /* One that has read all it needs stays open: the call takes effect in the program's order. */
    atomic_store(&counts, true);
    atomic_store(&settled, true);
    call_set(CUDA_SUCCESS, 1, 2);
    call_forget(CUDA_SUCCESS, 0x10, 0);
    assert_int_equal(process.closed, 1);
    assert_int_equal(process.forgotten, 3);
    assert_true(kp_gate_enter_exclusive(60000, 0)); /* the calls have left the gate */
    kp_gate_leave_exclusive();
    call_hold(CUDA_SUCCESS, 1, 2);
    assert_int_equal(process.closed, 2);
}

static void test_forget(void **state)
{
    const uint64_t limit = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                   carveout = CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, rest = UINT64_C(7) << 32;
    (void)state;
    call_forget(CUDA_SUCCESS, 0x10, 0);
    assert_int_equal(process.forgotten, 1);
    assert_int_equal(process.forgotten_what, KP_STALE_MODULE);
    assert_int_equal(process.forgotten_first, 0x10);
    assert_int_equal(callee.forgotten_before, 1);           /* handles may be reused from the call on */
    call_set_function_attribute(CUDA_SUCCESS, 0x10, limit); /* before many launches, and no part of what was read */
    call_set_kernel_attribute(CUDA_SUCCESS, limit, 49152);
    call_set_function_attribute(CUDA_SUCCESS, 0x10, limit | rest); /* the upper half of an int's register is anything */
    call_set_kernel_attribute(CUDA_SUCCESS, limit | rest, 49152);
    assert_int_equal(process.forgotten, 1);
    call_set_function_attribute(CUDA_SUCCESS, 0x10, carveout);
    call_set_kernel_attribute(CUDA_SUCCESS, carveout, limit);
    assert_int_equal(process.forgotten, 3);
}

static void test_captures(void **state)
{
    (void)state;
    assert_int_equal(kp_gate_captures(), 0);
    assert_int_equal(call_capture_begin(CUDA_ERROR_INVALID_VALUE, 0, 0), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(kp_gate_captures(), 0);
    call_capture_begin(CUDA_SUCCESS, 0, 0);
    call_capture_begin(CUDA_SUCCESS, 0, 0);
    assert_int_equal(kp_gate_captures(), 2);
    call_capture_end(CUDA_ERROR_INVALID_VALUE, 0, 0); /* of a stream that captures nothing */
    assert_int_equal(kp_gate_captures(), 2);
    call_capture_end(CUDA_SUCCESS, 0, 0);
    assert_int_equal(kp_gate_captures(), 1);
    const struct kp_driver with_captures = {.cuStreamIsCapturing = is_capturing, .cuStreamGetCtx = get_context};
    the_driver = &with_captures;
    capture_status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
    call_capture_end(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, 0x57, 0); /* another one ends it */
    assert_int_equal(kp_gate_captures(), 1);
    capture_status = CU_STREAM_CAPTURE_STATUS_NONE;
    call_capture_end(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, 0x57, 0); /* it has ended, in vain */
    assert_int_equal(kp_gate_captures(), 0);
    call_capture_begin(CUDA_SUCCESS, 0x58, 0);
    call_capture_begin(CUDA_SUCCESS, 0x57, 0);
    call_context_end(CUDA_ERROR_INVALID_CONTEXT, 0xc1, 0);
    call_context_end(CUDA_SUCCESS, 0xc2, 0);
    assert_int_equal(kp_gate_captures(), 2);
    call_context_end(CUDA_SUCCESS, 0xc1, 0); /* takes the captures of its streams along */
    assert_int_equal(kp_gate_captures(), 1);
    call_capture_end(CUDA_SUCCESS, 0x58, 0);
    assert_int_equal(kp_gate_captures(), 0);
    the_driver = NULL;
    call_capture_end(CUDA_SUCCESS, 0, 0);
    assert_int_equal(kp_gate_captures(), 0);
    call_capture_begin(CUDA_SUCCESS, 0, 0);
    kp_gate_reset();
    assert_int_equal(kp_gate_captures(), 0);
}

static void test_init(void **state)
{
    (void)state;
    kp_gate_arm(false);
    call_init(CUDA_ERROR_NO_DEVICE, 0, 0);
    assert_int_equal(process.started, 0);
    assert_int_equal(callee.guard, 1); /* nothing that the driver does in cuInit is the program's */
    call_init(CUDA_SUCCESS, 0, 0);
    assert_int_equal(process.started, 1);
    kp_gate_arm(true);
    atomic_store(&watches, true);
    call_init(CUDA_SUCCESS, 0, 0); /* a second one changes nothing */
    assert_int_equal(process.started, 1);
    assert_int_equal(process.closed, 0);
    assert_true(kp_gate_enter_exclusive(60000, 0));
    kp_gate_leave_exclusive();
}

/* ---- an open window ---- */

static void test_what_closes_a_window(void **state)
{
    static CUresult (*const close_it[])(CUresult, uint64_t, uint64_t) = {
        call_gate, call_forget, call_capture_begin, call_capture_end, call_share, call_managed, call_context_end};
    const uint64_t limit = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    (void)state;
    for (size_t i = 0; i < sizeof(close_it) / sizeof(*close_it); i++) {
        reset(NULL);
        atomic_store(&watches, true);
        close_it[i](CUDA_SUCCESS, 0x10, 0);
        assert_int_equal(callee.closed_before, 1); /* before the driver sees the call */
        assert_int_equal(process.closed, 1);
        assert_false(callee.alone);
        close_it[i](CUDA_SUCCESS, 0x10, 0);
        assert_int_equal(process.closed, 1); /* none is open */
    }
    reset(NULL);
    atomic_store(&watches, true);
    call_set_function_attribute(CUDA_SUCCESS, 0x10, limit); /* what was launched before keeps its own */
    kp_guard++;
    ((CUresult(*)(uint64_t, uint64_t))(uintptr_t)wrap(KP_CLASS_GATE, "", ADDRESS(real_call_gate)))(1, 2);
    kp_guard--; /* a call of kprof's own */
    assert_int_equal(process.closed, 0);
    assert_true(atomic_load(&watches));
}

static void test_sync(void **state)
{
    (void)state;
    assert_int_equal(call_sync(CUDA_ERROR_NOT_READY, 0, 0), CUDA_ERROR_NOT_READY);
    assert_int_equal(callee.guard, 0);
    assert_int_equal(callee.in_driver, 1); /* an exit from a signal handler must not wait for the driver */
    assert_true(callee.alone);             /* a replay of another thread goes on meanwhile */
    atomic_store(&watches, true);
    call_sync(CUDA_SUCCESS, 0, 0);
    assert_int_equal(process.closed, 0); /* the program sees no memory by it */
    atomic_store(&closes_at_sync, true);
    call_sync(CUDA_SUCCESS, 0, 0);
    assert_int_equal(callee.closed_before, 1);
    call_sync(CUDA_SUCCESS, 0, 0);
    assert_int_equal(process.closed, 1);
    atomic_store(&watches, true);
    kp_gate_arm(false);
    call_sync(CUDA_SUCCESS, 0, 0);
    assert_int_equal(process.closed, 1);
}

static CUresult set_function(uint64_t f, uint64_t attribute, uint64_t value)
{
    (void)f, (void)attribute, (void)value;
    return CUDA_SUCCESS;
}

static CUresult set_kernel(uint64_t attribute, uint64_t value, uint64_t kernel, uint64_t dev)
{
    (void)attribute, (void)value, (void)kernel, (void)dev;
    return CUDA_SUCCESS;
}

static void set_limit(bool of_kernel, uint64_t bytes)
{
    const uint64_t limit = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    void *function = wrap(KP_CLASS_SET_FUNCTION, "cuFuncSetAttribute", ADDRESS(set_function)),
         *kernel = wrap(KP_CLASS_SET_KERNEL, "cuKernelSetAttribute", ADDRESS(set_kernel));
    if (of_kernel)
        ((CUresult(*)(uint64_t, uint64_t, uint64_t, uint64_t))(uintptr_t)kernel)(limit, bytes, 0x10, 0);
    else
        ((CUresult(*)(uint64_t, uint64_t, uint64_t))(uintptr_t)function)(0x10, limit, bytes);
}

/* The window's launches would be refused when they are made again with less than they had. */
static void test_limit_that_launches_need(void **state)
{
    (void)state;
    process.needs_shared = 49153;
    atomic_store(&watches, true);
    set_limit(false, 49153);
    set_limit(true, 49153);
    assert_int_equal(process.closed, 0);
    set_limit(false, 49152);
    assert_int_equal(process.closed, 1);
    assert_int_equal(process.forgotten, 1);
    atomic_store(&watches, true);
    set_limit(true, 49152);
    assert_int_equal(process.closed, 2);
}

/* The variables of a library that is loaded now are not in the memory that was saved. */
static void test_load(void **state)
{
    (void)state;
    process.loads = (CUkernel)(uintptr_t)0x7e1;
    call_load(CUDA_SUCCESS, 0x10, 0x7e1);
    assert_int_equal(process.asked + process.closed, 0); /* no window */
    atomic_store(&watches, true);
    call_load(CUDA_SUCCESS, 0x10, 0x7e2);
    assert_int_equal(process.asked, 1);
    assert_int_equal(process.closed, 0);
    assert_int_equal(callee.guard, 0);
    assert_int_equal(callee.in_driver, 1);
    process.takes = true;
    call_load(CUDA_SUCCESS, 0x10, 0x7e1);
    assert_int_equal(process.loads_taken, 1);
    assert_int_equal(process.closed, 0);
    assert_int_equal(callee.guard, 1);
    assert_false(callee.alone); /* a replay of another thread waits */
    assert_true(kp_gate_enter_exclusive(60000, 0));
    kp_gate_leave_exclusive();
    process.takes = false;
    call_load(CUDA_SUCCESS, 0x10, 0x7e1);
    assert_int_equal(callee.closed_before, 1);
}

/* A window that sees what a module brings along stays open. */
static void test_modules(void **state)
{
    (void)state;
    call_module(CUDA_SUCCESS, 1, 2);
    assert_int_equal(process.loads_taken, 0); /* no window */
    assert_int_equal(process.images, 1);
    atomic_store(&watches, true);
    process.takes = true;
    assert_int_equal(call_module(CUDA_ERROR_INVALID_IMAGE, 1, 2), CUDA_ERROR_INVALID_IMAGE);
    assert_int_equal(process.loads_taken, 1);
    assert_int_equal(process.closed, 0);
    assert_true(kp_gate_enter_exclusive(60000, 0));
    kp_gate_leave_exclusive();
    /* The program learns the address of a variable. */
    assert_int_equal(process.questions, 0);
    call_global(CUDA_ERROR_NOT_FOUND, 1, 2);
    assert_int_equal(process.questions, 0);
    call_global(CUDA_SUCCESS, 1, 2);
    assert_int_equal(process.questions, 1);
    assert_int_equal(process.closed, 0);
    process.takes = false;
    call_module(CUDA_SUCCESS, 1, 2);
    assert_int_equal(callee.closed_before, 1);
}

static CUresult real_free(CUdeviceptr memory)
{
    return answers(memory, 0);
}

/* What the window keeps is not freed by the driver, and the program gets the answer that it would get. */
static void test_frees(void **state)
{
    CUresult (*f)(CUdeviceptr) =
        (CUresult(*)(CUdeviceptr))(uintptr_t)wrap(KP_CLASS_FREE, "cuMemFree", ADDRESS(real_free));
    (void)state;
    process.takes = true;
    process.freed = 0xf4ee;
    memset(&callee, 0, sizeof(callee));
    assert_int_equal(f(0xf4ee), CUDA_SUCCESS); /* no window */
    assert_int_equal(callee.calls, 1);
    atomic_store(&watches, true);
    assert_int_equal(f(0xf4ee), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(callee.calls, 1);
    assert_int_equal(process.closed, 0);
    assert_int_equal(kp_guard + kp_in_driver, 0);
    assert_int_equal(f(0x10), CUDA_SUCCESS);
    assert_int_equal(callee.calls, 2);
    assert_int_equal(callee.closed_before, 1);
    assert_true(kp_gate_enter_exclusive(60000, 0));
    kp_gate_leave_exclusive();
}

static int attribute_now;

static CUresult function_attribute(int *value, CUfunction_attribute attribute, CUfunction f)
{
    assert_int_not_equal(kp_guard, 0);
    assert_ptr_equal(f, (void *)0x10);
    (void)attribute;
    *value = attribute_now;
    return CUDA_SUCCESS;
}

static CUresult kernel_attribute(int *value, CUfunction_attribute attribute, CUkernel kernel, CUdevice device)
{
    assert_ptr_equal(kernel, (void *)0x2e1);
    assert_int_equal(device, 3);
    return function_attribute(value, attribute, (CUfunction)0x10);
}

static CUresult function_module(CUmodule *module, CUfunction f)
{
    *module = NULL;
    return f == (CUfunction)0x10 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static CUresult kernel_function(CUfunction *f, CUkernel kernel)
{
    *f = (CUfunction)0x10;
    return kernel == (CUkernel)0x2e1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static CUresult real_set_function(uint64_t f, uint64_t attribute, uint64_t value, uint64_t none)
{
    (void)value, (void)none;
    return answers(f, attribute);
}

static CUresult real_set_kernel(uint64_t attribute, uint64_t value, uint64_t kernel, uint64_t device)
{
    (void)kernel, (void)device;
    return answers(attribute, value);
}

/* Whether an attribute that is set to `value` closes a window. */
static bool closes(bool kernel, uint64_t attribute, int now, uint64_t value)
{
    typedef CUresult (*set)(uint64_t, uint64_t, uint64_t, uint64_t);
    memset(&callee, 0, sizeof(callee));
    process.closed = 0;
    attribute_now = now;
    atomic_store(&watches, true);
    if (kernel)
        ((set)(uintptr_t)wrap(KP_CLASS_SET_KERNEL, "cuKernelSetAttribute", ADDRESS(real_set_kernel)))(attribute, value,
                                                                                                      0x2e1, 3);
    else
        ((set)(uintptr_t)wrap(KP_CLASS_SET_FUNCTION, "cuFuncSetAttribute", ADDRESS(real_set_function)))(0x10, attribute,
                                                                                                        value, 0);
    assert_int_equal(callee.calls, 1);
    return process.closed;
}

/* A value that is set already changes nothing; a higher limit leaves the launches of the window possible. */
static void test_attributes_of_before(void **state)
{
    static struct kp_driver d = {.cuFuncGetAttribute = function_attribute,
                                 .cuKernelGetAttribute = kernel_attribute,
                                 .cuFuncGetModule = function_module,
                                 .cuKernelGetFunction = kernel_function};
    const uint64_t limit = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                   carveout = CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT;
    (void)state;
    process.needs_shared = 60000; /* a launch of any function */
    the_driver = &d;
    for (int kernel = 0; kernel < 2; kernel++) {
        assert_false(closes(kernel, limit, 1024, 60000));
        assert_false(closes(kernel, limit, 1024, 1024));
        assert_false(closes(kernel, limit, 1024, 2048));
        assert_true(closes(kernel, limit, 60000, 2048));
        assert_false(closes(kernel, carveout, 50, 50));
        assert_true(closes(kernel, carveout, 50, 60));
        assert_true(closes(kernel, carveout, 50, 40));
    }
    process.launched = (CUfunction)0x20; /* another function's launch is left alone */
    assert_false(closes(false, limit, 60000, 2048));
    assert_false(closes(true, limit, 60000, 2048));
    process.launched = (CUfunction)0x10;
    assert_true(closes(false, limit, 60000, 2048));
    assert_true(closes(true, limit, 60000, 2048));
    /* A window records what its launches depend on, with what it was. */
    process.takes = true;
    process.settings = 0;
    assert_false(closes(false, limit, 60000, 2048));
    assert_true(process.set_before[1] == limit && process.set_before[2] == 60000 && process.joined_args[2] == 2048);
    assert_false(closes(true, carveout, 40, 50));
    assert_true(process.set_before[0] == carveout && process.set_before[1] == 40 && process.joined_args[1] == 50);
    assert_int_equal(process.settings, 2);
    assert_false(closes(true, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 0, 1));
    process.settings = 2;
    assert_true(closes(false, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, 1, 2)); /* a part of what was read */
    assert_int_equal(process.settings, 2);
    process.takes = false;
    d.cuKernelGetAttribute = NULL;
    assert_true(closes(true, limit, 1024, 1024));
    the_driver = NULL;
    assert_true(closes(false, limit, 1024, 1024));
}

/* A window that counts launches as they come stays open over what changes memory, but not over what may make the next
 * launch wait. */
static void test_hold(void **state)
{
    (void)state;
    atomic_store(&counts, true);
    call_gate(CUDA_SUCCESS, 1, 2);
    assert_int_equal(process.closed, 0);
    call_hold(CUDA_SUCCESS, 1, 2);
    assert_int_equal(process.closed, 1);
    assert_int_equal(callee.closed_before, 1);
    assert_int_equal(callee.guard, 1);
    atomic_store(&counts, true);
    kp_gate_enter_alone("a test");
    assert_int_equal(process.closed, 2);
    assert_false(kp_gate_enter_exclusive(60000, 0)); /* it was entered */
    kp_gate_leave_shared();
    atomic_store(&counts, true);
    process.stays = true; /* one that cannot close now is asked once */
    kp_gate_enter_alone("a test");
    assert_int_equal(process.closed, 3);
    assert_true(atomic_load(&counts));
    assert_false(kp_gate_enter_exclusive(60000, 0));
    kp_gate_leave_shared();
}

/* What may go on beside a counted launch is told from what does not. */
static void test_work(void **state)
{
    (void)state;
    atomic_store(&counts, true);
    call_gate(CUDA_SUCCESS, 1, 2);
    call_join(CUDA_SUCCESS, 1, 2);
    assert_int_equal(process.unseen, 0);
    call_copy(CUDA_SUCCESS, 1, 2);
    assert_int_equal(process.unseen, 1);
    call_work(CUDA_SUCCESS, 1, 2);
    assert_int_equal(process.unseen, 2);
    call_stream_end(CUDA_SUCCESS, 1, 2);
    assert_int_equal(process.unseen, 3);
    assert_int_equal(process.closed, 0);
    atomic_store(&counts, false);
    atomic_store(&watches, true); /* they join a window, or close it */
    process.takes = true;
    call_copy(CUDA_SUCCESS, 1, 2);
    assert_int_equal(process.joins, 1);
    assert_int_equal(process.closed, 0);
    call_work(CUDA_SUCCESS, 1, 2);
    assert_int_equal(process.closed, 1);
}

static void test_join(void **state)
{
    (void)state;
    call_join(CUDA_SUCCESS, 3, 4); /* no window */
    assert_int_equal(process.joins, 0);
    assert_false(callee.alone);
    atomic_store(&watches, true);
    process.takes = true;
    assert_int_equal(call_join(CUDA_SUCCESS, 0xf00, 0xba4), CUDA_SUCCESS);
    assert_int_equal(callee.joins_before, 1);
    assert_string_equal(process.joined, "cuMemsetD8Async");
    assert_ptr_equal(process.joined_real, ADDRESS(real_call_join));
    assert_true(process.joined_args[0] == 0xf00 && process.joined_args[1] == 0xba4);
    assert_int_equal(callee.guard, 1);
    assert_false(callee.alone); /* the window does not close between the record and the call */
    assert_int_equal(process.closed, 0);
    assert_int_equal(process.join_failures, 0);
    assert_int_equal(call_join(CUDA_ERROR_INVALID_VALUE, 1, 2), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(process.join_failures, 1);
    process.takes = false; /* and closed instead */
    call_join(CUDA_ERROR_INVALID_VALUE, 1, 2);
    assert_int_equal(process.joins, 3);
    assert_int_equal(process.join_failures, 1);
    assert_false(callee.alone);
    assert_true(kp_gate_enter_exclusive(60000, 0));
    kp_gate_leave_exclusive();
}

/* A host function joins a window that will be replayed, before any other thread issues anything; else it closes it. */
static void test_host_function(void **state)
{
    (void)state;
    atomic_store(&watches, true);
    process.takes = true;
    process.reads = KP_JOINED_LATER;
    call_host_function(CUDA_SUCCESS, 1, 2);
    assert_int_equal(callee.joins_before, 1);
    assert_int_equal(process.read_later, 1);
    assert_int_equal(process.closed, 0);
    call_host_function(CUDA_ERROR_INVALID_VALUE, 1, 2);
    assert_int_equal(process.join_failures, 1);
    assert_true(kp_gate_enter_exclusive(60000, 0));
    kp_gate_leave_exclusive();
    atomic_store(&watches, false);
    atomic_store(&counts, true);
    call_host_function(CUDA_SUCCESS, 1, 2);
    assert_int_equal(process.joins, 2);
    assert_int_equal(process.closed, 1);
    assert_int_equal(callee.closed_before, 1);
}

/* A read takes part once its result is there; a result that comes later, before any other thread issues anything. */
static void test_reads(void **state)
{
    (void)state;
    atomic_store(&watches, true);
    process.takes = true;
    process.reads = KP_JOINED_READ;
    call_join(CUDA_SUCCESS, 1, 2);
    assert_false(callee.alone);
    assert_int_equal(process.logged, 1);
    assert_int_equal(process.read, 1);
    call_join(CUDA_ERROR_INVALID_VALUE, 1, 2);
    assert_int_equal(process.logged, 1);
    process.trusted = true;
    call_join(CUDA_SUCCESS, 1, 2);
    assert_int_equal(process.logged, 2);
    assert_int_equal(process.read, 1);
    assert_int_equal(process.join_failures, 1);
    process.reads = KP_JOINED_LATER;
    call_join(CUDA_SUCCESS, 1, 2);
    assert_int_equal(process.read_later, 1);
    assert_string_equal(process.joined, "cuMemsetD8Async");
    call_join(CUDA_ERROR_INVALID_VALUE, 1, 2);
    assert_int_equal(process.read_later, 1);
    assert_int_equal(process.join_failures, 2);
    assert_int_equal(process.read, 1);
    assert_true(kp_gate_enter_exclusive(60000, 0));
    kp_gate_leave_exclusive();
}

static CUresult allocate(uint64_t to, uint64_t bytes)
{
    (void)to, (void)bytes;
    callee.calls++;
    callee.guard = kp_guard;
    callee.in_driver = kp_in_driver;
    return callee.result;
}

/* The open window looks at what came of an allocation, alone. One that found too little is made again before. */
static void test_allocation(void **state)
{
    void *given = kp_trampoline_for(KP_CLASS_ALLOC, "cuMemAlloc", kp_owned_row("cuMemAlloc_v2"), 0, ADDRESS(allocate));
    CUresult (*f)(uint64_t, uint64_t) = (CUresult(*)(uint64_t, uint64_t))(uintptr_t)given;
    (void)state;
    assert_int_equal(call_alloc(CUDA_ERROR_OUT_OF_MEMORY, 1, 2), CUDA_ERROR_OUT_OF_MEMORY); /* no window */
    assert_false(callee.alone);
    assert_int_equal(process.asked_to_allocate, 0);
    memset(&callee, 0, sizeof(callee));
    callee.result = CUDA_ERROR_OUT_OF_MEMORY;
    process.takes = true;
    process.allocation_answer = CUDA_ERROR_NOT_PERMITTED;
    atomic_store(&watches, true);
    assert_int_equal(f(0xf00, 0xba4), CUDA_ERROR_NOT_PERMITTED);
    assert_int_equal(callee.calls, 1);
    assert_int_equal(callee.guard, 1);
    assert_int_equal(callee.in_driver, 1);
    assert_true(process.joined_args[0] == 0xf00 && process.joined_args[1] == 0xba4);
    assert_int_equal(process.called_again, 1);
    assert_true(process.called_alone);
    assert_true(process.again_args[0] == 0xf00 && process.again_args[1] == 0xba4);
    assert_ptr_equal(process.joined_real, ADDRESS(allocate));
    assert_int_equal(process.allocated, 1);
    assert_int_equal(process.allocation_rc, CUDA_ERROR_NOT_PERMITTED);
    assert_int_equal(process.guard_when_ended, 0);
    assert_int_equal(process.closed, 0);
    assert_int_equal(kp_guard + kp_in_driver, 0);
    process.takes = false; /* the window went meanwhile */
    call_alloc(CUDA_SUCCESS, 1, 2);
    assert_int_equal(process.asked_to_allocate, 2);
    assert_int_equal(process.allocated, 1);
    assert_int_equal(process.closed, 1); /* as any other call of the gate */
    assert_true(kp_gate_enter_exclusive(60000, 0));
    kp_gate_leave_exclusive();
}

static CUresult allocate_in_order(uint64_t to, uint64_t bytes)
{
    (void)to, (void)bytes;
    return CUDA_ERROR_OUT_OF_MEMORY;
}

/* One that the window has recorded is not made again: the record has its place among the launches. */
static void test_allocation_in_order(void **state)
{
    void *given = kp_trampoline_for(KP_CLASS_JOIN, "cuMemAllocAsync", kp_owned_row("cuMemAllocAsync"), 0,
                                    ADDRESS(allocate_in_order));
    (void)state;
    assert_non_null(kp_owned_row("cuMemAllocAsync"));
    process.takes = true;
    atomic_store(&watches, true);
    assert_int_equal(((CUresult(*)(uint64_t, uint64_t))(uintptr_t)given)(0xf00, 0xba4), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(process.joins, 1);
    assert_int_equal(process.join_failures, 1);
    assert_int_equal(process.called_again, 0);
    assert_true(kp_gate_enter_exclusive(60000, 0));
    kp_gate_leave_exclusive();
}

static sigjmp_buf back;

static CUresult leaves_from_gate(uint64_t first, uint64_t second)
{
    (void)first, (void)second;
    siglongjmp(back, 1);
}

static CUresult leaves_from_wait(uint64_t first, uint64_t second)
{
    (void)first, (void)second;
    siglongjmp(back, 1);
}

static __attribute__((noinline)) void leave_the_driver(void *door)
{
    if (sigsetjmp(back, 1))
        return;
    ((CUresult(*)(uint64_t, uint64_t))(uintptr_t)door)(0xf00ba4, 0xba4f00);
    fail();
}

/* A handler that leaves the driver's function for good leaves the gate, when the thread comes next. */
static void test_left_for_good(void **state)
{
    (void)state;
    leave_the_driver(wrap(KP_CLASS_GATE, "cuMemFree", ADDRESS(leaves_from_gate)));
    assert_int_equal(kp_guard, 1);
    assert_int_equal(kp_in_driver, 1);
    assert_false(kp_gate_enter_exclusive(60000, 0));
    assert_int_equal(call_gate(CUDA_SUCCESS, 1, 2), CUDA_SUCCESS);
    assert_int_equal(callee.guard, 1); /* looked at, as any other */
    assert_int_equal(callee.in_driver, 1);
    assert_true(kp_gate_enter_exclusive(60000, 0));
    kp_gate_leave_exclusive();
    leave_the_driver(wrap(KP_CLASS_SYNC, "cuStreamSynchronize", ADDRESS(leaves_from_wait)));
    assert_int_equal(kp_guard, 0); /* it is not in the gate */
    assert_int_equal(kp_in_driver, 1);
    assert_int_equal(call_gate(CUDA_SUCCESS, 1, 2), CUDA_SUCCESS);
    assert_int_equal(callee.in_driver, 1);
    assert_int_equal(process.synchronised, 0);
}

static CUresult real_create(uint64_t handle, uint64_t size, const CUmemAllocationProp *what)
{
    assert_non_null(what);
    return answers(handle, size);
}

/* Virtual memory is told apart by the third argument. */
static void create_on(CUmemLocationType where, CUresult result)
{
    CUmemAllocationProp what = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {.type = where}};
    memset(&callee, 0, sizeof(callee));
    callee.result = result;
    CUresult (*create)(uint64_t, uint64_t, const CUmemAllocationProp *) =
        (void *)(uintptr_t)wrap(KP_CLASS_VIRTUAL, "cuMemCreate", ADDRESS(real_create));
    assert_int_equal(create(0, 0, &what), result);
    assert_int_equal(kp_guard + kp_in_driver, 0);
    assert_true(kp_gate_enter_exclusive(60000, 0)); /* it was left */
    kp_gate_leave_exclusive();
}

static CUresult real_map(uint64_t at, uint64_t size)
{
    return answers(at, size);
}

static CUresult real_access(uint64_t at, uint64_t size)
{
    return answers(at, size);
}

static void map_by(enum kp_api_class class, void *real, enum kp_gift gift)
{
    unsigned asked = process.asked_to_allocate;
    CUresult (*f)(uint64_t, uint64_t) = (void *)(uintptr_t)wrap(class, "cuMem", real);
    assert_int_equal(f(1, 2), CUDA_SUCCESS);
    assert_int_equal(process.asked_to_allocate, asked + 1);
    assert_int_equal(process.gift, gift);
}

/* Beside a window, calls of virtual memory management are made alone where it takes what they give. */
static void test_virtual_memory_beside_a_window(void **state)
{
    (void)state;
    process.takes = true;
    atomic_store(&watches, true);
    create_on(CU_MEM_LOCATION_TYPE_DEVICE, CUDA_SUCCESS);
    assert_int_equal(process.gift, KP_GIFT_HANDLE);
    map_by(KP_CLASS_MAP, ADDRESS(real_map), KP_GIFT_MAPPING);
    map_by(KP_CLASS_ACCESS, ADDRESS(real_access), KP_GIFT_ACCESS);
    assert_int_equal(process.allocated, 3);
    assert_int_equal(process.closed, 0);
    create_on(CU_MEM_LOCATION_TYPE_HOST_NUMA, CUDA_SUCCESS);
    assert_int_equal(process.closed, 1);
    assert_int_equal(process.asked_to_allocate, 3);
    assert_int_equal(process.virtual_memory, 1);
    process.takes = false; /* the window has other plans */
    atomic_store(&watches, true);
    map_by(KP_CLASS_MAP, ADDRESS(real_map), KP_GIFT_MAPPING);
    assert_int_equal(process.closed, 2);
    assert_int_equal(process.allocated, 3);
}

static void test_memory_that_others_reach(void **state)
{
    (void)state;
    call_share(CUDA_ERROR_INVALID_VALUE, 0, 0);
    call_managed(CUDA_ERROR_OUT_OF_MEMORY, 0, 0);
    assert_int_equal(process.shared + process.managed, 0);
    call_share(CUDA_SUCCESS, 0, 0);
    assert_int_equal(process.shared, 1);
    assert_int_equal(process.managed, 0);
    call_managed(CUDA_SUCCESS, 0, 0);
    assert_int_equal(process.shared, 1);
    assert_int_equal(process.managed, 1);
    create_on(CU_MEM_LOCATION_TYPE_HOST_NUMA, CUDA_ERROR_INVALID_VALUE);
    create_on(CU_MEM_LOCATION_TYPE_DEVICE, CUDA_SUCCESS);
    assert_int_equal(process.virtual_memory, 0);
    create_on(CU_MEM_LOCATION_TYPE_HOST_NUMA, CUDA_SUCCESS);
    assert_int_equal(process.virtual_memory, 1);
    call_gate(CUDA_SUCCESS, 0, 0);
    assert_int_equal(process.shared + process.managed, 2);
    assert_int_equal(process.virtual_memory, 1);
}

/* What watches images of modules is started before the driver loads one. */
static void test_images(void **state)
{
    (void)state;
    call_gate(CUDA_SUCCESS, 0, 0);
    assert_int_equal(process.images, 0);
    call_image(CUDA_ERROR_INVALID_IMAGE, 0, 0);
    assert_int_equal(process.images, 1);
}

/* The program's waits that end order what it does before and after them. */
static void test_synchronised(void **state)
{
    (void)state;
    call_sync(CUDA_ERROR_NOT_READY, 0, 0);
    call_gate(CUDA_SUCCESS, 0, 0);
    assert_int_equal(process.synchronised, 0);
    call_sync(CUDA_SUCCESS, 0, 0);
    assert_int_equal(process.synchronised, 1);
}

/* The way from a record made alone to the call that is made among others. */
static void test_exclusive_to_shared(void **state)
{
    (void)state;
    assert_true(kp_gate_enter_exclusive(60000, 0));
    kp_gate_exclusive_to_shared();
    kp_gate_enter_shared("a test"); /* others are let in, */
    kp_gate_leave_shared();
    assert_false(kp_gate_enter_exclusive(60000, 3600000)); /* but no replay, and this thread does not wait for itself */
    kp_gate_leave_shared();
    assert_true(kp_gate_enter_exclusive(60000, 0));
    kp_gate_leave_exclusive();
}

static void be_alone(enum kp_then then)
{
    KP_ALONE gate = kp_gate_alone(60000, 0);
    assert_true(gate.in);
    assert_int_equal(kp_guard, 1);
    gate.then = then;
}

/* Each way out leaves the gate as it is to be, and lowers the guard. */
static void test_alone(void **state)
{
    (void)state;
    be_alone(KP_THEN_OUT);
    assert_int_equal(kp_guard, 0);
    be_alone(KP_THEN_SHARED);
    assert_int_equal(kp_guard, 0);
    struct kp_alone refused = kp_gate_alone(60000, 5); /* a call is in flight */
    assert_false(refused.in);
    assert_int_equal(kp_guard, 0);
    kp_gate_end_alone(&refused);
    kp_gate_leave_shared();
    be_alone(KP_THEN_ALONE);
    assert_int_equal(kp_guard, 0);
    assert_false(kp_gate_try_shared());
    struct kp_alone still = kp_gate_alone_still();
    assert_int_equal(kp_guard, 1);
    kp_gate_end_alone(&still);
    kp_gate_end_alone(&still); /* once */
    assert_int_equal(kp_guard, 0);
    assert_true(kp_gate_try_shared());
    struct kp_alone beside = kp_gate_alone_beside(0);
    assert_true(beside.in);
    kp_gate_end_alone(&beside);
    kp_gate_leave_shared();
    be_alone(KP_THEN_OUT);
}

/* ---- a replay and the program's calls ---- */

static struct {
    atomic_bool in_call, may_return, returned, about_to_enter, inside;
    atomic_uint calls;
    bool entered, overlapped;
} shared;

static void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 200 * 1000}, NULL);
}

static void wait_for(atomic_bool *flag)
{
    while (!atomic_load(flag))
        nap();
}

static int slow_call(void)
{
    atomic_store(&shared.in_call, true);
    wait_for(&shared.may_return);
    atomic_store(&shared.returned, true);
    return 42;
}

static int quick_call(void)
{
    atomic_fetch_add(&shared.calls, 1);
    return 43;
}

static void *call_slowly(void *result)
{
    *(int *)result = WRAPPED(int (*)(void), slow_call)();
    return NULL;
}

static void *load_quickly(void *result)
{
    *(int *)result = ((int (*)(void))(uintptr_t)wrap(KP_CLASS_MODULE, "", ADDRESS(quick_call)))();
    return NULL;
}

/* A call finds no window, and waits while another thread opens one: that takes the call. */
static void test_window_opened_meanwhile(void **state)
{
    (void)state;
    pthread_t caller;
    int result = 0;
    process.takes = true;
    atomic_store(&loads_noted, false);
    assert_true(kp_gate_enter_exclusive(60000, 30000));
    assert_int_equal(pthread_create(&caller, NULL, load_quickly, &result), 0);
    wait_for(&loads_noted);
    for (int i = 0; i < 100; i++)
        nap();
    atomic_fetch_add(&opened, 1);
    atomic_store(&watches, true);
    kp_gate_leave_exclusive();
    pthread_join(caller, NULL);
    assert_int_equal(result, 43);
    assert_int_equal(process.loads_taken, 1);
    assert_int_equal(process.closed, 0);
    assert_true(atomic_load(&watches));
}

static void *call_quickly(void *result)
{
    int (*f)(void) = WRAPPED(int (*)(void), quick_call);
    atomic_store(&shared.about_to_enter, true);
    *(int *)result = f();
    return NULL;
}

static void *replay(void *unused)
{
    atomic_store(&shared.about_to_enter, true);
    shared.entered = kp_gate_enter_exclusive(60000, 30000);
    shared.overlapped = !atomic_load(&shared.returned);
    atomic_store(&shared.inside, true);
    kp_gate_leave_exclusive();
    return unused;
}

static int reset_shared(void **state)
{
    memset(&shared, 0, sizeof(shared));
    return reset(state);
}

static void test_replay_waits_for_calls(void **state)
{
    pthread_t caller, replayer;
    int result = 0;
    (void)state;
    assert_int_equal(pthread_create(&caller, NULL, call_slowly, &result), 0);
    wait_for(&shared.in_call);
    assert_false(kp_gate_enter_exclusive(60000, 2)); /* patience ends: outside, and the gate is open as before */
    assert_int_equal(WRAPPED(int (*)(void), quick_call)(), 43);
    assert_int_equal(pthread_create(&replayer, NULL, replay, NULL), 0);
    wait_for(&shared.about_to_enter);
    for (int i = 0; i < 50 && !atomic_load(&shared.inside); i++)
        nap(); /* every chance to go in too early */
    assert_false(atomic_load(&shared.inside));
    atomic_store(&shared.may_return, true);
    pthread_join(replayer, NULL);
    pthread_join(caller, NULL);
    assert_true(shared.entered);
    assert_false(shared.overlapped);
    assert_int_equal(result, 42);
}

/* ---- calls of several threads, each counted on a stripe of its own ---- */

enum { CROWD = 3 };

static struct {
    atomic_int inside, turn; /* who leaves: callers below it */
} crowd;

static void *stay_inside(void *arg)
{
    int number = (int)(intptr_t)arg;
    kp_gate_enter_shared("a call");
    atomic_fetch_add(&crowd.inside, 1);
    while (atomic_load(&crowd.turn) <= number)
        nap();
    kp_gate_leave_shared();
    return NULL;
}

/* A replay waits for the calls of all threads, in whichever order they end. */
static void test_replay_waits_for_each_thread(void **state)
{
    pthread_t callers[CROWD], replayer;
    (void)state;
    memset(&crowd, 0, sizeof(crowd));
    for (intptr_t i = 0; i < CROWD; i++)
        assert_int_equal(pthread_create(&callers[i], NULL, stay_inside, (void *)i), 0);
    while (atomic_load(&crowd.inside) < CROWD)
        nap();
    for (int i = 0; i < CROWD - 1; i++) {
        assert_false(kp_gate_enter_exclusive(60000, 2));
        atomic_store(&crowd.turn, i + 1);
        pthread_join(callers[i], NULL);
    }
    assert_false(kp_gate_enter_exclusive(60000, 2));
    assert_int_equal(pthread_create(&replayer, NULL, replay, NULL), 0);
    wait_for(&shared.about_to_enter);
    atomic_store(&crowd.turn, CROWD);
    pthread_join(replayer, NULL);
    pthread_join(callers[CROWD - 1], NULL);
    assert_true(shared.entered);
}

/* A call that does not end keeps the window from closing; the next call goes on all the same. */
static void test_window_that_cannot_be_closed(void **state)
{
    pthread_t caller;
    int result = 0;
    (void)state;
    assert_int_equal(pthread_create(&caller, NULL, call_slowly, &result), 0);
    wait_for(&shared.in_call);
    atomic_store(&watches, true);
    process.stuck = true;
    assert_int_equal(WRAPPED(int (*)(void), quick_call)(), 43);
    assert_int_equal(process.closed, 1);
    atomic_store(&shared.may_return, true);
    pthread_join(caller, NULL);
    assert_true(kp_gate_enter_exclusive(60000, 0));
    kp_gate_leave_exclusive();
}

static void test_replay_holds_calls_back(void **state)
{
    pthread_t caller;
    int result = 0;
    (void)state;
    assert_true(kp_gate_enter_exclusive(60000, 0));
    assert_int_equal(pthread_create(&caller, NULL, call_quickly, &result), 0);
    wait_for(&shared.about_to_enter);
    for (int i = 0; i < 50; i++)
        nap();
    assert_int_equal(atomic_load(&shared.calls), 0);
    kp_guard++; /* the replay's own calls go through */
    assert_int_equal(WRAPPED(int (*)(void), quick_call)(), 43);
    kp_guard--;
    assert_int_equal(atomic_load(&shared.calls), 1);
    kp_gate_leave_exclusive();
    pthread_join(caller, NULL);
    assert_int_equal(result, 43);
    assert_int_equal(atomic_load(&shared.calls), 2);
}

/* In a forked child, whatever its parent's threads held when it was made does not count after a reset. */
static int child_of_a_busy_process(void)
{
    kp_gate_enter_shared("a test"); /* would wait for ever */
    kp_gate_leave_shared();
    if (!kp_gate_enter_exclusive(60000, 0))
        return 1;
    kp_gate_leave_exclusive();
    return 0;
}

static void fork_and_check(void)
{
    int status = -1;
    pid_t pid = fork();
    if (!pid) {
        alarm(20);
        kp_test_end(child_of_a_busy_process());
    }
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void test_reset_in_a_child(void **state)
{
    (void)state;
    kp_locks_watch_forks(kp_gate_reset); /* as the process does */
    kp_gate_enter_shared("a test");      /* a call in flight */
    fork_and_check();
    kp_gate_leave_shared();
    assert_true(kp_gate_enter_exclusive(60000, 0)); /* a replay */
    fork_and_check();
    kp_gate_leave_exclusive();
}

/* Several callers and several replays, one counter that only replays may see at rest. */
enum { CALLERS = 3, REPLAYS = 100 };

static atomic_int inside_calls, callers_at_work;
static atomic_bool enough;
static unsigned long replays_seen, calls_made[CALLERS];

static int busy_call(void)
{
    atomic_fetch_add(&inside_calls, 1);
    sched_yield();
    atomic_fetch_sub(&inside_calls, 1);
    return 0;
}

static void *keep_calling(void *calls)
{
    int (*f)(void) = WRAPPED(int (*)(void), busy_call);
    f();
    atomic_fetch_add(&callers_at_work, 1);
    for (*(unsigned long *)calls = 1; !atomic_load(&enough); ++*(unsigned long *)calls)
        f();
    return NULL;
}

static void *keep_replaying(void *disturbed)
{
    while (atomic_load(&callers_at_work) < CALLERS)
        nap();
    for (int i = 0; i < REPLAYS; i++) {
        if (!kp_gate_enter_exclusive(60000, 30000))
            continue;
        replays_seen++; /* only ever under the gate: not atomic */
        for (int k = 0; k < 20; k++)
            *(bool *)disturbed |= atomic_load(&inside_calls) != 0;
        kp_gate_leave_exclusive();
    }
    return NULL;
}

static void test_many_threads(void **state)
{
    pthread_t callers[CALLERS], replayers[2];
    bool disturbed[2] = {false, false};
    (void)state;
    for (size_t i = 0; i < CALLERS; i++)
        assert_int_equal(pthread_create(&callers[i], NULL, keep_calling, &calls_made[i]), 0);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&replayers[i], NULL, keep_replaying, &disturbed[i]), 0);
    for (size_t i = 0; i < 2; i++)
        pthread_join(replayers[i], NULL);
    atomic_store(&enough, true);
    for (size_t i = 0; i < CALLERS; i++)
        pthread_join(callers[i], NULL);
    assert_false(disturbed[0] || disturbed[1]);
    assert_int_equal(replays_seen, 2 * REPLAYS);
    for (size_t i = 0; i < CALLERS; i++)
        assert_true(calls_made[i] > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_arguments, reset),
        cmocka_unit_test_setup(test_first_frame_of_a_stack, reset),
        cmocka_unit_test_setup(test_doubles_and_structures, reset),
        cmocka_unit_test_setup(test_classes_that_are_not_wrapped, reset),
        cmocka_unit_test_setup(test_one_trampoline_a_function, reset),
        cmocka_unit_test_setup(test_no_driver, reset),
        cmocka_unit_test_setup(test_gate, reset),
        cmocka_unit_test_setup(test_context_end, reset),
        cmocka_unit_test_setup(test_other_context_ends, reset),
        cmocka_unit_test_setup(test_stream_end, reset),
        cmocka_unit_test_setup(test_set, reset),
        cmocka_unit_test_setup(test_forget, reset),
        cmocka_unit_test_setup(test_captures, reset),
        cmocka_unit_test_setup(test_init, reset),
        cmocka_unit_test_setup(test_what_closes_a_window, reset),
        cmocka_unit_test_setup(test_sync, reset),
        cmocka_unit_test_setup(test_limit_that_launches_need, reset),
        cmocka_unit_test_setup(test_load, reset),
        cmocka_unit_test_setup(test_hold, reset),
        cmocka_unit_test_setup(test_work, reset),
        cmocka_unit_test_setup(test_host_function, reset),
        cmocka_unit_test_setup(test_modules, reset),
        cmocka_unit_test_setup(test_frees, reset),
        cmocka_unit_test_setup(test_attributes_of_before, reset),
        cmocka_unit_test_setup(test_join, reset),
        cmocka_unit_test_setup(test_reads, reset),
        cmocka_unit_test_setup(test_allocation, reset),
        cmocka_unit_test_setup(test_allocation_in_order, reset),
        cmocka_unit_test_setup(test_left_for_good, reset),
        cmocka_unit_test_setup(test_virtual_memory_beside_a_window, reset),
        cmocka_unit_test_setup(test_memory_that_others_reach, reset),
        cmocka_unit_test_setup(test_images, reset),
        cmocka_unit_test_setup(test_synchronised, reset),
        cmocka_unit_test_setup(test_exclusive_to_shared, reset),
        cmocka_unit_test_setup(test_alone, reset),
        cmocka_unit_test_setup(test_window_opened_meanwhile, reset),
        cmocka_unit_test_setup(test_replay_waits_for_calls, reset_shared),
        cmocka_unit_test_setup(test_replay_waits_for_each_thread, reset_shared),
        cmocka_unit_test_setup(test_window_that_cannot_be_closed, reset_shared),
        cmocka_unit_test_setup(test_replay_holds_calls_back, reset_shared),
        cmocka_unit_test_setup(test_reset_in_a_child, reset),
        cmocka_unit_test_setup(test_many_threads, reset),
        cmocka_unit_test_setup(test_no_trampoline_left, reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
