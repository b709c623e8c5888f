/*
 *     nvcc -ptx -arch=compute_90 objects.cu; ptxas -c -arch=sm_90 -o part.cubin objects.ptx
 *     nvlink -arch=sm_90 -o objects.sm90-cuda13.cubin part.cubin; ptxas -arch=sm_90 -o whole.sm90-cuda13.cubin objects.ptx
 */
__constant__ float table[64];
__device__ int counter;
__device__ int other;

extern "C" __global__ void plain(float *x)
{
    x[threadIdx.x] *= 2;
}

extern "C" __global__ void reads_constant(float *x)
{
    x[threadIdx.x] *= table[threadIdx.x & 63];
}

extern "C" __global__ void counts(int *x)
{
    x[threadIdx.x] = atomicAdd(&counter, 1);
}

__noinline__ __device__ int count_other(int n)
{
    return atomicAdd(&other, n);
}

extern "C" __global__ void counts_by_call(int *x)
{
    x[threadIdx.x] = count_other(x[0]);
}

extern "C" __global__ void calls_by_pointer(int *x, int (*f)(int))
{
    x[threadIdx.x] = f(x[0]);
}
