/* LINK: -ldl -lpthread */
/*
 * A look-alike of libcudart.so.13, for programs that are linked to the shared runtime: a thin layer that reaches the
 * driver through cuGetProcAddress, like the real one. Kernels are identified by the address of a host function, which a
 * program registers itself with fake_cudart_register.
 */
#include <cuda.h>
#include <cudaProfilerTypedefs.h>
#include <cudaTypedefs.h>
#include <cuda_profiler_api.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define FUNCTIONS(F)                                                                                                   \
    F(cuInit, 2000, LEGACY_STREAM)                                                                                     \
    F(cuDevicePrimaryCtxRetain, 7000, LEGACY_STREAM)                                                                   \
    F(cuCtxSetCurrent, 4000, LEGACY_STREAM)                                                                            \
    F(cuCtxSynchronize, 2000, LEGACY_STREAM)                                                                           \
    F(cuModuleLoadData, 2000, LEGACY_STREAM)                                                                           \
    F(cuModuleGetFunction, 2000, LEGACY_STREAM)                                                                        \
    F(cuMemAlloc, 3020, LEGACY_STREAM)                                                                                 \
    F(cuMemFree, 3020, LEGACY_STREAM)                                                                                  \
    F(cuMemcpy, 4000, LEGACY_STREAM)                                                                                   \
    F(cuMemsetD8, 3020, LEGACY_STREAM)                                                                                 \
    F(cuStreamCreate, 2000, LEGACY_STREAM)                                                                             \
    F(cuStreamBeginCapture, 10010, LEGACY_STREAM)                                                                      \
    F(cuStreamEndCapture, 10000, LEGACY_STREAM)                                                                        \
    F(cuGraphInstantiateWithFlags, 11040, LEGACY_STREAM)                                                               \
    F(cuGraphLaunch, 10000, LEGACY_STREAM)                                                                             \
    F(cuLaunchKernel, 4000, LEGACY_STREAM)                                                                             \
    F(cuLaunchKernelEx, 11060, LEGACY_STREAM)                                                                          \
    F(cuLaunchCooperativeKernel, 9000, LEGACY_STREAM)                                                                  \
    F(cuProfilerStart, 4000, LEGACY_STREAM)                                                                            \
    F(cuProfilerStop, 4000, LEGACY_STREAM)

static struct {
#define FIELD(base, version, flavour) PFN_##base##_v##version base;
    FUNCTIONS(FIELD)
#undef FIELD
    PFN_cuLaunchKernel_v7000_ptsz launch_ptsz;
    CUresult error;
    CUcontext ctx;
    CUmodule module;
} driver;

static struct {
    const void *host;
    const char *name;
} kernels[16];
static size_t n_kernels;

static const char image[] =
    "FAKEMOD axpy_inplace _Z12axpy_inplacePKfPffi increment _Z9incrementPii atomic_count append "
    "scale_struct fail slow";

void fake_cudart_register(const void *host, const char *kernel);

void fake_cudart_register(const void *host, const char *kernel)
{
    kernels[n_kernels].host = host;
    kernels[n_kernels++].name = kernel;
}

