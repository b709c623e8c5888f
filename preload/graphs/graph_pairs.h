/*
 * Judges if a graph that allocates memory can be issued node by node: after its own launch the memory stays mapped, and
 * only this graph uses it. Threads: any; a thread that changes nodes must be alone with them.
 */
#ifndef KP_PRELOAD_GRAPHS_GRAPH_PAIRS_H
#define KP_PRELOAD_GRAPHS_GRAPH_PAIRS_H

#include "preload/graphs/graph_nodes.h"

/* Returns why the nodes of a whole graph cannot be issued one by one because of the memory that they allocate or free,
 * if there is a reason. Sets `allocates` and `device` of `g`. `flags`: those of the instantiation. */
enum kp_reason kp_graph_pairs_judge(struct kp_graph_nodes *g, unsigned long long flags);

#endif
