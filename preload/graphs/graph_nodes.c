#include "preload/graphs/graph_nodes.h"

#include <stdlib.h>
#include <string.h>

#include "base/debug.h"
#include "base/lock.h"
#include "preload/program/attributes.h"
#include "preload/graphs/capture.h"
#include "preload/graphs/graph_memory.h"

/* ---- kernels ---- */

/* Returns true if the value was set: otherwise it reads as 0, or as the default of any kernel. */
static bool is_set(const CUlaunchAttribute *a, bool clusters)
{
    static const CUlaunchAttributeValue zero;
    if (a->id == CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE && !clusters)
        return false;
    if (a->id == CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT)
        return a->value.sharedMemCarveout != 0 && a->value.sharedMemCarveout != (unsigned)CU_SHAREDMEM_CARVEOUT_DEFAULT;
    if (a->id == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP)
        return a->value.memSyncDomainMap.default_ != 0 || a->value.memSyncDomainMap.remote != 1;
    return memcmp(a->value.pad, zero.pad, sizeof(zero.pad)) != 0;
}

/* Reads the attributes that a kernel node has and a launch accepts. Returns their number; -1 if the driver fails for a
 * reason other than an unknown attribute. */
static int read_attributes(const struct kp_driver *d, CUgraphNode node, CUlaunchAttribute *out)
{
    int n = 0;
    bool clusters = false;
    for (size_t i = 0; i < KP_ATTRIBUTES; i++) {
        CUlaunchAttribute *a = &out[n];
        if (!kp_attributes[i].of_nodes)
            continue;
        memset(a, 0, sizeof(*a));
        a->id = kp_attributes[i].id;
        CUresult rc = d->cuGraphKernelNodeGetAttribute(node, a->id, &a->value);
        if (rc != CUDA_SUCCESS && rc != CUDA_ERROR_INVALID_VALUE && rc != CUDA_ERROR_NOT_SUPPORTED)
            return -1;
        bool set = rc == CUDA_SUCCESS && is_set(a, clusters);
        clusters |= set && a->id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
        n += set;
    }
    return n;
}

/* The process has one driver. Any thread that reads a graph says which. */
static const struct kp_driver *_Atomic driver;

static CUresult issue_once(const struct kp_launch *l)
{
    const struct kp_shape *s = &l->shape;
    if (l->config.numAttrs)
        return kp_launch_issue_ex(l);
    return driver->cuLaunchKernel(l->f, s->grid[0], s->grid[1], s->grid[2], s->block[0], s->block[1], s->block[2],
                                  (unsigned)s->dynamic_shared, l->stream, l->params, l->extra);
}

static int shared_of(const struct kp_launch *l)
{
    return (int)l->shape.dynamic_shared;
}

static int has_large_cluster(const struct kp_launch *l)
{
    enum { PORTABLE = 8 };
    const uint32_t *c = l->shape.cluster;
    return c[0] * c[1] * c[2] > PORTABLE;
}

/* Limits of a function that a launch may need raised: a graph keeps those from when the node was made, and libraries
 * set them before each launch. */
static const struct limit {
    CUfunction_attribute attribute;
    int (*needed)(const struct kp_launch *l); /* 0: not any */
} limits[] = {
    {CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, shared_of},
    {CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, has_large_cluster},
};
enum { LIMITS = sizeof(limits) / sizeof(*limits) };

/* Issues the launch of a node, with limits as high as it needs. They are raised first: a launch that the driver refuses
 * would end a capture. */
static CUresult issue_kernel(const struct kp_launch *l)
{
    int before[LIMITS];
    bool raised[LIMITS] = {false};
    for (size_t i = 0; i < LIMITS; i++) {
        int needed = limits[i].needed(l);
        raised[i] = needed && driver->cuFuncGetAttribute(&before[i], limits[i].attribute, l->f) == CUDA_SUCCESS &&
                    before[i] < needed && driver->cuFuncSetAttribute(l->f, limits[i].attribute, needed) == CUDA_SUCCESS;
    }
    CUresult rc = issue_once(l);
    if (rc != CUDA_SUCCESS) /* a refused launch has done nothing, and earlier nodes have run in place of the graph */
        rc = issue_once(l);
    for (size_t i = 0; i < LIMITS; i++)
        if (raised[i])
            driver->cuFuncSetAttribute(l->f, limits[i].attribute, before[i]);
    return rc;
}