static void open_driver(void)
{
    void *handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    PFN_cuGetProcAddress_v12000 get = NULL;
    CUdriverProcAddressQueryResult status;

    driver.error = CUDA_ERROR_NOT_INITIALIZED;
    if (handle)
        *(void **)&get = dlsym(handle, "cuGetProcAddress_v2");
    if (!get)
        return;
#define FIELD(base, version, flavour)                                                                                  \
    if (get(#base, (void **)&driver.base, version, CU_GET_PROC_ADDRESS_##flavour, &status) || status)                  \
        return;
    FUNCTIONS(FIELD)
#undef FIELD
    if (get("cuLaunchKernel", (void **)&driver.launch_ptsz, 7000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM,
            &status))
        return;
    driver.error = driver.cuInit(0);
    if (!driver.error)
        driver.error = driver.cuDevicePrimaryCtxRetain(&driver.ctx, 0);
    if (!driver.error)
        driver.error = driver.cuCtxSetCurrent(driver.ctx);
    if (!driver.error)
        driver.error = driver.cuModuleLoadData(&driver.module, image);
}

/* The runtime numbers its errors otherwise; the programs only ask whether there was one. */
static cudaError_t ready(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, open_driver);
    if (!driver.error)
        driver.cuCtxSetCurrent(driver.ctx);
    return (cudaError_t)driver.error;
}

static CUfunction function_of(const void *host)
{
    CUfunction f = NULL;

    for (size_t i = 0; i < n_kernels; i++)
        if (kernels[i].host == host && driver.cuModuleGetFunction(&f, driver.module, kernels[i].name))
            return NULL;
    return f;
}

#define READY()                                                                                                        \
    if (ready())                                                                                                       \
    return ready()

cudaError_t cudaMalloc(void **out, size_t bytes)
{
    READY();
    return (cudaError_t)driver.cuMemAlloc((CUdeviceptr *)out, bytes);
}

cudaError_t cudaFree(void *pointer)
{
    READY();
    return (cudaError_t)driver.cuMemFree((CUdeviceptr)pointer);
}

cudaError_t cudaMemcpy(void *dst, const void *src, size_t bytes, enum cudaMemcpyKind kind)
{
    READY();
    (void)kind;
    return (cudaError_t)driver.cuMemcpy((CUdeviceptr)dst, (CUdeviceptr)src, bytes);
}

cudaError_t cudaMemset(void *dst, int value, size_t bytes)
{
    READY();
    return (cudaError_t)driver.cuMemsetD8((CUdeviceptr)dst, (unsigned char)value, bytes);
}

cudaError_t cudaDeviceSynchronize(void)
{
    READY();
    return (cudaError_t)driver.cuCtxSynchronize();
}

cudaError_t cudaStreamCreate(cudaStream_t *out)
{
    READY();
    return (cudaError_t)driver.cuStreamCreate((CUstream *)out, CU_STREAM_NON_BLOCKING);
}

cudaError_t cudaLaunchKernel(const void *host, dim3 grid, dim3 block, void **args, size_t shared, cudaStream_t stream)
{
    READY();
    return (cudaError_t)driver.cuLaunchKernel(function_of(host), grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                              (unsigned int)shared, (CUstream)stream, args, NULL);
}

cudaError_t cudaLaunchKernel_ptsz(const void *host, dim3 grid, dim3 block, void **args, size_t shared,
                                  cudaStream_t stream);

cudaError_t cudaLaunchKernel_ptsz(const void *host, dim3 grid, dim3 block, void **args, size_t shared,
                                  cudaStream_t stream)
{
    READY();
    return (cudaError_t)driver.launch_ptsz(function_of(host), grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                           (unsigned int)shared, (CUstream)stream, args, NULL);
}

cudaError_t cudaLaunchCooperativeKernel(const void *host, dim3 grid, dim3 block, void **args, size_t shared,
                                        cudaStream_t stream)
{
    READY();
    return (cudaError_t)driver.cuLaunchCooperativeKernel(function_of(host), grid.x, grid.y, grid.z, block.x, block.y,
                                                         block.z, (unsigned int)shared, (CUstream)stream, args);
}

/* Both interfaces lay attributes out alike. */
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *host, void **args)
{
    CUlaunchConfig c = {config->gridDim.x,
                        config->gridDim.y,
                        config->gridDim.z,
                        config->blockDim.x,
                        config->blockDim.y,
                        config->blockDim.z,
                        (unsigned int)config->dynamicSmemBytes,
                        (CUstream)config->stream,
                        (CUlaunchAttribute *)config->attrs,
                        config->numAttrs};

    READY();
    return (cudaError_t)driver.cuLaunchKernelEx(&c, function_of(host), args, NULL);
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
    READY();
    return (cudaError_t)driver.cuStreamBeginCapture((CUstream)stream, (CUstreamCaptureMode)mode);
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
    READY();
    return (cudaError_t)driver.cuStreamEndCapture((CUstream)stream, (CUgraph *)graph);
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t graph, unsigned long long flags)
{
    READY();
    return (cudaError_t)driver.cuGraphInstantiateWithFlags((CUgraphExec *)out, (CUgraph)graph, flags);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
    READY();
    return (cudaError_t)driver.cuGraphLaunch((CUgraphExec)exec, (CUstream)stream);
}

cudaError_t cudaProfilerStart(void)
{
    READY();
    return (cudaError_t)driver.cuProfilerStart();
}

cudaError_t cudaProfilerStop(void)
{
    READY();
    return (cudaError_t)driver.cuProfilerStop();
}
