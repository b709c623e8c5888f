// One kernel in two builds, for kprof diff: -DSTRIDE=32 makes every access a sector of its own.
#include <cstdio>
#include <cuda_runtime.h>
#ifndef STRIDE
#define STRIDE 1
#endif

__global__ void scale(const float *in, float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, at = (int)((long)i * STRIDE % n);
    if (i < n)
        out[at] = in[at] * 2;
}

int main()
{
    int n = 1 << 22;
    float *in, *out;
    cudaMalloc(&in, n * sizeof(float));
    cudaMalloc(&out, n * sizeof(float));
    cudaMemset(in, 0, n * sizeof(float));
    scale<<<n / 256, 256>>>(in, out, n);
    printf("scale %s\n", cudaGetErrorString(cudaDeviceSynchronize()));
    return 0;
}
