/* LINK: -shared -ldl */
/* Somebody else's interposer, to be preloaded beside the profiler: it counts launches and passes them on by
 * dlsym(RTLD_NEXT), which must lead to the next definition after THIS object. */
#include <cuda.h>
#include <cudaTypedefs.h>
#include <dlfcn.h>
#include <stdio.h>

static unsigned int seen;

CUresult cuLaunchKernel(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
                        unsigned int by, unsigned int bz, unsigned int shared, CUstream stream, void **params,
                        void **extra)
{
    PFN_cuLaunchKernel_v4000 next;

    *(void **)&next = dlsym(RTLD_NEXT, "cuLaunchKernel");
    seen++;
    return next ? next(f, gx, gy, gz, bx, by, bz, shared, stream, params, extra) : CUDA_ERROR_NOT_FOUND;
}

__attribute__((destructor)) static void tell(void)
{
    printf("next_shim saw %u launches\n", seen);
}
