/* Pinned memory made of virtual memory management, over the fake driver, with a process and a gate of this test's own:
 * it is what a program expects of pinned memory, every failure ends in the driver's own function, and what could not be
 * replaced is known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "preload/doors/hostmem_doors.h"
#include "preload/gate/gate.h"
#include "preload/gate/window_facts.h"
#include "preload/os/guard.h"
#include "preload/os/mappings.h"
#include "preload/process/process.h"
#include "preload/program/hostmem.h"
#include "tests/fake/fake_hooks.h"
#include "tests/support/end_support.h"
#include "tests/support/report_support.h"

enum { DEVICES = 3, UNIT = 2 << 20, PAGE = 4096 };

/* ---- the process and the gate ---- */

static struct {
    bool active, replays;
    bool watches; /* an open window */
    int captures, beside;
    atomic_int inside, entered;
} process;

static struct kp_driver driver;

bool kp_process_active(void)
{
    return process.active;
}

bool kp_process_replays(void)
{
    return process.active && process.replays;
}

const struct kp_driver *kp_process_driver(void)
{
    return process.active ? &driver : NULL;
}

void kp_gate_enter_shared(const char *what)
{
    assert_non_null(what);
    atomic_fetch_add(&process.inside, 1);
    atomic_fetch_add(&process.entered, 1);
}

bool kp_gate_try_shared(void)
{
    return false;
}

bool kp_window_watches(void)
{
    return process.watches;
}

void kp_window_note_unseen(void)
{
}

void kp_window_spoil(void)
{
    fail();
}

void kp_window_synchronised(void)
{
}

bool kp_process_goes_beside(void)
{
    process.beside++;
    kp_gate_enter_shared("beside");
    return true;
}

void kp_gate_leave_shared(void)
{
    atomic_fetch_sub(&process.inside, 1);
}

int kp_gate_captures(void)
{
    return process.captures;
}

/* ---- the driver ---- */

static struct kp_driver fake; /* without this test in front */
static void *library;
static CUcontext context;
static struct fake_virtual (*now)(void);
static const struct fake_cuda_api *(*hooks)(void);

static struct {
    atomic_int allocs, frees, registers, unregisters, waits;
    size_t mappings_at_wait;
    bool known_at_unregister;
} calls;

static void *find_in_fake(const char *symbol)
{
    void *found = dlsym(library, symbol);
    return found ? found : dlsym(library, "cuInit"); /* of other features: never called here */
}

/* Calls of kprof's own, and of the program's through a door, are made in the gate and under the guard, or not at all.
 */
static void check_guarded(void)
{
    if (process.active) {
        assert_true(kp_guard > 0);
        assert_true(atomic_load(&process.inside) > 0);
    }
}

static CUresult waiting(void)
{
    check_guarded();
    atomic_fetch_add(&calls.waits, 1);
    calls.mappings_at_wait = now().mappings;
    return fake.cuCtxSynchronize();
}

static CUresult creating(CUmemGenericAllocationHandle *handle, size_t size, const CUmemAllocationProp *prop,
                         unsigned long long flags)
{
    check_guarded();
    return fake.cuMemCreate(handle, size, prop, flags);
}

static CUresult unmapping(CUdeviceptr p, size_t size)
{
    check_guarded();
    return fake.cuMemUnmap(p, size);
}

#define REAL(type, symbol) ((type)(uintptr_t)dlsym(library, symbol))

static CUresult real_host_alloc(void **p, size_t bytes, unsigned flags)
{
    atomic_fetch_add(&calls.allocs, 1);
    return REAL(PFN_cuMemHostAlloc_v2020, "cuMemHostAlloc")(p, bytes, flags);
}

static CUresult real_alloc_host(void **p, size_t bytes)
{
    atomic_fetch_add(&calls.allocs, 1);
    return REAL(PFN_cuMemAllocHost_v3020, "cuMemAllocHost_v2")(p, bytes);
}

static CUresult real_alloc_host_v1(void **p, unsigned bytes)
{
    atomic_fetch_add(&calls.allocs, 1);
    return REAL(kp_pfn_alloc_host_v1, "cuMemAllocHost")(p, bytes);
}

static CUresult real_free(void *p)
{
    atomic_fetch_add(&calls.frees, 1);
    return REAL(PFN_cuMemFreeHost_v2000, "cuMemFreeHost")(p);
}

static CUresult real_register(void *p, size_t bytes, unsigned flags)
{
    atomic_fetch_add(&calls.registers, 1);
    return REAL(PFN_cuMemHostRegister_v6050, "cuMemHostRegister_v2")(p, bytes, flags);
}

static CUresult real_unregister(void *p)
{
    void *base;
    size_t bytes;
    atomic_fetch_add(&calls.unregisters, 1);
    calls.known_at_unregister = kp_hostmem_find((uintptr_t)p, &base, &bytes);
    return REAL(PFN_cuMemHostUnregister_v4000, "cuMemHostUnregister")(p);
}

