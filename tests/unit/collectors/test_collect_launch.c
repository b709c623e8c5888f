/* Launch and occupancy metrics over a table of driver functions that answer what a test sets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectors/facts/launch.h"
#include "collectors/facts/topology.h"
#include "report/define/sections.h"
#include "tests/support/occupancy_launches.h"

/* ---- the driver ---- */

static struct {
    CUresult blocks_rc, largest_rc, active_rc;
    int blocks, largest, active;
    int asked_threads;
    size_t asked_shared;
    unsigned asked_cluster[3], asked_grid, asked_attributes;
    int active_by_size; /* in place of `active`: this, divided by the size of the cluster */
} driver;

static CUfunction const function = (CUfunction)(uintptr_t)0x1000;

static CUresult max_blocks(int *blocks, CUfunction f, int threads, size_t shared)
{
    assert_ptr_equal(f, function);
    driver.asked_threads = threads;
    driver.asked_shared = shared;
    *blocks = driver.blocks;
    return driver.blocks_rc;
}

static CUresult max_cluster(int *size, CUfunction f, const CUlaunchConfig *config)
{
    assert_ptr_equal(f, function);
    driver.asked_attributes = config->numAttrs;
    *size = driver.largest;
    return driver.largest_rc;
}

static CUresult max_active(int *clusters, CUfunction f, const CUlaunchConfig *config)
{
    assert_ptr_equal(f, function);
    assert_int_equal(config->numAttrs, 1);
    assert_int_equal(config->attrs[0].id, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
    driver.asked_cluster[0] = config->attrs[0].value.clusterDim.x;
    driver.asked_cluster[1] = config->attrs[0].value.clusterDim.y;
    driver.asked_cluster[2] = config->attrs[0].value.clusterDim.z;
    driver.asked_grid = config->gridDimX * config->gridDimY * config->gridDimZ;
    unsigned size = driver.asked_cluster[0] * driver.asked_cluster[1] * driver.asked_cluster[2];
    assert_int_equal(driver.asked_grid % size, 0);
    *clusters = driver.active_by_size ? driver.active_by_size / (int)size : driver.active;
    return driver.active_rc;
}

static const struct kp_driver table = {
    .cuOccupancyMaxActiveBlocksPerMultiprocessor = max_blocks,
    .cuOccupancyMaxPotentialClusterSize = max_cluster,
    .cuOccupancyMaxActiveClusters = max_active,
};

/* ---- one launch ---- */

struct subject {
    struct kp_driver driver;
    struct kp_device device;
    struct kp_context_facts context;
    struct kp_function function;
    struct kp_shape shape;
    struct kp_launch_extra extra;
    struct kp_result result;
};

static void prepare(struct subject *s, const struct kp_device *device, uint32_t blocks, uint32_t threads)
{
    memset(s, 0, sizeof(*s));
    memset(&driver, 0, sizeof(driver));
    driver.largest = 8;
    s->driver = table;
    s->device = *device;
    s->context = (struct kp_context_facts){.stack_size = 1024, .sm_count = device->sm_count};
    s->function = (struct kp_function){.handle = function, .registers = 16, .barrier_limit = 32};
    s->shape = (struct kp_shape){.grid = {blocks, 1, 1}, .block = {threads, 1, 1}};
    s->extra = (struct kp_launch_extra){.shared_config = 32768};
}

static void measure(struct subject *s)
{
    kp_result_free(&s->result);
    assert_int_equal(
        kp_launch_metrics(&s->result, &s->driver, &s->device, &s->context, &s->function, &s->shape, &s->extra), 0);
}

static double number(const struct subject *s, const char *metric)
{
    double value = -1;
    const struct kp_metric *m = kp_result_find(&s->result, metric);
    if (!m || !kp_metric_number(m, &value))
        fail_msg("%s is %s", metric, m && m->text ? m->text : "not there");
    return value;
}

static const char *text(const struct subject *s, const char *metric)
{
    const struct kp_metric *m = kp_result_find(&s->result, metric);
    if (!m || m->kind != KP_VALUE_TEXT)
        fail_msg("%s is no text", metric);
    return m->text;
}

static void assert_missing(const struct subject *s, const char *metric, const char *why)
{
    const struct kp_metric *m = kp_result_find(&s->result, metric);
    if (!m || m->kind != KP_VALUE_NA)
        fail_msg("%s is not n/a", metric);
    if (!m->text || !strstr(m->text, why))
        fail_msg("%s is n/a for \"%s\", not \"%s\"", metric, m->text ? m->text : "", why);
}

static void assert_absent(const struct subject *s, const char *metric)
{
    if (kp_result_find(&s->result, metric))
        fail_msg("%s is there", metric);
}

/* ---- what every launch has ---- */

static void test_recorded_launches(void **state)
{
    (void)state;
    for (size_t i = 0; i < kp_test_n_launches; i++) {
        const struct kp_test_launch *l = &kp_test_launches[i];
        struct subject s;
        prepare(&s, l->device, l->grid, l->threads);
        driver.blocks_rc = CUDA_ERROR_INVALID_VALUE; /* not needed: all limits are known, or do not exist */
        s.function.registers = l->registers;
        s.function.static_shared = l->static_shared;
        s.function.barrier_limit = l->barrier_limit;
        s.shape.dynamic_shared = l->dynamic_shared;
        s.extra.shared_config = l->shared_config;
        measure(&s);
        char waves[32];
        int decimals = (int)strlen(strchr(l->waves, '.')) - 1;
        snprintf(waves, sizeof(waves), "%.*f", decimals, number(&s, "launch__waves_per_multiprocessor"));
        assert_string_equal(waves, l->waves);
        assert_float_equal(number(&s, "sm__maximum_warps_per_active_cycle_pct"), l->percent, 0.005);
        assert_float_equal(number(&s, "sm__maximum_warps_avg_per_active_cycle"), l->warps, 0);
        assert_float_equal(number(&s, "smsp__maximum_warps_avg_per_active_cycle"), l->warps / 4, 0);
        assert_int_equal(number(&s, "launch__registers_per_thread"), l->registers);
        assert_int_equal(number(&s, "launch__registers_per_thread_allocated"), l->registers_allocated);
        assert_int_equal(number(&s, "launch__occupancy_limit_registers"), l->limit_registers);
        assert_int_equal(number(&s, "launch__occupancy_limit_shared_mem"), l->limit_shared);
        assert_int_equal(number(&s, "launch__occupancy_limit_warps"), l->limit_warps);
        assert_int_equal(number(&s, "launch__occupancy_limit_blocks"), l->limit_blocks);
        assert_int_equal(number(&s, "launch__shared_mem_config_size"), l->shared_config);
        if (l->barrier_limit)
            assert_int_equal(number(&s, "launch__occupancy_limit_barriers"), l->barrier_limit);
        else
            assert_absent(&s, "launch__occupancy_limit_barriers");
        kp_result_free(&s.result);
    }
}

static void test_geometry(void **state)
{
    struct subject s;
    (void)state;
    prepare(&s, &kp_test_h200, 0, 0);
    memcpy(s.shape.grid, (uint32_t[]){100000, 3, 2}, sizeof(s.shape.grid));
    memcpy(s.shape.block, (uint32_t[]){32, 4, 8}, sizeof(s.shape.block));
    s.shape.dynamic_shared = 400;
    s.function.static_shared = 96;
    s.context.cache_config = CU_FUNC_CACHE_PREFER_L1;
    measure(&s);
    assert_int_equal(number(&s, "launch__grid_dim_x"), 100000);
    assert_int_equal(number(&s, "launch__grid_dim_y"), 3);
    assert_int_equal(number(&s, "launch__grid_dim_z"), 2);
    assert_int_equal(number(&s, "launch__block_dim_x"), 32);
    assert_int_equal(number(&s, "launch__block_dim_y"), 4);
    assert_int_equal(number(&s, "launch__block_dim_z"), 8);
    assert_int_equal(number(&s, "launch__grid_size"), 600000);
    assert_int_equal(number(&s, "launch__block_size"), 1024);
    assert_true(number(&s, "launch__thread_count") == 614400000.0);
    assert_int_equal(number(&s, "launch__stack_size"), 1024);
    assert_int_equal(number(&s, "launch__sm_count"), 132);
    assert_int_equal(number(&s, "launch__tpc_count"), 66);
    assert_string_equal(text(&s, "launch__tpc_enabled"), "all");
    assert_int_equal(number(&s, "launch__uses_green_context"), 0);
    assert_string_equal(text(&s, "launch__func_cache_config"), "CachePreferL1");
    assert_int_equal(number(&s, "launch__shared_mem_per_block_static"), 96);
    assert_int_equal(number(&s, "launch__shared_mem_per_block_dynamic"), 400);
    assert_int_equal(number(&s, "launch__shared_mem_per_block_driver"), 1024);
    assert_int_equal(number(&s, "launch__shared_mem_per_block"), 1520);
    assert_int_equal(number(&s, "launch__shared_mem_per_block_allocated"), 1536);
    assert_int_equal(driver.asked_threads, 1024);
    assert_int_equal(driver.asked_shared, 400);
    kp_result_free(&s.result);
}

static const char *unit(const struct subject *s, const char *metric)
{
    const struct kp_metric *m = kp_result_find(&s->result, metric);
    return m ? m->unit : "(none)";
}

/* What the header of the launch has, the context and the device. */
static void test_identity(void **state)
{
    struct subject s;
    (void)state;
    prepare(&s, &kp_test_h200, 1, 32);
    s.context.persisting_l2_known = true;
    s.context.persisting_l2 = 11796480;
    s.shape.nvlink_centric = true;
    s.device.mps = 1;
    s.result.launch =
        (struct kp_launch_info){.context_id = 3, .stream_id = 7, .device = 2, .demangled = strdup("f(int)")};
    assert_int_equal(kp_launch_metrics(&s.result, &s.driver, &s.device, &s.context, &s.function, &s.shape, &s.extra),
                     0);
    assert_int_equal(number(&s, "launch__context_id"), 3);
    assert_int_equal(number(&s, "launch__stream_id"), 7);
    assert_int_equal(number(&s, "launch__device_id"), 2);
    assert_string_equal(text(&s, "launch__kernel_name"), "f(int)");
    assert_int_equal(number(&s, "launch__persisting_l2_cache_size"), 11796480);
    assert_string_equal(unit(&s, "launch__persisting_l2_cache_size"), "byte");
    assert_string_equal(unit(&s, "launch__block_dim_x"), "block");
    assert_string_equal(unit(&s, "launch__grid_dim_x"), "");
    assert_int_equal(number(&s, "launch__uses_nvlink_centric_scheduling"), 1);
    assert_int_equal(number(&s, "launch__uses_mps"), 1);
    assert_missing(&s, "launch__uses_cdp", "SourceCounters");
    assert_missing(&s, "launch__function_pcs", "SourceCounters");
    s.function.code_known = true;
    s.function.code = (struct kp_kernel_code){.functions = 3, .launches = true};
    measure(&s);
    assert_int_equal(number(&s, "launch__uses_cdp"), 1);
    assert_int_equal(number(&s, "launch__function_pcs"), 3);
    assert_int_equal(number(&s, "launch__barrier_count"), 0);
    s.device.mps = -1;
    s.shape.nvlink_centric = false;
    s.context.persisting_l2_known = false;
    measure(&s);
    assert_missing(&s, "launch__uses_mps", "driver");
    assert_int_equal(number(&s, "launch__uses_nvlink_centric_scheduling"), 0);
    assert_missing(&s, "launch__persisting_l2_cache_size", "driver");
    s.device.cc_major = 7;
    measure(&s);
    assert_absent(&s, "launch__persisting_l2_cache_size");
    kp_result_free(&s.result);
}

static void test_spilling(void **state)
{
    struct subject s;
    (void)state;
    prepare(&s, &kp_test_h200, 1, 32);
    measure(&s);
    assert_int_equal(number(&s, "derived__local_spilling_requests"), 0);
    assert_int_equal(number(&s, "derived__local_spilling_requests_pct"), 0);
    s.function.local_bytes = 16;
    measure(&s);
    assert_int_equal(kp_result_find(&s.result, "derived__local_spilling_requests")->kind, KP_VALUE_NA);
    assert_int_equal(kp_result_find(&s.result, "derived__local_spilling_requests_pct")->kind, KP_VALUE_NA);
    s.function.code_known = true; /* and does not spill */
    measure(&s);
    assert_int_equal(number(&s, "derived__local_spilling_requests"), 0);
    assert_int_equal(number(&s, "derived__local_spilling_requests_pct"), 0);
    s.function.code.spills = true;
    measure(&s);
    assert_missing(&s, "derived__local_spilling_requests", "SourceCounters");
    kp_result_free(&s.result);
}

static void test_cache_configurations(void **state)
{
    static const struct {
        CUfunc_cache config;
        const char *text;
    } rows[] = {{CU_FUNC_CACHE_PREFER_NONE, "CachePreferNone"},
                {CU_FUNC_CACHE_PREFER_SHARED, "CachePreferShared"},
                {CU_FUNC_CACHE_PREFER_L1, "CachePreferL1"},
                {CU_FUNC_CACHE_PREFER_EQUAL, "CachePreferEqual"}};
    struct subject s;
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        prepare(&s, &kp_test_h200, 1, 32);
        s.context.cache_config = rows[i].config;
        measure(&s);
        assert_string_equal(text(&s, "launch__func_cache_config"), rows[i].text);
        kp_result_free(&s.result);
    }
}

