/* Pages of device memory that a launch can reach, over the fake driver: plain memory of the context alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "preload/graphs/graph_memory.h"
#include "preload/graphs/host_pointers.h"
#include "tests/support/fake_support.h"

enum { MOST = 4 };

static struct {
    CUcontext ctx;
    struct kp_driver *driver;
    struct kp_pages pages[MOST];
} t;

static int set_up(void **state)
{
    (void)state;
    t.ctx = kp_test_context();
    t.driver = kp_test_driver();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    kp_test_context_end(t.ctx);
    return 0;
}

/* The pages of a launch with these words as its arguments. */
static size_t reached(const uint64_t *words, size_t n, size_t most)
{
    struct kp_launch l = {.copy = (void *)(uintptr_t)words, .copied = n * sizeof(*words)};
    memset(t.pages, 0, sizeof(t.pages));
    return kp_reach_pages(t.driver, t.ctx, &l, t.pages, most);
}

static CUdeviceptr alloc(size_t bytes)
{
    CUdeviceptr memory;
    assert_int_equal(t.driver->cuMemAlloc(&memory, bytes), CUDA_SUCCESS);
    return memory;
}

static void test_lists_allocations_once(void **state)
{
    CUdeviceptr small = alloc(100), large = alloc(2 * (size_t)KP_PAGE_BYTES + 4), tiny = alloc(3);
    (void)state;
    const uint64_t words[] = {1, small, 7, small + 50, large + KP_PAGE_BYTES, 0x123456789, tiny};
    assert_int_equal(reached(words, sizeof(words) / sizeof(*words), MOST), 2); /* no word of `tiny` can be read */
    assert_int_equal(t.pages[0].at, small + 96);                               /* the last word */
    assert_int_equal(t.pages[0].n, 1);
    assert_int_equal(t.pages[1].at, large); /* whose last page has one word alone */
    assert_int_equal(t.pages[1].n, 3);
    assert_int_equal(reached(words, sizeof(words) / sizeof(*words), 1), 1);
    t.driver->cuMemFree(small);
    assert_int_equal(reached(words, 2, MOST), 0);
    t.driver->cuMemFree(large);
    t.driver->cuMemFree(tiny);
}

/* Of a very large allocation, the pages from the address on, and none behind its end. */
static void test_lists_some_of_much(void **state)
{
    const size_t page = KP_PAGE_BYTES;
    CUdeviceptr much = alloc(300 * page);
    (void)state;
    const uint64_t middle = much + 100 * page + 5, end = much + 299 * page + 5;
    assert_int_equal(reached(&middle, 1, MOST), 1);
    assert_int_equal(t.pages[0].at, much + 101 * page - 4);
    assert_int_equal(t.pages[0].n, 16);
    assert_int_equal(reached(&end, 1, MOST), 1);
    assert_int_equal(t.pages[0].at, much + 300 * page - 4);
    assert_int_equal(t.pages[0].n, 1);
    t.driver->cuMemFree(much);
}

/* Reading managed memory would move it, and that of the host is no matter of the GPU's translations. */
static void test_leaves_other_memory_out(void **state)
{
    CUresult (*managed)(CUdeviceptr *, size_t, unsigned) =
        (CUresult(*)(CUdeviceptr *, size_t, unsigned))(uintptr_t)kp_test_fake("cuMemAllocManaged");
    CUresult (*pinned)(void **, size_t) = (CUresult(*)(void **, size_t))(uintptr_t)kp_test_fake("cuMemAllocHost_v2");
    CUresult (*free_host)(void *) = (CUresult(*)(void *))(uintptr_t)kp_test_fake("cuMemFreeHost");
    CUdeviceptr moved;
    void *host;
    (void)state;
    assert_int_equal(managed(&moved, 64, CU_MEM_ATTACH_GLOBAL), CUDA_SUCCESS);
    assert_int_equal(pinned(&host, 64), CUDA_SUCCESS);
    const uint64_t words[] = {moved, (uint64_t)(uintptr_t)host};
    assert_int_equal(reached(words, 2, MOST), 0);
    t.driver->cuMemFree(moved);
    free_host(host);
}

/* Another context's memory may be another device's. */
static void test_leaves_other_contexts_out(void **state)
{
    uint64_t word = alloc(64);
    CUcontext own = t.ctx;
    (void)state;
    t.ctx = (CUcontext)(uintptr_t)&word;
    assert_int_equal(reached(&word, 1, MOST), 0);
    t.ctx = own;
    assert_int_equal(reached(&word, 1, MOST), 1);
    t.driver->cuMemFree(word);
}

/* Addresses that a graph will have memory at are mapped by the driver, which yet does not tell what they are. */
static void test_memory_of_graphs_is_no_heap(void **state)
{
    CUresult (*create)(CUgraph *, unsigned) =
        (CUresult(*)(CUgraph *, unsigned))(uintptr_t)kp_test_fake("cuGraphCreate");
    CUresult (*add)(CUgraphNode *, CUgraph, const CUgraphNode *, size_t, CUDA_MEM_ALLOC_NODE_PARAMS *) =
        (CUresult(*)(CUgraphNode *, CUgraph, const CUgraphNode *, size_t, CUDA_MEM_ALLOC_NODE_PARAMS *))(
            uintptr_t)kp_test_fake("cuGraphAddMemAllocNode");
    CUDA_MEM_ALLOC_NODE_PARAMS p = {.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE, .bytesize = 64};
    CUgraphExec exec = (CUgraphExec)(uintptr_t)0x99;
    CUgraphNode node;
    CUgraph graph;
    (void)state;
    assert_int_equal(create(&graph, 0), CUDA_SUCCESS);
    assert_int_equal(add(&node, graph, NULL, 0, &p), CUDA_SUCCESS);
    const uint64_t word = p.dptr + 8;
    const struct kp_launch l = {.copy = (void *)(uintptr_t)&word, .copied = sizeof(word)};
    assert_true(kp_reach_heap(t.driver, &l));
    kp_graph_memory_note(t.driver, exec, graph);
    assert_false(kp_reach_heap(t.driver, &l));
    kp_graph_memory_forget(exec);
    assert_true(kp_reach_heap(t.driver, &l));
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_lists_allocations_once),      TEST(test_lists_some_of_much),
        TEST(test_leaves_other_memory_out),     TEST(test_leaves_other_contexts_out),
        TEST(test_memory_of_graphs_is_no_heap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
