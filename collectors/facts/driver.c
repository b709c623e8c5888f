#include "collectors/facts/driver.h"

#include <string.h>

static const struct {
    const char *symbol;
    size_t offset;
    int needed;
} entries[] = {
#define KP_DRIVER(name, type, symbol, needed) {symbol, offsetof(struct kp_driver, name), needed},
#include "collectors/facts/driver.def"
#undef KP_DRIVER
};

/* ---- calls that are repeated if they fail ---- */

/* Calls without which kprof knows too little, or leaves something behind, and which change nothing if they fail: the
 * result counts only after a second failure in a row. */
#define CALLED_AGAIN(DO)                                                                                               \
    DO(cuCtxGetCurrent, (CUcontext * ctx), (ctx))                                                                      \
    DO(cuCtxPushCurrent, (CUcontext ctx), (ctx))                                                                       \
    DO(cuCtxPopCurrent, (CUcontext * ctx), (ctx))                                                                      \
    DO(cuCtxGetDevice, (CUdevice * device), (device))                                                                  \
    DO(cuCtxSynchronize, (void), ())                                                                                   \
    DO(cuStreamGetCtx, (CUstream stream, CUcontext * ctx), (stream, ctx))                                              \
    DO(cuStreamIsCapturing, (CUstream stream, CUstreamCaptureStatus * status), (stream, status))                       \
    DO(cuThreadExchangeStreamCaptureMode, (CUstreamCaptureMode * mode), (mode))                                        \
    DO(cuMemFree, (CUdeviceptr memory), (memory))                                                                      \
    DO(cuMemUnmap, (CUdeviceptr at, size_t bytes), (at, bytes))                                                        \
    DO(cuMemRelease, (CUmemGenericAllocationHandle memory), (memory))                                                  \
    DO(cuMemAddressFree, (CUdeviceptr at, size_t bytes), (at, bytes))                                                  \
    DO(cuModuleUnload, (CUmodule module), (module))                                                                    \
    DO(cuStreamDestroy, (CUstream stream), (stream))                                                                   \
    DO(cuEventDestroy, (CUevent event), (event))                                                                       \
    DO(cuGraphDestroy, (CUgraph graph), (graph))                                                                       \
    DO(cuGraphExecDestroy, (CUgraphExec exec), (exec))

static struct kp_driver real; /* that of the process */

#define DEFINE(name, parameters, arguments)                                                                            \
    static CUresult CUDAAPI again_##name parameters                                                                    \
    {                                                                                                                  \
        CUresult rc = real.name arguments;                                                                             \
        return rc == CUDA_SUCCESS ? rc : real.name arguments;                                                          \
    }
CALLED_AGAIN(DEFINE)
#undef DEFINE

static void call_again(struct kp_driver *d)
{
    real = *d;
#define REPLACE(name, parameters, arguments)                                                                           \
    if (d->name)                                                                                                       \
        d->name = again_##name;
    CALLED_AGAIN(REPLACE)
#undef REPLACE
}

const char *kp_driver_fill(struct kp_driver *d, void *(*find)(const char *symbol))
{
    for (size_t i = 0; i < sizeof(entries) / sizeof(*entries); i++) {
        void *sym = find(entries[i].symbol);
        if (!sym && entries[i].needed)
            return entries[i].symbol;
        memcpy((char *)d + entries[i].offset, &sym, sizeof(sym));
    }
    call_again(d);
    return NULL;
}

const char *kp_driver_error(const struct kp_driver *d, CUresult rc)
{
    const char *name = NULL;
    if (d->cuGetErrorName && d->cuGetErrorName(rc, &name) == CUDA_SUCCESS && name)
        return name;
    return "unknown CUDA error";
}