/* A context of 16 of the SMs: blocks spread over those. Which TPCs they are, the driver does not tell. */
static void test_green_context(void **state)
{
    struct subject s;
    (void)state;
    prepare(&s, &kp_test_h200, 256, 256);
    s.context.sm_count = 16;
    measure(&s);
    assert_int_equal(number(&s, "launch__sm_count"), 16);
    assert_int_equal(number(&s, "launch__tpc_count"), 8);
    assert_int_equal(number(&s, "launch__uses_green_context"), 1);
    assert_missing(&s, "launch__tpc_enabled", "green context");
    assert_float_equal(number(&s, "launch__waves_per_multiprocessor"), 2, 0); /* 16 SMs of 8 blocks */
    kp_result_free(&s.result);
}

static void test_shared_config_unknown(void **state)
{
    static const char why[] = "the driver keeps it to itself";
    struct subject s;
    (void)state;
    prepare(&s, &kp_test_h200, 1056, 256);
    driver.blocks = 5;
    s.extra = (struct kp_launch_extra){.shared_config_why = {KP_REASON_NO_RECORD, (char *)why}};
    measure(&s);
    assert_missing(&s, "launch__shared_mem_config_size", why);
    assert_missing(&s, "launch__occupancy_limit_shared_mem", why);
    assert_float_equal(number(&s, "sm__maximum_warps_avg_per_active_cycle"), 40, 0); /* the driver knows it */
    assert_float_equal(number(&s, "launch__waves_per_multiprocessor"), 1056 / (132.0 * 5), 0);
    kp_result_free(&s.result);
}

