/* Graphs: nodes run in the order of their creation, so dependencies can only point backwards. */
#include "core.h"

static struct node *last_node(struct graph *graph)
{
    return graph->n_nodes ? graph->nodes[graph->n_nodes - 1] : NULL;
}

static struct node *add_node(struct graph *graph, CUgraphNodeType type, struct node *const *deps, size_t n_deps)
{
    struct node *node = make(sizeof(*node), KIND_NODE, NULL);

    node->graph = graph;
    node->type = type;
    node->deps = calloc(n_deps + 1, sizeof(*deps));
    graph->nodes = realloc(graph->nodes, (graph->n_nodes + 1) * sizeof(*graph->nodes));
    if (!node->deps || !graph->nodes)
        fake_misuse("out of host memory");
    for (node->n_deps = 0; node->n_deps < n_deps; node->n_deps++)
        node->deps[node->n_deps] = deps[node->n_deps];
    graph->nodes[graph->n_nodes++] = node;
    return node;
}

static CUresult checked_node(struct node **out, CUgraph handle, CUgraphNodeType type, const CUgraphNode *deps,
                             size_t n_deps, const char *caller)
{
    struct graph *graph = (struct graph *)live(handle, KIND_GRAPH, caller);

    if (!graph || (n_deps && !deps))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < n_deps; i++) {
        const struct node *dep = (struct node *)live(deps[i], KIND_NODE, caller);

        if (!dep || dep->graph != graph)
            return CUDA_ERROR_INVALID_VALUE;
    }
    *out = add_node(graph, type, (struct node *const *)deps, n_deps);
    return CUDA_SUCCESS;
}

static struct graph *copy_graph(const struct graph *source)
{
    struct graph *graph = make(sizeof(*graph), KIND_GRAPH, NULL);

    for (size_t i = 0; i < source->n_nodes; i++) {
        const struct node *from = source->nodes[i];
        struct node *node = add_node(graph, from->type, NULL, 0);

        node->origin = from->origin ? from->origin : (struct node *)from;
        node->event = from->event;
        node->host_fn = from->host_fn, node->host_data = from->host_data;
        node->dst = from->dst, node->src = from->src, node->size = from->size;
        node->value = from->value, node->element_size = from->element_size;
        node->memory = from->memory, node->memory_params = from->memory_params;
        if (from->child)
            node->child = copy_graph(from->child);
        if (from->call) {
            node->call = malloc(sizeof(*node->call));
            if (!node->call)
                fake_misuse("out of host memory");
            *node->call = *from->call;
        }
    }
    return graph;
}

CUresult cuGraphCreate(CUgraph *out, unsigned int flags)
{
    ENTER(NEED_INIT);
    if (flags)
        return CUDA_ERROR_INVALID_VALUE;
    *out = (CUgraph)make(sizeof(struct graph), KIND_GRAPH, NULL);
    return CUDA_SUCCESS;
}

CUresult cuGraphAddKernelNode_v2(CUgraphNode *out, CUgraph handle, const CUgraphNode *deps, size_t n_deps,
                                 const CUDA_KERNEL_NODE_PARAMS *p)
{
    CUlaunchConfig config;
    struct node *node;
    struct call *call;
    CUresult result;

    ENTER(NEED_CONTEXT);
    config = (CUlaunchConfig){p->gridDimX,  p->gridDimY,       p->gridDimZ, p->blockDimX, p->blockDimY,
                              p->blockDimZ, p->sharedMemBytes, NULL,        NULL,         0};
    call = calloc(1, sizeof(*call));
    if (!call)
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = prepare(call, p->func ? p->func : (CUfunction)p->kern, &config, p->kernelParams, p->extra, __func__);
    if (!result)
        result = checked_node(&node, handle, CU_GRAPH_NODE_TYPE_KERNEL, deps, n_deps, __func__);
    if (result) {
        free(call);
        return result;
    }
    node->call = call;
    *out = (CUgraphNode)node;
    return CUDA_SUCCESS;
}

CUresult cuGraphAddKernelNode(CUgraphNode *out, CUgraph handle, const CUgraphNode *deps, size_t n_deps,
                              const CUDA_KERNEL_NODE_PARAMS_v1 *p)
{
    CUDA_KERNEL_NODE_PARAMS params = {0};

    memcpy(&params, p, sizeof(*p));
    return cuGraphAddKernelNode_v2(out, handle, deps, n_deps, &params);
}

