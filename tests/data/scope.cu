/* Kernels by what they share with the host while they run, for tests of the cubin reader: nvcc -std=c++17 -arch=sm_90
 * -cubin; the same for sm_75. */
extern "C" {
__global__ void none_plain(int *a, const int *b) { a[threadIdx.x] = b[threadIdx.x]; }
__global__ void none_atomic(int *a, int *b) { *b = atomicAdd(a, 1); atomicMax(a + 1, 2); }
__global__ void none_fence(int *a) { a[0] = 1; __threadfence(); a[1] = 2; __threadfence_block(); a[2] = 3; }
__global__ void none_shared(int *a)
{
    __shared__ volatile int s[32];
    s[threadIdx.x] = 1;
    a[threadIdx.x] = s[31 - threadIdx.x];
}
__global__ void none_cached(int *a, const int *b) { __stcg(a, __ldcg(b)); __stcs(a + 1, __ldcs(b + 1)); }
__global__ void waits_volatile(volatile int *a, int *b) { while (!*a) ; *b = 1; }
__global__ void waits_uncached(const int *a, int *b) { *b = __ldcv(a); }
__global__ void posts_volatile(volatile int *a, int b) { *a = b; }
__global__ void posts_fence(int *a) { a[0] = 1; __threadfence_system(); a[1] = 2; }
__global__ void posts_reduction(int *a) { atomicAdd_system(a, 1); }
__global__ void posts_number(float *a) { atomicAdd_system(a, 1.0f); }
__global__ void both_atomic(int *a, int *b) { *b = atomicAdd_system(a, 1); }
__global__ void both_exchange(int *a, int *b) { *b = atomicCAS_system(a, 1, 2); }
__device__ __noinline__ int ask(volatile int *a) { a[1] = 1; return a[0]; }
__global__ void both_called(volatile int *a, int *b) { *b = ask(a); }
}