static void test_barrier_limit_unknown(void **state)
{
    struct subject s;
    (void)state;
    prepare(&s, &kp_test_h200, 1056, 256);
    driver.blocks = 6;
    s.function.barrier_limit = 0;
    measure(&s);
    assert_missing(&s, "launch__occupancy_limit_barriers", "barriers");
    assert_float_equal(number(&s, "sm__maximum_warps_per_active_cycle_pct"), 75, 0);
    kp_result_free(&s.result);
}

/* The driver gives a thread more registers than the function's attribute says: what it was launched with counts. */
static void test_registers_as_launched(void **state)
{
    struct subject s;
    (void)state;
    prepare(&s, &kp_test_h200, 1056, 256);
    s.function.registers = 12;
    measure(&s);
    assert_int_equal(number(&s, "launch__registers_per_thread"), 12);
    s.extra.registers = 40;
    measure(&s);
    assert_int_equal(number(&s, "launch__registers_per_thread"), 40);
    assert_int_equal(number(&s, "launch__registers_per_thread_allocated"), 40);
    assert_int_equal(number(&s, "launch__occupancy_limit_registers"), 6);
    assert_float_equal(number(&s, "sm__maximum_warps_avg_per_active_cycle"), 48, 0);
    kp_result_free(&s.result);
}

