/*
 * Launch records. A record contains everything needed to issue the launch again. A door makes it, with pointers into
 * the caller's memory; kp_launch_copy copies the arguments, once their sizes are known.
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
    CUresult (*issue)(const struct kp_launch *l); /* runs the launch through the driver's function `real` */
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
    bool fixed_shape; /* the driver has the size of its blocks from an earlier call */
    bool ptsz;        /* NULL stream means the per-thread default stream */
    CUfunction f;
    CUgraphExec graph;
    CUstream stream;
    struct kp_shape shape;
    CUlaunchConfig config; /* of cuLaunchKernelEx; its attributes are copied */
    void **params, **extra;
    const void *host_function; /* the runtime's function that the program launched; NULL for driver-level launches */
    void *copy;                /* storage of the copied arguments and attributes */
    size_t copied;             /* bytes */
    bool extra_copied;         /* `extra` is in `copy` */
    struct kp_nvtx nvtx;       /* the ranges around it */
    const struct kp_registers *caller; /* the start of its call stack; valid during the call */
    uint32_t graph_number, node;       /* for a graph's kernel: number of the graph, from 1, and of the node, from 0 */
};

/* Issues a launch with `config` by cuLaunchKernelEx. */
CUresult kp_launch_issue_ex(const struct kp_launch *l);

/* Sets the shape of a launch with `config`, with the launch attributes that the report shows. */
void kp_launch_shape_ex(struct kp_launch *l);

/* Copies the arguments and attributes of `l` into the record's own storage, by the sizes in the parameter list of `f`.
 * If the driver does not report the sizes, the caller's pointers stay: they are valid during the call. Returns 0 or
 * -ENOMEM. */
int kp_launch_copy(struct kp_launch *l, const struct kp_function *f);
void kp_launch_free(struct kp_launch *l); /* frees the copy and the ranges; not `l` */

/* Makes the program's own call, outside our work. Refuses it if the program has left the call for good. */
CUresult kp_launch_call(const struct kp_launch *l);
/* Issues the launch as the program's own execution, which the timeline notes. */
CUresult kp_launch_issue_own(const struct kp_launch *l);
/* Notes that the launch is about to be issued so. Call kp_timeline_launched afterwards. */
void kp_launch_on_timeline(const struct kp_launch *l);

/* Returns the stream of the launch. */
static inline CUstream kp_launch_stream(const struct kp_launch *l)
{
    return l->ptsz && !l->stream ? CU_STREAM_PER_THREAD : l->stream;
}

/* Returns the context of a launch; NULL without one. *current: it is the thread's, as far as known. The caller is
 * under the guard. */
CUcontext kp_launch_context(const struct kp_driver *d, const struct kp_launch *l, bool *current);

#endif
