/* The cache flush over the fake driver: what it takes and gives back, and what it falls back to when a call fails. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectors/replay/flush.h"
#include "tests/support/fake_support.h"

enum { PIECE = 2 << 20, L2 = 9 << 20, BUFFER = 18 << 20, PIECES = BUFFER / PIECE };

static const struct kp_device device = {.sm_count = 132, .l2_size = L2};

/* What the flush itself does, and what it does to the code. */
static const char data_calls[] = "alloc set granularity create reserve map access release copy sync kernel",
                  code_calls[] = "load function unload";

static struct {
    CUcontext ctx;
    struct kp_driver *driver;
    struct kp_flush *flush;
    uint64_t launches; /* at the beginning */
} t;

static CUstream const stream = (CUstream)(uintptr_t)0x2; /* the per-thread one: known to every context */

static struct fake_virtual virtual_memory(void)
{
    return ((struct fake_virtual(*)(void))(uintptr_t)kp_test_fake("fake_cuda_virtual"))();
}

static void count_allocation(const struct fake_allocation *allocation, void *bytes)
{
    *(size_t *)bytes += allocation->is_mapping ? 0 : allocation->size;
}

static size_t device_memory(void)
{
    size_t bytes = 0;
    kp_test_fake_api()->each_allocation(t.ctx, count_allocation, &bytes);
    return bytes;
}

static void assert_nothing_held(void)
{
    struct fake_virtual live = virtual_memory();
    assert_int_equal(live.handles, 0);
    assert_int_equal(live.physical, 0);
    assert_int_equal(live.reservations, 0);
    assert_int_equal(live.mappings, 0);
    assert_int_equal(device_memory(), 0);
}

static uint64_t launches(void)
{
    return kp_test_fake_api()->launch_count() - t.launches;
}

static int set_up(void **state)
{
    (void)state;
    t.ctx = kp_test_context();
    t.driver = kp_test_driver();
    t.launches = kp_test_fake_api()->launch_count();
    t.flush = NULL;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    kp_flush_close(t.flush, true);
    assert_nothing_held();
    kp_test_context_end(t.ctx);
    return 0;
}

static void open_flush(void)
{
    assert_int_equal(kp_flush_open(t.driver, &device, &t.flush), CUDA_SUCCESS);
    assert_nothing_held();
    kp_test_forget_calls();
}

/* ---- without a kernel ---- */

static void test_copy_over_one_piece(void **state)
{
    (void)state;
    open_flush();
    assert_false(kp_flush_is_kernel(t.flush));
    assert_int_equal(kp_flush_run(t.flush, stream, KP_FLUSH_FILL), CUDA_SUCCESS);
    assert_int_equal(kp_test_count("map"), PIECES);
    kp_test_calls(data_calls, "granularity alloc set create reserve map*9 access release sync copy");
    struct fake_virtual live = virtual_memory();
    assert_int_equal(live.physical, 1); /* what is left modified is no more than one piece */
    assert_int_equal(live.handles, 0);  /* it goes with the last mapping */
    assert_int_equal(live.mappings, PIECES);
    assert_int_equal(live.reservations, 1);
    assert_int_equal(device_memory(), BUFFER);
    assert_int_equal(kp_flush_run(t.flush, stream, KP_FLUSH_FILL), CUDA_SUCCESS);
    kp_test_calls(data_calls, "copy"); /* no wait: what is launched next follows in the stream */
    kp_flush_give(t.flush);
    assert_nothing_held();
    kp_flush_give(t.flush);
    assert_int_equal(kp_flush_run(t.flush, stream, KP_FLUSH_FILL), CUDA_SUCCESS);
    assert_int_equal(device_memory(), BUFFER);
    assert_false(kp_flush_is_kernel(t.flush));
    assert_int_equal(launches(), 0); /* or it would be a range */
}

static struct {
    CUdeviceptr to, from;
    size_t bytes;
    CUstream in;
} copied;