static void test_barrier_limit_binds(void **state)
{
    struct subject s;
    (void)state;
    prepare(&s, &kp_test_h200, 1056, 64);
    s.function.barrier_limit = 10;
    measure(&s);
    assert_int_equal(number(&s, "launch__occupancy_limit_barriers"), 10);
    assert_float_equal(number(&s, "sm__maximum_warps_avg_per_active_cycle"), 20, 0);
    kp_result_free(&s.result);
}

/* Where the driver does not tell, the code does: 64 barriers an SM, 32 blocks. */
static void test_barriers_of_the_code(void **state)
{
    static const struct {
        uint32_t barriers, limit;
    } rows[] = {{0, 32}, {1, 32}, {2, 32}, {3, 21}, {6, 10}, {16, 4}};
    struct subject s;
    (void)state;
    prepare(&s, &kp_test_h200, 1056, 32);
    s.function.barrier_limit = 0;
    s.function.code_known = true;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        s.function.code.barriers = rows[i].barriers;
        measure(&s);
        assert_int_equal(number(&s, "launch__barrier_count"), rows[i].barriers);
        assert_int_equal(number(&s, "launch__occupancy_limit_barriers"), rows[i].limit);
        assert_float_equal(number(&s, "sm__maximum_warps_avg_per_active_cycle"), rows[i].limit, 0);
    }
    s.function.barrier_limit = 2; /* the driver knows better than a table */
    measure(&s);
    assert_int_equal(number(&s, "launch__occupancy_limit_barriers"), 2);
    s.device.cc_major = 8; /* how many barriers an SM of these has is not known */
    measure(&s);
    assert_int_equal(number(&s, "launch__barrier_count"), 16);
    kp_result_free(&s.result);
}

