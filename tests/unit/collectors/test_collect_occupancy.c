/* The occupancy calculation against every launch that was recorded with Nsight Compute. Also against points of the
 * curves that it prints for the H200: occupancy by registers, by block size, by named barriers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "collectors/facts/occupancy.h"
#include "tests/support/occupancy_launches.h"

static struct kp_occupancy_in input(const struct kp_test_launch *l)
{
    const struct kp_device *d = l->device;
    return (struct kp_occupancy_in){.cc_major = d->cc_major,
                                    .warp_size = d->warp_size,
                                    .schedulers = d->schedulers,
                                    .max_warps = d->max_warps,
                                    .max_blocks = d->max_blocks,
                                    .registers = d->registers,
                                    .reserved_shared = (uint32_t)d->reserved_shared,
                                    .shared_per_sm = d->shared_per_sm,
                                    .shared_per_block = d->shared_per_block,
                                    .shared_per_block_optin = d->shared_per_block_optin,
                                    .block_threads = l->threads,
                                    .registers_per_thread = l->registers,
                                    .static_shared = l->static_shared,
                                    .dynamic_shared = l->dynamic_shared,
                                    .shared_config = l->shared_config,
                                    .barrier_limit = l->barrier_limit};
}

static const struct kp_test_launch *launch(const char *kernel)
{
    for (size_t i = 0; i < kp_test_n_launches; i++)
        if (!strcmp(kp_test_launches[i].kernel, kernel))
            return &kp_test_launches[i];
    fail_msg("no launch of %s", kernel);
    return NULL;
}

static void test_recorded_launches(void **state)
{
    (void)state;
    for (size_t i = 0; i < kp_test_n_launches; i++) {
        const struct kp_test_launch *l = &kp_test_launches[i];
        struct kp_occupancy_in in = input(l);
        struct kp_occupancy o;
        kp_occupancy_compute(&in, &o);
        if (o.limit_registers != l->limit_registers || o.limit_shared != l->limit_shared ||
            o.limit_warps != l->limit_warps || o.limit_blocks != l->limit_blocks || o.warps != l->warps ||
            o.registers_per_thread_allocated != l->registers_allocated || fabs(o.percent - l->percent) > 0.005)
            fail_msg("%s: limits %u %u %u %u, %g warps, %g %%, %u registers", l->kernel, o.limit_registers,
                     o.limit_shared, o.limit_warps, o.limit_blocks, o.warps, o.percent,
                     o.registers_per_thread_allocated);
        assert_int_equal(o.warps_per_block, (l->threads + 31) / 32);
        assert_int_equal(o.blocks * o.warps_per_block, l->warps);
        assert_float_equal(o.warps_per_scheduler, l->warps / 4, 0);
        assert_int_equal(o.shared_per_block, l->static_shared + l->dynamic_shared + 1024);
    }
}

/* Allocated shared memory, as reported: 99,328 byte of 98,304 on CC 8.6, 1,664 of 580, 1,536 of 400 on the A100. */
static void test_shared_granule(void **state)
{
    static const struct {
        const char *kernel;
        uint64_t allocated;
    } rows[] = {{"cutlass::Kernel", 99328},
                {"conv2d_backward_kernel", 1664},
                {"convolutionConstantKernel", 1536},
                {"smem_limited", 205824},
                {"transpose_conflict", 5120}};
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct kp_occupancy_in in = input(launch(rows[i].kernel));
        struct kp_occupancy o;
        kp_occupancy_compute(&in, &o);
        assert_int_equal(o.shared_per_block_allocated, rows[i].allocated);
    }
    /* 256 byte before compute capability 8.0 (CUDA programming guide, allocation unit of 7.x), none kept by the driver
     */
    struct kp_occupancy_in turing = {.cc_major = 7,
                                     .warp_size = 32,
                                     .schedulers = 4,
                                     .max_warps = 32,
                                     .max_blocks = 16,
                                     .registers = 65536,
                                     .block_threads = 32,
                                     .registers_per_thread = 16,
                                     .static_shared = 257,
                                     .shared_config = 65536};
    struct kp_occupancy o;
    kp_occupancy_compute(&turing, &o);
    assert_int_equal(o.shared_per_block_allocated, 512);
    assert_int_equal(o.limit_shared, 128);
}