static CUresult host_alloc(void **p, size_t bytes)
{
    return kp_gated_cuMemHostAlloc(real_host_alloc, false, p, bytes, CU_MEMHOSTALLOC_PORTABLE);
}

static CUresult free_host(void *p)
{
    return kp_cuMemFreeHost(real_free, false, p);
}

static CUresult register_host(void *p, size_t bytes, unsigned flags)
{
    return kp_gated_cuMemHostRegister_v2(real_register, false, p, bytes, flags);
}

static CUresult unregister_host(void *p)
{
    return kp_cuMemHostUnregister(real_unregister, false, p);
}

static int start(void **state)
{
    char devices[8];
    (void)state;
    snprintf(devices, sizeof(devices), "%d", DEVICES);
    setenv("FAKE_DEVICES", devices, 1);
    library = dlopen(kp_test_build("fake/libcuda.so.1"), RTLD_NOW | RTLD_LOCAL);
    if (!library)
        fail_msg("%s", dlerror());
    now = (struct fake_virtual(*)(void))(uintptr_t)dlsym(library, "fake_cuda_virtual");
    hooks = (const struct fake_cuda_api *(*)(void))(uintptr_t)dlsym(library, "fake_cuda_api");
    assert_null(kp_driver_fill(&fake, find_in_fake));
    assert_int_equal(REAL(PFN_cuInit_v2000, "cuInit")(0), CUDA_SUCCESS);
    assert_int_equal(REAL(PFN_cuDevicePrimaryCtxRetain_v7000, "cuDevicePrimaryCtxRetain")(&context, 1), CUDA_SUCCESS);
    return 0;
}

static void begin(void)
{
    alarm(60);
    driver = fake;
    driver.cuCtxSynchronize = waiting;
    driver.cuMemCreate = creating;
    driver.cuMemUnmap = unmapping;
    memset(&process, 0, sizeof(process));
    memset(&calls, 0, sizeof(calls));
    process.active = process.replays = true;
}

static int reset(void **state)
{
    (void)state;
    begin();
    return fake.cuCtxPushCurrent(context);
}

/* Whatever a test did: all doors were left, all memory was freed. */
static int check_left(void **state)
{
    CUcontext popped;
    (void)state;
    alarm(0);
    unsetenv("FAKE_FAIL");
    assert_int_equal(kp_guard, 0);
    assert_int_equal(atomic_load(&process.inside), 0);
    assert_false(kp_hostmem_rewound());
    return fake.cuCtxPopCurrent(&popped);
}

#define OK(call)      assert_int_equal(call, CUDA_SUCCESS)
#define REFUSED(call) assert_int_equal(call, CUDA_ERROR_INVALID_VALUE)

static void check_found(const void *p, const void *base, size_t bytes)
{
    void *found = NULL;
    size_t size = 0;
    assert_true(kp_hostmem_find((uintptr_t)p, &found, &size));
    assert_ptr_equal(found, base);
    assert_int_equal(size, bytes);
}

static bool is_known(const void *p)
{
    void *base;
    size_t bytes;
    return kp_hostmem_find((uintptr_t)p, &base, &bytes);
}

/* What lies next to it may belong to another one. */
static void check_outside(const char *at, const char *p)
{
    void *base = NULL;
    size_t bytes;
    if (kp_hostmem_find((uintptr_t)at, &base, &bytes)) {
        assert_ptr_not_equal(base, p);
        assert_true(at >= (char *)base && at < (char *)base + bytes);
    }
}

static void check_allocation(const char *p, size_t bytes)
{
    check_found(p, p, bytes);
    check_found(p + bytes - 1, p, bytes);
    check_outside(p - 1, p);
    check_outside(p + bytes, p);
}

static bool is_zero(const char *p, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (p[i])
            return false;
    return true;
}

/* Memory for the host and every device, of the kind that a checkpoint leaves alone. */
static void check_ours(const char *p, size_t bytes)
{
    CUmemLocation where = {.type = CU_MEM_LOCATION_TYPE_HOST_NUMA, .id = 0};
    PFN_cuMemGetAccess_v10020 access = REAL(PFN_cuMemGetAccess_v10020, "cuMemGetAccess");
    unsigned long long flags = 0;
    unsigned type = 0;
    for (int i = -1; i < DEVICES; i++) {
        OK(access(&flags, &where, (CUdeviceptr)(p + bytes - 1)));
        assert_int_equal(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
        where = (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = i + 1};
    }
    OK(fake.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)p));
    assert_int_equal(type, CU_MEMORYTYPE_HOST);
    check_allocation(p, bytes);
}

static void check_same(const struct fake_virtual *a)
{
    struct fake_virtual b = now();
    assert_memory_equal(a, &b, sizeof(b));
}

/* ---- memory of ours ---- */

