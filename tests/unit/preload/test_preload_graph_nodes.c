/* The nodes of graphs: their order, their copies, and what cannot be issued by itself. A driver of tables stands in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "preload/graphs/graph_memory.h"
#include "preload/graphs/graph_pairs.h"
#include "preload/graphs/graphs.h"

enum { MOST = 8, PRIORITY = 3 };

/* A node of a graph, and the places of those that it depends on. */
static struct stub {
    CUgraphNodeType type;
    size_t on[MOST], n_on;
    unsigned blocks; /* of a kernel */
    uint64_t value;  /* its argument */
    CUgraph child;
    unsigned shared; /* byte */
    unsigned carveout, remote;
    CUresult attributes; /* what the driver answers to questions about them, unless it is 0 */
    bool is_kernel;      /* its function is the handle of a kernel */
    bool has_priority, updated_by_device;
    CUmemLocation where; /* of memory, whose address is `value` */
    int others;          /* devices that have access to it, 1 and so on */
} stubs[2][MOST];

static size_t n_stubs[2];

static CUgraph graph_of(size_t g)
{
    return (CUgraph)(uintptr_t)(g + 1);
}

static CUgraphNode handle_of(size_t g, size_t i)
{
    return (CUgraphNode)(uintptr_t)(0x100 * (g + 1) + i);
}

static struct stub *stub_of(CUgraphNode handle)
{
    uintptr_t number = (uintptr_t)handle;
    return &stubs[number / 0x100 - 1][number % 0x100];
}

static CUresult get_nodes(CUgraph graph, CUgraphNode *nodes, size_t *n)
{
    size_t g = (uintptr_t)graph - 1;
    for (size_t i = 0; nodes && i < *n; i++)
        nodes[i] = handle_of(g, i);
    *n = n_stubs[g];
    return CUDA_SUCCESS;
}

static CUresult get_type(CUgraphNode node, CUgraphNodeType *type)
{
    *type = stub_of(node)->type;
    return CUDA_SUCCESS;
}

static CUresult get_child(CUgraphNode node, CUgraph *child)
{
    *child = stub_of(node)->child;
    return CUDA_SUCCESS;
}

static CUresult get_dependencies(CUgraphNode node, CUgraphNode *on, CUgraphEdgeData *data, size_t *n)
{
    const struct stub *s = stub_of(node);
    size_t g = (uintptr_t)node / 0x100 - 1;
    for (size_t i = 0; on && i < *n; i++)
        on[i] = handle_of(g, s->on[i]);
    (void)data;
    *n = s->n_on;
    return CUDA_SUCCESS;
}

static CUresult get_kernel(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS *p)
{
    static void *params[1];
    struct stub *s = stub_of(node);
    params[0] = &s->value;
    *p = (CUDA_KERNEL_NODE_PARAMS){.func = s->is_kernel ? NULL : (CUfunction)(uintptr_t)0x10,
                                   .kern = s->is_kernel ? (CUkernel)(uintptr_t)0x20 : NULL,
                                   .gridDimX = s->blocks,
                                   .gridDimY = 1,
                                   .gridDimZ = 1,
                                   .blockDimX = 32,
                                   .blockDimY = 1,
                                   .blockDimZ = 1,
                                   .sharedMemBytes = s->shared,
                                   .kernelParams = params};
    return CUDA_SUCCESS;
}

static CUresult get_attribute(CUgraphNode node, CUlaunchAttributeID id, CUlaunchAttributeValue *value)
{
    memset(value, 0, sizeof(*value));
    if (stub_of(node)->attributes && id != CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE)
        return stub_of(node)->attributes;
    if (id == CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT)
        value->sharedMemCarveout = stub_of(node)->carveout;
    if (id == CU_LAUNCH_ATTRIBUTE_PRIORITY && stub_of(node)->has_priority)
        value->priority = PRIORITY;
    if (id == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP) /* what the driver says of any kernel */
        value->memSyncDomainMap.remote = stub_of(node)->remote ? (unsigned char)stub_of(node)->remote : 1;
    if (id == CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE)
        value->clusterSchedulingPolicyPreference = CU_CLUSTER_SCHEDULING_POLICY_SPREAD;
    if (id == CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE)
        value->deviceUpdatableKernelNode.deviceUpdatable = stub_of(node)->updated_by_device;
    return CUDA_SUCCESS;
}