/* Argument pointers lead into the node's own copy. */
CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode handle, CUDA_KERNEL_NODE_PARAMS *p)
{
    static __thread void *params[MAX_PARAMS];
    const struct call *call;

    ENTER(NEED_INIT);
    TAKE(node, node, KIND_NODE, handle);
    if (node->type != CU_GRAPH_NODE_TYPE_KERNEL)
        return CUDA_ERROR_INVALID_VALUE;
    call = node->call;
    for (int i = 0; i < call->function->code->n_params; i++)
        params[i] = (void *)(call->bytes + param_offset(call->function->code, i));
    *p = (CUDA_KERNEL_NODE_PARAMS){.func = (CUfunction)call->function,
                                   .gridDimX = call->info.grid[0],
                                   .gridDimY = call->info.grid[1],
                                   .gridDimZ = call->info.grid[2],
                                   .blockDimX = call->info.block[0],
                                   .blockDimY = call->info.block[1],
                                   .blockDimZ = call->info.block[2],
                                   .sharedMemBytes = call->info.shared_bytes,
                                   .kernelParams = params,
                                   .ctx = call->info.ctx};
    return CUDA_SUCCESS;
}

static void set_copy(struct node *node, const CUDA_MEMCPY3D *p)
{
    node->dst = p->dstMemoryType == CU_MEMORYTYPE_HOST ? p->dstHost : (void *)p->dstDevice;
    node->src = p->srcMemoryType == CU_MEMORYTYPE_HOST ? p->srcHost : (const void *)p->srcDevice;
    node->size = p->WidthInBytes;
}

static void set_fill(struct node *node, const CUDA_MEMSET_NODE_PARAMS *p)
{
    node->dst = (void *)p->dst;
    node->value = p->value;
    node->element_size = p->elementSize;
    node->size = p->width * (p->height ? p->height : 1);
}

static bool is_of_device(const void *at)
{
    const struct allocation *a = allocation_of((uintptr_t)at);

    return a && !a->info.pinned_host && !a->registered;
}

CUresult cuGraphMemcpyNodeGetParams(CUgraphNode handle, CUDA_MEMCPY3D *p)
{
    ENTER(NEED_INIT);
    TAKE(node, node, KIND_NODE, handle);
    if (node->type != CU_GRAPH_NODE_TYPE_MEMCPY)
        return CUDA_ERROR_INVALID_VALUE;
    *p = (CUDA_MEMCPY3D){.WidthInBytes = node->size, .Height = 1, .Depth = 1};
    p->srcMemoryType = is_of_device(node->src) ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
    p->dstMemoryType = is_of_device(node->dst) ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
    if (p->srcMemoryType == CU_MEMORYTYPE_HOST)
        p->srcHost = node->src;
    else
        p->srcDevice = (CUdeviceptr)node->src;
    if (p->dstMemoryType == CU_MEMORYTYPE_HOST)
        p->dstHost = node->dst;
    else
        p->dstDevice = (CUdeviceptr)node->dst;
    return CUDA_SUCCESS;
}

CUresult cuGraphMemsetNodeGetParams(CUgraphNode handle, CUDA_MEMSET_NODE_PARAMS *p)
{
    ENTER(NEED_INIT);
    TAKE(node, node, KIND_NODE, handle);
    if (node->type != CU_GRAPH_NODE_TYPE_MEMSET)
        return CUDA_ERROR_INVALID_VALUE;
    *p = (CUDA_MEMSET_NODE_PARAMS){.dst = (CUdeviceptr)node->dst,
                                   .value = node->value,
                                   .elementSize = node->element_size,
                                   .width = node->size,
                                   .height = 1};
    return CUDA_SUCCESS;
}

/* A node of an event. That of a wait does nothing: a graph runs at once, after all that came before it. */
static CUresult add_event(CUgraphNode *out, CUgraph handle, CUgraphNodeType type, const CUgraphNode *deps,
                          size_t n_deps, CUevent event, const char *caller)
{
    struct node *node;
    CUresult result = checked_node(&node, handle, type, deps, n_deps, caller);
    if (result)
        return result;
    node->event = event;
    *out = (CUgraphNode)node;
    return CUDA_SUCCESS;
}