static void test_large(void **state)
{
    static const size_t sizes[] = {UNIT, 3 * UNIT + 1, UNIT / 2 + 1};
    const struct fake_virtual before = now();
    (void)state;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        char *p = NULL;
        OK(host_alloc((void **)&p, sizes[i]));
        assert_int_equal((uintptr_t)p % PAGE, 0);
        check_ours(p, sizes[i]);
        assert_true(is_zero(p, sizes[i]));
        memset(p, 0x77, sizes[i]);
        assert_int_equal(now().physical, before.physical + 1);
        assert_int_equal(now().handles, before.handles);
        assert_int_equal(atomic_load(&calls.waits), i);
        OK(free_host(p));
        assert_int_equal(atomic_load(&calls.waits), i + 1);
        assert_int_equal(calls.mappings_at_wait, before.mappings + 1); /* waited first */
        assert_false(is_known(p));
        check_same(&before);
        REFUSED(free_host(p));
    }
    assert_int_equal(atomic_load(&calls.allocs), 0);
    assert_int_equal(atomic_load(&calls.frees), 3); /* the second ones */
    assert_int_equal(atomic_load(&process.entered), 9);
}

static size_t class_of(size_t bytes)
{
    size_t class = 512;
    while (class < bytes)
        class *= 2;
    return class;
}

static int compare_addresses(const void *a, const void *b)
{
    uintptr_t x = *(const uintptr_t *)a, y = *(const uintptr_t *)b;
    return x < y ? -1 : x > y;
}

static void test_small(void **state)
{
    enum { N = 40 };
    static const size_t sizes[] = {1, 512, 513, 4096, 5000, UNIT / 2};
    (void)state;
    for (size_t s = 0; s < sizeof(sizes) / sizeof(*sizes); s++) {
        char *p[N], *again[N];
        size_t class = class_of(sizes[s]);
        for (int i = 0; i < N; i++) {
            OK(host_alloc((void **)&p[i], sizes[s]));
            assert_int_equal((uintptr_t)p[i] % (class < PAGE ? class : PAGE), 0);
            assert_true(is_zero(p[i], class));
            memset(p[i], i + 1, class);
        }
        const struct fake_virtual full = now();
        for (int i = 0; i < N; i++) {
            check_ours(p[i], sizes[s]);
            for (size_t b = 0; b < class; b += class / 4)
                assert_int_equal(p[i][b], i + 1); /* nobody else's */
            assert_int_equal(p[i][class - 1], i + 1);
        }
        REFUSED(free_host(p[1] + 256));
        for (int i = 0; i < N; i++)
            OK(free_host(p[i]));
        REFUSED(free_host(p[0]));
        for (int i = 0; i < N; i++) {
            OK(host_alloc((void **)&again[i], sizes[s]));
            assert_true(is_zero(again[i], class)); /* zero when handed out again */
        }
        check_same(&full); /* the same memory */
        qsort(p, N, sizeof(*p), compare_addresses);
        qsort(again, N, sizeof(*again), compare_addresses);
        assert_memory_equal(p, again, sizeof(p));
        for (int i = 0; i < N; i++)
            OK(free_host(again[i]));
    }
    assert_int_equal(atomic_load(&calls.allocs), 0);
}

static bool is_gap(const char *p)
{
    return kp_hostmem_is_gap((uintptr_t)p);
}

/* What the driver knows of, and the program does not have. */
static void test_gaps(void **state)
{
    static const size_t sizes[] = {1, 700, UNIT / 2, UNIT + 1};
    char *p[2], *internal = NULL;
    int local;
    (void)state;
    for (size_t s = 0; s < sizeof(sizes) / sizeof(*sizes); s++) {
        size_t bytes = sizes[s];
        for (int i = 0; i < 2; i++)
            OK(host_alloc((void **)&p[i], bytes));
        for (int i = 0; i < 2; i++) {
            assert_false(is_gap(p[i]) || is_gap(p[i] + bytes - 1));
            assert_true(bytes == UNIT / 2 || is_gap(p[i] + bytes));
        }
        OK(free_host(p[0]));
        assert_int_equal(is_gap(p[0]), bytes <= UNIT / 2); /* of a larger one nothing is left */
        assert_false(is_gap(p[1]));
        OK(free_host(p[1]));
        assert_false(is_gap((char *)&local));
    }
    assert_true(kp_hostmem_make(&fake, (void **)&internal, 100, KP_HOSTMEM_INTERNAL));
    assert_true(is_gap(internal) && is_gap(internal + 99));
    OK(free_host(internal));
}

/* Each size shares memory with its own kind only, and as much as fits. */
static void test_arenas(void **state)
{
    enum { SLOT = UNIT / 4 };
    const struct fake_virtual before = now();
    char *p[5];
    (void)state;
    for (int i = 0; i < 5; i++)
        OK(host_alloc((void **)&p[i], SLOT - i));
    assert_int_equal(now().mappings, before.mappings + 2); /* four, and one */
    for (int i = 0; i < 5; i++)
        OK(free_host(p[i]));
}