/* Returns true if the device may give the node other parameters. */
static bool is_updated_by_device(const struct kp_driver *d, CUgraphNode node)
{
    CUlaunchAttributeValue value;
    memset(&value, 0, sizeof(value));
    CUresult rc = d->cuGraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE, &value);
    if (rc == CUDA_SUCCESS)
        return value.deviceUpdatableKernelNode.deviceUpdatable;
    return rc != CUDA_ERROR_INVALID_VALUE && rc != CUDA_ERROR_NOT_SUPPORTED; /* older drivers know no such nodes */
}

/* Copies the arguments by their sizes, which the driver reports. */
static enum kp_reason copy_arguments(const struct kp_driver *d, struct kp_launch *l)
{
    struct kp_function f = {.handle = l->f};
    enum kp_reason why = KP_REASON_NONE;
    if (kp_function_read_params(d, &f) != CUDA_SUCCESS)
        why = KP_REASON_GRAPH_NO_COPY;
    else if ((l->params && !f.params_known) || kp_launch_copy(l, &f))
        why = KP_REASON_GRAPH_ARGUMENTS_SIZE;
    else if (l->extra && !l->extra_copied)
        why = KP_REASON_GRAPH_ARGUMENTS;
    free(f.params);
    return why;
}

enum kp_reason kp_graph_node_kernel(const struct kp_driver *d, const CUDA_KERNEL_NODE_PARAMS *p, CUgraphNode handle,
                                    const struct kp_graph_node *old, struct kp_graph_node *out)
{
    CUlaunchAttribute attributes[KP_ATTRIBUTES];
    struct kp_launch *l = &out->launch;
    memset(out, 0, sizeof(*out));
    out->kind = KP_NODE_KERNEL;
    atomic_store(&driver, d);
    *l = (struct kp_launch){.issue = issue_kernel,
                            .real.kernel_ex = d->cuLaunchKernelEx,
                            .f = p->func,
                            .params = p->kernelParams,
                            .extra = p->extra};
    if (handle && is_updated_by_device(d, handle))
        return KP_REASON_GRAPH_DEVICE_CHANGES;
    if (!l->f && d->cuKernelGetFunction(&l->f, p->kern) != CUDA_SUCCESS)
        return KP_REASON_GRAPH_UNREADABLE;
    l->config = (CUlaunchConfig){.gridDimX = p->gridDimX,
                                 .gridDimY = p->gridDimY,
                                 .gridDimZ = p->gridDimZ,
                                 .blockDimX = p->blockDimX,
                                 .blockDimY = p->blockDimY,
                                 .blockDimZ = p->blockDimZ,
                                 .sharedMemBytes = p->sharedMemBytes,
                                 .attrs = attributes};
    if (handle) {
        int n = read_attributes(d, handle, attributes);
        if (n < 0)
            return KP_REASON_GRAPH_UNREADABLE;
        l->config.numAttrs = (unsigned)n;
    } else if (old) {
        l->config.attrs = old->launch.config.attrs;
        l->config.numAttrs = old->launch.config.numAttrs;
    }
    kp_launch_shape_ex(l);
    enum kp_reason why = copy_arguments(d, l);
    if (why)
        kp_launch_free(l);
    else if (!l->config.numAttrs)
        l->config.attrs = NULL;
    return why;
}

