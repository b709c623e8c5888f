/*
 * What the line tables of inline.sm80-cuda11.cubin and inline.sm90-cuda13.cubin are of. The folder in them is set by hand:
 *     nvcc -ptx -lineinfo -arch=compute_80 inline.cu       (for the first with .version 7.8, which CUDA 11.8 knows)
 *     sed -i 's|"[^"]*"/inline|"/src/inline|' inline.ptx
 *     ptxas -lineinfo -arch=sm_80 -o inline.sm80-cuda11.cubin inline.ptx
 */
#include "inline.h"

__device__ __forceinline__ float leaf(float x)
{
    return x * x + 1.0f;
}

__device__ __forceinline__ float middle(float x)
{
    float y = leaf(x);
    return leaf(y + 3.0f) * clamped(y);
}

extern "C" __device__ __noinline__ float called(float x, float *p)
{
    p[1] = x * 0.5f;
    return leaf(x) + p[2];
}

extern "C" __global__ void nested(float *a)
{
    int i = threadIdx.x;
    a[i] = middle(a[i]);
    __syncthreads();
    a[i + 32] = clamped(a[i ^ 1]);
}

extern "C" __global__ void calling(float *a)
{
    a[threadIdx.x] = called(a[threadIdx.x], a);
}