static void test_other_ways_to_allocate(void **state)
{
    const unsigned all = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
    char *p[3];
    (void)state;
    OK(kp_gated_cuMemHostAlloc(real_host_alloc, false, (void **)&p[0], UNIT, all));
    OK(kp_gated_cuMemAllocHost_v2(real_alloc_host, false, (void **)&p[1], UNIT));
    OK(kp_gated_cuMemAllocHost(real_alloc_host_v1, false, (void **)&p[2], UNIT));
    assert_int_equal(atomic_load(&calls.allocs), 0);
    for (int i = 0; i < 3; i++) {
        check_ours(p[i], UNIT);
        OK(free_host(p[i]));
    }
}

/* ---- what is left to the driver ---- */

/* The driver's memory, as long as it lives. */
static void check_pinned(CUresult rc, char *const *out, size_t bytes)
{
    char *p = *out;
    OK(rc);
    check_allocation(p, bytes);
    assert_true(kp_hostmem_rewound());
    int frees = atomic_load(&calls.frees);
    REFUSED(free_host(p + 1));
    check_allocation(p, bytes);
    assert_true(kp_hostmem_rewound());
    OK(free_host(p));
    assert_int_equal(atomic_load(&calls.frees), frees + 2);
    assert_false(is_known(p));
    assert_false(kp_hostmem_rewound());
}

static void test_failing_steps(void **state)
{
    /* all that a new piece needs */
    static const char *const steps[] = {"cuCtxGetDevice", "cuMemGetAllocationGranularity",
                                        "cuMemCreate",    "cuMemAddressReserve",
                                        "cuMemMap",       "cuDeviceGetCount",
                                        "cuMemSetAccess"};
    const struct fake_virtual before = now();
    (void)state;
    for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++)
        for (size_t bytes = UNIT; bytes <= 2 * UNIT; bytes += UNIT) {
            char fail[64], *p = NULL;
            snprintf(fail, sizeof(fail), "%s:2", steps[i]);
            setenv("FAKE_FAIL", fail, 1);
            CUresult rc = host_alloc((void **)&p, bytes);
            unsetenv("FAKE_FAIL");
            check_pinned(rc, &p, bytes);
            check_same(&before); /* nothing is left of the attempt */
        }
    void *p = &p;
    assert_int_equal(host_alloc(&p, SIZE_MAX - 5),
                     CUDA_ERROR_OUT_OF_MEMORY); /* does not come out small when rounded up */
    assert_ptr_equal(p, &p);
}

static void test_first_small_one_fails(void **state)
{
    enum { NOT_USED_YET = 70000 };
    const struct fake_virtual before = now();
    char *p = NULL;
    (void)state;
    setenv("FAKE_FAIL", "cuMemMap:2", 1);
    CUresult rc = host_alloc((void **)&p, NOT_USED_YET);
    unsetenv("FAKE_FAIL");
    check_pinned(rc, &p, NOT_USED_YET);
    check_same(&before);
    OK(host_alloc((void **)&p, NOT_USED_YET));
    check_ours(p, NOT_USED_YET);
    OK(free_host(p));
}

static void test_older_drivers(void **state)
{
    static const size_t fields[] = {offsetof(struct kp_driver, cuMemGetAllocationGranularity),
                                    offsetof(struct kp_driver, cuDeviceGetCount),
                                    offsetof(struct kp_driver, cuMemCreate),
                                    offsetof(struct kp_driver, cuMemRelease),
                                    offsetof(struct kp_driver, cuMemAddressReserve),
                                    offsetof(struct kp_driver, cuMemAddressFree),
                                    offsetof(struct kp_driver, cuMemMap),
                                    offsetof(struct kp_driver, cuMemUnmap),
                                    offsetof(struct kp_driver, cuMemSetAccess)};
    (void)state;
    for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
        char *p = NULL;
        void *none = NULL;
        begin();
        memcpy((char *)&driver + fields[i], &none, sizeof(none));
        CUresult rc = host_alloc((void **)&p, 100);
        check_pinned(rc, &p, 100);
    }
}

static void test_straight_to_the_driver(void **state)
{
    char *p = NULL;
    (void)state;
    REFUSED(host_alloc(NULL, 100));
    REFUSED(host_alloc((void **)&p, 0));
    REFUSED(kp_gated_cuMemHostAlloc(real_host_alloc, false, (void **)&p, 100, 0x80));
    REFUSED(kp_gated_cuMemAllocHost_v2(real_alloc_host, false, NULL, 100));
    REFUSED(kp_gated_cuMemAllocHost(real_alloc_host_v1, false, (void **)&p, 0));
    assert_int_equal(atomic_load(&calls.allocs), 5);
    assert_false(kp_hostmem_rewound());

    process.replays = false; /* nothing is rewound, but what is reachable is known */
    check_pinned(host_alloc((void **)&p, 100), &p, 100);
    check_pinned(kp_gated_cuMemAllocHost_v2(real_alloc_host, false, (void **)&p, 100), &p, 100);
    check_pinned(kp_gated_cuMemAllocHost(real_alloc_host_v1, false, (void **)&p, 100), &p, 100);

    for (int own = 0; own < 2; own++) { /* asleep; kprof's own call */
        begin();
        process.active = own;
        kp_guard = own;
        OK(host_alloc((void **)&p, 100));
        OK(register_host(&process, sizeof(process), 0));
        assert_false(is_known(p) || is_known(&process));
        OK(unregister_host(&process));
        OK(free_host(p));
        assert_int_equal(atomic_load(&calls.allocs) + atomic_load(&calls.frees), 2);
        assert_int_equal(atomic_load(&process.entered), 0);
        kp_guard = 0;
    }
}