static enum kp_reason read_kernel(const struct kp_driver *d, CUgraphNode handle, struct kp_graph_node *out)
{
    CUDA_KERNEL_NODE_PARAMS p;
    memset(&p, 0, sizeof(p));
    if (d->cuGraphKernelNodeGetParams(handle, &p) != CUDA_SUCCESS)
        return KP_REASON_GRAPH_UNREADABLE;
    return kp_graph_node_kernel(d, &p, handle, NULL, out);
}

/* ---- other nodes ---- */

bool kp_graph_is_host(const struct kp_driver *d, CUmemorytype said, CUdeviceptr address)
{
    unsigned type = 0;
    if (said != CU_MEMORYTYPE_UNIFIED)
        return said == CU_MEMORYTYPE_HOST;
    if (kp_graph_memory_holds(address))
        return false;
    return d->cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address) != CUDA_SUCCESS ||
           type != CU_MEMORYTYPE_DEVICE;
}

/* Returns true if a side of a copy is memory of a graph. KP_VENDOR: copies and memsets that are no nodes refuse it
 * (driver 580). */
static bool is_of_graph(CUmemorytype said, CUdeviceptr address)
{
    return (said == CU_MEMORYTYPE_DEVICE || said == CU_MEMORYTYPE_UNIFIED) && kp_graph_memory_holds(address);
}

enum kp_reason kp_graph_node_copy(const struct kp_driver *d, const CUDA_MEMCPY3D *p, struct kp_graph_node *out)
{
    memset(out, 0, sizeof(*out));
    out->kind = KP_NODE_COPY;
    out->copy = *p;
    out->to_host = kp_graph_is_host(d, p->dstMemoryType, p->dstDevice);
    out->from_host = kp_graph_is_host(d, p->srcMemoryType, p->srcDevice);
    bool rows = p->Height > 1 || p->Depth > 1 || p->srcMemoryType == CU_MEMORYTYPE_ARRAY ||
                p->dstMemoryType == CU_MEMORYTYPE_ARRAY;
    if (is_of_graph(p->dstMemoryType, p->dstDevice) || is_of_graph(p->srcMemoryType, p->srcDevice))
        return KP_REASON_GRAPH_TOUCHES;
    return (out->to_host || out->from_host) && (rows || (out->to_host && out->from_host)) ? KP_REASON_GRAPH_ARRAYS
                                                                                          : KP_REASON_NONE;
}

static enum kp_reason read_copy(const struct kp_driver *d, CUgraphNode handle, struct kp_graph_node *out)
{
    CUDA_MEMCPY3D copy;
    if (d->cuGraphMemcpyNodeGetParams(handle, &copy) != CUDA_SUCCESS)
        return KP_REASON_GRAPH_UNREADABLE;
    return kp_graph_node_copy(d, &copy, out);
}

/* The address of the first byte. */
static uint64_t first_of(CUmemorytype type, const void *host, CUdeviceptr device, size_t x, size_t y, size_t z,
                         size_t pitch, size_t height)
{
    uint64_t base = type == CU_MEMORYTYPE_HOST ? (uint64_t)(uintptr_t)host : device;
    return base + (z * height + y) * pitch + x;
}

struct kp_graph_row kp_graph_row(const struct kp_graph_node *node)
{
    const CUDA_MEMCPY3D *c = &node->copy;
    uint64_t to = first_of(c->dstMemoryType, c->dstHost, c->dstDevice, c->dstXInBytes, c->dstY, c->dstZ, c->dstPitch,
                           c->dstHeight);
    uint64_t from = first_of(c->srcMemoryType, c->srcHost, c->srcDevice, c->srcXInBytes, c->srcY, c->srcZ, c->srcPitch,
                             c->srcHeight);
    return (struct kp_graph_row){(void *)(uintptr_t)(node->to_host ? to : from), node->to_host ? from : to,
                                 c->WidthInBytes};
}

static enum kp_reason read_host(const struct kp_driver *d, CUgraphNode handle, struct kp_graph_node *out)
{
    bool read = d->cuGraphHostNodeGetParams(handle, &out->host) == CUDA_SUCCESS;
    return read ? KP_REASON_NONE : KP_REASON_GRAPH_UNREADABLE;
}

