#include "preload/graphs/capture.h"

#include "preload/program/attributes.h"

bool kp_capture_begin(const struct kp_driver *d, CUstream *stream)
{
    if (d->cuStreamCreate(stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS)
        return false;
    if (d->cuStreamBeginCapture(*stream, CU_STREAM_CAPTURE_MODE_RELAXED) == CUDA_SUCCESS)
        return true;
    d->cuStreamDestroy(*stream);
    return false;
}

CUresult kp_capture_launch(CUstream stream, const struct kp_launch *l)
{
    struct kp_launch here = *l;
    here.stream = here.config.hStream = stream;
    return here.issue(&here);
}

CUgraph kp_capture_end(const struct kp_driver *d, CUstream stream)
{
    CUgraph graph = NULL;
    if (d->cuStreamEndCapture(stream, &graph) != CUDA_SUCCESS)
        graph = NULL;
    d->cuStreamDestroy(stream);
    return graph;
}

/* Returns the graph of one launch, ready to run; NULL if it cannot be one. */
static CUgraphExec make(const struct kp_driver *d, const struct kp_launch *l)
{
    CUgraphExec exec = NULL;
    CUstream stream;
    /* The older calls get their shape, or their stream, from elsewhere. An event that a capture records stays part of
     * it. */
    if (l->is_graph || l->fixed_shape || kp_attributes_record(l->config.attrs, l->config.numAttrs) ||
        !kp_capture_begin(d, &stream))
        return NULL;
    CUresult rc = kp_capture_launch(stream, l);
    CUgraph graph = kp_capture_end(d, stream);
    if (rc != CUDA_SUCCESS || !graph || d->cuGraphInstantiateWithFlags(&exec, graph, 0) != CUDA_SUCCESS)
        exec = NULL;
    if (graph)
        d->cuGraphDestroy(graph);
    return exec;
}

bool kp_capture_run(const struct kp_driver *d, const struct kp_launch *l)
{
    CUgraphExec exec = make(d, l);
    if (!exec)
        return false;
    CUresult rc = d->cuGraphLaunch(exec, kp_launch_stream(l));
    d->cuGraphExecDestroy(exec); /* the driver keeps it until it has run */
    return rc == CUDA_SUCCESS;
}
