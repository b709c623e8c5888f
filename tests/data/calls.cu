/*
 * What calls.sm90-cuda13.cubin is of, not linked, so that nothing of the device runtime is in it:
 *     nvcc -rdc=true -arch=sm_90 -cubin -o calls.sm90-cuda13.cubin calls.cu
 */
__device__ __noinline__ float twice(float x)
{
    return x * 2 + 1;
}

__device__ __noinline__ float four_times(float x)
{
    return twice(twice(x));
}

extern "C" __global__ void child(float *p)
{
    p[threadIdx.x] += 1;
}

/* Two functions beside its own code. */
extern "C" __global__ void calling(float *p)
{
    p[threadIdx.x] = four_times(p[threadIdx.x]);
}

extern "C" __global__ void launching(float *p)
{
    child<<<1, 32>>>(p);
}

extern "C" __global__ void waiting(float *p)
{
    asm volatile("bar.sync 2, 64;");
    p[threadIdx.x] += 2;
}

/* 40 values of a thread that has 32 registers. */
extern "C" __global__ void __launch_bounds__(1024, 2) spilling(float *p, int n)
{
    float a[40];
#pragma unroll
    for (int i = 0; i < 40; i++)
        a[i] = p[i * n + threadIdx.x];
    for (int k = 0; k < n; k++) {
#pragma unroll
        for (int i = 0; i < 40; i++)
            a[i] = a[i] * a[(i + 7) % 40] + a[(i + 13) % 40];
    }
#pragma unroll
    for (int i = 0; i < 40; i++)
        p[i * n + threadIdx.x] = a[i];
}

/* An array of a thread that is indexed: local memory, and no spill. */
extern "C" __global__ void indexing(float *p, int n)
{
    float a[8] = {0};
    for (int i = 0; i < n; i++)
        a[(int)p[i] & 7] += 1;
    p[threadIdx.x] = a[n & 7];
}
