/* The logic of the launch doors: a call becomes a record, which the process runs. Threads: any. */
#ifndef KP_PRELOAD_DOORS_LAUNCH_DOORS_H
#define KP_PRELOAD_DOORS_LAUNCH_DOORS_H

#include "preload/doors/door_call.h"
#include "preload/program/launch.h"

/* The runtime's host function of the launch that this thread is about to make through the driver. */
extern __thread const void *kp_runtime_host_function __attribute__((tls_model("initial-exec")));

/* Logic of the doors, named in doors.def. `real` is the driver's function. */
CUresult kp_cuLaunchKernel(PFN_cuLaunchKernel_v4000 real, bool ptsz, CUfunction f, unsigned gx, unsigned gy,
                           unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, CUstream stream,
                           void **params, void **extra);
CUresult kp_cuLaunchKernelEx(PFN_cuLaunchKernelEx_v11060 real, bool ptsz, const CUlaunchConfig *config, CUfunction f,
                             void **params, void **extra);
CUresult kp_cuLaunchCooperativeKernel(PFN_cuLaunchCooperativeKernel_v9000 real, bool ptsz, CUfunction f, unsigned gx,
                                      unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                                      CUstream stream, void **params);
CUresult kp_cuLaunch(PFN_cuLaunch_v2000 real, bool ptsz, CUfunction f);
CUresult kp_cuLaunchGrid(PFN_cuLaunchGrid_v2000 real, bool ptsz, CUfunction f, int width, int height);
CUresult kp_cuLaunchGridAsync(PFN_cuLaunchGridAsync_v2000 real, bool ptsz, CUfunction f, int width, int height,
                              CUstream stream);
CUresult kp_cuGraphLaunch(PFN_cuGraphLaunch_v10000 real, bool ptsz, CUgraphExec graph, CUstream stream);

CUresult kp_cuProfilerStart(PFN_cuProfilerStart_v4000 real, bool ptsz);
CUresult kp_cuProfilerStop(PFN_cuProfilerStop_v4000 real, bool ptsz);

/* The logic of the rows. */
#define KP_GATED KP_GATED_HEAD
#include "preload/doors/launch_doors.def"
#undef KP_GATED

#endif