static CUresult CUDAAPI note_copy(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream in)
{
    copied.to = to;
    copied.from = from;
    copied.bytes = bytes;
    copied.in = in;
    return CUDA_SUCCESS;
}

static void test_reads_twice_the_cache(void **state)
{
    (void)state;
    t.driver->cuMemcpyDtoDAsync = note_copy;
    open_flush();
    assert_int_equal(kp_flush_run(t.flush, stream, KP_FLUSH_FILL), CUDA_SUCCESS);
    assert_int_equal(copied.bytes, BUFFER);
    assert_int_equal(copied.bytes % PIECE, 0);
    assert_true(copied.to && copied.from && copied.to != copied.from);
    assert_ptr_equal(copied.in, stream);
    for (size_t i = 0; i < BUFFER; i++) /* clean lines, and known ones */
        assert_int_equal(((const char *)copied.from)[i], 0);
}

static void test_odd_and_small_caches(void **state)
{
    static const struct {
        uint64_t l2;
        size_t bytes;
    } rows[] = {{0, 8 << 20}, {1 << 20, 8 << 20}, {(5 << 20) - 1, 10 << 20}, {(5 << 20) + 1, 12 << 20}};
    (void)state;
    t.driver->cuMemcpyDtoDAsync = note_copy;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct kp_device odd = {.sm_count = 1, .l2_size = rows[i].l2};
        assert_int_equal(kp_flush_open(t.driver, &odd, &t.flush), CUDA_SUCCESS);
        assert_int_equal(kp_flush_run(t.flush, stream, KP_FLUSH_FILL), CUDA_SUCCESS);
        assert_int_equal(copied.bytes, rows[i].bytes);
        kp_flush_close(t.flush, true);
        t.flush = NULL;
        assert_nothing_held();
    }
}

/* Less than twice the cache when the program has left no more. */
static void test_little_memory(void **state)
{
    (void)state;
    t.driver->cuMemcpyDtoDAsync = note_copy;
    open_flush();
    kp_test_fail("alloc", 1, CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(kp_flush_run(t.flush, stream, KP_FLUSH_FILL), CUDA_SUCCESS);
    assert_int_equal(copied.bytes, 10 << 20); /* whole pieces */
    kp_flush_give(t.flush);
    kp_test_fail("alloc", 0, CUDA_ERROR_OUT_OF_MEMORY);
    kp_test_forget_calls();
    assert_int_equal(kp_flush_run(t.flush, stream, KP_FLUSH_FILL), CUDA_ERROR_OUT_OF_MEMORY);
    kp_test_calls(NULL, "alloc*2");
    kp_test_fail("alloc", 0, 0);
    assert_int_equal(kp_flush_run(t.flush, stream, KP_FLUSH_FILL), CUDA_SUCCESS); /* there is some again */
    assert_int_equal(copied.bytes, BUFFER);
    assert_false(kp_flush_is_kernel(t.flush));
}

/* Each call of a flush that fails is told, and the next flush works again. */
static void test_calls_that_fail(void **state)
{
    static const char *const words[] = {"copy", "load", "function"};
    (void)state;
    open_flush();
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
        kp_test_fail(words[i], 0, CUDA_ERROR_LAUNCH_FAILED);
        assert_int_equal(kp_flush_run(t.flush, stream, KP_FLUSH_FILL), CUDA_ERROR_LAUNCH_FAILED);
        kp_test_fail(words[i], 0, 0);
        assert_int_equal(kp_flush_run(t.flush, stream, KP_FLUSH_FILL), CUDA_SUCCESS);
    }
    assert_false(kp_flush_is_kernel(t.flush));
    assert_int_equal(kp_test_count("load") - 1, kp_test_count("unload")); /* the one that failed */
}