CUresult cuGraphAddEventRecordNode(CUgraphNode *out, CUgraph handle, const CUgraphNode *deps, size_t n_deps,
                                   CUevent event)
{
    ENTER(NEED_INIT);
    return add_event(out, handle, CU_GRAPH_NODE_TYPE_EVENT_RECORD, deps, n_deps, event, __func__);
}

CUresult cuGraphAddEventWaitNode(CUgraphNode *out, CUgraph handle, const CUgraphNode *deps, size_t n_deps,
                                 CUevent event)
{
    ENTER(NEED_INIT);
    return add_event(out, handle, CU_GRAPH_NODE_TYPE_WAIT_EVENT, deps, n_deps, event, __func__);
}

CUresult cuGraphEventRecordNodeGetEvent(CUgraphNode handle, CUevent *event)
{
    ENTER(NEED_INIT);
    TAKE(node, node, KIND_NODE, handle);
    *event = node->event;
    return node->type == CU_GRAPH_NODE_TYPE_EVENT_RECORD ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphEventWaitNodeGetEvent(CUgraphNode handle, CUevent *event)
{
    ENTER(NEED_INIT);
    TAKE(node, node, KIND_NODE, handle);
    *event = node->event;
    return node->type == CU_GRAPH_NODE_TYPE_WAIT_EVENT ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Attributes that were not set read as 0, or as the default of any kernel. */
CUresult cuGraphKernelNodeGetAttribute(CUgraphNode handle, CUkernelNodeAttrID id, CUkernelNodeAttrValue *value)
{
    ENTER(NEED_INIT);
    TAKE(node, node, KIND_NODE, handle);
    if (node->type != CU_GRAPH_NODE_TYPE_KERNEL)
        return CUDA_ERROR_INVALID_VALUE;
    memset(value, 0, sizeof(*value));
    if (id == CU_LAUNCH_ATTRIBUTE_PRIORITY)
        value->priority = node->call->info.priority;
    if (id == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP)
        value->memSyncDomainMap.remote = 1;
    return CUDA_SUCCESS;
}

CUresult cuGraphAddHostNode(CUgraphNode *out, CUgraph handle, const CUgraphNode *deps, size_t n_deps,
                            const CUDA_HOST_NODE_PARAMS *p)
{
    struct node *node;
    CUresult result;

    ENTER(NEED_INIT);
    result = checked_node(&node, handle, CU_GRAPH_NODE_TYPE_HOST, deps, n_deps, __func__);
    if (result)
        return result;
    node->host_fn = p->fn;
    node->host_data = p->userData;
    *out = (CUgraphNode)node;
    return CUDA_SUCCESS;
}

CUresult cuGraphHostNodeGetParams(CUgraphNode handle, CUDA_HOST_NODE_PARAMS *p)
{
    ENTER(NEED_INIT);
    TAKE(node, node, KIND_NODE, handle);
    if (node->type != CU_GRAPH_NODE_TYPE_HOST)
        return CUDA_ERROR_INVALID_VALUE;
    *p = (CUDA_HOST_NODE_PARAMS){node->host_fn, node->host_data};
    return CUDA_SUCCESS;
}

CUresult cuGraphAddEmptyNode(CUgraphNode *out, CUgraph handle, const CUgraphNode *deps, size_t n_deps)
{
    ENTER(NEED_INIT);
    return checked_node((struct node **)out, handle, CU_GRAPH_NODE_TYPE_EMPTY, deps, n_deps, __func__);
}

/* Only one run of bytes: no pitch, no arrays. */
CUresult cuGraphAddMemcpyNode(CUgraphNode *out, CUgraph handle, const CUgraphNode *deps, size_t n_deps,
                              const CUDA_MEMCPY3D *p, CUcontext ctx)
{
    struct node *node;
    CUresult result;

    ENTER(NEED_INIT);
    (void)ctx;
    if (p->Height > 1 || p->Depth > 1 || p->srcMemoryType == CU_MEMORYTYPE_ARRAY ||
        p->dstMemoryType == CU_MEMORYTYPE_ARRAY)
        return CUDA_ERROR_NOT_SUPPORTED;
    result = checked_node(&node, handle, CU_GRAPH_NODE_TYPE_MEMCPY, deps, n_deps, __func__);
    if (result)
        return result;
    set_copy(node, p);
    *out = (CUgraphNode)node;
    return CUDA_SUCCESS;
}

CUresult cuGraphAddMemsetNode(CUgraphNode *out, CUgraph handle, const CUgraphNode *deps, size_t n_deps,
                              const CUDA_MEMSET_NODE_PARAMS *p, CUcontext ctx)
{
    struct node *node;
    CUresult result;

    ENTER(NEED_INIT);
    (void)ctx;
    result = checked_node(&node, handle, CU_GRAPH_NODE_TYPE_MEMSET, deps, n_deps, __func__);
    if (result)
        return result;
    set_fill(node, p);
    *out = (CUgraphNode)node;
    return CUDA_SUCCESS;
}

CUresult cuGraphAddMemAllocNode(CUgraphNode *out, CUgraph handle, const CUgraphNode *deps, size_t n_deps,
                                CUDA_MEM_ALLOC_NODE_PARAMS *p)
{
    struct allocation *memory;
    CUmemAccessDesc *access;
    struct node *node;
    CUresult result;

    ENTER(NEED_CONTEXT);
    result = checked_node(&node, handle, CU_GRAPH_NODE_TYPE_MEM_ALLOC, deps, n_deps, __func__);
    if (!result)
        result = reserve_graph_memory(p->bytesize, &memory);
    if (result)
        return result;
    access = calloc(p->accessDescCount + 1, sizeof(*access));
    if (!access)
        fake_misuse("out of host memory");
    for (size_t i = 0; i < p->accessDescCount; i++)
        access[i] = p->accessDescs[i];
    p->dptr = (CUdeviceptr)memory->info.base;
    node->memory = memory;
    node->memory_params = *p;
    node->memory_params.accessDescs = access;
    *out = (CUgraphNode)node;
    return CUDA_SUCCESS;
}

CUresult cuGraphMemAllocNodeGetParams(CUgraphNode handle, CUDA_MEM_ALLOC_NODE_PARAMS *p)
{
    ENTER(NEED_INIT);
    TAKE(node, node, KIND_NODE, handle);
    if (node->type != CU_GRAPH_NODE_TYPE_MEM_ALLOC)
        return CUDA_ERROR_INVALID_VALUE;
    *p = node->memory_params;
    return CUDA_SUCCESS;
}

CUresult cuGraphAddMemFreeNode(CUgraphNode *out, CUgraph handle, const CUgraphNode *deps, size_t n_deps,
                               CUdeviceptr pointer)
{
    struct allocation *memory;
    struct node *node;
    CUresult result;

    ENTER(NEED_INIT);
    memory = allocation_of(pointer);
    if (!memory || !memory->of_graph || (CUdeviceptr)memory->info.base != pointer)
        return CUDA_ERROR_INVALID_VALUE;
    result = checked_node(&node, handle, CU_GRAPH_NODE_TYPE_MEM_FREE, deps, n_deps, __func__);
    if (result)
        return result;
    node->memory = memory;
    *out = (CUgraphNode)node;
    return CUDA_SUCCESS;
}

CUresult cuGraphMemFreeNodeGetParams(CUgraphNode handle, CUdeviceptr *pointer)
{
    ENTER(NEED_INIT);
    TAKE(node, node, KIND_NODE, handle);
    if (node->type != CU_GRAPH_NODE_TYPE_MEM_FREE)
        return CUDA_ERROR_INVALID_VALUE;
    *pointer = (CUdeviceptr)node->memory->info.base;
    return CUDA_SUCCESS;
}

CUresult cuGraphAddChildGraphNode(CUgraphNode *out, CUgraph handle, const CUgraphNode *deps, size_t n_deps,
                                  CUgraph child)
{
    struct node *node;
    CUresult result;

    ENTER(NEED_INIT);
    TAKE(graph, source, KIND_GRAPH, child);
    result = checked_node(&node, handle, CU_GRAPH_NODE_TYPE_GRAPH, deps, n_deps, __func__);
    if (result)
        return result;
    node->child = copy_graph(source);
    *out = (CUgraphNode)node;
    return CUDA_SUCCESS;
}

CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode handle, CUgraph *child)
{
    ENTER(NEED_INIT);
    TAKE(node, node, KIND_NODE, handle);
    if (node->type != CU_GRAPH_NODE_TYPE_GRAPH)
        return CUDA_ERROR_INVALID_VALUE;
    *child = (CUgraph)node->child;
    return CUDA_SUCCESS;
}

CUresult cuGraphGetNodes(CUgraph handle, CUgraphNode *nodes, size_t *n)
{
    size_t i;

    ENTER(NEED_INIT);
    TAKE(graph, graph, KIND_GRAPH, handle);
    for (i = 0; nodes && i < *n && i < graph->n_nodes; i++)
        nodes[i] = (CUgraphNode)graph->nodes[i];
    *n = nodes ? i : graph->n_nodes;
    return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetType(CUgraphNode handle, CUgraphNodeType *type)
{
    ENTER(NEED_INIT);
    TAKE(node, node, KIND_NODE, handle);
    *type = node->type;
    return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetDependencies_v2(CUgraphNode handle, CUgraphNode *deps, CUgraphEdgeData *edges, size_t *n)
{
    size_t i;

    ENTER(NEED_INIT);
    TAKE(node, node, KIND_NODE, handle);
    for (i = 0; deps && i < *n && i < node->n_deps; i++) {
        deps[i] = (CUgraphNode)node->deps[i];
        if (edges)
            memset(&edges[i], 0, sizeof(edges[i]));
    }
    *n = deps ? i : node->n_deps;
    return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetDependencies(CUgraphNode handle, CUgraphNode *deps, size_t *n)
{
    return cuGraphNodeGetDependencies_v2(handle, deps, NULL, n);
}

CUresult cuGraphDestroy(CUgraph handle)
{
    ENTER(NEED_INIT);
    TAKE(graph, graph, KIND_GRAPH, handle);
    for (size_t i = 0; i < graph->n_nodes; i++)
        graph->nodes[i]->head.dead = true;
    graph->head.dead = true;
    return CUDA_SUCCESS;
}

static uint64_t graphs_instantiated;

static uint64_t graph_count(void)
{
    int held __attribute__((cleanup(unlock), unused)) = lock();

    return graphs_instantiated;
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *out, CUgraph handle, unsigned long long flags)
{
    struct exec *exec;

    ENTER(NEED_CONTEXT);
    TAKE(graph, graph, KIND_GRAPH, handle);
    exec = make(sizeof(*exec), KIND_EXEC, NULL);
    exec->graph = copy_graph(graph);
    exec->flags = flags;
    take_others(exec->graph);
    graphs_instantiated++;
    *out = (CUgraphExec)exec;
    return CUDA_SUCCESS;
}

/* The first two versions, with a log instead of flags. */
CUresult cuGraphInstantiate(CUgraphExec *out, CUgraph handle, CUgraphNode *node, char *log, size_t size)
{
    if (node)
        *node = NULL;
    if (log && size)
        *log = '\0';
    return cuGraphInstantiateWithFlags(out, handle, 0);
}
SAME_AS(cuGraphInstantiate_v2, cuGraphInstantiate);

CUresult cuGraphInstantiateWithParams(CUgraphExec *out, CUgraph handle, CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
    CUresult result = cuGraphInstantiateWithFlags(out, handle, params->flags);

    params->hErrNode_out = NULL;
    params->result_out = result ? CUDA_GRAPH_INSTANTIATE_ERROR : CUDA_GRAPH_INSTANTIATE_SUCCESS;
    return result;
}
SAME_AS(cuGraphInstantiateWithParams_ptsz, cuGraphInstantiateWithParams);

CUresult cuGraphExecGetFlags(CUgraphExec handle, cuuint64_t *flags)
{
    ENTER(NEED_INIT);
    TAKE(exec, exec, KIND_EXEC, handle);
    *flags = exec->flags;
    return CUDA_SUCCESS;
}

CUresult cuGraphExecDestroy(CUgraphExec handle)
{
    ENTER(NEED_INIT);
    TAKE(exec, exec, KIND_EXEC, handle);
    unback(exec->graph);
    exec->head.dead = true;
    return CUDA_SUCCESS;
}

/* ---- changes of an executable graph ---- */

static struct node *named(struct graph *graph, const struct node *origin)
{
    struct node *match = NULL;

    for (size_t i = 0; !match && i < graph->n_nodes; i++) {
        struct node *node = graph->nodes[i];

        match = node->origin == origin ? node : node->child ? named(node->child, origin) : NULL;
    }
    return match;
}

static CUresult node_of(CUgraphExec handle, CUgraphNode name, CUgraphNodeType type, struct node **out,
                        const char *caller)
{
    struct exec *exec = (struct exec *)live(handle, KIND_EXEC, caller);

    if (!exec)
        return CUDA_ERROR_INVALID_VALUE;
    *out = named(exec->graph, (struct node *)name);
    return *out && (*out)->type == type ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode name, const CUDA_KERNEL_NODE_PARAMS *p)
{
    CUlaunchConfig config = {p->gridDimX,  p->gridDimY,       p->gridDimZ, p->blockDimX, p->blockDimY,
                             p->blockDimZ, p->sharedMemBytes, NULL,        NULL,         0};
    struct node *node;
    CUresult result;

    ENTER(NEED_CONTEXT);
    result = node_of(exec, name, CU_GRAPH_NODE_TYPE_KERNEL, &node, __func__);
    if (!result)
        result =
            prepare(node->call, p->func ? p->func : (CUfunction)p->kern, &config, p->kernelParams, p->extra, __func__);
    return result;
}

CUresult cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode name, const CUDA_KERNEL_NODE_PARAMS_v1 *p)
{
    CUDA_KERNEL_NODE_PARAMS params = {0};

    memcpy(&params, p, sizeof(*p));
    return cuGraphExecKernelNodeSetParams_v2(exec, name, &params);
}

CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode name, const CUDA_MEMCPY3D *p, CUcontext ctx)
{
    struct node *node;
    CUresult result;

    ENTER(NEED_CONTEXT);
    (void)ctx;
    result = node_of(exec, name, CU_GRAPH_NODE_TYPE_MEMCPY, &node, __func__);
    if (!result)
        set_copy(node, p);
    return result;
}

CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode name, const CUDA_MEMSET_NODE_PARAMS *p,
                                        CUcontext ctx)
{
    struct node *node;
    CUresult result;

    ENTER(NEED_CONTEXT);
    (void)ctx;
    result = node_of(exec, name, CU_GRAPH_NODE_TYPE_MEMSET, &node, __func__);
    if (!result)
        set_fill(node, p);
    return result;
}

CUresult cuGraphExecHostNodeSetParams(CUgraphExec exec, CUgraphNode name, const CUDA_HOST_NODE_PARAMS *p)
{
    struct node *node;
    CUresult result;

    ENTER(NEED_CONTEXT);
    result = node_of(exec, name, CU_GRAPH_NODE_TYPE_HOST, &node, __func__);
    if (!result) {
        node->host_fn = p->fn;
        node->host_data = p->userData;
    }
    return result;
}

CUresult cuGraphExecNodeSetParams(CUgraphExec exec, CUgraphNode name, CUgraphNodeParams *p)
{
    CUDA_KERNEL_NODE_PARAMS kernel;

    if (p->type == CU_GRAPH_NODE_TYPE_MEMCPY)
        return cuGraphExecMemcpyNodeSetParams(exec, name, &p->memcpy.copyParams, NULL);
    if (p->type != CU_GRAPH_NODE_TYPE_KERNEL)
        return CUDA_ERROR_NOT_SUPPORTED;
    memcpy(&kernel, &p->kernel, sizeof(kernel));
    return cuGraphExecKernelNodeSetParams_v2(exec, name, &kernel);
}

CUresult cuGraphNodeSetEnabled(CUgraphExec handle, CUgraphNode name, unsigned int enabled)
{
    struct node *node;

    ENTER(NEED_INIT);
    TAKE(exec, exec, KIND_EXEC, handle);
    node = named(exec->graph, (struct node *)name);
    if (!node)
        return CUDA_ERROR_INVALID_VALUE;
    node->disabled = !enabled;
    return CUDA_SUCCESS;
}

/* Keeps the names of the nodes. */
CUresult cuGraphExecUpdate_v2(CUgraphExec handle, CUgraph source, CUgraphExecUpdateResultInfo *info)
{
    struct graph *fresh;

    ENTER(NEED_CONTEXT);
    TAKE(exec, exec, KIND_EXEC, handle);
    TAKE(graph, graph, KIND_GRAPH, source);
    memset(info, 0, sizeof(*info));
    info->result = CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    if (graph->n_nodes != exec->graph->n_nodes)
        return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
    fresh = copy_graph(graph);
    unback(exec->graph);
    for (size_t i = 0; i < fresh->n_nodes; i++)
        fresh->nodes[i]->origin = exec->graph->nodes[i]->origin;
    exec->graph = fresh;
    info->result = CU_GRAPH_EXEC_UPDATE_SUCCESS;
    return CUDA_SUCCESS;
}

/* ---- launches ---- */

static void run_graph(const struct graph *graph, const struct stream_ref *ref, const char *api);
static void submit_host_function(const struct stream_ref *ref, CUhostFn fn, void *data);

/* The host function at the end of a graph, if it runs in a thread of its own after the others; else NULL. */
static const struct node *call_behind(const struct graph *graph)
{
    const struct node *last = graph->n_nodes && getenv("FAKE_HOST_THREADS") ? graph->nodes[graph->n_nodes - 1] : NULL;

    return last && last->type == CU_GRAPH_NODE_TYPE_HOST && !last->disabled ? last : NULL;
}

static void run_node(const struct node *node, const struct stream_ref *ref, const char *api)
{
    struct call call;

    switch (node->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        if (node->call->function->head.dead)
            fake_misuse("graph node %s: its module was unloaded", node->call->info.name);
        call = *node->call;
        call.info.api = api;
        call.info.stream_id = ref->id;
        call.info.from_graph = 1;
        run(&call);
        break;
    case CU_GRAPH_NODE_TYPE_HOST:
        node->host_fn(node->host_data);
        break;
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
        reach_alloc(node);
        break;
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
        reach_free(node);
        break;
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        memmove(node->dst, node->src, node->size);
        transferred(node->dst, node->src, node->size, ref->id, 1);
        break;
    case CU_GRAPH_NODE_TYPE_MEMSET:
        fill(node->dst, node->value, node->element_size, node->size);
        transferred(node->dst, NULL, node->size * node->element_size, ref->id, 1);
        break;
    case CU_GRAPH_NODE_TYPE_GRAPH:
        run_graph(node->child, ref, api);
        break;
    default:
        break;
    }
}

static void run_graph(const struct graph *graph, const struct stream_ref *ref, const char *api)
{
    for (size_t i = 0; i < graph->n_nodes; i++)
        if (!graph->nodes[i]->disabled)
            run_node(graph->nodes[i], ref, api);
}

static void run_whole_graph(struct work *w)
{
    back(w->graph);
    for (size_t i = 0; i < w->graph->n_nodes; i++)
        if (!w->graph->nodes[i]->disabled && w->graph->nodes[i] != call_behind(w->graph))
            run_node(w->graph->nodes[i], &w->ref, w->api);
}

/* A graph with kernels that wait begins once none of them would. */
static bool gates_are_open(struct work *w)
{
    bool open = true;

    for (size_t i = 0; i < w->graph->n_nodes && open; i++) {
        const struct node *node = w->graph->nodes[i];
        bool waits = node->call && !node->disabled && node->call->function->code->ready;
        open = !waits || node->call->function->code->ready(node->call, now_ms() - w->since);
    }
    return open;
}

static CUresult launch_graph(CUgraphExec handle, CUstream stream, bool per_thread, const char *api)
{
    struct exec *exec = (struct exec *)live(handle, KIND_EXEC, api);
    struct stream_ref ref;
    CUresult result = resolve_stream(stream, per_thread, &ref, api);

    if (!exec)
        return CUDA_ERROR_INVALID_VALUE;
    if (result)
        return result;
    if (capturing(&ref))
        return CUDA_ERROR_NOT_SUPPORTED;
    if (!may_allocate(exec->graph, exec->flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH))
        return CUDA_ERROR_INVALID_VALUE;
    fake_log("graph pid=%d nodes=%zu api=%s\n", (int)getpid(), exec->graph->n_nodes, api);
    submit(
        &(struct work){.ref = ref, .ready = gates_are_open, .run = run_whole_graph, .graph = exec->graph, .api = api});
    if (call_behind(exec->graph))
        submit_host_function(&ref, call_behind(exec->graph)->host_fn, call_behind(exec->graph)->host_data);
    return CUDA_SUCCESS;
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
    ENTER_LAUNCH();
    return launch_graph(exec, stream, false, __func__);
}

CUresult cuGraphLaunch_ptsz(CUgraphExec exec, CUstream stream)
{
    ENTER_LAUNCH();
    return launch_graph(exec, stream, true, __func__);
}

CUresult cuGraphUpload(CUgraphExec handle, CUstream stream)
{
    ENTER(NEED_CONTEXT);
    TAKE(exec, exec, KIND_EXEC, handle);
    (void)exec, (void)stream;
    return CUDA_SUCCESS;
}
SAME_AS(cuGraphUpload_ptsz, cuGraphUpload);
