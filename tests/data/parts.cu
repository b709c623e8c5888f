/*
 * What parts.sm90-cuda13.cubin is of, a module that is linked of two parts, each with PTX of its own:
 *     nvcc -ptx -lineinfo -rdc=true -arch=compute_90 -o one.ptx parts.cu
 *     nvcc -ptx -lineinfo -rdc=true -arch=compute_90 -DOTHER -o two.ptx parts.cu
 *     sed -i 's|"[^"]*/parts.cu"|"/src/parts.cu"|' one.ptx two.ptx
 *     ptxas -lineinfo -c -arch=sm_90 -o one.cubin one.ptx
 *     ptxas -lineinfo -c -arch=sm_90 -o two.cubin two.ptx
 *     nvlink -arch=sm_90 -o parts.sm90-cuda13.cubin one.cubin two.cubin
 */
#ifdef OTHER

extern "C" __device__ float twice(float x)
{
    return x + x;
}

#else

extern "C" __device__ float twice(float x);

extern "C" __global__ void doubled(float *a)
{
    a[threadIdx.x] = twice(a[threadIdx.x]);
}

#endif
