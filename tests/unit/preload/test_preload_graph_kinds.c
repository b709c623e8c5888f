/* What a report says of the nodes of graphs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "preload/graphs/graph_kinds.h"

#include <stdlib.h>
#include <string.h>

static unsigned counts[KP_GRAPH_KINDS];
static bool kinds[KP_GRAPH_KINDS];

static unsigned row(int type)
{
    return kp_graph_kind_of((CUgraphNodeType)type);
}

static int clear(void **state)
{
    (void)state;
    memset(counts, 0, sizeof(counts));
    memset(kinds, 0, sizeof(kinds));
    return 0;
}

static void check(char *text, const char *expected)
{
    assert_non_null(text);
    assert_string_equal(text, expected);
    free(text);
}

static void each_type_has_a_row(void **state)
{
    (void)state;
    for (int type = CU_GRAPH_NODE_TYPE_KERNEL; type <= CU_GRAPH_NODE_TYPE_CONDITIONAL; type++) {
        assert_int_equal(kp_graph_kinds[row(type)].type, type);
        assert_true(row(type) < KP_GRAPH_KINDS - 1);
    }
    assert_int_equal(row(CU_GRAPH_NODE_TYPE_CONDITIONAL + 1000), KP_GRAPH_KINDS - 1);
}

static void a_graph_is_described_by_its_nodes(void **state)
{
    (void)state;
    check(kp_graph_describe(counts), "CUDA graph of 0 kernels, 0 copies, 0 memsets");
    counts[row(CU_GRAPH_NODE_TYPE_KERNEL)] = 13;
    counts[row(CU_GRAPH_NODE_TYPE_MEMCPY)] = 2;
    counts[row(CU_GRAPH_NODE_TYPE_MEMSET)] = 1;
    counts[row(CU_GRAPH_NODE_TYPE_GRAPH)] = 3;
    check(kp_graph_describe(counts), "CUDA graph of 13 kernels, 2 copies, 1 memset");
    counts[row(CU_GRAPH_NODE_TYPE_MEM_ALLOC)] = 2;
    counts[row(CU_GRAPH_NODE_TYPE_MEM_FREE)] = 1;
    counts[row(CU_GRAPH_NODE_TYPE_BATCH_MEM_OP)] = 2;
    counts[row(1000)] = 1;
    check(kp_graph_describe(counts),
          "CUDA graph of 13 kernels, 2 copies, 1 memset, 2 memory allocations, 1 memory free, "
          "2 batches of memory operations, 1 node of an unknown type");
}

static void the_kinds_that_keep_a_graph_whole_are_told(void **state)
{
    (void)state;
    kinds[row(CU_GRAPH_NODE_TYPE_CONDITIONAL)] = true;
    check(kp_graph_blame(kinds), "graph with conditional nodes, which cannot be issued by themselves");
    kinds[row(CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT)] = true;
    check(kp_graph_blame(kinds),
          "graph with external semaphore waits and conditional nodes, which cannot be issued by themselves");
    kinds[row(CU_GRAPH_NODE_TYPE_MEM_FREE)] = kinds[row(1000)] = true;
    check(kp_graph_blame(kinds), "graph with external semaphore waits, memory frees, conditional nodes and nodes of "
                                 "unknown types, which cannot be issued by themselves");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_type_has_a_row),
        cmocka_unit_test_setup(a_graph_is_described_by_its_nodes, clear),
        cmocka_unit_test_setup(the_kinds_that_keep_a_graph_whole_are_told, clear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