/* The memory is set in another stream than it is copied in: what was taken is waited for. */
static void test_wait_for_the_memory(void **state)
{
    (void)state;
    open_flush();
    kp_test_fail("sync", 1, CUDA_ERROR_LAUNCH_FAILED);
    assert_int_equal(kp_flush_run(t.flush, stream, KP_FLUSH_FILL), CUDA_ERROR_LAUNCH_FAILED);
    assert_int_equal(kp_test_count("copy"), 0);
    kp_test_fail("sync", 1, 0);
    kp_flush_give(t.flush);
    assert_int_equal(kp_flush_run(t.flush, stream, KP_FLUSH_FILL), CUDA_SUCCESS);
}

/* Memory that could not be emptied is not read in its place. */
static void test_buffer_that_cannot_be_set(void **state)
{
    (void)state;
    open_flush();
    kp_test_fail("set", 1, CUDA_ERROR_LAUNCH_FAILED);
    assert_int_equal(kp_flush_run(t.flush, stream, KP_FLUSH_FILL), CUDA_ERROR_LAUNCH_FAILED);
    kp_test_forget_calls();
    assert_int_equal(kp_flush_run(t.flush, stream, KP_FLUSH_FILL), CUDA_SUCCESS);
    assert_int_equal(kp_test_count("set"), 1);
}

/* ---- translations ---- */

static struct {
    PFN_cuMemcpy2DAsync_v3020 real;
    unsigned calls;
    CUDA_MEMCPY2D last;
} touched;

static CUresult note_touch(const CUDA_MEMCPY2D *copy, CUstream in)
{
    touched.calls++;
    touched.last = *copy;
    return touched.real(copy, in);
}

static void watch_touches(void)
{
    touched.real = t.driver->cuMemcpy2DAsync;
    touched.calls = 0;
    t.driver->cuMemcpy2DAsync = note_touch;
}

/* One word of each page is read, by a copy for each allocation, and nothing of the program is written. */
static void test_touches_each_page(void **state)
{
    enum { PAGES = 3, BYTES = (PAGES - 1) * KP_PAGE_BYTES + 4 };
    CUdeviceptr memory;
    (void)state;
    open_flush();
    watch_touches();
    assert_int_equal(t.driver->cuMemAlloc(&memory, BYTES), CUDA_SUCCESS);
    for (size_t i = 0; i < PAGES; i++)
        *(uint32_t *)(uintptr_t)(memory + i * KP_PAGE_BYTES) = 0x100u + (uint32_t)i;
    const struct kp_pages pages[] = {{memory, PAGES}, {memory, 1}};
    assert_int_equal(kp_flush_touch(t.flush, stream, pages, 2), CUDA_SUCCESS);
    assert_int_equal(touched.calls, 0); /* nothing was flushed yet, and there is no room for the words */
    assert_int_equal(kp_flush_run(t.flush, stream, KP_FLUSH_FILL), CUDA_SUCCESS);
    assert_int_equal(kp_flush_touch(t.flush, stream, pages, 1), CUDA_SUCCESS);
    assert_int_equal(touched.calls, 1);
    const uint32_t *words = (const uint32_t *)(uintptr_t)touched.last.dstDevice;
    for (size_t i = 0; i < PAGES; i++) {
        assert_int_equal(words[i], 0x100u + i);
        assert_int_equal(*(uint32_t *)(uintptr_t)(memory + i * KP_PAGE_BYTES), 0x100u + i);
    }
    assert_int_equal(kp_flush_touch(t.flush, stream, pages, 2), CUDA_SUCCESS);
    assert_int_equal(touched.calls, 3);
    assert_int_equal(launches(), 0); /* or it would be a range */
    assert_int_equal(t.driver->cuMemFree(memory), CUDA_SUCCESS);
}

/* A buffer that a kernel sweeps stays zero. */
static void test_touches_nothing_beside_a_sweep(void **state)
{
    CUdeviceptr memory;
    (void)state;
    kp_test_fail("reserve", 0, CUDA_ERROR_NOT_SUPPORTED);
    open_flush();
    watch_touches();
    assert_int_equal(t.driver->cuMemAlloc(&memory, 4), CUDA_SUCCESS);
    assert_int_equal(kp_flush_run(t.flush, stream, KP_FLUSH_FILL), CUDA_SUCCESS);
    assert_true(kp_flush_is_kernel(t.flush));
    assert_int_equal(kp_flush_touch(t.flush, stream, &(struct kp_pages){memory, 1}, 1), CUDA_SUCCESS);
    assert_int_equal(touched.calls, 0);
    assert_int_equal(t.driver->cuMemFree(memory), CUDA_SUCCESS);
}

