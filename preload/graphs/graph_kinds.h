/*
 * The kinds of nodes that a graph may have: what a report calls them, and whether they may run again.
 * Threads: any.
 */
#ifndef KP_PRELOAD_GRAPHS_GRAPH_KINDS_H
#define KP_PRELOAD_GRAPHS_GRAPH_KINDS_H

#include <cuda.h>
#include <stdbool.h>

#include "report/model/reasons.h"

struct kp_graph_kind {
    CUgraphNodeType type;
    const char *one, *many;     /* NULL: not it but its parts are counted */
    bool always;                /* reported even if there are none */
    enum kp_reason once_reason; /* why a graph with it must not be replayed; none when it may */
    bool waits;                 /* for something outside the graph */
};

enum { KP_GRAPH_KINDS = 15 };

/* The last row stands for types without a row: they come from a later driver. */
extern const struct kp_graph_kind kp_graph_kinds[KP_GRAPH_KINDS];

/* Returns the row of a type. */
unsigned kp_graph_kind_of(CUgraphNodeType type);

/* Describes a graph by how many nodes it has of each kind. malloc'ed; NULL = no memory. */
char *kp_graph_describe(const unsigned counts[KP_GRAPH_KINDS]);

/* Explains that these kinds keep a graph from being issued node by node. malloc'ed; NULL = no memory. */
char *kp_graph_blame(const bool kinds[KP_GRAPH_KINDS]);

#endif