static CUstreamCaptureMode set_mode(CUstreamCaptureMode mode)
{
    OK(fake.cuThreadExchangeStreamCaptureMode(&mode));
    return mode;
}

/* While a stream is captured the driver refuses to allocate, unless the thread said that it knows what it does. */
static void test_captures(void **state)
{
    CUstream stream;
    CUgraph graph;
    char *p = NULL, *early = NULL, *later = NULL;
    const struct fake_virtual before = now();
    (void)state;
    OK(host_alloc((void **)&early, UNIT));
    OK(REAL(PFN_cuStreamCreate_v2000, "cuStreamCreate")(&stream, CU_STREAM_NON_BLOCKING));
    OK(REAL(PFN_cuStreamBeginCapture_v10010, "cuStreamBeginCapture_v2")(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    process.captures = 1;
    set_mode(CU_STREAM_CAPTURE_MODE_RELAXED);
    OK(host_alloc((void **)&p, UNIT));
    check_ours(p, UNIT);
    assert_int_equal(set_mode(CU_STREAM_CAPTURE_MODE_RELAXED), CU_STREAM_CAPTURE_MODE_RELAXED);
    OK(free_host(p)); /* without a wait, which would end the capture */
    assert_true(is_gap(p) && is_gap(p + UNIT - 1));
    OK(free_host(early));
    assert_int_equal(atomic_load(&calls.waits), 0);
    assert_int_equal(now().mappings, before.mappings + 2); /* the GPU may still use it */
    assert_false(is_known(p));
    REFUSED(free_host(p));
    OK(REAL(PFN_cuStreamEndCapture_v10000, "cuStreamEndCapture")(stream, &graph));
    process.captures = 0;
    OK(host_alloc((void **)&later, UNIT));
    OK(free_host(later));
    assert_int_equal(atomic_load(&calls.waits), 1);
    assert_int_equal(calls.mappings_at_wait, before.mappings + 3);
    check_same(&before);

    OK(host_alloc((void **)&later, UNIT));
    OK(REAL(PFN_cuStreamBeginCapture_v10010, "cuStreamBeginCapture_v2")(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    process.captures = 1;
    set_mode(CU_STREAM_CAPTURE_MODE_GLOBAL);
    assert_int_equal(free_host(later), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    check_ours(later, UNIT); /* it is still there */
    assert_int_equal(REAL(PFN_cuStreamEndCapture_v10000, "cuStreamEndCapture")(stream, &graph),
                     CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    process.captures = 0;
    OK(free_host(later));
    check_same(&before);

    OK(REAL(PFN_cuStreamBeginCapture_v10010, "cuStreamBeginCapture_v2")(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    process.captures = 1;
    set_mode(CU_STREAM_CAPTURE_MODE_GLOBAL);
    assert_int_equal(host_alloc((void **)&p, UNIT), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    assert_int_equal(set_mode(CU_STREAM_CAPTURE_MODE_GLOBAL), CU_STREAM_CAPTURE_MODE_GLOBAL);
    assert_int_equal(atomic_load(&calls.allocs), 1);
    assert_int_equal(REAL(PFN_cuStreamEndCapture_v10000, "cuStreamEndCapture")(stream, &graph),
                     CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    driver.cuThreadExchangeStreamCaptureMode = NULL; /* an old driver */
    check_pinned(host_alloc((void **)&p, UNIT), &p, UNIT);
}

/* ---- freeing ---- */

static void test_free_in_every_phase(void **state)
{
    const struct fake_virtual before = now();
    char *p[5];
    CUcontext popped;
    (void)state;
    for (int i = 0; i < 5; i++)
        OK(host_alloc((void **)&p[i], UNIT));
    process.replays = false;
    OK(free_host(p[0]));
    process.active = false; /* the report has been written */
    OK(free_host(p[1]));
    assert_int_equal(atomic_load(&calls.waits), 2);
    assert_int_equal(atomic_load(&process.entered), 6);
    OK(fake.cuCtxPopCurrent(&popped));
    OK(free_host(p[2])); /* nothing to wait for */
    process.active = true;
    OK(free_host(p[3]));
    assert_int_equal(atomic_load(&calls.waits), 2);
    assert_int_equal(atomic_load(&process.entered), 7);
    kp_guard = 1; /* within another call, as by a library in front of the driver */
    process.inside = 1;
    OK(free_host(p[4]));
    kp_guard = 0;
    process.inside = 0;
    assert_int_equal(atomic_load(&process.entered), 7);
    check_same(&before);
    OK(fake.cuCtxPushCurrent(popped));
    REFUSED(free_host(p[0]));
    OK(free_host(NULL));
    assert_int_equal(atomic_load(&calls.frees), 2);
}

/* Alone in the gate. */
static void close_window(bool ended)
{
    kp_guard = 1;
    process.inside = 1;
    kp_hostmem_window_closed(ended);
    kp_guard = 0;
    process.inside = 0;
}

/* What is freed beside an open window, whose repetitions may use it, lives until that has closed: up to a limit, and
 * longer if its work has not ended. */
static void test_free_beside_a_window(void **state)
{
    enum { LARGE = 200 << 20 };
    const struct fake_virtual before = now();
    char *p[2], *small, *large[2];
    (void)state;
    process.watches = true;
    for (int i = 0; i < 2; i++)
        OK(host_alloc((void **)&p[i], UNIT));
    OK(host_alloc((void **)&small, 100));
    assert_int_equal(process.beside, 3);
    const struct fake_virtual full = now();
    OK(free_host(p[0]));
    OK(free_host(small));
    assert_int_equal(process.beside, 5);
    assert_int_equal(atomic_load(&calls.waits), 2); /* as the driver does */
    check_same(&full);
    assert_true(is_gap(p[0]) && is_gap(small)); /* not the program's any more */
    assert_true(is_zero(p[0], UNIT));           /* but there */
    close_window(false);
    check_same(&full);
    process.watches = false;
    OK(free_host(p[1])); /* with those before */
    OK(host_alloc((void **)&small, 100));
    OK(free_host(small));
    check_same(&before);

    process.watches = true;
    for (int i = 0; i < 2; i++)
        OK(host_alloc((void **)&large[i], LARGE));
    process.beside = 0;
    OK(free_host(large[0]));
    assert_int_equal(process.beside, 1);
    assert_false(kp_hostmem_may_keep(large[1]));
    assert_false(kp_hostmem_may_keep(large[0]));
    close_window(true);
    assert_true(kp_hostmem_may_keep(large[1]));
    assert_false(kp_hostmem_may_keep(large[1] + 1));
    OK(free_host(large[1]));
    close_window(true);
    check_same(&before);
}

/* As pinned memory: what the GPU did wrong is reported, and the memory is not taken away under it. */
static void test_free_that_cannot_wait(void **state)
{
    const struct fake_virtual before = now();
    char *p[2];
    (void)state;
    for (int i = 0; i < 2; i++)
        OK(host_alloc((void **)&p[i], UNIT));
    setenv("FAKE_FAIL", "cuCtxSynchronize:700,cuMemFreeHost:700", 1);
    assert_int_equal(free_host(p[0]), CUDA_ERROR_ILLEGAL_ADDRESS);
    unsetenv("FAKE_FAIL");
    assert_int_equal(now().mappings, before.mappings + 2);
    OK(free_host(p[1]));
    check_same(&before);

    setenv("FAKE_FAIL", "cuMemUnmap:4", 1);
    OK(host_alloc((void **)&p[0], UNIT));
    assert_int_equal(free_host(p[0]), CUDA_ERROR_DEINITIALIZED);
    unsetenv("FAKE_FAIL");
}

/* ---- registrations ---- */

static void test_registrations(void **state)
{
    static char memory[4][PAGE] __attribute__((aligned(PAGE)));
    (void)state;
    OK(register_host(memory[1], 100, CU_MEMHOSTREGISTER_READ_ONLY | CU_MEMHOSTREGISTER_PORTABLE));
    check_allocation(memory[1], 100);
    assert_false(kp_hostmem_rewound()); /* the device does not write there, so nothing restores it */
    OK(register_host(memory[0], PAGE, CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP));
    check_found(memory[0] + PAGE - 1, memory[0], PAGE);
    check_found(memory[1], memory[1], 100);
    assert_true(kp_hostmem_rewound());
    assert_int_equal(register_host(memory[0] + 10, 10, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    REFUSED(register_host(memory[3], 0, 0));
    assert_false(is_known(memory[3]));
    REFUSED(free_host(memory[0])); /* no allocation */
    assert_int_equal(unregister_host(memory[0] + 1), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    assert_int_equal(unregister_host(memory[2]), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    assert_true(kp_hostmem_rewound());
    setenv("FAKE_FAIL", "cuMemHostUnregister:1", 1);
    REFUSED(unregister_host(memory[0]));
    unsetenv("FAKE_FAIL");
    check_found(memory[0] + 5, memory[0], PAGE);
    assert_true(kp_hostmem_rewound());
    OK(unregister_host(memory[0]));
    assert_false(is_known(memory[0]));
    assert_false(kp_hostmem_rewound());
    check_allocation(memory[1], 100);
    process.active = false; /* what is known stays true in every phase */
    OK(unregister_host(memory[1]));
    assert_false(is_known(memory[1]));
    assert_int_equal(atomic_load(&calls.registers), 4);
    assert_int_equal(atomic_load(&calls.unregisters), 5);
}

/* Three pages side by side, the one in the middle shared with whoever asks for it. */
static char *map_pages(int file)
{
    char *p = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(p, MAP_FAILED);
    int flags = MAP_SHARED | MAP_FIXED | (file < 0 ? MAP_ANONYMOUS : 0);
    assert_ptr_equal(mmap(p + PAGE, PAGE, PROT_READ | PROT_WRITE, flags, file, 0), p + PAGE);
    return p;
}

static void test_mapped_file(void **state)
{
    char path[PATH_MAX], own[PATH_MAX] = "", *anonymous = map_pages(-1);
    (void)state;
    assert_true(readlink("/proc/self/exe", own, sizeof(own) - 1) > 0);
    assert_true(kp_mappings_file(&kp_mappings_file, path, sizeof(path)));
    assert_string_equal(path, own);
    assert_false(kp_mappings_file(&kp_mappings_file, path, strlen(own)));
    assert_true(kp_mappings_file(&kp_mappings_file, path, strlen(own) + 1));
    assert_false(kp_mappings_file(anonymous, path, sizeof(path)));
    assert_false(kp_mappings_file(NULL, path, sizeof(path)));
    munmap(anonymous, 3 * PAGE);
}

static void check_shared_pages(char *p)
{
    assert_false(kp_mappings_shared(p, PAGE));
    assert_true(kp_mappings_shared(p, PAGE + 1));
    assert_true(kp_mappings_shared(p, 3 * PAGE));
    assert_true(kp_mappings_shared(p + PAGE, 1));
    assert_true(kp_mappings_shared(p + 2 * PAGE - 1, 2));
    assert_false(kp_mappings_shared(p + 2 * PAGE, PAGE));

    OK(register_host(p, PAGE, 0));
    OK(register_host(p + 2 * PAGE, PAGE, 0));
    assert_false(kp_hostmem_shared());
    OK(register_host(p + PAGE + 5, 10, CU_MEMHOSTREGISTER_READ_ONLY));
    assert_false(kp_hostmem_shared()); /* nothing restores it */
    OK(unregister_host(p + PAGE + 5));
    OK(register_host(p + PAGE + 5, 10, 0));
    assert_true(kp_hostmem_shared());
    assert_int_equal(unregister_host(p + PAGE), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    OK(unregister_host(p));
    assert_true(kp_hostmem_shared());
    OK(unregister_host(p + PAGE + 5));
    assert_false(kp_hostmem_shared());
    OK(unregister_host(p + 2 * PAGE));

    process.replays = false;
    OK(register_host(p + PAGE, PAGE, 0));
    assert_false(kp_hostmem_shared());
    OK(unregister_host(p + PAGE));
    process.replays = true;
}

static void test_shared_mappings(void **state)
{
    int files[] = {-1, memfd_create("pages", MFD_CLOEXEC)};
    (void)state;
    assert_true(files[1] >= 0);
    assert_int_equal(ftruncate(files[1], PAGE), 0);
    for (int i = 0; i < 2; i++) {
        char *p = map_pages(files[i]);
        check_shared_pages(p);
        munmap(p, 3 * PAGE);
    }
    close(files[1]);
}

static void test_allocation_is_not_unregistered(void **state)
{
    char *p = NULL;
    (void)state;
    OK(host_alloc((void **)&p, 100));
    assert_int_equal(unregister_host(p), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    assert_true(calls.known_at_unregister); /* not even for a moment */
    check_ours(p, 100);
    OK(free_host(p));
}

/* Registrations end with their context: new ones at their place replace them. */
static void test_context_took_it_along(void **state)
{
    static char memory[8][PAGE] __attribute__((aligned(PAGE)));
    CUcontext other, popped;
    (void)state;
    OK(REAL(PFN_cuCtxCreate_v3020, "cuCtxCreate_v2")(&other, 0, 0));
    for (int i = 0; i < 8; i += 2)
        OK(register_host(memory[i], PAGE, 0));
    OK(REAL(PFN_cuCtxDestroy_v4000, "cuCtxDestroy_v2")(other));
    OK(fake.cuCtxGetCurrent(&popped));
    assert_ptr_equal(popped, context);
    OK(register_host(memory[0] + 5, 6 * PAGE - 5, 0));
    check_allocation(memory[0] + 5, 6 * PAGE - 5);
    check_found(memory[7] - 1, memory[6], PAGE);
    OK(register_host(memory[6] + 10, 10, CU_MEMHOSTREGISTER_READ_ONLY));
    check_allocation(memory[6] + 10, 10);
    assert_true(kp_hostmem_rewound());
    OK(unregister_host(memory[0] + 5));
    assert_false(kp_hostmem_rewound());
    OK(unregister_host(memory[6] + 10));
}

/* ---- many ---- */

static void test_many(void **state)
{
    enum { N = 3000, STEP = 7919, BYTES = 600 };
    static char *p[N], area[2 * N * 64];
    (void)state;
    for (size_t i = 0; i < N; i++) { /* in no order */
        size_t k = i * STEP % N;
        OK(register_host(area + 128 * k, 64, 0));
        OK(host_alloc((void **)&p[i], BYTES + i % 2));
    }
    for (size_t i = 0; i < N; i++) {
        check_found(area + 128 * i + 63, area + 128 * i, 64);
        assert_false(is_known(area + 128 * i + 64));
        check_allocation(p[i], BYTES + i % 2);
    }
    for (size_t i = 0; i < N; i++) {
        size_t k = i * STEP % N;
        OK(unregister_host(area + 128 * k));
        assert_false(is_known(area + 128 * k));
        OK(free_host(p[k]));
        assert_false(is_known(p[k]));
    }
    assert_false(is_known(area) || is_known((void *)UINTPTR_MAX));
}

static atomic_bool stop;
static atomic_int wrong;

static void *use_memory(void *arg)
{
    unsigned seed = (unsigned)(uintptr_t)arg;
    fake.cuCtxPushCurrent(context);
    while (!atomic_load(&stop)) {
        char *p = NULL;
        void *base;
        size_t size, bytes = seed % 5 ? 300 + seed % 900 : UNIT + seed % 9;
        seed = seed * 1664525 + 1013904223;
        if (host_alloc((void **)&p, bytes) || !is_zero(p, bytes) || !kp_hostmem_find((uintptr_t)p + 7, &base, &size) ||
            base != p || size != bytes)
            atomic_fetch_add(&wrong, 1);
        memset(p, (int)(seed | 1), bytes);
        for (size_t i = 0; i < bytes; i += 97)
            if (p[i] != (char)(seed | 1))
                atomic_fetch_add(&wrong, 1);
        if (free_host(p))
            atomic_fetch_add(&wrong, 1);
    }
    return NULL;
}

static void test_threads(void **state)
{
    enum { THREADS = 4 };
    const struct fake_virtual before = now();
    pthread_t threads[THREADS];
    (void)state;
    driver.cuCtxSynchronize = fake.cuCtxSynchronize; /* counts for one thread only */
    atomic_store(&stop, false);
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, use_memory, (void *)(i + 1)), 0);
    usleep(300 * 1000);
    atomic_store(&stop, true);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&wrong), 0);
    assert_true(now().mappings <= before.mappings + 2 * THREADS); /* arenas */
}

/* ---- fork ---- */

static void *ask(void *p)
{
    while (!atomic_load(&stop))
        is_known(p);
    return NULL;
}

static int in_child(char *p)
{
    void *base;
    size_t bytes;
    alarm(20);
    kp_hostmem_forked();
    process.active = false;
    if (kp_hostmem_find((uintptr_t)p, &base, &bytes) || kp_hostmem_rewound() || kp_hostmem_shared())
        return 1;
    return free_host(p) == CUDA_ERROR_NOT_INITIALIZED ? 0 : 2;
}

static void test_fork(void **state)
{
    static char memory[PAGE];
    pthread_t thread;
    char *p = NULL;
    (void)state;
    OK(host_alloc((void **)&p, 100));
    OK(register_host(memory, sizeof(memory), 0));
    char *pages = map_pages(-1);
    OK(register_host(pages, 3 * PAGE, 0));
    atomic_store(&stop, false);
    assert_int_equal(pthread_create(&thread, NULL, ask, p), 0); /* holds the lock about half of the time */
    for (int i = 0; i < 6; i++) {
        int status = -1;
        pid_t child = fork();
        if (!child)
            kp_test_end(in_child(p));
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
    check_ours(p, 100);
    OK(free_host(p));
    OK(unregister_host(memory));
    OK(unregister_host(pages));
    munmap(pages, 3 * PAGE);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, reset, check_left)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_large),
        TEST(test_small),
        TEST(test_arenas),
        TEST(test_gaps),
        TEST(test_other_ways_to_allocate),
        TEST(test_failing_steps),
        TEST(test_first_small_one_fails),
        TEST(test_older_drivers),
        TEST(test_straight_to_the_driver),
        TEST(test_captures),
        TEST(test_free_in_every_phase),
        TEST(test_free_that_cannot_wait),
        TEST(test_free_beside_a_window),
        TEST(test_registrations),
        TEST(test_shared_mappings),
        TEST(test_mapped_file),
        TEST(test_allocation_is_not_unregistered),
        TEST(test_context_took_it_along),
        TEST(test_many),
        TEST(test_threads),
        TEST(test_fork),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