/* From `from` to `to`: `warps`. */
struct run {
    uint32_t from, to, warps;
};

static uint32_t warps_with(const struct kp_occupancy_in *in)
{
    struct kp_occupancy o;
    kp_occupancy_compute(in, &o);
    assert_float_equal(o.warps, (double)o.blocks * o.warps_per_block, 0);
    return (uint32_t)o.warps;
}

/* The curve of a launch, point by point and as a whole. */
static void check_curve(const char *kernel, enum kp_curve curve, uint32_t expected_step, const struct run *runs,
                        size_t n)
{
    struct kp_occupancy_in in = input(launch(kernel));
    uint32_t warps[KP_CURVE_POINTS], step = 0;
    size_t points = kp_occupancy_curve(&in, curve, warps, &step);
    assert_int_equal(step, expected_step);
    assert_int_equal(points, runs[n - 1].to + 1);
    for (size_t i = 0; i < n; i++)
        for (uint32_t x = runs[i].from; x <= runs[i].to; x++)
            if (warps[x] != runs[i].warps)
                fail_msg("%s, curve %d, at %u: %u warps, not %u", kernel, (int)curve, x * step, warps[x],
                         runs[i].warps);
}

static void check_registers(const char *kernel, const struct run *runs, size_t n)
{
    struct kp_occupancy_in in = input(launch(kernel));
    check_curve(kernel, KP_CURVE_REGISTERS, 1, runs, n);
    for (size_t i = 0; i < n; i++)
        for (uint32_t r = runs[i].from; r <= runs[i].to; r++) { /* a launch with as many has as many warps */
            in.registers_per_thread = r;
            assert_int_equal(warps_with(&in), runs[i].warps);
        }
}

/* Curves "# Warps Per Register Count". With 64 threads, 33 to 40 registers: 48 warps, since a warp's registers come
 * from one sub-partition; by the whole register file it would be 50. */
static void test_register_curves(void **state)
{
    static const struct run of_64[] = {{0, 32, 64},   {33, 40, 48},   {41, 48, 40}, {49, 56, 36},
                                       {57, 64, 32},  {65, 72, 28},   {73, 80, 24}, {81, 96, 20},
                                       {97, 128, 16}, {129, 168, 12}, {169, 256, 8}};
    static const struct run of_256[] = {{0, 32, 64},  {33, 40, 48},  {41, 48, 40}, {49, 64, 32},
                                        {65, 80, 24}, {81, 128, 16}, {129, 256, 8}};
    static const struct run of_1024[] = {{0, 32, 64}, {33, 64, 32}, {65, 256, 0}};
    (void)state;
    check_registers("tiny_grid", of_64, sizeof(of_64) / sizeof(*of_64));
    check_registers("pointer_chase", of_64, sizeof(of_64) / sizeof(*of_64)); /* 128 threads: the same points */
    check_registers("stream_triad", of_256, sizeof(of_256) / sizeof(*of_256));
    check_registers("transpose_naive", of_1024, sizeof(of_1024) / sizeof(*of_1024));
}

static void check_threads(const char *kernel, const struct run *runs, size_t n)
{
    struct kp_occupancy_in in = input(launch(kernel));
    check_curve(kernel, KP_CURVE_THREADS, 16, runs, n);
    for (size_t i = 0; i < n; i++)
        for (uint32_t x = runs[i].from; x <= runs[i].to; x++) {
            in.block_threads = 16 * x; /* 0 counts as one warp */
            assert_int_equal(warps_with(&in), runs[i].warps);
        }
}

