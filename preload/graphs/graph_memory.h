/*
 * The memory of allocation nodes of executable graphs. Its addresses are fixed when the node is made, but the driver
 * knows them as memory only once the graph was launched: code that judges pointers before then asks here. Threads: any.
 */
#ifndef KP_PRELOAD_GRAPHS_GRAPH_MEMORY_H
#define KP_PRELOAD_GRAPHS_GRAPH_MEMORY_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

#include "collectors/facts/driver.h"

/* Notes the memory of all allocation nodes of `graph`, child graphs included, in place of what `exec` had before.
 * Returns false if some could not be read or noted. The caller guards the driver calls. */
bool kp_graph_memory_note(const struct kp_driver *d, CUgraphExec exec, CUgraph graph);
void kp_graph_memory_forget(CUgraphExec exec);

/* Returns true if the address is in memory of a graph that was noted. */
bool kp_graph_memory_holds(uint64_t address);

#endif
