/*
 * What the test programs share. Each reaches the driver in a way of its own, fills a `struct driver`, and runs the same
 * body. They print what they computed and nothing that differs between runs, so that stdout with and without a profiler
 * can be compared byte for byte.
 */
#ifndef TESTS_PROGRAM_H
#define TESTS_PROGRAM_H

#include <cuda.h>
#include <cudaTypedefs.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Base name and ABI version, as cuGetProcAddress takes them; cuda.h's macros make the exported name of the base. */
#define DRIVER_FUNCTIONS(F)                                                                                            \
    F(cuInit, 2000)                                                                                                    \
    F(cuDeviceGet, 2000)                                                                                               \
    F(cuDeviceGetCount, 2000)                                                                                          \
    F(cuDevicePrimaryCtxRetain, 7000)                                                                                  \
    F(cuDevicePrimaryCtxRelease, 11000)                                                                                \
    F(cuDevicePrimaryCtxReset, 11000)                                                                                  \
    F(cuCtxDestroy, 4000)                                                                                              \
    F(cuCtxSetCurrent, 4000)                                                                                           \
    F(cuCtxSynchronize, 2000)                                                                                          \
    F(cuStreamCreate, 2000)                                                                                            \
    F(cuStreamSynchronize, 2000)                                                                                       \
    F(cuStreamDestroy, 4000)                                                                                           \
    F(cuModuleLoadData, 2000)                                                                                          \
    F(cuModuleGetFunction, 2000)                                                                                       \
    F(cuModuleUnload, 2000)                                                                                            \
    F(cuLibraryLoadData, 12000)                                                                                        \
    F(cuLibraryGetKernel, 12000)                                                                                       \
    F(cuMemAlloc, 3020)                                                                                                \
    F(cuMemFree, 3020)                                                                                                 \
    F(cuMemsetD8, 3020)                                                                                                \
    F(cuMemsetD32Async, 3020)                                                                                          \
    F(cuMemcpyHtoD, 3020)                                                                                              \
    F(cuMemcpyDtoH, 3020)                                                                                              \
    F(cuMemcpyHtoDAsync, 3020)                                                                                         \
    F(cuFuncSetAttribute, 9000)                                                                                        \
    F(cuLaunchKernel, 4000)                                                                                            \
    F(cuLaunchKernelEx, 11060)                                                                                         \
    F(cuLaunchCooperativeKernel, 9000)

struct driver {
#define FIELD(base, version) PFN_##base##_v##version base;
    DRIVER_FUNCTIONS(FIELD)
#undef FIELD
    /* the per-thread default stream's; NULL where the way of getting at functions has none */
    PFN_cuLaunchKernel_v7000_ptsz launch_ptsz;
    PFN_cuLaunchKernelEx_v11060_ptsz launch_ex_ptsz;
};

#define PROGRAM_TEXT_(x)    #x
#define EXPORTED_NAME(base) PROGRAM_TEXT_(base)