/* Curves "# Warps Per Block Size", in steps of 16 threads. */
static void test_block_size_curves(void **state)
{
    static const struct run of_22_registers[] = {
        {0, 2, 32},   {3, 4, 64},   {5, 6, 63},   {7, 8, 64},   {9, 12, 60},  {13, 14, 63}, {15, 16, 64}, {17, 18, 63},
        {19, 20, 60}, {21, 22, 55}, {23, 24, 60}, {25, 26, 52}, {27, 28, 56}, {29, 30, 60}, {31, 32, 64}, {33, 34, 51},
        {35, 36, 54}, {37, 38, 57}, {39, 40, 60}, {41, 42, 63}, {43, 44, 44}, {45, 46, 46}, {47, 48, 48}, {49, 50, 50},
        {51, 52, 52}, {53, 54, 54}, {55, 56, 56}, {57, 58, 58}, {59, 60, 60}, {61, 62, 62}, {63, 64, 64}};
    static const struct run of_127_registers[] = {
        {0, 4, 16},   {5, 6, 15},   {7, 8, 16},   {9, 10, 15},  {11, 12, 12}, {13, 14, 14}, {15, 16, 16}, {17, 18, 9},
        {19, 20, 10}, {21, 22, 11}, {23, 24, 12}, {25, 26, 13}, {27, 28, 14}, {29, 30, 15}, {31, 32, 16}, {33, 64, 0}};
    static const struct run of_small_config[] = {{0, 2, 8},    {3, 4, 16},   {5, 6, 24},   {7, 8, 32},   {9, 10, 40},
                                                 {11, 12, 48}, {13, 14, 56}, {15, 16, 64}, {17, 18, 63}, {63, 64, 64}};
    (void)state;
    check_threads("stream_triad", of_22_registers, sizeof(of_22_registers) / sizeof(*of_22_registers));
    check_threads("spill", of_127_registers, sizeof(of_127_registers) / sizeof(*of_127_registers));
    check_threads("transpose_naive", of_small_config, sizeof(of_small_config) / sizeof(*of_small_config));
}

/* Curves "# Warps Per Block Barriers Size": 64 barriers an SM shared by the blocks. */
static void test_barrier_curves(void **state)
{
    static const struct run of_256[] = {{0, 8, 64},   {9, 9, 56},   {10, 10, 48}, {11, 12, 40},
                                        {13, 16, 32}, {17, 21, 24}, {22, 32, 16}, {33, 64, 8}};
    static const struct run of_64[] = {{0, 2, 64},  {3, 3, 42},  {4, 4, 32},  {5, 5, 24},   {6, 6, 20},
                                       {7, 7, 18},  {8, 8, 16},  {9, 9, 14},  {10, 10, 12}, {11, 12, 10},
                                       {13, 16, 8}, {17, 21, 6}, {22, 32, 4}, {33, 64, 2}};
    (void)state;
    check_curve("stream_triad", KP_CURVE_BARRIERS, 1, of_256, sizeof(of_256) / sizeof(*of_256));
    check_curve("tiny_grid", KP_CURVE_BARRIERS, 1, of_64, sizeof(of_64) / sizeof(*of_64));
}

/* Curves "# Warps Per Shared Mem Size", in steps of 512 byte. A kernel without static shared memory that takes no more
 * than 48 KiB may have these; others have 227 KiB, and then the curve does not end in zeros. */
static void test_shared_curves(void **state)
{
    static const struct run without[] = {{0, 8, 64},   {9, 9, 56},   {10, 10, 48}, {11, 12, 40}, {13, 16, 32},
                                         {17, 21, 24}, {22, 32, 16}, {33, 96, 8},  {97, 455, 0}};
    (void)state;
    check_curve("stream_triad", KP_CURVE_SHARED, 512, without, sizeof(without) / sizeof(*without));
}

