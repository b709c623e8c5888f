/* What several launches of a kernel were counted and sampled for, put together: samples add up, counts are of one
 * launch, and a copy has all of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "report/model/counts.h"

static const char waits[] = "smsp__pcsamp_warps_issue_stalled_wait", executed[] = "inst_executed";

/* Adds counts of a metric to the launch: `n` offsets 16 byte apart, from `first` on, each with that value. */
static void counted(struct kp_result *r, uint64_t code, const char *metric, uint32_t first, size_t n, uint64_t value)
{
    struct kp_code_counts c = {.code = code, .n_offsets = n, .n_metrics = 1};
    c.offsets = calloc(n, sizeof *c.offsets);
    c.metrics = calloc(1, sizeof *c.metrics);
    assert_true(c.offsets && c.metrics);
    c.metrics->name = strdup(metric);
    c.metrics->values = calloc(n, sizeof *c.metrics->values);
    assert_true(c.metrics->name && c.metrics->values);
    for (size_t i = 0; i < n; i++) {
        c.offsets[i] = first + 16 * (uint32_t)i;
        c.metrics->values[i] = value;
    }
    assert_int_equal(kp_counts_take(r, &c), 0);
    kp_code_counts_free(&c);
}

static void series(struct kp_result *r, const char *name, double value)
{
    struct kp_series s = {.name = strdup(name), .unit = strdup("%"), .values = malloc(sizeof value), .n_values = 1};
    assert_true(s.name && s.unit && s.values);
    *s.values = value;
    assert_int_equal(kp_result_add_series(r, &s), 0);
}

static uint64_t at(const struct kp_result *r, size_t k, const char *metric, uint32_t offset)
{
    const uint64_t *values = kp_code_counts_find(&r->counts[k], metric);
    for (size_t i = 0; values && i < r->counts[k].n_offsets; i++)
        if (r->counts[k].offsets[i] == offset)
            return values[i];
    return 0;
}

static uint64_t count(const struct kp_result *r, const char *metric)
{
    const struct kp_metric *m = kp_result_find(r, metric);
    assert_true(m && m->kind == KP_VALUE_COUNT);
    return m->count;
}

static void sampled(struct kp_result *r, uint64_t samples)
{
    assert_int_equal(kp_result_set_count(r, "smsp__pcsamp_sample_count", "", samples), 0);
    assert_int_equal(kp_result_set_count(r, KP_SAMPLED_LAUNCHES, "pass", 1), 0);
    assert_int_equal(kp_result_set_count(r, "smsp__pcsamp_interval", "", 6), 0);
}

static void test_samples_add_up(void **state)
{
    struct kp_result r = {.n_metrics = 0}, next = {.n_metrics = 0};
    (void)state;
    sampled(&r, 6);
    counted(&r, 1, waits, 0, 2, 3);
    sampled(&next, 9);
    counted(&next, 1, waits, 16, 2, 4); /* another instruction of the function, */
    counted(&next, 2, waits, 32, 1, 1); /* and another function */
    assert_int_equal(kp_counts_add_launch(&r, &next), 0);
    assert_int_equal(r.n_counts, 2);
    assert_int_equal(r.counts[0].n_offsets, 3);
    assert_int_equal(at(&r, 0, waits, 0), 3);
    assert_int_equal(at(&r, 0, waits, 16), 7);
    assert_int_equal(at(&r, 0, waits, 32), 4);
    assert_int_equal(at(&r, 1, waits, 32), 1);
    assert_int_equal(count(&r, "smsp__pcsamp_sample_count"), 15);
    assert_int_equal(count(&r, KP_SAMPLED_LAUNCHES), 2);
    assert_int_equal(count(&r, "smsp__pcsamp_interval"), 6);
    kp_result_free(&next);
    kp_result_free(&r);
}

static void test_counts_are_of_one_launch(void **state)
{
    struct kp_result r = {.n_metrics = 0}, next = {.n_metrics = 0}, last = {.n_metrics = 0};
    (void)state;
    counted(&r, 1, waits, 16, 1, 3);
    counted(&next, 1, executed, 0, 2, 32);
    assert_int_equal(kp_counts_add_launch(&r, &next), 0);
    assert_int_equal(at(&r, 0, executed, 0), 32);
    assert_int_equal(at(&r, 0, executed, 16), 32);
    assert_int_equal(at(&r, 0, waits, 16), 3);
    assert_string_equal(r.counts[0].metrics[0].name, executed); /* by name */
    /* Neither in the same function, nor in one that the other launch has not called. */
    counted(&last, 1, executed, 0, 2, 64);
    counted(&last, 1, waits, 0, 1, 5);
    counted(&last, 2, executed, 0, 2, 64);
    assert_int_equal(kp_counts_add_launch(&r, &last), 0);
    assert_int_equal(r.n_counts, 1);
    assert_int_equal(at(&r, 0, executed, 0), 32);
    assert_int_equal(at(&r, 0, waits, 0), 5);
    kp_result_free(&last);
    kp_result_free(&next);
    kp_result_free(&r);
}

static void test_series_are_of_one_launch(void **state)
{
    struct kp_result r = {.n_metrics = 0}, next = {.n_metrics = 0};
    (void)state;
    series(&r, "a", 1);
    series(&next, "a", 2);
    series(&next, "b", 3);
    assert_int_equal(kp_counts_add_launch(&r, &next), 0);
    assert_int_equal(r.n_series, 2);
    assert_true(kp_result_find_series(&r, "a")->values[0] == 1 && kp_result_find_series(&r, "b")->values[0] == 3);
    kp_result_free(&next);
    kp_result_free(&r);
}

static void test_a_copy_has_them(void **state)
{
    struct kp_result r = {.n_metrics = 0}, copy;
    (void)state;
    counted(&r, 7, waits, 16, 2, 3);
    series(&r, "a", 1);
    assert_int_equal(kp_result_copy(&r, &copy), 0);
    assert_int_equal(copy.n_counts, 0);
    assert_int_equal(kp_counts_copy(&r, &copy), 0);
    kp_result_free(&r);
    assert_int_equal(copy.counts[0].code, 7);
    assert_int_equal(at(&copy, 0, waits, 32), 3);
    assert_true(kp_result_find_series(&copy, "a")->values[0] == 1);
    assert_string_equal(copy.series[0].unit, "%");
    assert_int_equal(kp_result_set_count(&copy, KP_SAMPLED_LAUNCHES, "", 3), 0);
    assert_int_equal(kp_result_set_count(&copy, "profiler__pmsampler_dropped_samples", "", 3), 0);
    assert_int_equal(kp_result_set_count(&copy, "launch__grid_size", "", 3), 0);
    kp_counts_forget(&copy);
    assert_true(copy.n_metrics == 1 && !kp_result_find(&copy, KP_SAMPLED_LAUNCHES));
    kp_result_free(&copy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_samples_add_up),
        cmocka_unit_test(test_counts_are_of_one_launch),
        cmocka_unit_test(test_series_are_of_one_launch),
        cmocka_unit_test(test_a_copy_has_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
