/*
 * Launch records, and the logic behind the launch doors. A record keeps everything needed to issue the launch again:
 * arguments are copied when it is made, so it does not depend on the caller's stack.
 */
#ifndef KP_PRELOAD_PROGRAM_LAUNCH_H
#define KP_PRELOAD_PROGRAM_LAUNCH_H

#include <cuda.h>
#include <cudaProfilerTypedefs.h>
#include <cudaTypedefs.h>
#include <stdbool.h>

#include "collectors/facts/device.h"
#include "collectors/facts/launch.h"
#include "preload/who/unwind.h"
#include "report/model/model.h"

struct kp_launch {
    CUresult (*issue)(const struct kp_launch *l); /* runs it through the driver's function `real` */
    union {
        PFN_cuLaunchKernel_v4000 kernel;
        PFN_cuLaunchKernelEx_v11060 kernel_ex;
        PFN_cuLaunchCooperativeKernel_v9000 cooperative;
        PFN_cuLaunch_v2000 once;
        PFN_cuLaunchGrid_v2000 grid;
        PFN_cuLaunchGridAsync_v2000 grid_async;
        PFN_cuGraphLaunch_v10000 graph;
    } real;
    bool is_graph;
    bool ptsz; /* NULL stream means the per-thread default stream */
    CUfunction f;
    CUgraphExec graph;
    CUstream stream;
    struct kp_shape shape;
    CUlaunchConfig config; /* of cuLaunchKernelEx; its attributes are copied */
    void **params, **extra;
    const void *host_function;         /* what the program called the runtime with; NULL for driver-level launches */
    void *copy;                        /* storage of the copied arguments and attributes */
    size_t copied;                     /* byte */
    bool extra_copied;                 /* `extra` is in there */
    struct kp_nvtx nvtx;               /* the ranges it is made in */
    const struct kp_registers *caller; /* where its call stack begins; valid during the call */
};

/* Copies the arguments and attributes that `l` points to into storage of its own, as the parameter list of `f` tells
 * their sizes. Where the driver does not tell, the caller's pointers stay: they are valid during the call. 0, -ENOMEM.
 */
int kp_launch_copy(struct kp_launch *l, const struct kp_function *f);
void kp_launch_free(struct kp_launch *l); /* what _copy made, and the ranges; not `l` */

/* What only the runtime knows of the launch that this thread is about to make through the driver. */
extern __thread const void *kp_runtime_host_function __attribute__((tls_model("initial-exec")));

/* Logic of the doors, named in doors.def. `real` is the function behind the door. */
CUresult kp_cuLaunchKernel(PFN_cuLaunchKernel_v4000 real, bool ptsz, CUfunction f, unsigned gx, unsigned gy,
                           unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, CUstream stream,
                           void **params, void **extra);
CUresult kp_cuLaunchKernelEx(PFN_cuLaunchKernelEx_v11060 real, bool ptsz, const CUlaunchConfig *config, CUfunction f,
                             void **params, void **extra);
CUresult kp_cuLaunchCooperativeKernel(PFN_cuLaunchCooperativeKernel_v9000 real, bool ptsz, CUfunction f, unsigned gx,
                                      unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                                      CUstream stream, void **params);
CUresult kp_cuLaunchCooperativeKernelMultiDevice(PFN_cuLaunchCooperativeKernelMultiDevice_v9000 real, bool ptsz,
                                                 CUDA_LAUNCH_PARAMS_v1 *list, unsigned devices, unsigned flags);
CUresult kp_cuLaunch(PFN_cuLaunch_v2000 real, bool ptsz, CUfunction f);
CUresult kp_cuLaunchGrid(PFN_cuLaunchGrid_v2000 real, bool ptsz, CUfunction f, int width, int height);
CUresult kp_cuLaunchGridAsync(PFN_cuLaunchGridAsync_v2000 real, bool ptsz, CUfunction f, int width, int height,
                              CUstream stream);
CUresult kp_cuGraphLaunch(PFN_cuGraphLaunch_v10000 real, bool ptsz, CUgraphExec graph, CUstream stream);

/* The old launch interface keeps block shape and shared memory with the function. */
CUresult kp_cuFuncSetBlockShape(PFN_cuFuncSetBlockShape_v2000 real, bool ptsz, CUfunction f, int x, int y, int z);
CUresult kp_cuFuncSetSharedSize(PFN_cuFuncSetSharedSize_v2000 real, bool ptsz, CUfunction f, unsigned bytes);

CUresult kp_cuProfilerStart(PFN_cuProfilerStart_v4000 real, bool ptsz);
CUresult kp_cuProfilerStop(PFN_cuProfilerStop_v4000 real, bool ptsz);

#endif