/* ---- with a kernel ---- */

static struct fake_launch last_launch(void)
{
    const struct fake_cuda_api *api = kp_test_fake_api();
    struct fake_launch l;
    assert_int_equal(api->launch_get(api->launch_count() - 1, &l), 0);
    return l;
}

static void check_sweep(unsigned n)
{
    assert_true(kp_flush_is_kernel(t.flush));
    assert_int_equal(launches(), n);
    struct fake_launch l = last_launch();
    assert_string_equal(l.name, "kprof_cache_flush");
    assert_int_equal(l.grid[0], 4 * 132);
    assert_int_equal(l.block[0], 512);
}

/* Whatever of it fails at whichever call: nothing is left over, and a kernel does it. */
static void test_memory_that_cannot_be_mapped_twice(void **state)
{
    static const char *const words[] = {"granularity", "create", "reserve", "map", "access"};
    unsigned tried = 0;
    (void)state;
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        for (unsigned nth = 1; nth == 1 || (nth <= PIECES && !strcmp(words[i], "map")); nth++, tried++) {
            struct fake_virtual live;
            t.launches = kp_test_fake_api()->launch_count();
            open_flush();
            kp_test_fail(words[i], nth, CUDA_ERROR_NOT_SUPPORTED);
            assert_int_equal(kp_flush_run(t.flush, stream, KP_FLUSH_FILL), CUDA_SUCCESS);
            check_sweep(1);
            live = virtual_memory();
            assert_int_equal(live.handles + live.physical + live.reservations + live.mappings, 0);
            assert_int_equal(device_memory(), BUFFER);
            kp_test_fail(words[i], 0, 0);
            kp_test_forget_calls();
            assert_int_equal(kp_flush_run(t.flush, stream, KP_FLUSH_FILL), CUDA_SUCCESS);
            check_sweep(2);
            kp_test_calls(data_calls, "kernel");
            kp_flush_close(t.flush, true);
            t.flush = NULL;
            assert_nothing_held();
        }
    assert_int_equal(tried, 4 + PIECES);
}

static void test_driver_without_virtual_memory(void **state)
{
    (void)state;
    for (size_t i = 0; i < 8; i++) {
        struct kp_driver d = *t.driver;
        *(i == 0   ? (void **)&d.cuMemCreate
          : i == 1 ? (void **)&d.cuMemAddressReserve
          : i == 2 ? (void **)&d.cuMemMap
          : i == 3 ? (void **)&d.cuMemSetAccess
          : i == 4 ? (void **)&d.cuMemUnmap
          : i == 5 ? (void **)&d.cuMemRelease
          : i == 6 ? (void **)&d.cuMemAddressFree
                   : (void **)&d.cuMemGetAllocationGranularity) = NULL;
        t.launches = kp_test_fake_api()->launch_count();
        assert_int_equal(kp_flush_open(&d, &device, &t.flush), CUDA_SUCCESS);
        assert_true(kp_flush_is_kernel(t.flush)); /* known from the start */
        assert_int_equal(kp_flush_run(t.flush, stream, KP_FLUSH_FILL), CUDA_SUCCESS);
        check_sweep(1);
        kp_flush_close(t.flush, true);
        t.flush = NULL;
    }
}

static struct {
    CUdeviceptr buffer;
    unsigned long long count;
    CUstream in;
} swept;

static CUresult CUDAAPI note_sweep(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                                   unsigned bz, unsigned shared, CUstream in, void **params, void **extra)
{
    (void)f, (void)gx, (void)bx;
    assert_true(gy == 1 && gz == 1 && by == 1 && bz == 1 && !shared && !extra);
    swept.buffer = *(CUdeviceptr *)params[0];
    swept.count = *(unsigned long long *)params[1];
    swept.in = in;
    return CUDA_SUCCESS;
}

