/*
 * The contents of executable graphs: noted at instantiation, because the driver does not tell later.
 * Threads: any.
 */
#ifndef KP_PRELOAD_PROGRAM_GRAPHS_H
#define KP_PRELOAD_PROGRAM_GRAPHS_H

#include <cuda.h>
#include <stdbool.h>

#include "collectors/facts/driver.h"

struct kp_graph {
    unsigned kernels, copies, sets, others; /* nodes, those of child graphs included */
    const char *obstacle;                   /* why the graph must not be replayed; NULL when it may */
    bool reads_host;                        /* copies from host memory, read when the graph runs */
    unsigned once;                          /* of enum kp_once: why its kernels must not run twice */
    bool waits;                             /* for something outside: its launch must not wait for its end */
};

/* Finds a graph. False for one whose instantiation was not seen. */
bool kp_graph_find(CUgraphExec exec, struct kp_graph *out);

/* Notes that `exec` was instantiated from `graph`. Returns why its kernels must not run twice: of enum kp_once. */
unsigned kp_graph_note(const struct kp_driver *d, CUgraphExec exec, CUgraph graph);
void kp_graph_forget(CUgraphExec exec);

#endif
