// A kernel of three phases that follow each other on every SM: it streams from memory, then computes, then waits.
#include <cstdio>
#include <cuda_runtime.h>

__global__ void phases(const float4 *in, float4 *out, long n, int rounds, long wait)
{
    float4 sum = make_float4(0, 0, 0, 0);
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < n; i += (long)gridDim.x * blockDim.x) {
        float4 v = in[i];
        sum.x += v.x;
        sum.y += v.y;
        sum.z += v.z;
        sum.w += v.w;
    }
    float a = sum.x, b = sum.y, c = sum.z, d = sum.w;
    for (int i = 0; i < rounds; i++) {
        a = a * 1.0001f + .5f;
        b = b * 1.0001f + .5f;
        c = c * 1.0001f + .5f;
        d = d * 1.0001f + .5f;
    }
    long start = clock64();
    while (clock64() - start < wait)
        __nanosleep(100);
    out[blockIdx.x * (long)blockDim.x + threadIdx.x] = make_float4(a, b, c, d);
}

int main()
{
    long bytes = 512l << 20;
    float4 *in, *out;
    cudaMalloc(&in, bytes);
    cudaMalloc(&out, 132 * 2 * 1024 * sizeof(float4));
    cudaMemset(in, 0, bytes);
    phases<<<132 * 2, 1024>>>(in, out, bytes / sizeof(float4), 20000, 400000);
    printf("phases %s\n", cudaGetErrorString(cudaDeviceSynchronize()));
    return 0;
}
