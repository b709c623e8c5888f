/* The PTX of a kernel's module: found by the module, or by the only library that has the kernel; and its options. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "preload/doors/api.h"
#include "preload/program/ptx.h"

#define HANDLE(n) ((void *)(uintptr_t)(0x1000 * (n)))
#define F         ((CUfunction)HANDLE(99))

static CUmodule module_of_f; /* NULL: it is a library's kernel */
static CUlibrary library_of_f;

static CUresult get_module(CUmodule *out, CUfunction f)
{
    assert_ptr_equal(f, F);
    *out = module_of_f;
    return module_of_f ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static CUresult get_library(CUlibrary *out, CUkernel kernel)
{
    assert_ptr_equal(kernel, F);
    *out = library_of_f;
    return library_of_f ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

/* Libraries from 10 on have the kernel. */
static CUresult get_kernel(CUkernel *out, CUlibrary library, const char *name)
{
    assert_string_equal(name, "kernel");
    *out = (CUkernel)F;
    return (uintptr_t)library >= (uintptr_t)HANDLE(10) ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

static const struct kp_driver driver = {
    .cuFuncGetModule = get_module,
    .cuKernelGetLibrary = get_library,
    .cuLibraryGetKernel = get_kernel,
};

static const struct kp_ptx_load *load_by(const char *symbol)
{
    for (size_t i = 0; i < kp_api_rows; i++)
        if (!strcmp(kp_api[i].symbol, symbol))
            return kp_api[i].load;
    fail_msg("%s is not in the table", symbol);
    return NULL;
}

/* The program loads with options, which are its own again afterwards. */
static void load(const char *symbol, void *handle, const char *image, unsigned n, const CUjit_option *options,
                 uintptr_t *values)
{
    const struct kp_ptx_load *by = load_by(symbol);
    void *received = handle;
    uint64_t args[6] = {(uintptr_t)&received, (uintptr_t)image};
    assert_non_null(by);
    if (by->count) {
        args[by->count] = UINT64_C(0xabcd00000000) | n; /* only its lower half is the argument */
        args[by->options] = (uintptr_t)options;
        args[by->values] = (uintptr_t)values;
    }
    kp_ptx_loading(by, symbol, args);
    for (unsigned i = 0; i < n; i++)
        values[i] = 99;
    kp_ptx_loaded();
}

static void note(const char *symbol, void *handle, const char *image)
{
    load(symbol, handle, image, 0, NULL, NULL);
}

/* What is found has this text; NULL: nothing is, and the reason has these words. */
static void check(const char *text, const char *words)
{
    const struct kp_function facts = {.handle = F, .mangled = "kernel"};
    const char *why = NULL;
    struct kp_ptx_source from;
    bool found = kp_ptx_of(&driver, F, &facts, &from, &why);
    if (text) {
        assert_true(found);
        assert_string_equal(from.ptx.bytes, text);
        kp_ptx_free(&from.ptx);
        return;
    }
    assert_false(found);
    assert_non_null(strstr(why, words));
}

static void test_found(void **state)
{
    (void)state;
    module_of_f = HANDLE(1);
    note("cuModuleLoadData", HANDLE(1), ".version 1"); /* nobody wants to know */
    kp_ptx_watch();
    check(NULL, "has not seen what its module was loaded from");
    note("cuModuleLoadData", HANDLE(1), ".version 1");
    note("cuModuleLoadFatBinary", HANDLE(2), "\177ELF alone");
    note("cuModuleLoad", HANDLE(3), "/nowhere/at/all");
    check(".version 1", NULL);
    note("cuModuleLoadDataEx", HANDLE(1), ".version 2"); /* the handle is another module's now */
    check(".version 2", NULL);
    module_of_f = HANDLE(2);
    check(NULL, "has no PTX");
    module_of_f = HANDLE(3);
    check(NULL, "could not be read");
    module_of_f = HANDLE(1);
    kp_ptx_unloaded(HANDLE(1));
    check(NULL, "has not seen");
}

static void test_libraries(void **state)
{
    (void)state;
    module_of_f = HANDLE(50); /* that of a library, in this context */
    note("cuLibraryLoadData", HANDLE(4), ".version 4");
    check(NULL, "has not seen");
    note("cuLibraryLoadData", HANDLE(10), ".version 10");
    check(".version 10", NULL);
    note("cuLibraryLoadData", HANDLE(11), ".version 10");
    check(".version 10", NULL); /* the same, whichever it is */
    note("cuLibraryLoadData", HANDLE(12), ".version 12");
    check(NULL, "several libraries");
    module_of_f = NULL; /* the driver tells the library of a kernel */
    library_of_f = HANDLE(12);
    check(".version 12", NULL);
    library_of_f = HANDLE(10);
    check(".version 10", NULL);
    kp_ptx_unloaded(HANDLE(12));
    kp_ptx_unloaded(HANDLE(13)); /* never seen */
    module_of_f = HANDLE(50);
    check(".version 10", NULL);
    for (uintptr_t i = 1; i < 12; i++)
        kp_ptx_unloaded(HANDLE(i));
    check(NULL, "has not seen");
}

/* Of the driver's table these load what they are given, and no others. */
static void test_table(void **state)
{
    static const struct {
        const char *symbol;
        struct kp_ptx_load load;
    } loads[] = {
        {"cuModuleLoad", {KP_PTX_MODULE, KP_PTX_FILE, 0, 0, 0}},
        {"cuModuleLoadData", {KP_PTX_MODULE, KP_PTX_IMAGE, 0, 0, 0}},
        {"cuModuleLoadDataEx", {KP_PTX_MODULE, KP_PTX_IMAGE, 2, 3, 4}},
        {"cuModuleLoadFatBinary", {KP_PTX_MODULE, KP_PTX_IMAGE, 0, 0, 0}},
        {"cuLibraryLoadData", {KP_PTX_LIBRARY, KP_PTX_IMAGE, 4, 2, 3}},
        {"cuLibraryLoadFromFile", {KP_PTX_LIBRARY, KP_PTX_FILE, 4, 2, 3}},
    };
    (void)state;
    size_t n = 0;
    for (size_t i = 0; i < kp_api_rows; i++)
        n += kp_api[i].load != NULL;
    assert_int_equal(n, sizeof(loads) / sizeof(*loads));
    for (size_t i = 0; i < n; i++)
        assert_memory_equal(load_by(loads[i].symbol), &loads[i].load, sizeof(loads[i].load));
}

static void test_options(void **state)
{
    const struct kp_function facts = {.handle = F, .mangled = "kernel"};
    const CUjit_option options[] = {CU_JIT_MAX_REGISTERS, CU_JIT_OPTIMIZATION_LEVEL, CU_JIT_INFO_LOG_BUFFER,
                                    CU_JIT_THREADS_PER_BLOCK, CU_JIT_OPTIMIZATION_LEVEL};
    uintptr_t values[] = {40, 4, 1, 96, 2};
    struct kp_ptx_source from;
    const char *why;
    (void)state;
    module_of_f = HANDLE(20);
    load("cuModuleLoadDataEx", HANDLE(20), ".version 20", 5, options, values);
    assert_true(kp_ptx_of(&driver, F, &facts, &from, &why));
    assert_int_equal(from.options.n, 2);
    assert_int_equal(from.options.option[0], CU_JIT_OPTIMIZATION_LEVEL);
    assert_int_equal(from.options.value[0], 2);
    assert_int_equal(from.options.option[1], CU_JIT_THREADS_PER_BLOCK);
    assert_int_equal(from.options.value[1], 96);
    kp_ptx_free(&from.ptx);
    load("cuLibraryLoadData", HANDLE(21), ".version 20", 5, options, values);
    load("cuLibraryLoadData", HANDLE(22), ".version 20", 1, options, values);
    module_of_f = HANDLE(50);
    check(NULL, "several libraries"); /* compiled in two ways */
    for (uintptr_t i = 20; i < 23; i++)
        kp_ptx_unloaded(HANDLE(i));
}

/* ---- a module that is unloaded while its PTX is looked at ---- */

enum { ROUNDS = 2000 };

static atomic_bool done;

static void *load_and_unload(void *arg)
{
    (void)arg;
    for (int i = 0; i < ROUNDS; i++) {
        note("cuModuleLoadData", HANDLE(30), ".version 30");
        kp_ptx_unloaded(HANDLE(30));
    }
    atomic_store(&done, true);
    return NULL;
}

static void test_unloaded_meanwhile(void **state)
{
    const struct kp_function facts = {.handle = F, .mangled = "kernel"};
    struct kp_ptx_source from;
    const char *why;
    pthread_t other;
    (void)state;
    module_of_f = HANDLE(30);
    note("cuModuleLoadData", HANDLE(30), ".version 30");
    assert_true(kp_ptx_of(&driver, F, &facts, &from, &why));
    kp_ptx_unloaded(HANDLE(30));
    void *reused = malloc(from.ptx.size); /* the place of what was unloaded */
    memset(reused, 'x', from.ptx.size);
    assert_string_equal(from.ptx.bytes, ".version 30");
    free(reused);
    kp_ptx_free(&from.ptx);
    assert_int_equal(pthread_create(&other, NULL, load_and_unload, NULL), 0);
    while (!atomic_load(&done))
        if (kp_ptx_of(&driver, F, &facts, &from, &why)) {
            assert_string_equal(from.ptx.bytes, ".version 30");
            kp_ptx_free(&from.ptx);
        }
    pthread_join(other, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_found),   cmocka_unit_test(test_libraries),          cmocka_unit_test(test_table),
        cmocka_unit_test(test_options), cmocka_unit_test(test_unloaded_meanwhile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
