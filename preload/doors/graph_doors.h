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

/* Changes of an executable graph: its launches in the open window stay as they were, where they are recorded node by
 * node. */
CUresult kp_cuGraphExecKernelNodeSetParams(PFN_cuGraphExecKernelNodeSetParams_v10010 real, bool ptsz, CUgraphExec exec,
                                           CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *p);
CUresult kp_cuGraphExecKernelNodeSetParams_v2(PFN_cuGraphExecKernelNodeSetParams_v12000 real, bool ptsz,
                                              CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *p);
CUresult kp_cuGraphExecMemcpyNodeSetParams(PFN_cuGraphExecMemcpyNodeSetParams_v10020 real, bool ptsz, CUgraphExec exec,
                                           CUgraphNode node, const CUDA_MEMCPY3D *p, CUcontext ctx);
CUresult kp_cuGraphExecMemsetNodeSetParams(PFN_cuGraphExecMemsetNodeSetParams_v10020 real, bool ptsz, CUgraphExec exec,
                                           CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *p, CUcontext ctx);
CUresult kp_cuGraphExecHostNodeSetParams(PFN_cuGraphExecHostNodeSetParams_v10020 real, bool ptsz, CUgraphExec exec,
                                         CUgraphNode node, const CUDA_HOST_NODE_PARAMS *p);
CUresult kp_cuGraphExecNodeSetParams(PFN_cuGraphExecNodeSetParams_v12020 real, bool ptsz, CUgraphExec exec,
                                     CUgraphNode node, CUgraphNodeParams *p);
CUresult kp_cuGraphNodeSetEnabled(PFN_cuGraphNodeSetEnabled_v11060 real, bool ptsz, CUgraphExec exec, CUgraphNode node,
                                  unsigned enabled);
CUresult kp_cuGraphExecUpdate(PFN_cuGraphExecUpdate_v10020 real, bool ptsz, CUgraphExec exec, CUgraph graph,
                              CUgraphNode *node, CUgraphExecUpdateResult *result);
CUresult kp_cuGraphExecUpdate_v2(PFN_cuGraphExecUpdate_v12000 real, bool ptsz, CUgraphExec exec, CUgraph graph,
                                 CUgraphExecUpdateResultInfo *result);
CUresult kp_cuGraphExecChildGraphNodeSetParams(PFN_cuGraphExecChildGraphNodeSetParams_v11010 real, bool ptsz,
                                               CUgraphExec exec, CUgraphNode node, CUgraph child);
CUresult kp_cuGraphExecNodeSetEvent(PFN_cuGraphExecEventRecordNodeSetEvent_v11010 real, bool ptsz, CUgraphExec exec,
                                    CUgraphNode node, CUevent event);

#endif