enum kp_reason kp_graph_node_set(const CUDA_MEMSET_NODE_PARAMS *p, struct kp_graph_node *out)
{
    memset(out, 0, sizeof(*out));
    out->kind = KP_NODE_SET;
    out->set = *p;
    return kp_graph_memory_holds(p->dst) ? KP_REASON_GRAPH_TOUCHES : KP_REASON_NONE;
}

static enum kp_reason read_set(const struct kp_driver *d, CUgraphNode handle, struct kp_graph_node *out)
{
    CUDA_MEMSET_NODE_PARAMS set;
    bool read = d->cuGraphMemsetNodeGetParams(handle, &set) == CUDA_SUCCESS;
    return read ? kp_graph_node_set(&set, out) : KP_REASON_GRAPH_UNREADABLE;
}

static enum kp_reason read_record(const struct kp_driver *d, CUgraphNode handle, struct kp_graph_node *out)
{
    bool read = d->cuGraphEventRecordNodeGetEvent(handle, &out->event) == CUDA_SUCCESS;
    return read ? KP_REASON_NONE : KP_REASON_GRAPH_UNREADABLE;
}

static enum kp_reason read_wait(const struct kp_driver *d, CUgraphNode handle, struct kp_graph_node *out)
{
    bool read = d->cuGraphEventWaitNodeGetEvent(handle, &out->event) == CUDA_SUCCESS;
    return read ? KP_REASON_NONE : KP_REASON_GRAPH_UNREADABLE;
}

/* Reads an allocation: only one device may have access, because others do not wait for a repetition. */
static enum kp_reason read_alloc(const struct kp_driver *d, CUgraphNode handle, struct kp_graph_node *out)
{
    CUDA_MEM_ALLOC_NODE_PARAMS p;
    memset(&p, 0, sizeof(p));
    if (d->cuGraphMemAllocNodeGetParams(handle, &p) != CUDA_SUCCESS)
        return KP_REASON_GRAPH_UNREADABLE;
    const CUmemLocation *where = &p.poolProps.location;
    bool alone = where->type == CU_MEM_LOCATION_TYPE_DEVICE;
    for (size_t i = 0; i < p.accessDescCount; i++)
        alone &= p.accessDescs[i].location.type == where->type && p.accessDescs[i].location.id == where->id;
    out->memory.at = p.dptr;
    out->memory.device = where->id;
    return alone ? KP_REASON_NONE : KP_REASON_GRAPH_ALLOCATES_FOREIGN;
}

static enum kp_reason read_free(const struct kp_driver *d, CUgraphNode handle, struct kp_graph_node *out)
{
    return d->cuGraphMemFreeNodeGetParams(handle, &out->memory.at) == CUDA_SUCCESS ? KP_REASON_NONE
                                                                                   : KP_REASON_GRAPH_UNREADABLE;
}

static enum kp_reason read_empty(const struct kp_driver *d, CUgraphNode handle, struct kp_graph_node *out)
{
    (void)d, (void)handle, (void)out;
    return KP_REASON_NONE;
}

/* Readers of the nodes that can be issued by themselves. Child graphs: see read_node. */
static const struct reader {
    CUgraphNodeType type;
    enum kp_node_kind kind;
    enum kp_reason (*read)(const struct kp_driver *d, CUgraphNode handle, struct kp_graph_node *out);
} readers[] = {
    {CU_GRAPH_NODE_TYPE_KERNEL, KP_NODE_KERNEL, read_kernel},
    {CU_GRAPH_NODE_TYPE_MEMCPY, KP_NODE_COPY, read_copy},
    {CU_GRAPH_NODE_TYPE_MEMSET, KP_NODE_SET, read_set},
    {CU_GRAPH_NODE_TYPE_EVENT_RECORD, KP_NODE_RECORD, read_record},
    {CU_GRAPH_NODE_TYPE_WAIT_EVENT, KP_NODE_WAIT, read_wait},
    {CU_GRAPH_NODE_TYPE_HOST, KP_NODE_HOST, read_host},
    {CU_GRAPH_NODE_TYPE_MEM_ALLOC, KP_NODE_ALLOC, read_alloc},
    {CU_GRAPH_NODE_TYPE_MEM_FREE, KP_NODE_FREE, read_free},
    {CU_GRAPH_NODE_TYPE_EMPTY, KP_NODE_EMPTY, read_empty},
};

