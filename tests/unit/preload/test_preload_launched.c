/* Modules of launches outside of windows: noted once for a function, by context, and forgotten. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "preload/os/guard.h"
#include "preload/program/loaded_modules.h"

/* Functions are 16 apart, 64 of them a module; those from KERNELS on are CUkernels. */
#define HANDLE(n)  ((CUfunction)(uintptr_t)(0x10000 + 16 * (n)))
#define MODULE(n)  ((const void *)(uintptr_t)(0x100 + (n)))
#define CONTEXT(n) ((CUcontext)(uintptr_t)(0x1000 + (n)))
enum { KERNELS = 1 << 20, LIBRARY = 7 };

static atomic_int asked;
static _Thread_local CUcontext current;

static CUresult get_module(CUmodule *out, CUfunction f)
{
    uint64_t n = ((uintptr_t)f - 0x10000) / 16;
    asked++;
    assert_int_not_equal(kp_guard, 0);
    *out = (CUmodule)MODULE(n / 64);
    return n < KERNELS ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static CUresult get_library(CUlibrary *out, CUkernel kernel)
{
    (void)kernel;
    *out = (CUlibrary)MODULE(LIBRARY);
    return CUDA_SUCCESS;
}

static CUresult get_current(CUcontext *out)
{
    *out = current;
    return CUDA_SUCCESS;
}

static CUresult get_stream_context(CUstream stream, CUcontext *out)
{
    *out = CONTEXT((uintptr_t)stream & 15);
    return CUDA_SUCCESS;
}

static const struct kp_driver driver = {
    .cuFuncGetModule = get_module,
    .cuKernelGetLibrary = get_library,
    .cuCtxGetCurrent = get_current,
    .cuStreamGetCtx = get_stream_context,
};

static void note(uint64_t n, CUstream stream)
{
    const struct kp_launch l = {.f = HANDLE(n), .stream = stream};
    kp_launched_note(&driver, &l);
}

static int set_up(void **state)
{
    (void)state;
    kp_launched_forget();
    asked = 0;
    current = CONTEXT(1);
    return 0;
}

static void test_once(void **state)
{
    (void)state;
    assert_false(kp_launched_has(CONTEXT(1), MODULE(0)));
    note(5, NULL);
    note(5, NULL);
    assert_int_equal(asked, 1);
    assert_true(kp_launched_has(CONTEXT(1), MODULE(0)));
    assert_false(kp_launched_has(CONTEXT(2), MODULE(0)));
    assert_false(kp_launched_has(CONTEXT(1), MODULE(1)));
    note(6, NULL); /* another one of it */
    note(64, NULL);
    assert_int_equal(asked, 3);
    assert_true(kp_launched_has(CONTEXT(1), MODULE(1)));
    note(128, (CUstream)(uintptr_t)0x102); /* into a stream of another context */
    assert_true(kp_launched_has(CONTEXT(2), MODULE(2)));
    assert_false(kp_launched_has(CONTEXT(1), MODULE(2)));
    note(KERNELS, NULL);
    assert_true(kp_launched_has(CONTEXT(1), MODULE(LIBRARY)));
    assert_int_equal(kp_guard, 0);
}

static void test_graphs_have_none(void **state)
{
    const struct kp_launch l = {.f = HANDLE(1), .is_graph = true};
    (void)state;
    kp_launched_note(&driver, &l);
    assert_int_equal(asked, 0);
}

/* What ended may come again as something else. */
static void test_forgotten(void **state)
{
    (void)state;
    note(5, NULL);
    kp_launched_forget();
    assert_false(kp_launched_has(CONTEXT(1), MODULE(0)));
    note(5, NULL);
    assert_int_equal(asked, 2);
    assert_true(kp_launched_has(CONTEXT(1), MODULE(0)));
}

/* A launch without a context is looked at again. */
static void test_without_context(void **state)
{
    (void)state;
    current = NULL;
    note(5, NULL);
    assert_false(kp_launched_has(NULL, MODULE(0)));
    current = CONTEXT(1);
    note(5, NULL);
    assert_true(kp_launched_has(CONTEXT(1), MODULE(0)));
}

enum { MANY = 20000, THREADS = 4 };

static void *note_many(void *arg)
{
    current = CONTEXT(1);
    for (uint64_t n = 0; n < MANY; n++)
        note(n, NULL);
    return arg;
}

/* More functions than the table holds, from several threads: each module is known, and most are not asked for again. */
static void test_many(void **state)
{
    pthread_t threads[THREADS];
    (void)state;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, note_many, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (uint64_t m = 0; m < MANY / 64; m++)
        assert_true(kp_launched_has(CONTEXT(1), MODULE(m)));
    kp_launched_forget();
    for (uint64_t n = 0; n < 500; n++) /* of a program as they are */
        note(n, NULL);
    asked = 0;
    for (uint64_t n = 0; n < 500; n++)
        note(n, NULL);
    assert_in_range(asked, 0, 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_once, set_up),      cmocka_unit_test_setup(test_graphs_have_none, set_up),
        cmocka_unit_test_setup(test_forgotten, set_up), cmocka_unit_test_setup(test_without_context, set_up),
        cmocka_unit_test_setup(test_many, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