/* 64 barriers an SM: how many a block has follows from the blocks that they allow, unless several numbers would. */
static void test_barrier_count(void **state)
{
    static const struct {
        uint32_t limit;
        int barriers; /* 0: not to be told */
    } rows[] = {{21, 3}, {16, 4}, {12, 5}, {10, 6}, {9, 7}, {8, 8}, {7, 9}, {6, 10}, {5, 0}, {4, 0}, {32, 0}, {0, 0}};
    struct subject s;
    (void)state;
    prepare(&s, &kp_test_h200, 1056, 64);
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        s.function.barrier_limit = rows[i].limit;
        measure(&s);
        if (rows[i].barriers)
            assert_int_equal(number(&s, "launch__barrier_count"), rows[i].barriers);
        else
            assert_missing(&s, "launch__barrier_count", "barriers");
    }
    s.device.cc_major = 8; /* how many barriers an SM of these has is not known */
    s.function.barrier_limit = 8;
    measure(&s);
    assert_missing(&s, "launch__barrier_count", "barriers");
    kp_result_free(&s.result);
}

static void test_nothing_fits(void **state)
{
    struct subject s;
    (void)state;
    prepare(&s, &kp_test_h200, 1, 1024);
    s.function.registers = 255; /* 32 warps of 8,192 registers: more than there are */
    measure(&s);
    assert_int_equal(number(&s, "launch__occupancy_limit_registers"), 0);
    assert_float_equal(number(&s, "sm__maximum_warps_per_active_cycle_pct"), 0, 0);
    assert_missing(&s, "launch__waves_per_multiprocessor", "fits");
    kp_result_free(&s.result);
}

/* ---- clusters ---- */

static const char *const cluster_rows[] = {
    "launch__cluster_size",       "launch__cluster_scheduling_policy", "launch__cluster_max_potential_size",
    "launch__cluster_max_active", "launch__occupancy_cluster_pct",     "launch__occupancy_cluster_gpu_pct"};

enum { CLUSTER_ROWS = sizeof(cluster_rows) / sizeof(*cluster_rows) };

/* As reported for every launch without clusters on the H200. */
static void test_no_cluster(void **state)
{
    struct subject s;
    (void)state;
    prepare(&s, &kp_test_h200, 1056, 256);
    driver.active = 99; /* not to be asked */
    measure(&s);
    assert_int_equal(number(&s, "launch__cluster_size"), 0);
    assert_int_equal(number(&s, "launch__cluster_max_active"), 0);
    assert_float_equal(number(&s, "launch__occupancy_cluster_pct"), 0, 0);
    assert_float_equal(number(&s, "launch__occupancy_cluster_gpu_pct"), 0, 0);
    assert_int_equal(number(&s, "launch__cluster_max_potential_size"), 8);
    assert_string_equal(text(&s, "launch__cluster_scheduling_policy"), "PolicySpread");
    assert_int_equal(driver.asked_attributes, 0);
    kp_result_free(&s.result);
}

/* Clusters of 2 blocks of 128 threads: 528 active fill a quarter of the 132 x 32 block slots. */
static void test_clusters_of_two(void **state)
{
    struct subject s;
    (void)state;
    prepare(&s, &kp_test_h200, 2112, 128);
    driver.active = 528;
    memcpy(s.shape.cluster, (uint32_t[]){2, 1, 1}, sizeof(s.shape.cluster));
    measure(&s);
    assert_int_equal(number(&s, "launch__cluster_size"), 2);
    assert_int_equal(number(&s, "launch__cluster_max_active"), 528);
    assert_float_equal(number(&s, "launch__occupancy_cluster_pct"), 25, 0);
    assert_float_equal(number(&s, "launch__occupancy_cluster_gpu_pct"), 25, 0); /* theoretical occupancy 100 % */
    assert_int_equal(driver.asked_cluster[0], 2);
    assert_int_equal(driver.asked_grid, 2112);
    kp_result_free(&s.result);
}

