/* The logic of the doors of executable graphs, named in doors.def. Threads: any. */
#ifndef KP_PRELOAD_DOORS_GRAPH_DOORS_H
#define KP_PRELOAD_DOORS_GRAPH_DOORS_H

#include <cuda.h>
#include <cudaTypedefs.h>
#include <stdbool.h>

#include "preload/doors/door_call.h"

/* Only used by programs built against an old driver interface, but cudaTypedefs.h has no other. */
typedef CUresult (*kp_pfn_graph_instantiate)(CUgraphExec *exec, CUgraph graph, CUgraphNode *node, char *log,
                                             size_t size);

/* The logic of the rows. */
#define KP_GATED KP_GATED_HEAD
#include "preload/doors/graph_doors.def"
#undef KP_GATED

#endif
