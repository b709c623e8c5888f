/* The PTX of a kernel's module: found by the module, or by the only library that has the kernel. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

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

static void note(const char *symbol, void *handle, const char *image)
{
    const struct kp_ptx_load *by = kp_ptx_load_by(symbol);
    assert_non_null(by);
    kp_ptx_note(by, handle, image);
}

/* What is found has this text; NULL: nothing is, and the reason has these words. */
static void check(const char *text, const char *words)
{
    const struct kp_function facts = {.handle = F, .mangled = "kernel"};
    const char *why = NULL;
    const struct kp_ptx *ptx = kp_ptx_of(&driver, F, &facts, &why);
    if (text) {
        assert_non_null(ptx);
        assert_string_equal(ptx->bytes, text);
        return;
    }
    assert_null(ptx);
    assert_non_null(strstr(why, words));
}

static void test_found(void **state)
{
    (void)state;
    assert_null(kp_ptx_load_by("cuModuleLoadData")); /* nobody wants to know */
    kp_ptx_watch();
    assert_null(kp_ptx_load_by("cuFuncLoad"));
    module_of_f = HANDLE(1);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_found),
        cmocka_unit_test(test_libraries),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
