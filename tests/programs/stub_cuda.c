/* LINK: -shared */
/* A few functions of the CUDA runtime and driver that do nothing and take no lock: a child of p_forks that hangs does
 * so in the profiler. */
#include <cuda.h>

struct dim {
    unsigned int x, y, z;
};

int cudaLaunchKernel(const void *f, struct dim grid, struct dim block, void **args, size_t shared, void *stream);
int call_launch(int (*launch)(const void *, struct dim, struct dim, void **, size_t, void *));

#undef cuGetProcAddress

int cudaLaunchKernel(const void *f, struct dim grid, struct dim block, void **args, size_t shared, void *stream)
{
    (void)f, (void)grid, (void)block, (void)args, (void)shared, (void)stream;
    return 0;
}

/* A call from another object than the program. */
int call_launch(int (*launch)(const void *, struct dim, struct dim, void **, size_t, void *))
{
    struct dim one = {1, 1, 1};

    return launch(&one, one, one, NULL, 0, NULL) + 1;
}

CUresult cuLaunchGrid(CUfunction f, int width, int height)
{
    (void)f, (void)width, (void)height;
    return CUDA_SUCCESS;
}

CUresult cuMemFree_v2(CUdeviceptr p)
{
    (void)p;
    return CUDA_SUCCESS;
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes)
{
    (void)to, (void)from, (void)bytes;
    return CUDA_SUCCESS;
}

CUresult cuGetProcAddress_v2(const char *symbol, void **function, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult *status)
{
    (void)symbol, (void)version, (void)flags, (void)status;
    *function = (void *)cuMemFree_v2;
    return CUDA_SUCCESS;
}