static CUresult get_param(CUfunction f, size_t index, size_t *offset, size_t *size)
{
    (void)f;
    *offset = 0;
    *size = sizeof(uint64_t);
    return index ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

/* The function's limit of dynamic shared memory, and what a launch asks for. */
static int limit, most_set, launched;
static bool refuses;

static CUresult launch(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                       unsigned shared, CUstream stream, void **params, void **extra)
{
    (void)f, (void)gx, (void)gy, (void)gz, (void)bx, (void)by, (void)bz, (void)stream, (void)params, (void)extra;
    if (refuses || (int)shared > limit)
        return CUDA_ERROR_INVALID_VALUE;
    launched++;
    return CUDA_SUCCESS;
}

static CUresult launch_ex(const CUlaunchConfig *config, CUfunction f, void **params, void **extra)
{
    return launch(f, 1, 1, 1, 1, 1, 1, config->sharedMemBytes, config->hStream, params, extra);
}

static CUresult get_limit(int *value, CUfunction_attribute attribute, CUfunction f)
{
    (void)f;
    *value = attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES ? limit : 1;
    return CUDA_SUCCESS;
}

static CUresult set_limit(CUfunction f, CUfunction_attribute attribute, int value)
{
    (void)f;
    assert_int_equal(attribute, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
    limit = value;
    most_set = value > most_set ? value : most_set;
    return CUDA_SUCCESS;
}

static CUresult create_stream(CUstream *stream, unsigned flags)
{
    assert_int_equal(flags, CU_STREAM_NON_BLOCKING);
    *stream = (CUstream)(uintptr_t)0x77;
    return CUDA_SUCCESS;
}

static int capturing;

static CUresult destroy_stream(CUstream stream)
{
    (void)stream;
    return capturing ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
}

static CUresult begin_capture(CUstream stream, CUstreamCaptureMode mode)
{
    (void)stream, (void)mode;
    capturing++;
    return CUDA_SUCCESS;
}

static CUresult end_capture(CUstream stream, CUgraph *graph)
{
    (void)stream;
    capturing--;
    *graph = NULL;
    return CUDA_SUCCESS;
}

static CUresult destroy_graph(CUgraph graph)
{
    (void)graph;
    return CUDA_SUCCESS;
}

static CUresult get_host(CUgraphNode node, CUDA_HOST_NODE_PARAMS *p)
{
    (void)node;
    *p = (CUDA_HOST_NODE_PARAMS){.fn = NULL};
    return CUDA_SUCCESS;
}

static CUresult call_host(CUstream stream, CUhostFn fn, void *data)
{
    (void)stream, (void)fn, (void)data;
    return CUDA_SUCCESS;
}

static CUresult get_alloc(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS *p)
{
    static const CUmemAccessDesc access[] = {{.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}},
                                             {.location = {CU_MEM_LOCATION_TYPE_DEVICE, 1}}};
    const struct stub *s = stub_of(node);
    *p = (CUDA_MEM_ALLOC_NODE_PARAMS){.poolProps.location = s->where,
                                      .accessDescs = access,
                                      .accessDescCount = 1 + (size_t)s->others,
                                      .bytesize = 100,
                                      .dptr = s->value};
    return CUDA_SUCCESS;
}

static CUresult get_free(CUgraphNode node, CUdeviceptr *memory)
{
    *memory = stub_of(node)->value;
    return CUDA_SUCCESS;
}

/* It knows one address. */
enum { KNOWN_ADDRESS = 0x5e7000 };

static CUresult get_pointer(void *data, CUpointer_attribute attribute, CUdeviceptr at)
{
    assert_int_equal(attribute, CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
    *(unsigned *)data = CU_MEMORYTYPE_DEVICE;
    return at == KNOWN_ADDRESS ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult get_event(CUgraphNode node, CUevent *event)
{
    *event = (CUevent)(uintptr_t)stub_of(node)->value;
    return CUDA_SUCCESS;
}

static CUresult get_copy(CUgraphNode node, CUDA_MEMCPY3D *copy)
{
    *copy = (CUDA_MEMCPY3D){.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                            .srcDevice = stub_of(node)->value,
                            .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                            .Height = 1,
                            .Depth = 1};
    return CUDA_SUCCESS;
}

static CUresult get_set(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS *set)
{
    *set = (CUDA_MEMSET_NODE_PARAMS){.dst = stub_of(node)->value, .elementSize = 1, .width = 1, .height = 1};
    return CUDA_SUCCESS;
}

static CUresult get_function(CUfunction *f, CUkernel kernel)
{
    *f = (CUfunction)kernel;
    return CUDA_SUCCESS;
}

static CUresult get_name(const char **name, CUfunction f)
{
    (void)f;
    *name = "kernel";
    return CUDA_SUCCESS;
}

static CUresult copy_3d(const CUDA_MEMCPY3D *p, CUstream stream)
{
    (void)p, (void)stream;
    return CUDA_SUCCESS;
}

static const struct kp_driver driver = {.cuGraphGetNodes = get_nodes,
                                        .cuGraphNodeGetType = get_type,
                                        .cuGraphChildGraphNodeGetGraph = get_child,
                                        .cuGraphNodeGetDependencies = get_dependencies,
                                        .cuGraphKernelNodeGetParams = get_kernel,
                                        .cuGraphKernelNodeGetAttribute = get_attribute,
                                        .cuFuncGetParamInfo = get_param,
                                        .cuGraphHostNodeGetParams = get_host,
                                        .cuLaunchHostFunc = call_host,
                                        .cuGraphMemAllocNodeGetParams = get_alloc,
                                        .cuGraphMemFreeNodeGetParams = get_free,
                                        .cuMemcpy3DAsync = copy_3d,
                                        .cuPointerGetAttribute = get_pointer,
                                        .cuGraphEventRecordNodeGetEvent = get_event,
                                        .cuGraphEventWaitNodeGetEvent = get_event,
                                        .cuGraphMemcpyNodeGetParams = get_copy,
                                        .cuGraphMemsetNodeGetParams = get_set,
                                        .cuKernelGetFunction = get_function,
                                        .cuFuncGetName = get_name,
                                        .cuFuncGetAttribute = get_limit,
                                        .cuFuncSetAttribute = set_limit,
                                        .cuStreamCreate = create_stream,
                                        .cuStreamDestroy = destroy_stream,
                                        .cuStreamBeginCapture = begin_capture,
                                        .cuStreamEndCapture = end_capture,
                                        .cuGraphDestroy = destroy_graph,
                                        .cuLaunchKernel = launch,
                                        .cuLaunchKernelEx = launch_ex};

static int set_up(void **state)
{
    (void)state;
    memset(stubs, 0, sizeof(stubs));
    memset(n_stubs, 0, sizeof(n_stubs));
    limit = 1000;
    most_set = launched = capturing = 0;
    refuses = false;
    return 0;
}

static struct stub *add(size_t g, CUgraphNodeType type)
{
    struct stub *s = &stubs[g][n_stubs[g]];
    s->type = type;
    s->blocks = (unsigned)(10 * (g + 1) + n_stubs[g]++);
    s->value = 1000 + s->blocks;
    return s;
}

static void depend(struct stub *s, size_t on)
{
    s->on[s->n_on++] = on;
}

static struct kp_graph_nodes *read_first(enum kp_reason *why)
{
    uint32_t next = 0;
    return kp_graph_nodes_read(&driver, graph_of(0), &next, why);
}

/* What kp_graph_nodes_each tells, as the blocks of kernels. */
struct told {
    unsigned blocks[2 * MOST];
    size_t n, stop;
};

static int tell(void *arg, const struct kp_graph_node *node)
{
    struct told *t = arg;
    if (node->kind == KP_NODE_KERNEL)
        t->blocks[t->n++] = node->launch.shape.grid[0];
    return t->stop && t->n == t->stop ? 7 : 0;
}

static void order_is(const struct kp_graph_nodes *g, const unsigned *blocks, size_t n)
{
    struct told t = {.n = 0};
    assert_int_equal(kp_graph_nodes_each(g, tell, &t), 0);
    assert_int_equal(t.n, n);
    assert_memory_equal(t.blocks, blocks, n * sizeof(*blocks));
}

static void nodes_come_after_what_they_depend_on(void **state)
{
    (void)state;
    enum kp_reason why;
    depend(add(0, CU_GRAPH_NODE_TYPE_KERNEL), 2);
    depend(add(0, CU_GRAPH_NODE_TYPE_KERNEL), 0);
    depend(add(0, CU_GRAPH_NODE_TYPE_KERNEL), 3);
    add(0, CU_GRAPH_NODE_TYPE_KERNEL);
    struct stub *last = add(0, CU_GRAPH_NODE_TYPE_KERNEL);
    depend(last, 3);
    depend(last, 1);
    struct kp_graph_nodes *g = read_first(&why);
    assert_non_null(g);
    order_is(g, (const unsigned[]){13, 12, 10, 11, 14}, 5);
    assert_int_equal(g->nodes[0].number, 3); /* as the driver lists them */
    assert_ptr_equal(g->nodes[0].handle, handle_of(0, 3));
    kp_graph_nodes_free(g);
}

static void independent_nodes_keep_the_order_of_the_driver(void **state)
{
    (void)state;
    enum kp_reason why;
    for (int i = 0; i < 4; i++)
        add(0, CU_GRAPH_NODE_TYPE_KERNEL);
    struct kp_graph_nodes *g = read_first(&why);
    order_is(g, (const unsigned[]){10, 11, 12, 13}, 4);
    kp_graph_nodes_free(g);
}

static void children_run_where_their_node_is(void **state)
{
    (void)state;
    enum kp_reason why;
    add(0, CU_GRAPH_NODE_TYPE_KERNEL);
    struct stub *family = add(0, CU_GRAPH_NODE_TYPE_GRAPH);
    family->child = graph_of(1);
    depend(family, 0);
    depend(add(0, CU_GRAPH_NODE_TYPE_KERNEL), 1);
    depend(add(1, CU_GRAPH_NODE_TYPE_KERNEL), 1);
    add(1, CU_GRAPH_NODE_TYPE_KERNEL);
    struct kp_graph_nodes *g = read_first(&why);
    order_is(g, (const unsigned[]){10, 21, 20, 12}, 4);
    const struct kp_graph_node *inside = kp_graph_nodes_find(g, handle_of(1, 1));
    assert_non_null(inside);
    assert_int_equal(inside->number, 3); /* after 0, 1 of the child's node, and 2 */
    assert_int_equal(kp_graph_nodes_find(g, handle_of(0, 2))->number, 4);
    struct told t = {.stop = 3};
    assert_int_equal(kp_graph_nodes_each(g, tell, &t), 7);
    assert_int_equal(t.n, 3);
    kp_graph_nodes_unname(g);
    assert_null(kp_graph_nodes_find(g, handle_of(1, 1)));
    kp_graph_nodes_free(g);
}

static void disabled_nodes_do_nothing(void **state)
{
    (void)state;
    enum kp_reason why;
    for (int i = 0; i < 3; i++)
        add(0, CU_GRAPH_NODE_TYPE_KERNEL);
    struct kp_graph_nodes *g = read_first(&why);
    kp_graph_nodes_find(g, handle_of(0, 1))->disabled = true;
    order_is(g, (const unsigned[]){10, 12}, 2);
    kp_graph_nodes_free(g);
}

static void arguments_are_copied(void **state)
{
    (void)state;
    enum kp_reason why;
    struct stub *s = add(0, CU_GRAPH_NODE_TYPE_KERNEL);
    s->has_priority = true;
    struct kp_graph_nodes *g = read_first(&why), *copy = kp_graph_nodes_copy(g);
    assert_non_null(copy);
    s->value = 5; /* the node's memory, which the graph may free */
    memset(g->nodes[0].launch.copy, 0xee, g->nodes[0].launch.copied);
    kp_graph_nodes_free(g);
    const struct kp_launch *l = &copy->nodes[0].launch;
    assert_true(*(const uint64_t *)l->params[0] == 1010);
    assert_int_equal(l->config.numAttrs, 1);
    assert_int_equal(l->config.attrs[0].id, CU_LAUNCH_ATTRIBUTE_PRIORITY);
    assert_int_equal(l->config.attrs[0].value.priority, PRIORITY);
    assert_int_equal(l->config.gridDimX, 10);
    kp_graph_nodes_free(copy);
}

static void new_parameters_keep_the_attributes(void **state)
{
    (void)state;
    enum kp_reason why;
    uint64_t value = 77;
    void *params[] = {&value};
    const CUDA_KERNEL_NODE_PARAMS p = {.func = (CUfunction)(uintptr_t)0x10,
                                       .gridDimX = 99,
                                       .gridDimY = 1,
                                       .gridDimZ = 1,
                                       .blockDimX = 32,
                                       .kernelParams = params};
    struct kp_graph_node fresh;
    add(0, CU_GRAPH_NODE_TYPE_KERNEL)->has_priority = true;
    struct kp_graph_nodes *g = read_first(&why);
    assert_false(kp_graph_node_kernel(&driver, &p, NULL, &g->nodes[0], &fresh));
    kp_graph_nodes_free(g);
    assert_int_equal(fresh.launch.shape.grid[0], 99);
    assert_true(*(const uint64_t *)fresh.launch.params[0] == 77);
    assert_int_equal(fresh.launch.config.numAttrs, 1);
    assert_int_equal(fresh.launch.config.attrs[0].value.priority, PRIORITY);
    kp_graph_node_free(&fresh);
}

static void some_graphs_stay_whole(void **state)
{
    (void)state;
    enum kp_reason why = KP_REASON_NONE;
    add(0, CU_GRAPH_NODE_TYPE_KERNEL);
    add(0, CU_GRAPH_NODE_TYPE_CONDITIONAL);
    assert_null(read_first(&why));
    assert_int_equal(why, KP_REASON_GRAPH_NODES);
    assert_false(kp_graph_goes_by_node(CU_GRAPH_NODE_TYPE_CONDITIONAL));
    assert_true(kp_graph_goes_by_node(CU_GRAPH_NODE_TYPE_GRAPH) && kp_graph_goes_by_node(CU_GRAPH_NODE_TYPE_HOST));
    stubs[0][1].type = CU_GRAPH_NODE_TYPE_KERNEL;
    stubs[0][1].updated_by_device = true;
    assert_null(read_first(&why));
    assert_int_equal(why, KP_REASON_GRAPH_DEVICE_CHANGES);
    stubs[0][1].updated_by_device = false;
    depend(&stubs[0][0], 1); /* a circle: no order */
    depend(&stubs[0][1], 0);
    assert_null(read_first(&why));
    assert_int_equal(why, KP_REASON_GRAPH_UNREADABLE);
    stubs[0][1].n_on = 0;
    struct kp_graph_nodes *g = read_first(&why);
    assert_non_null(g);
    kp_graph_nodes_free(g);
}

static void a_limit_that_was_lowered_since_is_raised_for_the_launch(void **state)
{
    (void)state;
    enum kp_reason why;
    add(0, CU_GRAPH_NODE_TYPE_KERNEL)->shared = 5000;
    add(0, CU_GRAPH_NODE_TYPE_KERNEL)->shared = 500;
    struct kp_graph_nodes *g = read_first(&why);
    for (int i = 0; i < 2; i++)
        assert_int_equal(g->nodes[i].launch.issue(&g->nodes[i].launch), CUDA_SUCCESS);
    assert_int_equal(launched, 2);
    assert_int_equal(most_set, 5000);
    assert_int_equal(limit, 1000);
    kp_graph_nodes_free(g);
}

static void kernels_are_tried_in_a_capture(void **state)
{
    (void)state;
    enum kp_reason why;
    add(0, CU_GRAPH_NODE_TYPE_KERNEL)->shared = 5000;
    struct kp_graph_nodes *g = read_first(&why);
    assert_true(kp_graph_nodes_try(&driver, g));
    assert_int_equal(launched, 1);
    refuses = true;
    assert_false(kp_graph_nodes_try(&driver, g));
    assert_int_equal(limit, 1000);
    assert_int_equal(capturing, 0);
    kp_graph_nodes_free(g);
}

static void host_functions_come_last(void **state)
{
    (void)state;
    enum kp_reason why;
    add(0, CU_GRAPH_NODE_TYPE_KERNEL);
    depend(add(0, CU_GRAPH_NODE_TYPE_HOST), 0);
    struct kp_graph_nodes *g = read_first(&why);
    assert_non_null(g);
    assert_true(g->calls_host);
    kp_graph_nodes_free(g);
    depend(add(0, CU_GRAPH_NODE_TYPE_KERNEL), 1);
    assert_null(read_first(&why));
    assert_int_equal(why, KP_REASON_GRAPH_HOST_MIDDLE);
    /* in a child graph, on which a node depends */
    set_up(NULL);
    add(1, CU_GRAPH_NODE_TYPE_HOST);
    add(0, CU_GRAPH_NODE_TYPE_GRAPH)->child = graph_of(1);
    assert_non_null(g = read_first(&why));
    kp_graph_nodes_free(g);
    depend(add(0, CU_GRAPH_NODE_TYPE_KERNEL), 0);
    assert_null(read_first(&why));
}

/* ---- memory ---- */

static struct stub *add_alloc(size_t g, uint64_t address)
{
    struct stub *s = add(g, CU_GRAPH_NODE_TYPE_MEM_ALLOC);
    s->where.type = CU_MEM_LOCATION_TYPE_DEVICE;
    s->value = address;
    return s;
}

static struct stub *add_free(size_t g, uint64_t address)
{
    struct stub *s = add(g, CU_GRAPH_NODE_TYPE_MEM_FREE);
    s->value = address;
    return s;
}

/* Returns why the first graph stays whole, if there is a reason. */
static enum kp_reason judged(const struct kp_driver *d, unsigned long long flags, bool allocates, int device)
{
    enum kp_reason why;
    uint32_t next = 0;
    struct kp_graph_nodes *g = kp_graph_nodes_read(d, graph_of(0), &next, &why);
    if (!g)
        return why;
    why = kp_graph_pairs_judge(g, flags);
    assert_int_equal(g->allocates, allocates);
    assert_int_equal(g->device, device);
    kp_graph_nodes_free(g);
    return why;
}

static void memory_is_allocated_and_freed(void **state)
{
    (void)state;
    add(0, CU_GRAPH_NODE_TYPE_KERNEL);
    assert_false(judged(&driver, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH, false, 0));
    add_alloc(0, 5000);
    add_alloc(0, 6000);
    assert_int_equal(judged(&driver, 0, true, 0), KP_REASON_GRAPH_LEAVES_MEMORY);
    add(0, CU_GRAPH_NODE_TYPE_GRAPH)->child = graph_of(1);
    add_free(1, 5000);
    add_free(1, 6000);
    assert_false(judged(&driver, 0, true, 0));
    assert_int_equal(judged(&driver, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH, true, 0),
                     KP_REASON_GRAPH_AUTO_FREE);
    struct stub *again = add_alloc(1, 6000); /* an address that was free */
    add_free(1, 6000);
    assert_false(judged(&driver, 0, true, 0));
    again->value = 7000;
    assert_int_equal(judged(&driver, 0, true, 0), KP_REASON_GRAPH_FREES_OTHERS);
    set_up(NULL);
    add_alloc(0, 5000);
    add_alloc(0, 5000);
    assert_int_equal(judged(&driver, 0, true, 0), KP_REASON_GRAPH_ORDER_UNKNOWN);
}

static void memory_is_of_one_device(void **state)
{
    (void)state;
    struct stub *first = add_alloc(0, 5000), *second = add_alloc(0, 6000);
    add_free(0, 6000);
    add_free(0, 5000);
    first->where.id = 1;
    assert_int_equal(judged(&driver, 0, true, 1), KP_REASON_GRAPH_ALLOCATES_FOREIGN);
    first->where.id = 0;
    first->others = 1;
    assert_int_equal(judged(&driver, 0, true, 0), KP_REASON_GRAPH_ALLOCATES_FOREIGN);
    first->others = 0;
    second->where.type = CU_MEM_LOCATION_TYPE_HOST;
    assert_int_equal(judged(&driver, 0, true, 0), KP_REASON_GRAPH_ALLOCATES_FOREIGN);
    second->where.type = CU_MEM_LOCATION_TYPE_DEVICE;
    assert_false(judged(&driver, 0, true, 0));
}

/* The driver does not know the addresses before the first launch. */
static void memory_of_graphs_is_known(void **state)
{
    (void)state;
    CUgraphExec exec = (CUgraphExec)(uintptr_t)0x99, other = (CUgraphExec)(uintptr_t)0x9a;
    const enum kp_reason touches = KP_REASON_GRAPH_TOUCHES;
    CUDA_MEMCPY3D copy = {.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
                          .srcDevice = 5099,
                          .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                          .dstDevice = 4999,
                          .WidthInBytes = 1,
                          .Height = 1,
                          .Depth = 1};
    CUDA_MEMSET_NODE_PARAMS set = {.dst = 5100};
    struct kp_graph_node node;
    add_alloc(1, 5000);
    add(0, CU_GRAPH_NODE_TYPE_GRAPH)->child = graph_of(1);
    assert_false(kp_graph_node_copy(&driver, &copy, &node));
    assert_true(node.from_host);
    kp_graph_memory_note(&driver, exec, graph_of(0));
    kp_graph_memory_note(&driver, other, graph_of(0));
    kp_graph_memory_forget(other);
    assert_false(kp_graph_is_host(&driver, CU_MEMORYTYPE_UNIFIED, 5099));
    assert_int_equal(kp_graph_node_copy(&driver, &copy, &node), touches);
    assert_false(kp_graph_node_set(&set, &node));
    set.dst--;
    assert_int_equal(kp_graph_node_set(&set, &node), touches);
    copy.srcDevice++;
    assert_false(kp_graph_node_copy(&driver, &copy, &node));
    copy.dstDevice++;
    assert_int_equal(kp_graph_node_copy(&driver, &copy, &node), touches);
    kp_graph_memory_forget(exec);
    assert_false(kp_graph_node_copy(&driver, &copy, &node));
    assert_false(kp_graph_memory_holds(5000));
}

static void copies_keep_what_a_graph_is(void **state)
{
    (void)state;
    enum kp_reason why;
    add_alloc(0, 5000);
    add_free(0, 5000);
    depend(add(0, CU_GRAPH_NODE_TYPE_HOST), 1);
    struct kp_graph_nodes *g = read_first(&why);
    assert_false(kp_graph_pairs_judge(g, 0));
    struct kp_graph_nodes *copy = kp_graph_nodes_copy(g);
    assert_true(copy->calls_host && copy->allocates);
    kp_graph_nodes_free(copy);
    kp_graph_nodes_free(g);
}

/* ---- what the driver refuses, and what it is called for ---- */

static CUresult refuse(void)
{
    return CUDA_ERROR_UNKNOWN;
}

static void what_cannot_be_read_stays_in_the_graph(void **state)
{
    (void)state;
#define BY(function) offsetof(struct kp_driver, function)
    static const struct {
        CUgraphNodeType type;
        size_t refused; /* function */
    } rows[] = {
        {CU_GRAPH_NODE_TYPE_KERNEL, BY(cuGraphKernelNodeGetParams)},
        {CU_GRAPH_NODE_TYPE_KERNEL, BY(cuGraphNodeGetType)},
        {CU_GRAPH_NODE_TYPE_KERNEL, BY(cuGraphNodeGetDependencies)},
        {CU_GRAPH_NODE_TYPE_KERNEL, BY(cuGraphGetNodes)},
        {CU_GRAPH_NODE_TYPE_MEMCPY, BY(cuGraphMemcpyNodeGetParams)},
        {CU_GRAPH_NODE_TYPE_MEMSET, BY(cuGraphMemsetNodeGetParams)},
        {CU_GRAPH_NODE_TYPE_EVENT_RECORD, BY(cuGraphEventRecordNodeGetEvent)},
        {CU_GRAPH_NODE_TYPE_WAIT_EVENT, BY(cuGraphEventWaitNodeGetEvent)},
        {CU_GRAPH_NODE_TYPE_HOST, BY(cuGraphHostNodeGetParams)},
        {CU_GRAPH_NODE_TYPE_MEM_ALLOC, BY(cuGraphMemAllocNodeGetParams)},
        {CU_GRAPH_NODE_TYPE_MEM_FREE, BY(cuGraphMemFreeNodeGetParams)},
        {CU_GRAPH_NODE_TYPE_GRAPH, BY(cuGraphChildGraphNodeGetGraph)},
    };
#undef BY
    CUresult (*const refused)(void) = refuse;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct kp_driver d = driver;
        enum kp_reason why;
        uint32_t next = 0;
        set_up(NULL);
        add(0, CU_GRAPH_NODE_TYPE_KERNEL);
        struct stub *s = add(0, rows[i].type);
        s->child = graph_of(1);
        s->where.type = CU_MEM_LOCATION_TYPE_DEVICE;
        struct kp_graph_nodes *g = kp_graph_nodes_read(&d, graph_of(0), &next, &why);
        assert_non_null(g);
        kp_graph_nodes_free(g);
        memcpy((char *)&d + rows[i].refused, &refused, sizeof(refused));
        assert_null(kp_graph_nodes_read(&d, graph_of(0), &next, &why));
        assert_int_not_equal(why, KP_REASON_NONE);
    }
}

/* A node may have a kernel in the place of its function. */
static void kernels_are_functions_of_the_context(void **state)
{
    (void)state;
    enum kp_reason why;
    struct kp_driver d = driver;
    uint32_t next = 0;
    add(0, CU_GRAPH_NODE_TYPE_KERNEL)->is_kernel = true;
    struct kp_graph_nodes *g = read_first(&why);
    assert_non_null(g);
    assert_ptr_equal(g->nodes[0].launch.f, (void *)(uintptr_t)0x20);
    kp_graph_nodes_free(g);
    d.cuKernelGetFunction = (__typeof__(d.cuKernelGetFunction))(uintptr_t)refuse;
    assert_null(kp_graph_nodes_read(&d, graph_of(0), &next, &why));
    assert_int_equal(why, KP_REASON_GRAPH_UNREADABLE);
}

static size_t attributes_of_first(void)
{
    enum kp_reason why;
    struct kp_graph_nodes *g = read_first(&why);
    size_t n = g ? g->nodes[0].launch.config.numAttrs : 99;
    kp_graph_nodes_free(g);
    return n;
}

static void attributes_that_were_set_are_kept(void **state)
{
    (void)state;
    struct stub *s = add(0, CU_GRAPH_NODE_TYPE_KERNEL);
    assert_int_equal(attributes_of_first(), 0);
    s->carveout = 50;
    assert_int_equal(attributes_of_first(), 1);
    s->carveout = (unsigned)CU_SHAREDMEM_CARVEOUT_DEFAULT;
    assert_int_equal(attributes_of_first(), 0);
    s->remote = 3;
    assert_int_equal(attributes_of_first(), 1);
    s->attributes = CUDA_ERROR_NOT_SUPPORTED;
    assert_int_equal(attributes_of_first(), 0);
    s->attributes = CUDA_ERROR_INVALID_CONTEXT; /* it is not known what was set */
    assert_int_equal(attributes_of_first(), 99);
}

static void a_launch_has_the_attributes_of_its_node(void **state)
{
    (void)state;
    enum kp_reason why;
    add(0, CU_GRAPH_NODE_TYPE_KERNEL)->has_priority = true;
    struct kp_graph_nodes *g = read_first(&why);
    assert_int_equal(g->nodes[0].launch.issue(&g->nodes[0].launch), CUDA_SUCCESS);
    assert_int_equal(launched, 1);
    kp_graph_nodes_free(g);
}

static char set_by[32];
static int refusals; /* of the next calls */

static CUresult say_set(const char *how)
{
    snprintf(set_by, sizeof(set_by), "%s", how);
    return refusals-- > 0 ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
}

#define SET(name, type)                                                                                                \
    static CUresult set_##name(CUdeviceptr to, type value, size_t n, CUstream stream)                                  \
    {                                                                                                                  \
        (void)to, (void)value, (void)n, (void)stream;                                                                  \
        return say_set(#name);                                                                                         \
    }                                                                                                                  \
    static CUresult set_rows_##name(CUdeviceptr to, size_t pitch, type value, size_t n, size_t rows, CUstream stream)  \
    {                                                                                                                  \
        (void)to, (void)pitch, (void)value, (void)n, (void)rows, (void)stream;                                         \
        return say_set("rows of " #name);                                                                              \
    }
SET(bytes, unsigned char)
SET(halves, unsigned short)
SET(words, unsigned)

static void memsets_are_issued_in_their_size(void **state)
{
    (void)state;
    static const struct {
        unsigned size;
        size_t rows;
        const char *how;
    } rows[] = {
        {1, 1, "bytes"},         {2, 1, "halves"},         {4, 1, "words"},
        {1, 5, "rows of bytes"}, {2, 5, "rows of halves"}, {4, 5, "rows of words"},
    };
    struct kp_driver d = driver;
    d.cuMemsetD8Async = set_bytes, d.cuMemsetD2D8Async = set_rows_bytes;
    d.cuMemsetD16Async = set_halves, d.cuMemsetD2D16Async = set_rows_halves;
    d.cuMemsetD32Async = set_words, d.cuMemsetD2D32Async = set_rows_words;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        const struct kp_graph_node node = {.kind = KP_NODE_SET,
                                           .set = {.elementSize = rows[i].size, .width = 1, .height = rows[i].rows}};
        assert_int_equal(kp_graph_node_issue(&d, &node, NULL), CUDA_SUCCESS);
        assert_string_equal(set_by, rows[i].how);
    }
    const struct kp_graph_node node = {.kind = KP_NODE_SET, .set = {.elementSize = 4, .width = 1, .height = 1}};
    refusals = 1; /* earlier nodes have run: it is tried once more */
    assert_int_equal(kp_graph_node_issue(&d, &node, NULL), CUDA_SUCCESS);
    refusals = 2;
    assert_int_equal(kp_graph_node_issue(&d, &node, NULL), CUDA_ERROR_UNKNOWN);
}

static CUevent waited_for;

static CUresult wait_for_event(CUstream stream, CUevent event, unsigned flags)
{
    (void)stream, (void)flags;
    waited_for = event;
    return CUDA_SUCCESS;
}

static void events_are_waited_for(void **state)
{
    (void)state;
    enum kp_reason why;
    struct kp_driver d = driver;
    d.cuStreamWaitEvent = wait_for_event;
    add(0, CU_GRAPH_NODE_TYPE_EMPTY);
    add(0, CU_GRAPH_NODE_TYPE_WAIT_EVENT)->value = 0xe0;
    struct kp_graph_nodes *g = read_first(&why);
    assert_non_null(g);
    assert_int_equal(kp_graph_node_issue(&d, &g->nodes[0], NULL), CUDA_SUCCESS);
    assert_null(waited_for);
    assert_int_equal(kp_graph_node_issue(&d, &g->nodes[1], NULL), CUDA_SUCCESS);
    assert_ptr_equal(waited_for, (void *)(uintptr_t)0xe0);
    kp_graph_nodes_free(g);
}

static void copies_of_arrays_to_the_host_stay_in_the_graph(void **state)
{
    (void)state;
    const enum kp_reason stays = KP_REASON_GRAPH_ARRAYS;
    struct kp_graph_node node;
    CUDA_MEMCPY3D copy = {.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
                          .srcDevice = KNOWN_ADDRESS,
                          .dstMemoryType = CU_MEMORYTYPE_HOST,
                          .Height = 1,
                          .Depth = 1};
    assert_false(kp_graph_node_copy(&driver, &copy, &node));
    assert_true(node.to_host && !node.from_host);
    copy.Depth = 2;
    assert_int_equal(kp_graph_node_copy(&driver, &copy, &node), stays);
    copy.Depth = 1;
    copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
    assert_int_equal(kp_graph_node_copy(&driver, &copy, &node), stays);
    copy.dstMemoryType = CU_MEMORYTYPE_ARRAY; /* and it leaves the host alone */
    assert_false(kp_graph_node_copy(&driver, &copy, &node));
    copy.srcMemoryType = CU_MEMORYTYPE_HOST;
    assert_int_equal(kp_graph_node_copy(&driver, &copy, &node), stays);
    copy.dstMemoryType = CU_MEMORYTYPE_HOST;
    assert_int_equal(kp_graph_node_copy(&driver, &copy, &node), stays);
}

static void memory_of_two_devices_stays_in_the_graph(void **state)
{
    (void)state;
    struct kp_graph_nodes *g = calloc(1, sizeof(*g));
    enum { PAIRS = 20 };
    g->n = 2 * PAIRS;
    g->nodes = calloc(g->n, sizeof(*g->nodes));
    for (size_t i = 0; i < g->n; i++) {
        g->nodes[i].kind = i < PAIRS ? KP_NODE_ALLOC : KP_NODE_FREE;
        g->nodes[i].memory.at = 1000 + i % PAIRS;
    }
    assert_false(kp_graph_pairs_judge(g, 0));
    g->nodes[PAIRS - 1].memory.device = 1;
    assert_int_equal(kp_graph_pairs_judge(g, 0), KP_REASON_GRAPH_ALLOCATES_ON_SEVERAL);
    kp_graph_nodes_free(g);
}

/* ---- the graphs that were instantiated ---- */

static CUgraphExec exec_of(size_t number)
{
    return (CUgraphExec)(uintptr_t)(0x9000 + number);
}

static struct kp_graph found(CUgraphExec exec)
{
    struct kp_graph g;
    memset(&g, 0, sizeof(g));
    assert_true(kp_graph_find(exec, &g));
    return g;
}

static void graphs_say_what_keeps_them_whole(void **state)
{
    (void)state;
    add(0, CU_GRAPH_NODE_TYPE_KERNEL);
    add(0, CU_GRAPH_NODE_TYPE_CONDITIONAL);
    for (size_t i = 0; i < 2; i++)
        kp_graph_note(&driver, exec_of(i), graph_of(0), 0, true);
    assert_null(kp_graph_hold(exec_of(0)));
    struct kp_why why = found(exec_of(0)).whole, again = found(exec_of(1)).whole;
    assert_string_equal(kp_why_text(&why), "graph with conditional nodes, which cannot be issued by themselves");
    assert_ptr_equal(why.text, again.text); /* kept once */
    kp_graph_forget(exec_of(0));
    kp_graph_forget(exec_of(1));
    assert_false(kp_graph_find(exec_of(0), &(struct kp_graph){.once = 0}));
}

static void call_other(void *data)
{
    (void)data;
}

/* Whoever holds a graph keeps it as it was. */
static void changes_reach_the_next_launch(void **state)
{
    (void)state;
    const CUDA_HOST_NODE_PARAMS other = {.fn = call_other};
    add(0, CU_GRAPH_NODE_TYPE_KERNEL)->has_priority = true;
    add(0, CU_GRAPH_NODE_TYPE_GRAPH)->child = graph_of(1);
    add(1, CU_GRAPH_NODE_TYPE_KERNEL);
    depend(add(0, CU_GRAPH_NODE_TYPE_HOST), 1);
    kp_graph_note(&driver, exec_of(0), graph_of(0), 0, true);
    const struct kp_graph_content *held = kp_graph_hold(exec_of(0));
    assert_non_null(held);
    kp_graph_set_host(exec_of(0), handle_of(0, 2), &other);
    kp_graph_set_enabled(exec_of(0), handle_of(1, 0), false);
    const struct kp_graph_content *now = kp_graph_hold(exec_of(0));
    assert_ptr_not_equal(now, held);
    assert_null(kp_graph_nodes_find(held->nodes, handle_of(0, 2))->host.fn);
    assert_ptr_equal(kp_graph_nodes_find(now->nodes, handle_of(0, 2))->host.fn, call_other);
    order_is(held->nodes, (const unsigned[]){10, 20}, 2);
    order_is(now->nodes, (const unsigned[]){10}, 1);
    kp_graph_let(held);
    kp_graph_let(now);
    kp_graph_set_host(exec_of(0), handle_of(0, 0), &other); /* the driver would refuse it: a kernel */
    assert_null(kp_graph_hold(exec_of(0)));
    struct kp_why why = found(exec_of(0)).whole;
    assert_int_equal(why.reason, KP_REASON_GRAPH_CHANGED);
    kp_graph_forget(exec_of(0));
}

static void a_change_that_is_not_followed_makes_it_one_workload(void **state)
{
    (void)state;
    add(0, CU_GRAPH_NODE_TYPE_KERNEL);
    kp_graph_note(&driver, exec_of(0), graph_of(0), 0, true);
    kp_graph_blur(exec_of(1)); /* was never seen */
    kp_graph_let(kp_graph_hold(exec_of(0)));
    kp_graph_blur(exec_of(0));
    assert_null(kp_graph_hold(exec_of(0)));
    assert_int_equal(found(exec_of(0)).whole.reason, KP_REASON_GRAPH_CHANGED);
    kp_graph_forget(exec_of(0));
}

/* Nothing is known of memory that a graph reaches if it cannot be read: it is not repeated. */
static void what_cannot_be_studied_runs_once(void **state)
{
    (void)state;
    static const struct {
        CUgraphNodeType type;
        size_t refused; /* function */
    } rows[] = {
        {CU_GRAPH_NODE_TYPE_KERNEL, offsetof(struct kp_driver, cuGraphKernelNodeGetParams)},
        {CU_GRAPH_NODE_TYPE_KERNEL, offsetof(struct kp_driver, cuGraphNodeGetType)},
        {CU_GRAPH_NODE_TYPE_KERNEL, offsetof(struct kp_driver, cuGraphGetNodes)},
        {CU_GRAPH_NODE_TYPE_MEMCPY, offsetof(struct kp_driver, cuGraphMemcpyNodeGetParams)},
        {CU_GRAPH_NODE_TYPE_GRAPH, offsetof(struct kp_driver, cuGraphChildGraphNodeGetGraph)},
    };
    CUresult (*const refused)(void) = refuse;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct kp_driver d = driver;
        set_up(NULL);
        add(0, rows[i].type)->child = graph_of(1);
        kp_graph_note(&d, exec_of(0), graph_of(0), 0, true);
        assert_false(found(exec_of(0)).once_reason);
        memcpy((char *)&d + rows[i].refused, &refused, sizeof(refused));
        kp_graph_note(&d, exec_of(0), graph_of(0), 0, true);
        assert_int_not_equal(found(exec_of(0)).once_reason, KP_REASON_NONE);
        kp_graph_forget(exec_of(0));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(nodes_come_after_what_they_depend_on, set_up),
        cmocka_unit_test_setup(independent_nodes_keep_the_order_of_the_driver, set_up),
        cmocka_unit_test_setup(children_run_where_their_node_is, set_up),
        cmocka_unit_test_setup(disabled_nodes_do_nothing, set_up),
        cmocka_unit_test_setup(arguments_are_copied, set_up),
        cmocka_unit_test_setup(new_parameters_keep_the_attributes, set_up),
        cmocka_unit_test_setup(some_graphs_stay_whole, set_up),
        cmocka_unit_test_setup(a_limit_that_was_lowered_since_is_raised_for_the_launch, set_up),
        cmocka_unit_test_setup(kernels_are_tried_in_a_capture, set_up),
        cmocka_unit_test_setup(host_functions_come_last, set_up),
        cmocka_unit_test_setup(memory_is_allocated_and_freed, set_up),
        cmocka_unit_test_setup(memory_is_of_one_device, set_up),
        cmocka_unit_test_setup(memory_of_graphs_is_known, set_up),
        cmocka_unit_test_setup(copies_keep_what_a_graph_is, set_up),
        cmocka_unit_test_setup(what_cannot_be_read_stays_in_the_graph, set_up),
        cmocka_unit_test_setup(kernels_are_functions_of_the_context, set_up),
        cmocka_unit_test_setup(attributes_that_were_set_are_kept, set_up),
        cmocka_unit_test_setup(a_launch_has_the_attributes_of_its_node, set_up),
        cmocka_unit_test_setup(memsets_are_issued_in_their_size, set_up),
        cmocka_unit_test_setup(events_are_waited_for, set_up),
        cmocka_unit_test_setup(copies_of_arrays_to_the_host_stay_in_the_graph, set_up),
        cmocka_unit_test_setup(memory_of_two_devices_stays_in_the_graph, set_up),
        cmocka_unit_test_setup(graphs_say_what_keeps_them_whole, set_up),
        cmocka_unit_test_setup(changes_reach_the_next_launch, set_up),
        cmocka_unit_test_setup(a_change_that_is_not_followed_makes_it_one_workload, set_up),
        cmocka_unit_test_setup(what_cannot_be_studied_runs_once, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
