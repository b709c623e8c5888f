/*
 * What an executable graph is made of: noted when it is instantiated, because the driver does not tell afterwards.
 * Threads: any.
 */
#ifndef KP_PRELOAD_PROGRAM_GRAPHS_H
#define KP_PRELOAD_PROGRAM_GRAPHS_H

#include <cuda.h>
#include <cudaTypedefs.h>
#include <stdbool.h>

/* cudaTypedefs.h has this one only for programs built against an old driver interface. */
typedef CUresult (*kp_pfn_graph_instantiate)(CUgraphExec *exec, CUgraph graph, CUgraphNode *node, char *log,
                                             size_t size);

struct kp_graph {
    unsigned kernels, copies, sets, others; /* nodes, those of child graphs included */
    const char *obstacle;                   /* why the graph must not be replayed; NULL when it may */
    bool reads_host;                        /* copies from host memory, as that is when the graph runs */
    bool allocates;                         /* or frees memory */
    bool waits;                             /* for something outside: it must not be waited for at its launch */
};

/* False for a graph whose instantiation was not seen. */
bool kp_graph_find(CUgraphExec exec, struct kp_graph *out);

CUresult kp_cuGraphInstantiate(kp_pfn_graph_instantiate real, bool ptsz, CUgraphExec *exec, CUgraph graph,
                               CUgraphNode *node, char *log, size_t size);
CUresult kp_cuGraphInstantiateWithFlags(PFN_cuGraphInstantiateWithFlags_v11040 real, bool ptsz, CUgraphExec *exec,
                                        CUgraph graph, unsigned long long flags);
CUresult kp_cuGraphInstantiateWithParams(PFN_cuGraphInstantiateWithParams_v12000 real, bool ptsz, CUgraphExec *exec,
                                         CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params);
CUresult kp_cuGraphExecDestroy(PFN_cuGraphExecDestroy_v10000 real, bool ptsz, CUgraphExec exec);

#endif