static const struct reader *reader_of(CUgraphNodeType type)
{
    for (size_t i = 0; i < sizeof(readers) / sizeof(*readers); i++)
        if (readers[i].type == type)
            return &readers[i];
    return NULL;
}

bool kp_graph_goes_by_node(CUgraphNodeType type)
{
    return type == CU_GRAPH_NODE_TYPE_GRAPH || reader_of(type);
}

static enum kp_reason read_node(const struct kp_driver *d, CUgraphNode handle, uint32_t *next,
                                struct kp_graph_node *out)
{
    CUgraphNodeType type;
    enum kp_reason why = KP_REASON_NONE;
    uint32_t number = (*next)++;
    memset(out, 0, sizeof(*out));
    out->kind = KP_NODE_EMPTY;
    if (d->cuGraphNodeGetType(handle, &type) != CUDA_SUCCESS)
        return KP_REASON_GRAPH_UNREADABLE;
    if (type == CU_GRAPH_NODE_TYPE_GRAPH) {
        CUgraph child;
        if (d->cuGraphChildGraphNodeGetGraph(handle, &child) != CUDA_SUCCESS)
            return KP_REASON_GRAPH_UNREADABLE;
        struct kp_graph_nodes *nodes = kp_graph_nodes_read(d, child, next, &why);
        if (!nodes)
            return why;
        out->kind = KP_NODE_CHILD;
        out->child = nodes;
    } else {
        const struct reader *r = reader_of(type);
        if (!r)
            return KP_REASON_GRAPH_NODES;
        why = r->read(d, handle, out);
        out->kind = why ? KP_NODE_EMPTY : r->kind;
    }
    out->handle = handle;
    out->number = number;
    return why;
}

/* ---- order ---- */

/* The dependencies of a graph's nodes, by their index in the driver's list. */
struct order {
    const CUgraphNode *handles;
    size_t n;
    size_t *depends; /* one after the other */
    size_t *ends;    /* end of each node's dependencies in `depends` */
    size_t cap;
    bool *placed;
};

/* Programs mostly add nodes soon after those that they depend on. */
static size_t place_in_order(const struct order *o, size_t from, CUgraphNode handle)
{
    for (size_t back = from; back; back--)
        if (o->handles[back - 1] == handle)
            return back - 1;
    size_t k = from;
    while (k < o->n && o->handles[k] != handle)
        k++;
    return k;
}

static bool add_dependencies(const struct kp_driver *d, struct order *o, size_t at)
{
    size_t n = 0, end = at ? o->ends[at - 1] : 0;
    CUgraphEdgeData *data;
    CUgraphNode *on;
    if (d->cuGraphNodeGetDependencies(o->handles[at], NULL, NULL, &n) != CUDA_SUCCESS)
        return false;
    o->ends[at] = end + n;
    if (!n)
        return true;
    if (end + n > o->cap) {
        size_t cap = 2 * (end + n), *grown = realloc(o->depends, cap * sizeof(*grown));
        if (!grown)
            return false;
        o->depends = grown;
        o->cap = cap;
    }
    on = calloc(n, sizeof(*on));
    data = calloc(n, sizeof(*data));
    bool read = on && data && d->cuGraphNodeGetDependencies(o->handles[at], on, data, &n) == CUDA_SUCCESS;
    for (size_t i = 0; read && i < n; i++) {
        o->depends[end + i] = place_in_order(o, at, on[i]);
        read = o->depends[end + i] < o->n;
    }
    free(on);
    free(data);
    return read;
}

