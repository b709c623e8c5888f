/*
 * The memory that allocation nodes of executable graphs give. Its addresses are fixed when the node is made, but the
 * driver knows them as memory only once the graph was launched: who judges pointers before asks here.
 * Threads: any.
 */
#ifndef KP_PRELOAD_GRAPHS_GRAPH_MEMORY_H
#define KP_PRELOAD_GRAPHS_GRAPH_MEMORY_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

#include "collectors/facts/driver.h"

/* Notes the memory of all allocation nodes of `graph`, child graphs included, in place of what `exec` had before.
 * False: some could not be read or noted. Calls to the driver are the caller's to guard. */
bool kp_graph_memory_note(const struct kp_driver *d, CUgraphExec exec, CUgraph graph);
void kp_graph_memory_forget(CUgraphExec exec);

/* Whether the address is in memory of a graph that was noted. */
bool kp_graph_memory_holds(uint64_t address);

#endif
