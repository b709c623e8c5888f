/* The nodes of graphs: their order, their copies, and what cannot be issued by itself. A driver of tables stands in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "preload/graphs/graph_memory.h"
#include "preload/graphs/graph_pairs.h"

enum { MOST = 8, PRIORITY = 3 };

/* A node of a graph, and the places of those that it depends on. */
static struct stub {
    CUgraphNodeType type;
    size_t on[MOST], n_on;
    unsigned blocks; /* of a kernel */
    uint64_t value;  /* its argument */
    CUgraph child;
    unsigned shared; /* byte */
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
    *p = (CUDA_KERNEL_NODE_PARAMS){.func = (CUfunction)(uintptr_t)0x10,
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
    if (id == CU_LAUNCH_ATTRIBUTE_PRIORITY && stub_of(node)->has_priority)
        value->priority = PRIORITY;
    if (id == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP) /* what the driver says of any kernel */
        value->memSyncDomainMap.remote = 1;
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

static void old_drivers_do_not_tell_of_memory(void **state)
{
    (void)state;
    struct kp_driver old = driver;
    add_alloc(0, 5000);
    add_free(0, 5000);
    old.cuGraphMemFreeNodeGetParams = NULL;
    assert_int_equal(judged(&old, 0, true, 0), KP_REASON_GRAPH_FREES_UNSEEN);
    old.cuGraphMemAllocNodeGetParams = NULL;
    assert_int_equal(judged(&old, 0, true, 0), KP_REASON_GRAPH_ALLOCATES_UNSEEN);
    kp_graph_memory_note(&old, NULL, graph_of(0));
    assert_false(kp_graph_memory_holds(5000));
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
        cmocka_unit_test_setup(old_drivers_do_not_tell_of_memory, set_up),
        cmocka_unit_test_setup(memory_of_graphs_is_known, set_up),
        cmocka_unit_test_setup(copies_keep_what_a_graph_is, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
