/* The nodes of graphs: their order, their copies, and what cannot be issued by itself. A driver of tables stands in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "preload/program/graph_nodes.h"

enum { MOST = 8, PRIORITY = 3 };

/* A node of a graph, and the places of those that it depends on. */
static struct stub {
    CUgraphNodeType type;
    size_t on[MOST], n_on;
    unsigned blocks; /* of a kernel */
    uint64_t value;  /* its argument */
    CUgraph child;
    bool has_priority, updated_by_device;
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
                                   .kernelParams = params};
    return CUDA_SUCCESS;
}

static CUresult get_attribute(CUgraphNode node, CUlaunchAttributeID id, CUlaunchAttributeValue *value)
{
    memset(value, 0, sizeof(*value));
    if (id == CU_LAUNCH_ATTRIBUTE_PRIORITY && stub_of(node)->has_priority)
        value->priority = PRIORITY;
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

static CUresult launch_ex(const CUlaunchConfig *config, CUfunction f, void **params, void **extra)
{
    (void)config, (void)f, (void)params, (void)extra;
    return CUDA_SUCCESS;
}

static const struct kp_driver driver = {.cuGraphGetNodes = get_nodes,
                                        .cuGraphNodeGetType = get_type,
                                        .cuGraphChildGraphNodeGetGraph = get_child,
                                        .cuGraphNodeGetDependencies = get_dependencies,
                                        .cuGraphKernelNodeGetParams = get_kernel,
                                        .cuGraphKernelNodeGetAttribute = get_attribute,
                                        .cuFuncGetParamInfo = get_param,
                                        .cuLaunchKernelEx = launch_ex};

static int set_up(void **state)
{
    (void)state;
    memset(stubs, 0, sizeof(stubs));
    memset(n_stubs, 0, sizeof(n_stubs));
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

static struct kp_graph_nodes *read_first(const char **why)
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
    const char *why;
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
    const char *why;
    for (int i = 0; i < 4; i++)
        add(0, CU_GRAPH_NODE_TYPE_KERNEL);
    struct kp_graph_nodes *g = read_first(&why);
    order_is(g, (const unsigned[]){10, 11, 12, 13}, 4);
    kp_graph_nodes_free(g);
}

static void children_run_where_their_node_is(void **state)
{
    (void)state;
    const char *why;
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
    const char *why;
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
    const char *why;
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
    const char *why;
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
    assert_null(kp_graph_node_kernel(&driver, &p, NULL, &g->nodes[0], &fresh));
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
    const char *why = NULL;
    add(0, CU_GRAPH_NODE_TYPE_KERNEL);
    add(0, CU_GRAPH_NODE_TYPE_HOST);
    assert_null(read_first(&why));
    assert_string_equal(why, "graph with nodes that cannot be issued by themselves");
    stubs[0][1].type = CU_GRAPH_NODE_TYPE_KERNEL;
    stubs[0][1].updated_by_device = true;
    assert_null(read_first(&why));
    assert_string_equal(why, "graph with a kernel that the device may change");
    stubs[0][1].updated_by_device = false;
    depend(&stubs[0][0], 1); /* a circle: no order */
    depend(&stubs[0][1], 0);
    assert_null(read_first(&why));
    assert_string_equal(why, "graph whose nodes could not be read");
    stubs[0][1].n_on = 0;
    struct kp_graph_nodes *g = read_first(&why);
    assert_non_null(g);
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
