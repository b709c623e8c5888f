/*
 * The contents of executable graphs: noted at instantiation and at changes, because the driver does not report them
 * later. Threads: any.
 */
#ifndef KP_PRELOAD_GRAPHS_GRAPHS_H
#define KP_PRELOAD_GRAPHS_GRAPHS_H

#include <cuda.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "collectors/facts/driver.h"
#include "preload/graphs/graph_kinds.h"
#include "preload/graphs/graph_nodes.h"

struct kp_graph {
    unsigned nodes[KP_GRAPH_KINDS]; /* of each kind, those of child graphs included */
    enum kp_reason once_reason;     /* why the graph must not be replayed; none when it may */
    bool reads_host;                /* copies from host memory, read when the graph runs */
    unsigned once;                  /* of enum kp_once: why its kernels must not run twice */
    struct kp_why whole;            /* why its nodes cannot be issued one by one, if that was requested; static */
    bool outside;                   /* a kernel of it waits for other processes or devices, by its name */
    bool waits;                     /* for something outside: its launch must not wait for its end */
    bool by_device; /* the device can launch it, too: the driver refuses it, and its single kernels, while counters are
                       on */
};

/* Finds a graph. Returns false if its instantiation was not seen. */
bool kp_graph_find(CUgraphExec exec, struct kp_graph *out);

/* A graph as it is when it is launched. */
struct kp_graph_content {
    struct kp_graph_nodes *nodes;
    uint32_t number; /* graphs of the process in order of instantiation, from 1 */
    unsigned users;  /* under the lock */
    atomic_int runs; /* its kernels can be launched by themselves: 0 not known, 1 yes, -1 no */
};

/* Holds the contents of a graph, unchanged until kp_graph_let. NULL if its nodes cannot be issued one by one. */
const struct kp_graph_content *kp_graph_hold(CUgraphExec exec);
void kp_graph_let(const struct kp_graph_content *content);

/* Returns true if the driver accepts its kernels as separate launches; tried once. Conditions: kp_graph_nodes_try. */
bool kp_graph_runs_by_node(const struct kp_driver *d, const struct kp_graph_content *content);

/* Notes that `exec` was instantiated from `graph` with these flags, with its nodes if `by_node`. Returns why its
 * kernels must not run twice (enum kp_once). */
unsigned kp_graph_note(const struct kp_driver *d, CUgraphExec exec, CUgraph graph, unsigned long long flags,
                       bool by_node);
void kp_graph_forget(CUgraphExec exec);
/* Returns true if the program has instantiated any graph so far. Any thread. */
bool kp_graph_any(void);

/* ---- changes, once the driver has made them ---- */

/* Note new parameters of a node. kp_graph_set_kernel and kp_graph_update return what kp_graph_note does. */
unsigned kp_graph_set_kernel(const struct kp_driver *d, CUgraphExec exec, CUgraphNode node,
                             const CUDA_KERNEL_NODE_PARAMS *p);
void kp_graph_set_copy(const struct kp_driver *d, CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D *p);
void kp_graph_set_memset(CUgraphExec exec, CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *p);
void kp_graph_set_host(CUgraphExec exec, CUgraphNode node, const CUDA_HOST_NODE_PARAMS *p);
void kp_graph_set_enabled(CUgraphExec exec, CUgraphNode node, bool enabled);

/* Notes that all of `exec` is now as in `graph`. */
unsigned kp_graph_update(const struct kp_driver *d, CUgraphExec exec, CUgraph graph);

/* Notes that `exec` changed in a way that is not followed: from now on it is one workload. */
void kp_graph_blur(CUgraphExec exec);

#endif
