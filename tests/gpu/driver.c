/*
 * Launches through the driver interface, without the runtime: linked with -lcuda, or (with -DBY_DLOPEN) opened by the
 * program. Covers cuLaunchKernel, its per-thread-default-stream flavour, cuLaunchKernelEx, cuLaunchCooperativeKernel,
 * launches by CUkernel and by `extra`. Checks its own results.
 */
#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static const char ptx[] = ".version 6.4\n.target sm_75\n.address_size 64\n"
                          ".visible .entry increment(.param .u64 p, .param .u32 n)\n{\n"
                          ".reg .pred %p<2>;\n.reg .b32 %r<8>;\n.reg .b64 %d<4>;\n"
                          "ld.param.u64 %d1, [p];\nld.param.u32 %r1, [n];\n"
                          "mov.u32 %r2, %ctaid.x;\nmov.u32 %r3, %ntid.x;\nmov.u32 %r4, %tid.x;\n"
                          "mad.lo.u32 %r5, %r2, %r3, %r4;\nsetp.ge.u32 %p1, %r5, %r1;\n@%p1 bra DONE;\n"
                          "mul.wide.u32 %d2, %r5, 4;\nadd.u64 %d3, %d1, %d2;\n"
                          "ld.global.u32 %r6, [%d3];\nadd.u32 %r6, %r6, 1;\nst.global.u32 [%d3], %r6;\n"
                          "DONE:\nret;\n}\n";

#ifdef BY_DLOPEN
static void *library;
#define CALL(name) ((__typeof__(&name))dlsym(library, STRING(name)))
#define STRING(x)  STRING_(x)
#define STRING_(x) #x
#else
#define CALL(name) name
#endif

#define MUST(call)                                                                                                     \
    do {                                                                                                               \
        CUresult rc_ = (call);                                                                                         \
        if (rc_ != CUDA_SUCCESS) {                                                                                     \
            printf("%s: %d\n", #call, rc_);                                                                            \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

enum { N = 1 << 16, BLOCK = 256 };

int main(void)
{
    CUdevice device;
    CUcontext ctx;
    CUmodule module;
    CUlibrary lib;
    CUkernel kernel;
    CUfunction f;
    CUstream stream;
    CUdeviceptr p;
    int n = N;
    static int host[N];
#ifdef BY_DLOPEN
    library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return 1;
#endif
    MUST(CALL(cuInit)(0));
    MUST(CALL(cuDeviceGet)(&device, 0));
    MUST(CALL(cuDevicePrimaryCtxRetain)(&ctx, device));
    MUST(CALL(cuCtxSetCurrent)(ctx));
    MUST(CALL(cuModuleLoadData)(&module, ptx));
    MUST(CALL(cuModuleGetFunction)(&f, module, "increment"));
    MUST(CALL(cuLibraryLoadData)(&lib, ptx, NULL, NULL, 0, NULL, NULL, 0));
    MUST(CALL(cuLibraryGetKernel)(&kernel, lib, "increment"));
    MUST(CALL(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
    MUST(CALL(cuMemAlloc)(&p, N * sizeof(int)));
    MUST(CALL(cuMemsetD32)(p, 0, N));
    void *params[] = {&p, &n};
    struct {
        CUdeviceptr p;
        int n;
    } buffer = {p, n};
    size_t size = sizeof(buffer.p) + sizeof(buffer.n);
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
    MUST(CALL(cuLaunchKernel)(f, N / BLOCK, 1, 1, BLOCK, 1, 1, 0, NULL, params, NULL));
    MUST(CALL(cuLaunchKernel)(f, N / BLOCK, 1, 1, BLOCK, 1, 1, 0, NULL, NULL, extra));
    MUST(CALL(cuLaunchKernel)((CUfunction)kernel, N / BLOCK, 1, 1, BLOCK, 1, 1, 0, NULL, params, NULL));
    MUST(CALL(cuLaunchKernel)(f, N / BLOCK, 1, 1, BLOCK, 1, 1, 0, CU_STREAM_PER_THREAD, params, NULL));
    MUST(CALL(cuStreamSynchronize)(CU_STREAM_PER_THREAD));
    MUST(CALL(cuLaunchCooperativeKernel)(f, N / BLOCK, 1, 1, BLOCK, 1, 1, 0, NULL, params));
    MUST(CALL(cuStreamSynchronize)(NULL));
    CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_PRIORITY, .value.priority = 0};
    CUlaunchConfig config = {.gridDimX = N / BLOCK,
                             .gridDimY = 1,
                             .gridDimZ = 1,
                             .blockDimX = BLOCK,
                             .blockDimY = 1,
                             .blockDimZ = 1,
                             .hStream = stream,
                             .attrs = &attribute,
                             .numAttrs = 1};
    MUST(CALL(cuLaunchKernelEx)(&config, f, params, NULL));
    MUST(CALL(cuStreamSynchronize)(stream));
    MUST(CALL(cuMemcpyDtoH)(host, p, sizeof(host)));
    for (int i = 0; i < N; i++)
        if (host[i] != 6) {
            printf("wrong: %d at %d\n", host[i], i);
            return 1;
        }
    puts("driver OK");
    return 0;
}