static bool may_run(const struct order *o, size_t at)
{
    size_t k = at ? o->ends[at - 1] : 0;
    while (k < o->ends[at] && o->placed[o->depends[k]])
        k++;
    return k == o->ends[at];
}

/* Writes the indices of all nodes to `out`: in the driver's order as far as dependencies allow. */
static bool sort(struct order *o, size_t *out)
{
    size_t n = 0, before;
    do {
        before = n;
        for (size_t i = 0; i < o->n; i++)
            if (!o->placed[i] && may_run(o, i)) {
                o->placed[i] = true;
                out[n++] = i;
            }
    } while (n < o->n && n > before);
    return n == o->n;
}

/* Returns the order of the nodes; NULL: it cannot be found. Sets `needed` of nodes that others depend on. */
static size_t *order_of(const struct kp_driver *d, const CUgraphNode *handles, size_t n, bool *needed)
{
    struct order o = {.handles = handles, .n = n};
    size_t *out = calloc(n + 1, sizeof(*out));
    o.ends = calloc(n + 1, sizeof(*o.ends));
    o.placed = calloc(n + 1, sizeof(*o.placed));
    bool sorted = out && o.ends && o.placed;
    for (size_t i = 0; sorted && i < n; i++)
        sorted = add_dependencies(d, &o, i);
    sorted = sorted && sort(&o, out);
    for (size_t k = 0; sorted && n && k < o.ends[n - 1]; k++)
        needed[o.depends[k]] = true;
    free(o.depends);
    free(o.ends);
    free(o.placed);
    if (sorted)
        return out;
    free(out);
    return NULL;
}

/* ---- graphs ---- */

/* Returns true if the node ends in a host function. */
static bool calls_host(const struct kp_graph_node *node)
{
    return node->kind == KP_NODE_HOST || (node->kind == KP_NODE_CHILD && node->child->calls_host);
}

/* Reads the nodes into `listed`, as the driver lists them. */
static enum kp_reason read_list(const struct kp_driver *d, const CUgraphNode *handles, uint32_t *next,
                                struct kp_graph_nodes *g, struct kp_graph_node *listed, const bool *needed)
{
    enum kp_reason why = KP_REASON_NONE;
    size_t n = g->n;
    for (g->n = 0; !why && g->n < n; g->n++) {
        struct kp_graph_node *node = &listed[g->n];
        why = read_node(d, handles[g->n], next, node);
        g->calls_host |= calls_host(node);
        if (!why && calls_host(node) && needed[g->n])
            why = KP_REASON_GRAPH_HOST_MIDDLE;
    }
    return why;
}

static enum kp_reason read_all(const struct kp_driver *d, const CUgraphNode *handles, uint32_t *next,
                               struct kp_graph_nodes *g)
{
    enum kp_reason why = KP_REASON_GRAPH_UNREADABLE;
    bool *needed = calloc(g->n + 1, sizeof(*needed));
    struct kp_graph_node *listed = calloc(g->n + 1, sizeof(*listed));
    size_t *order = needed && listed ? order_of(d, handles, g->n, needed) : NULL;
    if (order)
        why = read_list(d, handles, next, g, listed, needed);
    else
        g->n = 0;
    for (size_t i = 0; i < g->n; i++)
        g->nodes[i] = listed[why ? i : order[i]];
    free(order);
    free(listed);
    free(needed);
    return why;
}

