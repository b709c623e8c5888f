/*
 * What heap.sm90-cuda13.cubin is of, linked, so that calls through pointers show:
 *     nvcc -rdc=true -arch=sm_90 -dc -o heap.o heap.cu; nvcc -arch=sm_90 -dlink -cubin -o heap.sm90-cuda13.cubin heap.o
 */
#include <stdio.h>
#include <stdlib.h>

__device__ __noinline__ int *make(int n)
{
    return (int *)malloc(n * sizeof(int));
}

__device__ __noinline__ void give(int *p)
{
    free(p);
}

__device__ __noinline__ void keep(int *p)
{
    p[0]++;
}

__device__ void (*table[2])(int *) = {give, keep};

extern "C" __global__ void plain(int *p)
{
    p[threadIdx.x] += 2;
}

extern "C" __global__ void keeping(int *p)
{
    keep(p);
}

extern "C" __global__ void taking(int **p)
{
    *p = make(16);
}

extern "C" __global__ void giving(int **p)
{
    free(*p);
}

/* Which of the two functions is called cannot be known. */
extern "C" __global__ void by_pointer(int *p, int i)
{
    table[i](p);
}

__device__ __noinline__ void print(int *p)
{
    printf("%d\n", p[0]);
}

extern "C" __global__ void printing(int *p)
{
    print(p);
}
