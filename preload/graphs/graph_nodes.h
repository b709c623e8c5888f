/*
 * What a graph does, node by node: copies of its nodes' parameters, in an order in which they may run one by one.
 * Repetitions issue the nodes of a graph instead of the graph, so that counters belong to single kernels.
 *
 * Threads: any; a thread that changes nodes must be alone with them. The caller guards the driver calls.
 */
#ifndef KP_PRELOAD_GRAPHS_GRAPH_NODES_H
#define KP_PRELOAD_GRAPHS_GRAPH_NODES_H

#include "preload/program/launch.h"

enum kp_node_kind {
    KP_NODE_KERNEL,
    KP_NODE_COPY,
    KP_NODE_SET,
    KP_NODE_RECORD, /* of an event */
    KP_NODE_WAIT,   /* for an event */
    KP_NODE_HOST,   /* a host function, on which no other node depends */
    KP_NODE_ALLOC,  /* of memory, which the graph's launch maps: issued by itself, it does nothing */
    KP_NODE_FREE,   /* likewise */
    KP_NODE_CHILD,
    KP_NODE_EMPTY
};

struct kp_graph_nodes;

struct kp_graph_node {
    enum kp_node_kind kind;
    CUgraphNode handle;      /* in the graph that was instantiated; NULL = not known any more */
    uint32_t number;         /* counted through child graphs, from 0, as the driver lists them */
    bool disabled;           /* it does nothing */
    bool to_host, from_host; /* of a copy; never both */
    union {
        struct kp_launch launch; /* its stream is yet to be set; arguments and attributes are in its own storage */
        CUDA_MEMCPY3D copy;
        CUDA_MEMSET_NODE_PARAMS set;
        CUevent event;
        CUDA_HOST_NODE_PARAMS host;
        struct {
            CUdeviceptr at;
            int device; /* for an allocation */
        } memory;
        struct kp_graph_nodes *child;
    };
};

struct kp_graph_nodes {
    struct kp_graph_node *nodes;
    size_t n;
    bool calls_host; /* it has a host function */
    bool allocates;  /* a whole graph allocates memory, and frees it all; see graph_pairs.h */
    int device;      /* device on which it does */
};

/* Returns true if nodes of the type can be issued by themselves, judging by the type alone. */
bool kp_graph_goes_by_node(CUgraphNodeType type);

/* Reads the nodes of `graph`, which get numbers from *next on. NULL with *why if they cannot be issued one by one. */
struct kp_graph_nodes *kp_graph_nodes_read(const struct kp_driver *d, CUgraph graph, uint32_t *next,
                                           enum kp_reason *why);
struct kp_graph_nodes *kp_graph_nodes_copy(const struct kp_graph_nodes *g); /* NULL if memory is short */
void kp_graph_nodes_free(struct kp_graph_nodes *g);

/* Makes a node of kind KERNEL from parameters. Returns none, or why it cannot be issued by itself. Attributes are read
 * from `handle`; if that is NULL, copied from `old` (may be NULL). */
enum kp_reason kp_graph_node_kernel(const struct kp_driver *d, const CUDA_KERNEL_NODE_PARAMS *p, CUgraphNode handle,
                                    const struct kp_graph_node *old, struct kp_graph_node *out);
/* Does the same for a node of kind COPY. */
enum kp_reason kp_graph_node_copy(const struct kp_driver *d, const CUDA_MEMCPY3D *p, struct kp_graph_node *out);
/* Does the same for a node of kind SET. */
enum kp_reason kp_graph_node_set(const CUDA_MEMSET_NODE_PARAMS *p, struct kp_graph_node *out);
/* Frees what the node refers to; not `node`. */
void kp_graph_node_free(struct kp_graph_node *node);

/* Returns true if the driver accepts each kernel as a separate launch: they are launched into a capture, which runs
 * nothing. Their context must be current, and no other thread may call the driver meanwhile. */
bool kp_graph_nodes_try(const struct kp_driver *d, const struct kp_graph_nodes *g);

/* Finds a node by its handle, also in child graphs; NULL = there is none. */
struct kp_graph_node *kp_graph_nodes_find(struct kp_graph_nodes *g, CUgraphNode handle);
/* Forgets the handles, because those of another graph replace them. */
void kp_graph_nodes_unname(struct kp_graph_nodes *g);

/* Calls fn(arg, node) for each enabled node, in order and through child graphs, until it returns other than 0, and
 * returns that. */
int kp_graph_nodes_each(const struct kp_graph_nodes *g, int (*fn)(void *arg, const struct kp_graph_node *node),
                        void *arg);

/* Returns true if a copy's address is in host memory: `said` is what its parameters say. */
bool kp_graph_is_host(const struct kp_driver *d, CUmemorytype said, CUdeviceptr address);

/* The bytes of a copy of one row to or from the host: their place in host memory, and on the device. */
struct kp_graph_row {
    void *host;
    CUdeviceptr device;
    size_t bytes;
};
struct kp_graph_row kp_graph_row(const struct kp_graph_node *node);

/* Issues a copy, memset, event or host function of a graph by itself, into `stream`. Returns the driver's
 * code. */
CUresult kp_graph_node_issue(const struct kp_driver *d, const struct kp_graph_node *node, CUstream stream);

#endif