struct kp_graph_nodes *kp_graph_nodes_read(const struct kp_driver *d, CUgraph graph, uint32_t *next,
                                           enum kp_reason *why)
{
    struct kp_graph_nodes *g = calloc(1, sizeof(*g));
    CUgraphNode *handles = NULL;
    size_t n = 0;
    *why = d->cuGraphGetNodes(graph, NULL, &n) == CUDA_SUCCESS ? KP_REASON_NONE : KP_REASON_GRAPH_UNREADABLE;
    if (g && !*why) {
        handles = calloc(n + 1, sizeof(*handles));
        g->nodes = calloc(n + 1, sizeof(*g->nodes));
    }
    if (!*why && (!g || !handles || !g->nodes))
        *why = KP_REASON_GRAPH_NO_COPY;
    if (!*why && n && d->cuGraphGetNodes(graph, handles, &n) != CUDA_SUCCESS)
        *why = KP_REASON_GRAPH_UNREADABLE;
    if (!*why) {
        g->n = n;
        *why = read_all(d, handles, next, g);
    }
    free(handles);
    if (!*why)
        return g;
    kp_graph_nodes_free(g);
    return NULL;
}

void kp_graph_node_free(struct kp_graph_node *node)
{
    if (node->kind == KP_NODE_KERNEL)
        kp_launch_free(&node->launch);
    else if (node->kind == KP_NODE_CHILD)
        kp_graph_nodes_free(node->child);
    node->kind = KP_NODE_EMPTY;
}

void kp_graph_nodes_free(struct kp_graph_nodes *g)
{
    for (size_t i = 0; g && i < g->n; i++)
        kp_graph_node_free(&g->nodes[i]);
    if (g)
        free(g->nodes);
    free(g);
}

/* Gives a copied kernel its own storage, which the argument pointers point into. */
static bool own_arguments(struct kp_launch *l, const struct kp_launch *from)
{
    ptrdiff_t moved;
    if (!from->copy)
        return true;
    char *copy = l->copy = aligned_alloc(16, from->copied);
    if (!copy)
        return false;
    memcpy(copy, from->copy, from->copied);
    moved = copy - (const char *)from->copy;
    if (l->config.numAttrs)
        l->config.attrs = (CUlaunchAttribute *)((char *)l->config.attrs + moved);
    void ***lists[] = {&l->params, &l->extra};
    for (size_t k = 0; k < 2; k++) {
        if (!*lists[k])
            continue;
        *lists[k] = (void **)((char *)*lists[k] + moved);
        for (void **p = *lists[k]; *p; p++)
            if ((char *)*p >= (char *)from->copy && (char *)*p < (char *)from->copy + from->copied)
                *p = (char *)*p + moved;
    }
    return true;
}

struct kp_graph_nodes *kp_graph_nodes_copy(const struct kp_graph_nodes *g)
{
    struct kp_graph_nodes *copy = calloc(1, sizeof(*copy));
    bool whole = copy && (copy->nodes = calloc(g->n + 1, sizeof(*copy->nodes)));
    if (whole) {
        copy->calls_host = g->calls_host;
        copy->allocates = g->allocates;
        copy->device = g->device;
    }
    for (size_t i = 0; whole && i < g->n; i++) {
        struct kp_graph_node *to = &copy->nodes[copy->n++];
        *to = g->nodes[i];
        if (to->kind == KP_NODE_KERNEL)
            whole = own_arguments(&to->launch, &g->nodes[i].launch);
        else if (to->kind == KP_NODE_CHILD)
            whole = (to->child = kp_graph_nodes_copy(g->nodes[i].child));
    }
    if (whole)
        return copy;
    kp_graph_nodes_free(copy);
    return NULL;
}

struct kp_graph_node *kp_graph_nodes_find(struct kp_graph_nodes *g, CUgraphNode handle)
{
    struct kp_graph_node *found = NULL;
    for (size_t i = 0; handle && !found && i < g->n; i++) {
        struct kp_graph_node *node = &g->nodes[i];
        if (node->handle == handle)
            found = node;
        else if (node->kind == KP_NODE_CHILD)
            found = kp_graph_nodes_find(node->child, handle);
    }
    return found;
}

void kp_graph_nodes_unname(struct kp_graph_nodes *g)
{
    for (size_t i = 0; i < g->n; i++) {
        g->nodes[i].handle = NULL;
        if (g->nodes[i].kind == KP_NODE_CHILD)
            kp_graph_nodes_unname(g->nodes[i].child);
    }
}

