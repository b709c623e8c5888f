/*
 * Whether a graph that allocates memory can be issued node by node: behind its own launch the memory stays mapped, and
 * nothing but this graph uses it. Threads: any; who changes nodes must be alone with them.
 */
#ifndef KP_PRELOAD_GRAPHS_GRAPH_PAIRS_H
#define KP_PRELOAD_GRAPHS_GRAPH_PAIRS_H

#include "preload/graphs/graph_nodes.h"

/* Returns why the nodes, all of a graph, cannot be issued one by one, if there is a reason. The reason is the memory
 * that they allocate or free. Sets `allocates` and `device` of `g`. `flags`: of the instantiation. */
enum kp_reason kp_graph_pairs_judge(struct kp_graph_nodes *g, unsigned long long flags);

#endif
