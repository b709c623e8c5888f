/* Counter data recorded on a GPU (tests/gpu/record_image.c), evaluated here by the real host library without one: the
 * values are those of the machine it was recorded on, and those that follow from the kernel. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cupti/host.h"
#include "tests/collect_support.h"
#include "tests/report_support.h"

enum { MAX_METRICS = 256, MAX_RANGES = 4, WARP = 32 };

static struct {
    char *text; /* axpy.txt, which the names point into */
    const char *chip;
    size_t image_size, instructions;
    size_t n_ranges, n_metrics;
    double blocks[MAX_RANGES], threads[MAX_RANGES];
    const char *names[MAX_METRICS];
    double recorded[MAX_RANGES][MAX_METRICS], values[MAX_RANGES][MAX_METRICS];
    uint8_t *image;
    bool evaluated;
} rec;

/* ---- reading ---- */

/* Ranges list the same metrics in the same order. */
static void read_metric(const char *name, const char *value, size_t *m)
{
    assert_true(rec.n_ranges > 0 && *m < MAX_METRICS);
    if (rec.n_ranges == 1)
        rec.names[rec.n_metrics++] = name;
    assert_string_equal(rec.names[*m], name);
    rec.recorded[rec.n_ranges - 1][(*m)++] = strtod(value, NULL);
}

static void read_values(void)
{
    char *save = NULL;
    size_t m = 0;
    for (char *line = strtok_r(rec.text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        char *fields = NULL, *name = strtok_r(line, "\t", &fields);
        const char *value = strtok_r(NULL, "\t", &fields);
        if (*line == '#')
            continue;
        assert_non_null(value);
        if (!strcmp(name, "chip")) {
            rec.chip = value;
        } else if (!strcmp(name, "image")) {
            rec.image_size = strtoul(value, NULL, 10);
        } else if (!strcmp(name, "instructions")) {
            rec.instructions = strtoul(value, NULL, 10);
        } else if (!strcmp(name, "range")) {
            const char *threads = strtok_r(NULL, "\t", &fields);
            assert_true(threads && rec.n_ranges < MAX_RANGES);
            rec.blocks[rec.n_ranges] = strtod(value, NULL);
            rec.threads[rec.n_ranges++] = strtod(threads, NULL);
            m = 0;
        } else {
            read_metric(name, value, &m);
        }
    }
    assert_true(rec.chip && rec.image_size && rec.instructions && rec.n_metrics);
}

static void read_image(const char *path)
{
    char *command = NULL;
    assert_true(asprintf(&command, "gzip -dc '%s'", path) > 0);
    FILE *in = popen(command, "r");
    assert_non_null(in);
    rec.image = malloc(rec.image_size + 1);
    assert_non_null(rec.image);
    assert_int_equal(fread(rec.image, 1, rec.image_size + 1, in), rec.image_size);
    assert_int_equal(pclose(in), 0);
    free(command);
}

static void evaluate(const struct kp_cupti *c)
{
    struct kp_host *h = NULL;
    assert_int_equal(kp_host_open(c, rec.chip, NULL, &h), 0);
    for (size_t r = 0; r < rec.n_ranges; r++)
        assert_int_equal(kp_host_evaluate(h, rec.image, rec.image_size, r, rec.names, rec.n_metrics, rec.values[r]), 0);
    kp_host_close(h);
    rec.evaluated = true;
}

/* Reads and evaluates on the first call; skips, saying why, where there is no recording. */
static void load(void)
{
    const struct kp_cupti *c = kp_test_real_cupti();
    if (rec.evaluated)
        return;
    if (access(kp_test_source("tests/data/axpy.txt"), R_OK) ||
        access(kp_test_source("tests/data/axpy.image.gz"), R_OK)) {
        print_message("tests/data has no axpy.txt and axpy.image.gz: tests/gpu/record_image makes them on a GPU\n");
        skip();
    }
    memset(&rec, 0, sizeof(rec)); /* an attempt that failed leaves nothing */
    rec.text = kp_test_read(kp_test_source("tests/data/axpy.txt"));
    read_values();
    read_image(kp_test_source("tests/data/axpy.image.gz"));
    evaluate(c);
}

static int unload(void **state)
{
    (void)state;
    free(rec.text);
    free(rec.image);
    return 0;
}

static double value(size_t range, const char *metric)
{
    for (size_t i = 0; i < rec.n_metrics; i++)
        if (!strcmp(rec.names[i], metric))
            return rec.values[range][i];
    fail_msg("%s was not recorded", metric);
    return NAN;
}

/* ---- tests ---- */

static void test_as_on_the_gpu_machine(void **state)
{
    (void)state;
    load();
    assert_int_equal(rec.n_ranges, 2);
    for (size_t r = 0; r < rec.n_ranges; r++)
        for (size_t i = 0; i < rec.n_metrics; i++) {
            double was = rec.recorded[r][i], is = rec.values[r][i];
            if (isnan(was) ? !isnan(is) : !(fabs(is - was) <= 1e-12 * fabs(was)))
                fail_msg("%s of range %zu is %.17g, was %.17g", rec.names[i], r, is, was);
        }
}

/* One load of x, one of y, one store, by each warp: 4 sectors of 32 byte for its 32 floats. */
static void test_memory_of_the_kernel(void **state)
{
    (void)state;
    load();
    for (size_t r = 0; r < rec.n_ranges; r++) {
        double warps = rec.blocks[r] * rec.threads[r] / WARP;
        assert_true(value(r, "smsp__warps_launched.sum") == warps);
        assert_true(value(r, "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum") == 2 * warps);
        assert_true(value(r, "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum") == warps);
        assert_true(value(r, "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum") == 8 * warps);
        assert_true(value(r, "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum") == 4 * warps);
    }
}

/* The kernel has no branch: every warp executes its code once, with all threads. */
static void test_instructions_of_the_kernel(void **state)
{
    (void)state;
    load();
    for (size_t r = 0; r < rec.n_ranges; r++) {
        double warps = rec.blocks[r] * rec.threads[r] / WARP;
        assert_true(value(r, "smsp__inst_executed.sum") == warps * (double)rec.instructions);
        assert_true(value(r, "smsp__thread_inst_executed.sum") == WARP * warps * (double)rec.instructions);
        assert_true(value(r, "smsp__thread_inst_executed_per_inst_executed.ratio") == WARP);
    }
}

/* Metrics of one range that follow from each other. */
static void test_metrics_agree(void **state)
{
    (void)state;
    load();
    for (size_t r = 0; r < rec.n_ranges; r++) {
        double ns = value(r, "gpu__time_duration.sum");
        assert_true(ns > 500 && ns < 1e6);
        assert_true(value(r, "sm__cycles_active.avg") <= value(r, "gpc__cycles_elapsed.max"));
        /* The clock of one pass, the time of another. */
        assert_true(
            fabs(value(r, "gpc__cycles_elapsed.avg.per_second") * ns * 1e-9 / value(r, "gpc__cycles_elapsed.max") - 1) <
            0.2);
        double occupancy = value(r, "sm__warps_active.avg.pct_of_peak_sustained_active");
        assert_true(occupancy > 0 && occupancy <= 100);
        assert_true(value(r, "sm__throughput.avg.pct_of_peak_sustained_elapsed") <= 100.5);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_on_the_gpu_machine),
        cmocka_unit_test(test_memory_of_the_kernel),
        cmocka_unit_test(test_instructions_of_the_kernel),
        cmocka_unit_test(test_metrics_agree),
    };
    return cmocka_run_group_tests(tests, NULL, unload);
}
