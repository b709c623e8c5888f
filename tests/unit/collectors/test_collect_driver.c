/* The table of the driver's functions: it is filled by symbol, and calls that change nothing by failing are made again
 * where they fail, once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "collectors/facts/driver.h"

static unsigned calls, failures;
static CUdeviceptr freed;

static CUresult answer(void)
{
    calls++;
    if (!failures)
        return CUDA_SUCCESS;
    failures--;
    return CUDA_ERROR_UNKNOWN;
}

static CUresult CUDAAPI synchronize(void)
{
    return answer();
}

static CUresult CUDAAPI give(CUdeviceptr memory)
{
    freed = memory;
    return answer();
}

static CUresult CUDAAPI take(CUdeviceptr *memory, size_t bytes)
{
    *memory = bytes;
    return answer();
}

static const char *lacking;

static void *find(const char *symbol)
{
    if (lacking && !strcmp(symbol, lacking))
        return NULL;
    if (!strcmp(symbol, "cuMemFree_v2"))
        return (void *)(uintptr_t)give;
    return !strcmp(symbol, "cuMemAlloc_v2") ? (void *)(uintptr_t)take : (void *)(uintptr_t)synchronize;
}

static unsigned called(unsigned fails, CUresult wanted, CUresult (*call)(const struct kp_driver *d))
{
    struct kp_driver d;
    assert_null(kp_driver_fill(&d, find));
    calls = 0;
    failures = fails;
    assert_int_equal(call(&d), wanted);
    return calls;
}

static CUresult waits(const struct kp_driver *d)
{
    return d->cuCtxSynchronize();
}

static CUresult frees(const struct kp_driver *d)
{
    return d->cuMemFree(7);
}

static CUresult allocates(const struct kp_driver *d)
{
    CUdeviceptr memory;
    return d->cuMemAlloc(&memory, 3);
}

static void test_calls_again(void **state)
{
    (void)state;
    assert_int_equal(called(0, CUDA_SUCCESS, waits), 1);
    assert_int_equal(called(1, CUDA_SUCCESS, waits), 2);
    assert_int_equal(called(2, CUDA_ERROR_UNKNOWN, waits), 2); /* which is an answer */
    assert_int_equal(called(1, CUDA_SUCCESS, frees), 2);
    assert_int_equal(freed, 7);
    assert_int_equal(called(1, CUDA_ERROR_UNKNOWN, allocates), 1); /* the program may have taken the memory */
}

/* What a driver lacks stays lacking. */
static void test_lacking(void **state)
{
    struct kp_driver d;
    (void)state;
    lacking = "cuKernelGetLibrary";
    assert_null(kp_driver_fill(&d, find));
    assert_null(d.cuKernelGetLibrary);
    assert_non_null(d.cuMemRelease);
    lacking = "cuCtxSynchronize";
    assert_string_equal(kp_driver_fill(&d, find), "cuCtxSynchronize");
    lacking = NULL;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_calls_again), cmocka_unit_test(test_lacking)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