int kp_graph_nodes_each(const struct kp_graph_nodes *g, int (*fn)(void *arg, const struct kp_graph_node *node),
                        void *arg)
{
    int rc = 0;
    for (size_t i = 0; !rc && i < g->n; i++) {
        const struct kp_graph_node *node = &g->nodes[i];
        if (node->disabled)
            continue;
        rc = node->kind == KP_NODE_CHILD ? kp_graph_nodes_each(node->child, fn, arg) : fn(arg, node);
    }
    return rc;
}

/* ---- issuing ---- */

static CUresult set(const struct kp_driver *d, const CUDA_MEMSET_NODE_PARAMS *p, CUstream stream)
{
    bool rows = p->height > 1;
    switch (p->elementSize) {
    case 1:
        return rows ? d->cuMemsetD2D8Async(p->dst, p->pitch, (unsigned char)p->value, p->width, p->height, stream)
                    : d->cuMemsetD8Async(p->dst, (unsigned char)p->value, p->width, stream);
    case 2:
        return rows ? d->cuMemsetD2D16Async(p->dst, p->pitch, (unsigned short)p->value, p->width, p->height, stream)
                    : d->cuMemsetD16Async(p->dst, (unsigned short)p->value, p->width, stream);
    default:
        return rows ? d->cuMemsetD2D32Async(p->dst, p->pitch, p->value, p->width, p->height, stream)
                    : d->cuMemsetD32Async(p->dst, p->value, p->width, stream);
    }
}

static CUresult issue(const struct kp_driver *d, const struct kp_graph_node *node, CUstream stream)
{
    switch (node->kind) {
    case KP_NODE_COPY:
        return d->cuMemcpy3DAsync(&node->copy, stream);
    case KP_NODE_SET:
        return set(d, &node->set, stream);
    case KP_NODE_RECORD:
        return d->cuEventRecord(node->event, stream);
    case KP_NODE_WAIT:
        return d->cuStreamWaitEvent(stream, node->event, 0);
    case KP_NODE_HOST:
        return d->cuLaunchHostFunc(stream, node->host.fn, node->host.userData);
    case KP_NODE_KERNEL:
    case KP_NODE_CHILD:
    case KP_NODE_ALLOC:
    case KP_NODE_FREE:
    case KP_NODE_EMPTY:
        break;
    }
    return CUDA_SUCCESS;
}

CUresult kp_graph_node_issue(const struct kp_driver *d, const struct kp_graph_node *node, CUstream stream)
{
    CUresult rc = issue(d, node, stream);
    return rc == CUDA_SUCCESS ? rc : issue(d, node, stream); /* as for kernels */
}

/* ---- trying ---- */

struct trial {
    CUstream stream;
    CUresult rc;
};

static int try_node(void *arg, const struct kp_graph_node *node)
{
    struct trial *t = arg;
    if (node->kind != KP_NODE_KERNEL)
        return 0;
    const struct kp_launch *l = &node->launch;
    t->rc = kp_capture_launch(t->stream, l);
    if (t->rc != CUDA_SUCCESS)
        kp_debug(KP_DEBUG_WINDOW,
                 "node %u of a graph is not launched by itself: error %d, %u attributes, %llu bytes shared",
                 node->number, (int)t->rc, l->config.numAttrs, (unsigned long long)l->shape.dynamic_shared);
    return t->rc != CUDA_SUCCESS;
}

bool kp_graph_nodes_try(const struct kp_driver *d, const struct kp_graph_nodes *g)
{
    struct trial t = {.rc = CUDA_SUCCESS};
    if (!kp_capture_begin(d, &t.stream))
        return false;
    kp_graph_nodes_each(g, try_node, &t);
    CUgraph captured = kp_capture_end(d, t.stream);
    if (captured)
        d->cuGraphDestroy(captured);
    return t.rc == CUDA_SUCCESS;
}