/* 154 active clusters of 4 blocks at a theoretical occupancy of 31.25 %: 14.58 % and 4.56 %. */
static void test_clusters_at_low_occupancy(void **state)
{
    struct subject s;
    (void)state;
    prepare(&s, &kp_test_h200, 4096, 128);
    driver.active = 154;
    memcpy(s.shape.cluster, (uint32_t[]){2, 2, 1}, sizeof(s.shape.cluster));
    s.shape.cluster_policy = CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING;
    s.function.barrier_limit = 5;
    measure(&s);
    assert_float_equal(number(&s, "sm__maximum_warps_per_active_cycle_pct"), 31.25, 0);
    assert_int_equal(number(&s, "launch__cluster_size"), 4);
    assert_float_equal(number(&s, "launch__occupancy_cluster_pct"), 14.58, 0.005);
    assert_float_equal(number(&s, "launch__occupancy_cluster_gpu_pct"), 4.56, 0.005);
    assert_string_equal(text(&s, "launch__cluster_scheduling_policy"), "PolicyLoadBalancing");
    assert_int_equal(driver.asked_cluster[0] * driver.asked_cluster[1] * driver.asked_cluster[2], 4);
    kp_result_free(&s.result);
}

static void test_driver_without_cluster_answers(void **state)
{
    struct subject s;
    (void)state;
    for (int refuses = 0; refuses < 2; refuses++) {
        prepare(&s, &kp_test_h200, 2112, 128);
        memcpy(s.shape.cluster, (uint32_t[]){2, 1, 1}, sizeof(s.shape.cluster));
        if (refuses) {
            driver.active_rc = driver.largest_rc = CUDA_ERROR_INVALID_CLUSTER_SIZE;
        } else {
            s.driver.cuOccupancyMaxActiveClusters = NULL;
            s.driver.cuOccupancyMaxPotentialClusterSize = NULL;
        }
        measure(&s);
        assert_int_equal(number(&s, "launch__cluster_size"), 2);
        for (size_t i = 2; i < CLUSTER_ROWS; i++)
            assert_missing(&s, cluster_rows[i], "driver");
        kp_result_free(&s.result);
    }
}

static void test_no_cluster_rows_before_9(void **state)
{
    struct subject s;
    (void)state;
    prepare(&s, &kp_test_cc86, 1024, 256);
    measure(&s);
    for (size_t i = 0; i < CLUSTER_ROWS; i++)
        assert_absent(&s, cluster_rows[i]);
    assert_absent(&s, "launch__occupancy_limit_barriers");
    kp_result_free(&s.result);
}

/* ---- curves ---- */

static const struct kp_metric *curve(const struct subject *s, const char *metric, const char *in, double sum, size_t n)
{
    const struct kp_metric *m = kp_result_find(&s->result, metric);
    double value = -1;
    if (!m || !kp_metric_number(m, &value))
        fail_msg("no %s", metric);
    assert_string_equal(m->unit, in);
    assert_float_equal(value, sum, 0);
    assert_int_equal(m->n_instances, n);
    return m;
}

static void assert_point(const struct kp_metric *m, size_t i, const char *key, double value)
{
    assert_true(i < m->n_instances);
    assert_string_equal(m->instances[i].key, key);
    assert_float_equal(m->instances[i].value, value, 0);
}

static void prepare_triad(struct subject *s)
{
    prepare(s, &kp_test_h200, 65536, 256);
    s->function.registers = 22;
    s->extra.curves = true;
}

/* As printed for stream_triad on the H200; its percent curve over shared memory is 2.614 %/Kbyte there. */
static void test_curves(void **state)
{
    struct subject s;
    const struct kp_metric *m;
    (void)state;
    prepare_triad(&s);
    measure(&s);
    m = curve(&s, "launch__occupancy_per_register_count", "", 5504, 257);
    assert_point(m, 0, "0", 64);
    assert_point(m, 33, "33", 48);
    assert_point(m, 256, "256", 8);
    m = curve(&s, "launch__occupancy_per_block_size", "", 3670, 65);
    assert_point(m, 5, "80", 63);
    assert_point(m, 64, "1024", 64);
    m = curve(&s, "launch__occupancy_per_shared_mem_size", "", 1696, 456);
    assert_point(m, 9, "4608", 56);
    assert_point(m, 455, "232960", 0);
    m = curve(&s, "launch__occupancy_per_barrier_count", "", 1440, 65);
    assert_point(m, 9, "9", 56);
    curve(&s, "launch__occupancy_per_cluster_size", "", 0, 0);
    m = curve(&s, "derived__pct_occupancy_per_register_count", "%/register", 8524, 257);
    assert_point(m, 49, "49", 50);
    m = curve(&s, "derived__pct_occupancy_per_block_size", "%", 5706, 65);
    assert_point(m, 5, "80", 98); /* 98.4 */
    curve(&s, "derived__pct_occupancy_per_shared_mem_size", "%/byte", 2614, 456);
    m = curve(&s, "derived__pct_occupancy_per_barrier_count", "", 2230, 65);
    assert_point(m, 9, "9", 87);
    kp_result_free(&s.result);
}

