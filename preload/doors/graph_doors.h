/* The logic behind the doors of executable graphs, named in doors.def. Threads: any. */
#ifndef KP_PRELOAD_DOORS_GRAPH_DOORS_H
#define KP_PRELOAD_DOORS_GRAPH_DOORS_H

#include <cuda.h>
#include <cudaTypedefs.h>
#include <stdbool.h>

/* Only used by programs built against an old driver interface, but cudaTypedefs.h has no other. */
typedef CUresult (*kp_pfn_graph_instantiate)(CUgraphExec *exec, CUgraph graph, CUgraphNode *node, char *log,
                                             size_t size);

CUresult kp_cuGraphInstantiate(kp_pfn_graph_instantiate real, bool ptsz, CUgraphExec *exec, CUgraph graph,
                               CUgraphNode *node, char *log, size_t size);
CUresult kp_cuGraphInstantiateWithFlags(PFN_cuGraphInstantiateWithFlags_v11040 real, bool ptsz, CUgraphExec *exec,
                                        CUgraph graph, unsigned long long flags);
CUresult kp_cuGraphInstantiateWithParams(PFN_cuGraphInstantiateWithParams_v12000 real, bool ptsz, CUgraphExec *exec,
                                         CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params);
CUresult kp_cuGraphExecDestroy(PFN_cuGraphExecDestroy_v10000 real, bool ptsz, CUgraphExec exec);

#endif