/* What ncu prints as the value of each curve: the sum of its points. */
static void test_curve_sums(void **state)
{
    static const struct {
        const char *kernel;
        uint32_t sums[KP_CURVES]; /* by registers, threads, shared memory, barriers */
    } rows[] = {
        {"stream_triad", {5504, 3670, 1696, 1440}},
        {"fma_bound", {5504, 3670, 1696, 1440}},
        {"fp64_bound", {5504, 3670, 1696, 1440}},
        {"transpose_naive", {3136, 3282, 3392, 3136}},
        {"divergent", {5504, 3670, 1696, 1440}},
        {"transpose_conflict", {3136, 2577, 15104, 3136}},
        {"pointer_chase", {5792, 3670, 1036, 908}},
        {"atomics_hot", {5504, 3670, 1696, 1440}},
        {"tiny_grid", {5792, 3670, 624, 560}},
        {"spill", {5792, 456, 676, 548}},
        {"smem_limited", {2056, 1057, 9960, 520}},
        {"wmma_gemm", {5504, 3670, 1696, 1440}},
        {"constant_divergent", {5504, 3670, 1696, 1440}},
        {"tail_wave", {5504, 3670, 1696, 1440}},
        {"cutlass::Kernel2", {2056, 73, 776, 520}},
        {"vectorized_layer_norm_kernel", {5792, 2552, 956, 828}},
        {"reduce_kernel", {5792, 1908, 2780, 752}},
        {"tensor_kernel_scan_innermost_dim", {4288, 3444, 3808, 2192}},
    };
    static const size_t points[KP_CURVES] = {257, 65, 456, 65};
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct kp_occupancy_in in = input(launch(rows[i].kernel));
        for (int c = 0; c < KP_CURVES; c++) {
            uint32_t warps[KP_CURVE_POINTS], step, sum = 0;
            size_t n = kp_occupancy_curve(&in, (enum kp_curve)c, warps, &step);
            assert_int_equal(n, points[c]);
            for (size_t k = 0; k < n; k++)
                sum += warps[k];
            if (sum != rows[i].sums[c])
                fail_msg("%s, curve %d: %u, not %u", rows[i].kernel, c, sum, rows[i].sums[c]);
        }
    }
}

/* A multiprocessor with more shared memory than the arrays have room for. */
static void test_curve_is_cut(void **state)
{
    struct kp_occupancy_in in = input(launch("stream_triad"));
    uint32_t warps[KP_CURVE_POINTS + 1], step;
    (void)state;
    warps[KP_CURVE_POINTS] = 4711;
    in.shared_per_sm = 1 << 20;
    assert_int_equal(kp_occupancy_curve(&in, KP_CURVE_SHARED, warps, &step), KP_CURVE_POINTS);
    assert_int_equal(warps[KP_CURVE_POINTS], 4711);
}

/* A limit that is not known does not bind, but the driver's own answer, which knows it, does; with all limits known the
 * driver is not believed. */
static void test_unknown_limits(void **state)
{
    struct kp_occupancy_in in = input(launch("stream_triad"));
    (void)state;
    in.driver_blocks = 5;
    assert_int_equal(warps_with(&in), 64);
    in.barrier_limit = 0;
    assert_int_equal(warps_with(&in), 40);
    in.driver_blocks = 0;
    assert_int_equal(warps_with(&in), 64);
    in = input(launch("smem_limited"));
    in.shared_config = 0;
    assert_int_equal(warps_with(&in), 64);
    in.driver_blocks = 1;
    assert_int_equal(warps_with(&in), 8);
}

/* What the driver is expected to answer for a kernel without barriers: H200, one warp a block. */
static void test_without_barriers(void **state)
{
    struct kp_occupancy_in in = input(launch("stream_triad"));
    (void)state;
    in.registers_per_thread = 16;
    assert_int_equal(kp_occupancy_without_barriers(&in, 32, 0, 233472), 32);
    assert_int_equal(kp_occupancy_without_barriers(&in, 32, 0, 8192), 8);
    assert_int_equal(kp_occupancy_without_barriers(&in, 32, 40000, 233472), 5);
    in.registers_per_thread = 255;
    assert_int_equal(kp_occupancy_without_barriers(&in, 32, 0, 233472), 8);
    assert_int_equal(kp_occupancy_without_barriers(&in, 96, 0, 233472), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recorded_launches), cmocka_unit_test(test_shared_granule),
        cmocka_unit_test(test_register_curves),   cmocka_unit_test(test_block_size_curves),
        cmocka_unit_test(test_barrier_curves),    cmocka_unit_test(test_shared_curves),
        cmocka_unit_test(test_curve_sums),        cmocka_unit_test(test_curve_is_cut),
        cmocka_unit_test(test_unknown_limits),    cmocka_unit_test(test_without_barriers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
