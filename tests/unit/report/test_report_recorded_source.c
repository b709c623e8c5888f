/*
 * Values by instruction that were recorded on an H200 (tests/data/h200-source.kprof: four kernels of
 * tests/gpu/patterns.cu, compiled with -lineinfo). They are compared, as sums of a launch, with what Nsight Compute
 * 2025.3 said of the same kernels. Also where they lead in the source, and the pages that show them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectors/code/sass.h"
#include "report/define/derive_source.h"
#include "report/define/source.h"
#include "report/store/store.h"
#include "tests/support/report_support.h"
#include "tests/support/store_support.h"

#define SESSION "tests/data/h200-source.kprof"

enum { TRANSPOSE_NAIVE, TRANSPOSE_CONFLICT, SPILL, WMMA_GEMM, KERNELS };

static const char *const kernels[KERNELS] = {"transpose_naive", "transpose_conflict", "spill", "wmma_gemm"};

/* Of ncu's raw page; its counts of these are the same in each run. */
static const struct {
    const char *metric;
    double values[KERNELS];
} ncu[] = {
    {"inst_executed", {11534336, 17825792, 51814400, 66650112}},
    {"thread_inst_executed", {369098752, 570425344, 1658060800, 2132803584}},
    {"thread_inst_executed_true", {369098752, 570425344, 1657798656, 2128617408}},
    {"smsp__branch_targets_threads_divergent", {0, 0, 0, 0}},
    {"memory_l2_theoretical_sectors_global", {18874368, 4194304, 409600, 134742016}},
    {"memory_l2_theoretical_sectors_global_ideal", {4194304, 4194304, 409600, 67633152}},
    {"memory_l2_theoretical_sectors_local", {0, 0, 51904512, 0}},
    {"memory_l1_wavefronts_shared", {0, 17301504, 0, 0}},
    {"memory_l1_wavefronts_shared_ideal", {0, 1048576, 0, 0}},
    {"memory_l1_tag_requests_global", {17301504, 1048576, 397312, 134742016}},
    {"derived__memory_l2_theoretical_sectors_global_excessive", {14680064, 0, 0, 67108864}},
    {"derived__memory_l1_wavefronts_shared_excessive", {0, 16252928, 0, 0}},
    {"derived__avg_thread_executed", {704, 1088, 35200, 7168}},
    {"derived__avg_thread_executed_true", {704, 1088, 35166, 6943}},
    {"derived__memory_l1_conflicts_shared_nway", {0, 33, 0, 0}},
    {"sass__inst_executed_per_opcode", {11534336, 17825792, 51814400, 66650112}},
    {"derived__local_spilling_requests", {0, 0, 0, 0}},
    {"sass__thread_inst_executed_true_per_opcode", {369098752, 570425344, 1657798656, 2128617408}},
    {"sass__thread_inst_executed_per_opcode_category", {369098752, 570425344, 1657798656, 2128617408}},
};

struct reading {
    struct kp_lookup lookup;
    size_t n;
};

/* The same launch without any of its metrics: all are to come from the counts. */
static int check_totals(struct kp_result *r, void *arg)
{
    struct reading *reading = arg;
    size_t k = reading->n++;
    assert_true(k < KERNELS);
    assert_memory_equal(r->launch.demangled, kernels[k], strlen(kernels[k]));
    struct kp_result bare = {.launch = r->launch, .counts = r->counts, .n_counts = r->n_counts};
    assert_int_equal(kp_derive_source(&bare, &reading->lookup, kp_disassembly_category), 0);
    for (size_t i = 0; i < sizeof(ncu) / sizeof(*ncu); i++) {
        double value = -1;
        kp_metric_number(kp_result_find(&bare, ncu[i].metric), &value);
        if (value != ncu[i].values[k])
            fail_msg("%s: %s is %.17g, not %.17g", kernels[k], ncu[i].metric, value, ncu[i].values[k]);
    }
    memset(&bare.launch, 0, sizeof(bare.launch));
    bare.counts = NULL;
    bare.n_counts = 0;
    kp_result_free(&bare);
    return 0;
}

static void test_totals(void **state)
{
    struct kp_store *s = kp_test_reopen(kp_test_source(SESSION));
    struct reading reading = {.lookup = kp_store_lookup(s)};
    char *err = NULL;
    (void)state;
    assert_int_equal(kp_store_each_result(s, check_totals, &reading, &err), 0);
    assert_int_equal(reading.n, KERNELS);
    kp_store_close(s);
}

static uint64_t at_line(const struct kp_code_counts *counts, const struct kp_code *code, const char *metric,
                        uint32_t line)
{
    const uint64_t *values = kp_code_counts_find(counts, metric);
    uint64_t sum = 0;
    for (size_t i = 0; values && i < counts->n_offsets; i++) {
        const struct kp_instruction *at = kp_code_at(code, counts->offsets[i]);
        uint32_t location = at ? at->location : 0;
        while (location && code->locations[location - 1].parent)
            location = code->locations[location - 1].parent;
        sum += location && code->locations[location - 1].line == line ? values[i] : 0;
    }
    return sum;
}

/* Line 46 of the source is the transposition, of which each row of 32 writes as many sectors where 4 would do. */
static int check_lines(struct kp_result *r, void *arg)
{
    struct reading *reading = arg;
    struct kp_code code;
    if (reading->n++ != TRANSPOSE_NAIVE)
        return 0;
    assert_int_equal(kp_lookup_code(&reading->lookup, r->counts[0].code, &code), 0);
    assert_string_equal(code.files[code.locations[0].file].path, "/src/patterns.cu");
    assert_int_equal(at_line(&r->counts[0], &code, "memory_l2_theoretical_sectors_global", 46), 18874368);
    assert_int_equal(at_line(&r->counts[0], &code, "memory_l2_theoretical_sectors_global", 45), 0);
    assert_int_equal(at_line(&r->counts[0], &code, "inst_executed", 47), 524288);
    kp_code_free(&code);
    return 0;
}

static void test_lines(void **state)
{
    struct kp_store *s = kp_test_reopen(kp_test_source(SESSION));
    struct reading reading = {.lookup = kp_store_lookup(s)};
    char *err = NULL;
    (void)state;
    assert_int_equal(kp_store_each_result(s, check_lines, &reading, &err), 0);
    kp_store_close(s);
}

/* What `kprof report` with these arguments prints, beside a golden. */
static void check_page(const char *arguments, const char *golden)
{
    char command[3 * PATH_MAX], *text = NULL;
    size_t size = 0;
    snprintf(command, sizeof(command), "cd '%s' && '%s' report %s " SESSION, kp_test_source("."),
             kp_test_build("kprof"), arguments);
    FILE *from = popen(command, "re"), *to = open_memstream(&text, &size);
    assert_true(from && to);
    for (int c; (c = fgetc(from)) != EOF;)
        fputc(c, to);
    fclose(to);
    assert_int_equal(pclose(from), 0);
    kp_test_golden(text, golden);
    free(text);
}

static void test_pages(void **state)
{
    (void)state;
    check_page("--page source --source-folders tests/gpu --kernel-name 'regex:naive|wmma'",
               "tests/golden/recorded_source.txt");
    check_page("--page source --csv --kernel-name transpose_conflict", "tests/golden/recorded_source.csv");
    check_page("--page details --print-details all", "tests/golden/recorded_source_details.txt");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_totals),
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_pages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
