/*
 * Launch records. A record keeps everything needed to issue the launch again:
 * arguments are copied when it is made, so it does not depend on the caller's stack.
 */
#ifndef KP_PRELOAD_PROGRAM_LAUNCH_H
#define KP_PRELOAD_PROGRAM_LAUNCH_H

#include <cuda.h>
#include <cudaProfilerTypedefs.h>
#include <cudaTypedefs.h>
#include <stdbool.h>

#include "collectors/facts/device.h"
#include "collectors/facts/driver.h"
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

/* The stream that it goes to. */
static inline CUstream kp_launch_stream(const struct kp_launch *l)
{
    return l->ptsz && !l->stream ? CU_STREAM_PER_THREAD : l->stream;
}

/* The context of a launch; NULL when there is none. *current: it is the thread's, as far as is known. The caller is
 * under the guard. */
CUcontext kp_launch_context(const struct kp_driver *d, const struct kp_launch *l, bool *current);

#endif