static void test_sweep(void **state)
{
    (void)state;
    t.driver->cuMemCreate = NULL;
    t.driver->cuLaunchKernel = note_sweep;
    open_flush();
    assert_int_equal(kp_flush_run(t.flush, stream, KP_FLUSH_FILL), CUDA_SUCCESS);
    assert_int_equal(swept.count * 16, BUFFER); /* 16 byte a read */
    assert_true(swept.buffer != 0);
    assert_ptr_equal(swept.in, stream);
    kp_test_calls(code_calls, "load function load function unload"); /* the sweep's own, which stays, and the other */
    assert_int_equal(kp_flush_run(t.flush, stream, KP_FLUSH_FILL), CUDA_SUCCESS);
    kp_test_calls(code_calls, "load function unload");
    kp_flush_give(t.flush);
    assert_int_equal(device_memory(), 0);
    kp_test_forget_calls();
    kp_flush_close(t.flush, true);
    t.flush = NULL;
    kp_test_calls(NULL, "unload");
}

static void test_sweep_that_fails(void **state)
{
    static const char *const words[] = {"load", "function", "kernel"};
    (void)state;
    t.driver->cuMemCreate = NULL;
    open_flush();
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
        kp_test_fail(words[i], 1, CUDA_ERROR_INVALID_IMAGE);
        assert_int_equal(kp_flush_run(t.flush, stream, KP_FLUSH_FILL), CUDA_ERROR_INVALID_IMAGE);
        kp_test_fail(words[i], 1, 0);
    }
    assert_int_equal(kp_flush_run(t.flush, stream, KP_FLUSH_FILL), CUDA_SUCCESS);
    check_sweep(1);
}

/* ---- the instruction caches ---- */

static const char code_text[] = "kprof_code_flush";

static CUresult CUDAAPI load_text(CUmodule *m, const void *image)
{
    assert_non_null(strstr(image, code_text));
    *m = (CUmodule)(uintptr_t)0x77;
    return (CUresult)kp_test_met("load");
}

static CUresult CUDAAPI get_code(CUfunction *f, CUmodule m, const char *name)
{
    assert_ptr_equal(m, (void *)(uintptr_t)0x77);
    assert_string_equal(name, code_text);
    *f = (CUfunction)(uintptr_t)0x78;
    return (CUresult)kp_test_met("function");
}

static CUresult CUDAAPI unload_code(CUmodule m)
{
    assert_ptr_equal(m, (void *)(uintptr_t)0x77);
    return (CUresult)kp_test_met("unload");
}

static void test_code_is_new_each_time(void **state)
{
    (void)state;
    t.driver->cuLinkCreate = NULL; /* without a linker it is text */
    open_flush();
    t.driver->cuModuleLoadData = load_text;
    t.driver->cuModuleGetFunction = get_code;
    t.driver->cuModuleUnload = unload_code;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(kp_flush_run(t.flush, stream, KP_FLUSH_FILL), CUDA_SUCCESS);
        kp_test_calls("copy kernel load function unload", "copy load function unload");
    }
}

/* A linker of the test's own: its output is not text, and is gone with the link. */
static char linked[] = "\x7f"
                       "ELF of kprof_code_flush";

static CUresult CUDAAPI link_create(unsigned n, CUjit_option *options, void **values, CUlinkState *state)
{
    (void)options, (void)values;
    assert_int_equal(n, 0);
    *state = (CUlinkState)(uintptr_t)0x99;
    return (CUresult)kp_test_met("link");
}