/* Ends the program with its call's name when a driver call fails. */
#define MUST(call)                                                                                                     \
    do {                                                                                                               \
        CUresult must_ = (call);                                                                                       \
        if (must_) {                                                                                                   \
            printf("%s: error %d\n", #call, (int)must_);                                                               \
            exit(2);                                                                                                   \
        }                                                                                                              \
    } while (0)

static int program_wrong;

static inline void report(const char *what, int right)
{
    printf("%s: %s\n", what, right ? "right" : "WRONG");
    program_wrong |= !right;
}

static inline void report_number(const char *what, long long value, long long expected)
{
    printf("%s: %lld\n", what, value);
    if (value != expected)
        printf("%s: WRONG, expected %lld\n", what, expected);
    program_wrong |= value != expected;
}

/* As the kernel scale_struct takes it. */
struct scale_args {
    CUdeviceptr data;
    double factor;
    int n, shift;
    uint64_t check[2];
};

static inline struct scale_args make_scale_args(CUdeviceptr data, double factor, int n, int shift)
{
    struct scale_args args = {data, factor, n, shift, {0x0123456789abcdefull, ~0x0123456789abcdefull}};

    return args;
}

#define ALL_KERNELS                                                                                                    \
    "FAKEMOD axpy_inplace _Z12axpy_inplacePKfPffi increment _Z9incrementPii _ZN5tests9incrementIiLi4EEEvPT_i "         \
    "atomic_count append scale_struct fail slow global:g_counter:64"

struct session {
    CUdevice device;
    CUcontext ctx;
    CUmodule module;
    CUstream stream;
};

static inline void open_session(const struct driver *d, struct session *s, int device)
{
    MUST(d->cuInit(0));
    MUST(d->cuDeviceGet(&s->device, device));
    MUST(d->cuDevicePrimaryCtxRetain(&s->ctx, s->device));
    MUST(d->cuCtxSetCurrent(s->ctx));
    MUST(d->cuModuleLoadData(&s->module, ALL_KERNELS));
    MUST(d->cuStreamCreate(&s->stream, CU_STREAM_NON_BLOCKING));
}

static inline CUfunction get_function(const struct driver *d, const struct session *s, const char *name)
{
    CUfunction f;

    MUST(d->cuModuleGetFunction(&f, s->module, name));
    return f;
}

static inline CUdeviceptr device_ints(const struct driver *d, const int *values, int n)
{
    CUdeviceptr p;

    MUST(d->cuMemAlloc(&p, n * sizeof(int)));
    MUST(d->cuMemcpyHtoD(p, values, n * sizeof(int)));
    return p;
}

static inline long long sum_ints(const struct driver *d, CUdeviceptr p, int n)
{
    int *host = malloc(n * sizeof(int));
    long long sum = 0;

    MUST(d->cuMemcpyDtoH(host, p, n * sizeof(int)));
    for (int i = 0; i < n; i++)
        sum += host[i];
    free(host);
    return sum;
}

/* In place: running a launch twice, or not at all, changes the result. */
static inline void do_axpy(const struct driver *d, const struct session *s, const char *kernel)
{
    enum { N = 1000, TIMES = 3 };
    CUfunction f = get_function(d, s, kernel);
    float host[N], a = 2;
    int n = N, right = 1;
    CUdeviceptr x, y;
    void *params[] = {&x, &y, &a, &n};

    MUST(d->cuMemAlloc(&x, sizeof(host)));
    MUST(d->cuMemAlloc(&y, sizeof(host)));
    for (int i = 0; i < N; i++)
        host[i] = (float)i;
    MUST(d->cuMemcpyHtoD(x, host, sizeof(host)));
    MUST(d->cuMemsetD8(y, 0, sizeof(host)));
    for (int i = 0; i < TIMES; i++) {
        MUST(d->cuLaunchKernel(f, 4, 1, 1, 256, 1, 1, 0, s->stream, params, NULL));
        a *= 2; /* the launch has its own copy of the arguments by now */
    }
    MUST(d->cuStreamSynchronize(s->stream));
    MUST(d->cuMemcpyDtoH(host, y, sizeof(host)));
    for (int i = 0; i < N; i++)
        right &= host[i] == (float)i * (2 + 4 + 8);
    report(kernel, right);
    MUST(d->cuMemFree(x));
    MUST(d->cuMemFree(y));
}

static inline void do_atomic(const struct driver *d, const struct session *s)
{
    CUfunction f = get_function(d, s, "atomic_count");
    CUdeviceptr counter = device_ints(d, &(int){0}, 1);
    void *params[] = {&counter};

    for (int i = 1; i <= 4; i++)
        MUST(d->cuLaunchKernel(f, i, 2, 1, 32, 1, 1, 0, NULL, params, NULL));
    MUST(d->cuCtxSynchronize());
    report_number("atomic_count", sum_ints(d, counter, 1), (1 + 2 + 3 + 4) * 2 * 32);
    MUST(d->cuMemFree(counter));
}

/* Every entry depends on all before it, the tags tell the launches apart; memset and copy stand between launches. */
static inline void do_append(const struct driver *d, const struct session *s)
{
    enum { CAPACITY = 64, TIMES = 5 };
    CUfunction f = get_function(d, s, "append");
    int host[CAPACITY], expected = 0, capacity = CAPACITY, tag, first = 100;
    CUdeviceptr buffer, cursor = device_ints(d, &(int){0}, 1);
    void *params[] = {&buffer, &cursor, &capacity, &tag};

    MUST(d->cuMemAlloc(&buffer, sizeof(host)));
    MUST(d->cuMemsetD32Async(buffer, 0, CAPACITY, s->stream));
    for (tag = 1; tag <= TIMES; tag++) {
        MUST(d->cuLaunchKernel(f, tag, 1, 1, 1, 1, 1, 0, s->stream, params, NULL));
        if (tag == 1) {
            MUST(d->cuMemcpyHtoDAsync(buffer, &first, sizeof(first), s->stream));
            first = -1; /* pageable memory was copied by the call */
        }
    }
    MUST(d->cuStreamSynchronize(s->stream));
    MUST(d->cuMemcpyDtoH(host, buffer, sizeof(host)));
    expected = 100;
    for (int t = 2; t <= TIMES; t++)
        for (int i = 0; i < t; i++)
            expected = (int)((unsigned int)expected * 31u + t);
    report_number("append, entries", sum_ints(d, cursor, 1), 1 + 2 + 3 + 4 + 5);
    report_number("append, last entry", host[14], expected);
    MUST(d->cuMemFree(buffer));
    MUST(d->cuMemFree(cursor));
}

static inline CUdeviceptr scale_data(const struct driver *d, int n)
{
    double *host = malloc(n * sizeof(*host));
    CUdeviceptr p;

    for (int i = 0; i < n; i++)
        host[i] = i;
    MUST(d->cuMemAlloc(&p, n * sizeof(*host)));
    MUST(d->cuMemcpyHtoD(p, host, n * sizeof(*host)));
    free(host);
    return p;
}

static inline void check_scale(const struct driver *d, const char *what, CUdeviceptr data, int n, double factor,
                               double shift)
{
    double *host = malloc(n * sizeof(*host));
    int right = 1;

    MUST(d->cuMemcpyDtoH(host, data, n * sizeof(*host)));
    for (int i = 0; i < n; i++)
        right &= host[i] == i * factor + shift;
    report(what, right);
    free(host);
}

static inline void do_struct(const struct driver *d, const struct session *s)
{
    enum { N = 100 };
    CUfunction f = get_function(d, s, "scale_struct");
    CUdeviceptr data = scale_data(d, N);
    struct scale_args args = make_scale_args(data, 3, N, 1);
    void *params[] = {&args};

    MUST(d->cuLaunchKernel(f, 1, 1, 1, 128, 1, 1, 0, s->stream, params, NULL));
    memset(&args, 0, sizeof(args));
    MUST(d->cuStreamSynchronize(s->stream));
    check_scale(d, "scale_struct", data, N, 3, 1);
    MUST(d->cuMemFree(data));
}

/* Attributes, a kernel that is launched as such, dynamic shared memory, and the cooperative entry point. */
static inline void do_extended(const struct driver *d, const struct session *s)
{
    enum { N = 512 };
    static int zeros[N];
    CUlaunchAttribute attrs[3] = {{.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, .value.clusterDim = {2, 1, 1}},
                                  {.id = CU_LAUNCH_ATTRIBUTE_PRIORITY, .value.priority = -2},
                                  {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
                                   .value.programmaticStreamSerializationAllowed = 1}};
    CUlaunchConfig config = {4, 1, 1, 128, 1, 1, 65536, s->stream, attrs, 3};
    CUfunction f = get_function(d, s, "_ZN5tests9incrementIiLi4EEEvPT_i");
    CUdeviceptr data = device_ints(d, zeros, N);
    CUlibrary library;
    CUkernel kernel;
    int n = N;
    void *params[] = {&data, &n};

    MUST(d->cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 65536));
    MUST(d->cuLaunchKernelEx(&config, f, params, NULL));
    MUST(d->cuLaunchCooperativeKernel(f, 2, 2, 1, 16, 8, 1, 0, s->stream, params));
    MUST(d->cuLibraryLoadData(&library, "FAKEMOD _Z9incrementPii", NULL, NULL, 0, NULL, NULL, 0));
    MUST(d->cuLibraryGetKernel(&kernel, library, "_Z9incrementPii"));
    MUST(d->cuLaunchKernel((CUfunction)kernel, 4, 1, 1, 128, 1, 1, 0, s->stream, params, NULL));
    MUST(d->cuStreamSynchronize(s->stream));
    report_number("extended", sum_ints(d, data, N), 3 * N);
    if (d->launch_ptsz && d->launch_ex_ptsz) {
        config.hStream = NULL;
        MUST(d->launch_ptsz(f, 4, 1, 1, 128, 1, 1, 0, NULL, params, NULL));
        MUST(d->launch_ex_ptsz(&config, f, params, NULL));
        MUST(d->cuCtxSynchronize());
        report_number("per-thread default stream", sum_ints(d, data, N), 5 * N);
    }
    MUST(d->cuMemFree(data));
}

static inline void close_session(const struct driver *d, struct session *s)
{
    MUST(d->cuStreamDestroy(s->stream));
    MUST(d->cuModuleUnload(s->module));
    MUST(d->cuDevicePrimaryCtxRelease(s->device));
}

/* 3 + 3 + 4 + 5 + 1 + 3 launches, and 2 more with per-thread functions. */
static inline int run_scenario(const struct driver *d)
{
    struct session s;

    open_session(d, &s, 0);
    do_axpy(d, &s, "axpy_inplace");
    do_axpy(d, &s, "_Z12axpy_inplacePKfPffi");
    do_atomic(d, &s);
    do_append(d, &s);
    do_struct(d, &s);
    do_extended(d, &s);
    close_session(d, &s);
    return program_wrong;
}

#endif
