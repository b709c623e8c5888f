#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/fake_support.h"
#include "tests/support/report_support.h"

enum { RULES = 3, WORD = 16, LOGGED = 8192 };

static struct {
    const char *word;
    unsigned nth, met;
    int code;
} rules[RULES];

static char logged[LOGGED][WORD];
static size_t n_logged;

/* ---- the log ---- */

int kp_test_met(const char *word)
{
    assert_true(n_logged < LOGGED && strlen(word) < WORD);
    strcpy(logged[n_logged++], word);
    for (size_t i = 0; i < RULES; i++)
        if (rules[i].word && !strcmp(rules[i].word, word)) {
            rules[i].met++;
            if (!rules[i].nth || rules[i].nth == rules[i].met)
                return rules[i].code;
        }
    return 0;
}

void kp_test_fail(const char *word, unsigned nth, int code)
{
    size_t i = 0;
    while (i < RULES && !(rules[i].word && !strcmp(rules[i].word, word)))
        i++;
    for (size_t k = 0; i == RULES && k < RULES; k++)
        if (!rules[k].word)
            i = k;
    assert_true(i < RULES);
    rules[i].word = code ? word : NULL;
    rules[i].nth = nth;
    rules[i].met = 0;
    rules[i].code = code;
}

void kp_test_forget_calls(void)
{
    n_logged = 0;
}

unsigned kp_test_count(const char *word)
{
    unsigned n = 0;
    for (size_t i = 0; i < n_logged; i++)
        n += !strcmp(logged[i], word);
    return n;
}

static bool counts(const char *word, const char *of)
{
    size_t length = strlen(word);
    for (const char *at = of; at && *at; at += strcspn(at, " "), at += strspn(at, " "))
        if (strcspn(at, " ") == length && !strncmp(at, word, length))
            return true;
    return !of;
}

void kp_test_calls(const char *of, const char *expected)
{
    static char text[LOGGED * (WORD + 1)];
    char *to = text;
    const char *last = NULL;
    unsigned times = 0;
    *to = '\0';
    for (size_t i = 0; i <= n_logged; i++) {
        const char *word = i < n_logged ? logged[i] : NULL;
        if (word && !counts(word, of))
            continue;
        if (word && last && !strcmp(word, last)) {
            times++;
            continue;
        }
        if (last && times > 1)
            to += sprintf(to, "*%u", times);
        if (word)
            to += sprintf(to, "%s%s", to > text ? " " : "", word);
        last = word;
        times = 1;
    }
    n_logged = 0;
    assert_string_equal(text, expected);
}

/* ---- the driver ---- */

static struct kp_driver real, driver;

/* Function, word, parameters, arguments. */
#define LOGGED_FUNCTIONS(X)                                                                                            \
    X(cuCtxSynchronize, "sync", (void), ())                                                                            \
    X(cuMemAlloc, "alloc", (CUdeviceptr * p, size_t n), (p, n))                                                        \
    X(cuMemFree, "free", (CUdeviceptr p), (p))                                                                         \
    X(cuMemsetD32, "set", (CUdeviceptr p, unsigned v, size_t n), (p, v, n))                                            \
    X(cuMemGetInfo, "memory", (size_t * a, size_t * b), (a, b))                                                        \
    X(cuMemcpyDtoDAsync, "copy", (CUdeviceptr to, CUdeviceptr from, size_t n, CUstream s), (to, from, n, s))           \
    X(cuModuleLoadData, "load", (CUmodule * m, const void *image), (m, image))                                         \
    X(cuModuleGetFunction, "function", (CUfunction * f, CUmodule m, const char *name), (f, m, name))                   \
    X(cuModuleUnload, "unload", (CUmodule m), (m))                                                                     \
    X(cuLaunchKernel, "kernel",                                                                                        \
      (CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,    \
       CUstream s, void **params, void **extra),                                                                       \
      (f, gx, gy, gz, bx, by, bz, shared, s, params, extra))                                                           \
    X(cuMemGetAllocationGranularity, "granularity",                                                                    \
      (size_t * n, const CUmemAllocationProp *prop, CUmemAllocationGranularity_flags o), (n, prop, o))                 \
    X(cuMemCreate, "create",                                                                                           \
      (CUmemGenericAllocationHandle * h, size_t n, const CUmemAllocationProp *prop, unsigned long long flags),         \
      (h, n, prop, flags))                                                                                             \
    X(cuMemRelease, "release", (CUmemGenericAllocationHandle h), (h))                                                  \
    X(cuMemAddressReserve, "reserve",                                                                                  \
      (CUdeviceptr * p, size_t n, size_t align, CUdeviceptr hint, unsigned long long flags),                           \
      (p, n, align, hint, flags))                                                                                      \
    X(cuMemAddressFree, "unreserve", (CUdeviceptr p, size_t n), (p, n))                                                \
    X(cuMemMap, "map", (CUdeviceptr p, size_t n, size_t at, CUmemGenericAllocationHandle h, unsigned long long flags), \
      (p, n, at, h, flags))                                                                                            \
    X(cuMemUnmap, "unmap", (CUdeviceptr p, size_t n), (p, n))                                                          \
    X(cuMemSetAccess, "access", (CUdeviceptr p, size_t n, const CUmemAccessDesc *desc, size_t count),                  \
      (p, n, desc, count))

#define DEFINE(name, word, parameters, arguments)                                                                      \
    static CUresult CUDAAPI log_##name parameters                                                                      \
    {                                                                                                                  \
        CUresult rc = (CUresult)kp_test_met(word);                                                                     \
        return rc ? rc : real.name arguments;                                                                          \
    }
LOGGED_FUNCTIONS(DEFINE)
#undef DEFINE

static void *library(void)
{
    static void *handle;
    if (!handle)
        handle = dlopen(kp_test_build("fake/libcuda.so.1"), RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        fail_msg("%s", dlerror());
    return handle;
}

void *kp_test_fake(const char *symbol)
{
    void *found = dlsym(library(), symbol);
    if (!found)
        fail_msg("the fake driver has no %s", symbol);
    return found;
}

const struct fake_cuda_api *kp_test_fake_api(void)
{
    return ((const struct fake_cuda_api *(*)(void))(uintptr_t)kp_test_fake("fake_cuda_api"))();
}

static void *find(const char *symbol)
{
    return dlsym(library(), symbol);
}

struct kp_driver *kp_test_driver(void)
{
    return &driver;
}

CUcontext kp_test_context(void)
{
    CUcontext ctx = NULL;
    CUresult (*init)(unsigned) = (CUresult(*)(unsigned))(uintptr_t)kp_test_fake("cuInit");
    CUresult (*create)(CUcontext *, unsigned, CUdevice) =
        (CUresult(*)(CUcontext *, unsigned, CUdevice))(uintptr_t)kp_test_fake("cuCtxCreate_v2");
    assert_int_equal(init(0), CUDA_SUCCESS);
    assert_null(kp_driver_fill(&real, find));
    driver = real;
#define TAKE_OVER(name, word, parameters, arguments) driver.name = log_##name;
    LOGGED_FUNCTIONS(TAKE_OVER)
#undef TAKE_OVER
    assert_int_equal(create(&ctx, 0, 0), CUDA_SUCCESS);
    memset(rules, 0, sizeof(rules));
    n_logged = 0;
    return ctx;
}

void kp_test_context_end(CUcontext ctx)
{
    CUresult (*destroy)(CUcontext) = (CUresult(*)(CUcontext))(uintptr_t)kp_test_fake("cuCtxDestroy_v2");
    assert_int_equal(destroy(ctx), CUDA_SUCCESS);
}