static CUresult CUDAAPI link_add(CUlinkState state, CUjitInputType type, void *data, size_t size, const char *name,
                                 unsigned n, CUjit_option *options, void **values)
{
    (void)name, (void)options, (void)values;
    assert_ptr_equal(state, (void *)(uintptr_t)0x99);
    assert_int_equal(type, CU_JIT_INPUT_PTX);
    assert_int_equal(n, 0);
    assert_non_null(strstr(data, code_text));
    assert_int_equal(size, strlen(data) + 1);
    return (CUresult)kp_test_met("add");
}

static CUresult CUDAAPI link_complete(CUlinkState state, void **binary, size_t *size)
{
    assert_ptr_equal(state, (void *)(uintptr_t)0x99);
    memcpy(linked,
           "\x7f"
           "ELF",
           4);
    *binary = linked;
    *size = sizeof(linked);
    return (CUresult)kp_test_met("complete");
}

static CUresult CUDAAPI link_destroy(CUlinkState state)
{
    assert_ptr_equal(state, (void *)(uintptr_t)0x99);
    memset(linked, 0xee, 4);
    return (CUresult)kp_test_met("destroy");
}

static CUresult CUDAAPI load_linked(CUmodule *m, const void *image)
{
    bool binary = !memcmp(image,
                          "\x7f"
                          "ELF",
                          4);
    *m = (CUmodule)(uintptr_t)0x77;
    return (CUresult)kp_test_met(binary ? "binary" : "text");
}

static void test_code_is_compiled_once(void **state)
{
    static const struct {
        const char *fails, *opening, *loaded;
    } rows[] = {
        {"", "link add complete destroy", "binary*2"},
        {"link", "link", "text*2"},
        {"add", "link add destroy", "text*2"},
        {"complete", "link add complete destroy", "text*2"},
    };
    (void)state;
    t.driver->cuLinkCreate = link_create;
    t.driver->cuLinkAddData = link_add;
    t.driver->cuLinkComplete = link_complete;
    t.driver->cuLinkDestroy = link_destroy;
    t.driver->cuModuleLoadData = load_linked;
    t.driver->cuModuleGetFunction = get_code;
    t.driver->cuModuleUnload = unload_code;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        kp_test_fail(rows[i].fails, 0, CUDA_ERROR_NOT_SUPPORTED);
        kp_test_forget_calls();
        assert_int_equal(kp_flush_open(t.driver, &device, &t.flush), CUDA_SUCCESS);
        kp_test_calls(NULL, rows[i].opening);
        for (int k = 0; k < 2; k++)
            assert_int_equal(kp_flush_run(t.flush, stream, KP_FLUSH_FILL), CUDA_SUCCESS);
        kp_test_calls("binary text link add complete destroy", rows[i].loaded);
        kp_test_fail(rows[i].fails, 0, 0);
        kp_flush_close(t.flush, true);
        t.flush = NULL;
    }
}

/* ---- the end ---- */

static void test_context_gone(void **state)
{
    (void)state;
    t.driver->cuMemCreate = NULL; /* a module is loaded, too */
    open_flush();
    assert_int_equal(kp_flush_run(t.flush, stream, KP_FLUSH_FILL), CUDA_SUCCESS);
    kp_test_context_end(t.ctx);
    kp_test_forget_calls();
    kp_flush_close(t.flush, false);
    t.flush = NULL;
    kp_test_calls(NULL, "");
    t.ctx = kp_test_context();
    kp_flush_close(NULL, true);
    kp_flush_close(NULL, false);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_copy_over_one_piece),
        TEST(test_reads_twice_the_cache),
        TEST(test_odd_and_small_caches),
        TEST(test_little_memory),
        TEST(test_calls_that_fail),
        TEST(test_wait_for_the_memory),
        TEST(test_buffer_that_cannot_be_set),
        TEST(test_touches_each_page),
        TEST(test_touches_nothing_beside_a_sweep),
        TEST(test_memory_that_cannot_be_mapped_twice),
        TEST(test_driver_without_virtual_memory),
        TEST(test_sweep),
        TEST(test_sweep_that_fails),
        TEST(test_code_is_new_each_time),
        TEST(test_code_is_compiled_once),
        TEST(test_context_gone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