static void test_curves_only_when_asked(void **state)
{
    struct subject s;
    (void)state;
    prepare_triad(&s);
    s.extra.curves = false;
    measure(&s);
    for (const char *const *name = kp_launch_metric_names; *name; name++)
        if (strstr(*name, "occupancy_per_"))
            assert_absent(&s, *name);
    kp_result_free(&s.result);
}

static void test_curves_before_9(void **state)
{
    struct subject s;
    (void)state;
    prepare(&s, &kp_test_cc86, 1024, 256);
    s.extra = (struct kp_launch_extra){.shared_config = 8192, .curves = true};
    measure(&s);
    assert_non_null(kp_result_find(&s.result, "launch__occupancy_per_register_count"));
    assert_absent(&s, "launch__occupancy_per_barrier_count");
    assert_absent(&s, "derived__pct_occupancy_per_barrier_count");
    assert_absent(&s, "launch__occupancy_per_cluster_size");
    kp_result_free(&s.result);
}

/* Without the shared-memory configuration there is a limit that no curve can do without. */
static void test_curves_without_configuration(void **state)
{
    struct subject s;
    (void)state;
    prepare_triad(&s);
    s.extra.shared_config = 0;
    s.extra.shared_config_why = kp_why_of(KP_REASON_NO_RECORD, (char *)"nobody knows");
    measure(&s);
    assert_missing(&s, "launch__occupancy_per_register_count", "nobody knows");
    assert_missing(&s, "derived__pct_occupancy_per_shared_mem_size", "nobody knows");
    kp_result_free(&s.result);
}

/* As many points as there are active clusters, with grids of whole clusters; nothing at twice the largest size. */
static void test_cluster_curve(void **state)
{
    struct subject s;
    (void)state;
    prepare_triad(&s);
    driver.active_by_size = 264;
    driver.largest = 8;
    s.shape.grid[0] = 24; /* no whole number of clusters of 16 */
    s.shape.cluster[0] = s.shape.cluster[1] = s.shape.cluster[2] = 2;
    measure(&s);
    int sum = 0;
    for (int size = 1; size < 16; size++)
        sum += 264 / size;
    const struct kp_metric *m = curve(&s, "launch__occupancy_per_cluster_size", "", sum, 33);
    assert_point(m, 0, "0", 0);
    assert_point(m, 1, "1", 264);
    assert_point(m, 3, "3", 88);
    assert_point(m, 15, "15", 17);
    assert_point(m, 16, "16", 0);
    assert_int_equal(number(&s, "launch__cluster_max_active"), 33);
    assert_int_equal(number(&s, "launch__cluster_dim_y"), 2);
    kp_result_free(&s.result);
}

/* ---- names ---- */

static void check_listed(const struct subject *s)
{
    for (size_t i = 0; i < s->result.n_metrics; i++)
        if (!kp_launch_is_metric(s->result.metrics[i].name))
            fail_msg("%s is not listed", s->result.metrics[i].name);
}

/* Every metric that is set is listed, and every one that is listed is set on some chip. */
static void test_names(void **state)
{
    static const struct kp_device *const devices[] = {&kp_test_cc86, &kp_test_h200, &kp_test_b200};
    struct subject s;
    (void)state;
    for (size_t i = 0; i < sizeof(devices) / sizeof(*devices); i++) {
        prepare(&s, devices[i], 1024, 256);
        s.extra.curves = true;
        measure(&s);
        check_listed(&s);
        if (i + 1 < sizeof(devices) / sizeof(*devices))
            kp_result_free(&s.result);
    }
    const char *before = "";
    for (const char *const *name = kp_launch_metric_names; *name; before = *name++) {
        assert_true(strcmp(before, *name) < 0); /* they are searched by halves */
        assert_true(kp_launch_is_metric(*name));
        if (!kp_result_find(&s.result, *name))
            fail_msg("%s is listed and never set", *name);
    }
    assert_true(kp_launch_is_metric("device__attribute_warp_size"));
    assert_true(kp_launch_is_metric("numa__id_cpu"));
    assert_true(kp_launch_is_metric("nvlink__max_count"));
    assert_false(kp_launch_is_metric("sm__cycles_active.avg"));
    assert_false(kp_launch_is_metric("launch__"));
    assert_false(kp_launch_is_metric("launch__grid_size.sum"));
    assert_false(kp_launch_is_metric("device__attribute_"));
    assert_false(kp_launch_is_metric(""));
    kp_result_free(&s.result);
}

