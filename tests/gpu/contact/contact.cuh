// What the programs of this folder share. Each prints the same lines in every run, then "NAME: ok" or "NAME: WRONG",
// and ends with 0 or 1. What the machine lacks is "SKIP reason", with 0.
#pragma once
#include <cuda.h>
#include <cuda_runtime.h>
#include <time.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#define CK(x)                                                                                                          \
    do {                                                                                                               \
        cudaError_t e_ = (x);                                                                                          \
        if (e_ != cudaSuccess) {                                                                                       \
            printf("line %d: %s\n", __LINE__, cudaGetErrorName(e_));                                                   \
            exit(9);                                                                                                   \
        }                                                                                                              \
    } while (0)
#define CU(x)                                                                                                          \
    do {                                                                                                               \
        CUresult e_ = (x);                                                                                             \
        if (e_ != CUDA_SUCCESS) {                                                                                      \
            printf("line %d: driver error %d\n", __LINE__, (int)e_);                                                   \
            exit(9);                                                                                                   \
        }                                                                                                              \
    } while (0)
// For a call that may be missing here.
#define NEEDS(x, what)                                                                                                 \
    do {                                                                                                               \
        if ((int)(x) != 0) {                                                                                           \
            printf("SKIP no %s\n", what);                                                                              \
            exit(0);                                                                                                   \
        }                                                                                                              \
    } while (0)

__device__ inline unsigned long long nanoseconds()
{
    unsigned long long t;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t));
    return t;
}

// Returns false after 5 s: a gate that nobody opens is a wrong result, not a hang.
__device__ inline bool wait_for(volatile unsigned *flag, unsigned value)
{
    unsigned long long start = nanoseconds();
    while (*flag != value)
        if (nanoseconds() - start > 5000000000ull)
            return false;
    __threadfence_system();
    return true;
}

// The same on the host.
static inline bool host_wait_for(volatile unsigned *flag, unsigned value)
{
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    while (*flag != value) {
        clock_gettime(CLOCK_MONOTONIC, &b);
        if (b.tv_sec - a.tv_sec > 5)
            return false;
    }
    __sync_synchronize();
    return true;
}

static inline void sleep_ms(long ms)
{
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};
    while (nanosleep(&t, &t) != 0)
        ;
}

// Work whose result depends on the order and on the number of launches.
static __global__ void mix(unsigned *v, int n, unsigned k)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        v[i] = v[i] * 3u + k;
}

static inline unsigned mixed(unsigned v, unsigned k)
{
    return v * 3u + k;
}

template <typename T> static T *device_zeros(size_t n)
{
    T *p;
    CK(cudaMalloc(&p, n * sizeof(T)));
    CK(cudaMemset(p, 0, n * sizeof(T)));
    CK(cudaDeviceSynchronize());
    return p;
}

template <typename T> static T from_device(const T *p)
{
    T v;
    CK(cudaMemcpy(&v, p, sizeof(T), cudaMemcpyDeviceToHost));
    return v;
}

static inline int attribute(cudaDeviceAttr a)
{
    int v = 0;
    CK(cudaDeviceGetAttribute(&v, a, 0));
    return v;
}

static inline int verdict(const char *name, bool ok)
{
    printf("%s: %s\n", name, ok ? "ok" : "WRONG");
    fflush(stdout);
    return !ok;
}