/* ---- the table of sections ---- */

/* Those of the device are read apart: tests/unit/collectors/test_collect_topology.c. */
static bool of_the_launch(const struct kp_row *row)
{
    return row->kind != KP_ROW_BODY && (row->source == KP_SRC_LAUNCH || row->source == KP_SRC_OCCUPANCY) &&
           !kp_device_is_metric(row->metric);
}

static void check_rows(const struct subject *s)
{
    size_t n = 0;
    const struct kp_section *sections = kp_sections(&n);
    for (size_t i = 0; i < n; i++)
        for (size_t r = 0; r < sections[i].n_rows; r++) {
            const struct kp_row *row = &sections[i].rows[r];
            if (!of_the_launch(row) || !kp_cc_matches(row->cc, s->device.cc_major, s->device.cc_minor))
                continue;
            const struct kp_metric *m = kp_result_find(&s->result, row->metric);
            if (!m)
                fail_msg("CC %d.%d: no %s", s->device.cc_major, s->device.cc_minor, row->metric);
            if (m->kind != KP_VALUE_NA && strcmp(row->unit, KP_UNIT_OF_CHIP) && strcmp(m->unit, row->unit))
                fail_msg("%s is in \"%s\", its row in \"%s\"", row->metric, m->unit, row->unit);
        }
}

/* Each row of the launch and of its occupancy has its metric, in the row's unit. */
static void test_rows_of_the_sections(void **state)
{
    static const struct kp_device *const devices[] = {&kp_test_h200, &kp_test_cc86, &kp_test_a100};
    struct subject s;
    (void)state;
    for (size_t i = 0; i < sizeof(devices) / sizeof(*devices); i++) {
        prepare(&s, devices[i], 1024, 256);
        s.extra.curves = true;
        measure(&s);
        check_rows(&s);
        kp_result_free(&s.result);
    }
}

static void test_rows_of_the_sections_from_10_on(void **state)
{
    struct subject s;
    (void)state;
    prepare(&s, &kp_test_b200, 1024, 256);
    s.extra.curves = true;
    measure(&s);
    check_rows(&s);
    assert_int_equal(number(&s, "launch__preferred_cluster_size"), 0);
    memcpy(s.shape.preferred_cluster, (uint32_t[]){4, 2, 1}, sizeof(s.shape.preferred_cluster));
    measure(&s);
    assert_int_equal(number(&s, "launch__preferred_cluster_size"), 8);
    assert_int_equal(number(&s, "launch__cluster_size"), 0);
    kp_result_free(&s.result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recorded_launches),
        cmocka_unit_test(test_geometry),
        cmocka_unit_test(test_identity),
        cmocka_unit_test(test_spilling),
        cmocka_unit_test(test_cache_configurations),
        cmocka_unit_test(test_green_context),
        cmocka_unit_test(test_shared_config_unknown),
        cmocka_unit_test(test_barrier_limit_unknown),
        cmocka_unit_test(test_registers_as_launched),
        cmocka_unit_test(test_barrier_limit_binds),
        cmocka_unit_test(test_barriers_of_the_code),
        cmocka_unit_test(test_barrier_count),
        cmocka_unit_test(test_nothing_fits),
        cmocka_unit_test(test_no_cluster),
        cmocka_unit_test(test_clusters_of_two),
        cmocka_unit_test(test_clusters_at_low_occupancy),
        cmocka_unit_test(test_driver_without_cluster_answers),
        cmocka_unit_test(test_no_cluster_rows_before_9),
        cmocka_unit_test(test_curves),
        cmocka_unit_test(test_curves_only_when_asked),
        cmocka_unit_test(test_curves_before_9),
        cmocka_unit_test(test_curves_without_configuration),
        cmocka_unit_test(test_cluster_curve),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_rows_of_the_sections),
        cmocka_unit_test(test_rows_of_the_sections_from_10_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
