#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/model/model.h"

static void metrics_are_sorted_and_unique(void **state)
{
    (void)state;
    struct kp_result r = {0};
    char name[32];
    for (int i = 0; i < 500; i++) { /* a multiplicative walk: every number once, in no order */
        snprintf(name, sizeof name, "m%03d", i * 77 % 500);
        assert_int_equal(kp_result_set_count(&r, name, "inst", (uint64_t)i), 0);
    }
    assert_int_equal(r.n_metrics, 500);
    for (size_t i = 1; i < r.n_metrics; i++)
        assert_true(strcmp(r.metrics[i - 1].name, r.metrics[i].name) < 0);
    assert_int_equal(kp_result_find(&r, "m077")->count, 1);
    assert_null(kp_result_find(&r, "m500"));
    assert_null(kp_result_find(&r, ""));
    kp_result_free(&r);
    assert_int_equal(r.n_metrics, 0);
    assert_null(kp_result_find(&r, "m077"));
}

static void setting_replaces(void **state)
{
    (void)state;
    struct kp_result r = {0};
    double value;
    assert_int_equal(kp_result_set_why(&r, "a", kp_why_of(KP_REASON_NOT_COLLECTED, (char *)"no permission")), 0);
    assert_string_equal(kp_result_find(&r, "a")->text, "no permission");
    assert_string_equal(kp_result_find(&r, "a")->unit, "");
    assert_false(kp_metric_number(kp_result_find(&r, "a"), &value));
    assert_int_equal(kp_result_set_text(&r, "a", NULL, "PolicySpread"), 0);
    assert_int_equal(kp_result_find(&r, "a")->kind, KP_VALUE_TEXT);
    assert_false(kp_metric_number(kp_result_find(&r, "a"), &value));
    assert_int_equal(kp_result_set_count(&r, "a", "block", 7), 0);
    assert_null(kp_result_find(&r, "a")->text);
    assert_true(kp_metric_number(kp_result_find(&r, "a"), &value));
    assert_true(value == 7);
    assert_int_equal(kp_result_set_real(&r, "a", "%", 0.5), 0);
    assert_string_equal(kp_result_find(&r, "a")->unit, "%");
    assert_true(kp_metric_number(kp_result_find(&r, "a"), &value));
    assert_true(value == 0.5);
    assert_false(kp_metric_number(NULL, &value));
    assert_int_equal(r.n_metrics, 1);
    kp_result_free(&r);
}

/* The mean over all launches that an entry stands for: those that were measured, and the others by their records. */
static void records_weigh_in(void **state)
{
    static const struct {
        double ns; /* as measured; -1 = not */
        struct kp_launch_info l;
        double mean; /* -1 = not known */
    } rows[] = {
        {500, {.alike = 0}, 500},
        {500, {.alike = 9}, 500}, /* without records the others are taken to be alike */
        {500, {.alike = 5, .recorded = 4, .recorded_ns = 800}, (500 + 800) / 5.0},
        {500, {.alike = 5, .recorded = 2, .recorded_ns = 400}, (500 + 800) / 5.0},
        {500, {.alike = 1, .recorded = 3, .recorded_ns = 600}, 500},
        {-1, {.alike = 5, .recorded = 4, .recorded_ns = 800}, 200},
        {-1, {.alike = 5}, -1},
        {500, {.alike = 10, .groups = 2, .counted = 6, .recorded = 8, .recorded_ns = 1600}, (6 * 500 + 4 * 200) / 10.0},
        {500, {.alike = 4, .groups = 2, .counted = 6, .recorded = 1, .recorded_ns = 200}, 500},
        {500, {.alike = 5, .recorded = 4, .recorded_ns = NAN}, 500}, /* an edited file */
        {500, {.alike = 5, .recorded = 4, .recorded_ns = -1}, 500},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct kp_result r = {.launch = rows[i].l};
        double ns = -1;
        if (rows[i].ns >= 0)
            assert_int_equal(kp_result_set_real(&r, "gpu__time_duration.sum", "ns", rows[i].ns), 0);
        if (kp_result_mean_duration(&r, &ns) != (rows[i].mean >= 0) || fabs(ns - rows[i].mean) > 1e-9)
            fail_msg("row %zu: %f", i, ns);
        kp_result_free(&r);
    }
}

/* What one result lacks is taken from another; values that it has stay. */
static void taking_what_is_missing(void **state)
{
    struct kp_result r = {0}, from = {0};
    (void)state;
    kp_result_set_count(&r, "b", "inst", 1);
    kp_result_set_why(&r, "d", kp_why_of(KP_REASON_NOT_COLLECTED, (char *)"not yet"));
    kp_result_set_why(&r, "e", kp_why_of(KP_REASON_NOT_COLLECTED, (char *)"never"));
    kp_result_set_count(&from, "a", "byte", 10);
    kp_result_set_count(&from, "b", "inst", 20);
    kp_result_set_text(&from, "c", NULL, "text");
    kp_result_set_real(&from, "d", "%", 0.5);
    kp_result_set_why(&from, "e", kp_why_of(KP_REASON_NOT_COLLECTED, (char *)"nor here"));
    const double values[] = {3, 4};
    kp_result_set_instances(&from, "a", NULL, values, 2);
    assert_int_equal(kp_result_take(&r, &from), 0);
    assert_int_equal(r.n_metrics, 5);
    for (size_t i = 1; i < r.n_metrics; i++)
        assert_true(strcmp(r.metrics[i - 1].name, r.metrics[i].name) < 0);
    assert_int_equal(kp_result_find(&r, "a")->count, 10);
    assert_int_equal(kp_result_find(&r, "a")->n_instances, 2);
    assert_int_equal(kp_result_find(&r, "b")->count, 1);
    assert_string_equal(kp_result_find(&r, "c")->text, "text");
    assert_true(kp_result_find(&r, "d")->real == 0.5);
    assert_string_equal(kp_result_find(&r, "e")->text, "never");
    assert_int_equal(from.n_metrics, 2); /* b and e */
    kp_result_remove(&r, "c");
    kp_result_remove(&r, "c");
    kp_result_remove(&r, "f");
    assert_int_equal(r.n_metrics, 4);
    assert_null(kp_result_find(&r, "c"));
    assert_non_null(kp_result_find(&r, "d"));
    kp_result_free(&r);
    kp_result_free(&from);
}

static void assert_instance(const struct kp_metric *m, size_t i, const char *key, double value)
{
    assert_true(i < m->n_instances);
    assert_string_equal(m->instances[i].key, key);
    assert_true(m->instances[i].value == value);
}

static void instances_belong_to_a_metric(void **state)
{
    (void)state;
    static const double values[] = {1.5, -2, 0, 3, 4, 5, 6, 7, 8, 9, 10};
    struct kp_result r = {0};
    char key[] = "FADD";
    const char *const keys[] = {key, ""};
    assert_int_equal(kp_result_set_instances(&r, "m", NULL, values, 1), -ENOENT);
    assert_int_equal(kp_result_set_real(&r, "m", "inst", -0.5), 0);
    assert_int_equal(kp_result_set_instances(&r, "l", NULL, values, 1), -ENOENT);
    assert_int_equal(kp_result_set_instances(&r, "n", NULL, values, 1), -ENOENT);
    assert_int_equal(kp_result_set_instances(&r, "m", keys, values, 2), 0);
    key[0] = 'X';                   /* they are copies */
    for (int i = 0; i < 200; i++) { /* and move with their metric */
        char name[16];
        snprintf(name, sizeof name, "a%d", i);
        assert_int_equal(kp_result_set_count(&r, name, "", 1), 0);
    }
    const struct kp_metric *m = kp_result_find(&r, "m");
    assert_true(m->real == -0.5);
    assert_int_equal(m->n_instances, 2);
    assert_instance(m, 0, "FADD", 1.5);
    assert_instance(m, 1, "", -2);
    assert_int_equal(kp_result_set_instances(&r, "m", NULL, values, 11), 0); /* takes the place of the two */
    m = kp_result_find(&r, "m");
    assert_int_equal(m->n_instances, 11);
    assert_instance(m, 0, "0", 1.5);
    assert_instance(m, 10, "10", 10);
    assert_int_equal(kp_result_set_instances(&r, "m", NULL, values, 0), 0);
    assert_null(kp_result_find(&r, "m")->instances);
    assert_int_equal(kp_result_set_instances(&r, "m", NULL, values, 1), 0);
    assert_int_equal(kp_result_set_count(&r, "m", "inst", 1), 0); /* a new value has none */
    assert_null(kp_result_find(&r, "m")->instances);
    assert_int_equal(kp_result_find(&r, "m")->n_instances, 0);
    assert_int_equal(kp_result_set_instances(&r, "m", keys, values, 2), 0); /* for a leak checker */
    kp_result_free(&r);
}

static void counts_add_up(void **state)
{
    (void)state;
    struct kp_session s = {0};
    assert_int_equal(kp_session_add_skip(&s, kp_why_of(KP_REASON_NOT_COLLECTED, (char *)"a"), 2), 0);
    assert_int_equal(kp_session_add_skip(&s, kp_why_of(KP_REASON_NOT_COLLECTED, (char *)"b"), 1), 0);
    assert_int_equal(kp_session_add_skip(&s, kp_why_of(KP_REASON_NOT_COLLECTED, (char *)"a"), 3), 0);
    assert_int_equal(kp_session_add_kernel(&s, "k", 1), 0);
    assert_int_equal(kp_session_add_kernel(&s, "k", 1), 0);
    assert_int_equal(s.n_skips, 2);
    assert_int_equal(s.skips[0].count, 5);
    assert_string_equal(kp_why_text(&s.skips[1].why), "b");
    assert_int_equal(s.n_kernels, 1);
    assert_int_equal(s.kernels[0].count, 2);
    kp_session_free(&s);
    assert_null(s.skips);
}

/* What a further run should add: each name alone, literally, within a shell's quotes; the first 20 of many. */
static void a_further_run_names_what_lacks(void **state)
{
    struct kp_session s = {0};
    char name[16];
    (void)state;
    assert_null(kp_session_further(&s));
    assert_int_equal(kp_session_add_lacking(&s, "gemm", 2), 0);
    assert_int_equal(kp_session_add_lacking(&s, "gemm", 1), 0);
    assert_int_equal(kp_session_add_lacking(&s, "f::{lambda(int)#1}::operator()", 0), 0);
    assert_int_equal(s.n_lacking, 2);
    assert_int_equal(s.lacking[0].count, 3);
    char *text = kp_session_further(&s);
    assert_string_equal(text, "-k 'regex:^(gemm|f::\\{lambda\\(int\\)#1\\}::operator\\(\\))$'");
    free(text);
    for (int i = 0; i < 30; i++) {
        snprintf(name, sizeof name, "k%d", i);
        assert_int_equal(kp_session_add_lacking(&s, name, 1), 0);
    }
    text = kp_session_further(&s);
    assert_non_null(strstr(text, "|k17)$'"));
    free(text);
    kp_session_free(&s);
}

/* Many names keep their order, each once, in a list that grew before it had an index, too. */
static void many_names_are_counted_once(void **state)
{
    enum { NAMES = 3000 };
    struct kp_session s = {.kernels = calloc(1, sizeof *s.kernels), .n_kernels = 1};
    char name[16];
    (void)state;
    s.kernels[0] = (struct kp_kernel_count){strdup("k0"), 1};
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < NAMES; i++) {
            snprintf(name, sizeof name, "k%d", i);
            assert_int_equal(kp_session_add_kernel(&s, name, (uint64_t)i), 0);
            assert_int_equal(kp_session_add_range(&s, name, 2), 0);
        }
    assert_int_equal(s.n_kernels, NAMES);
    assert_int_equal(s.n_ranges, NAMES);
    for (int i = 0; i < NAMES; i++) {
        snprintf(name, sizeof name, "k%d", i);
        assert_string_equal(s.kernels[i].name, name);
        assert_int_equal(s.kernels[i].count, i ? 2 * i : 1);
        assert_int_equal(s.ranges[i].count, 4);
    }
    kp_session_free(&s);
}

static void strdup_of_nothing(void **state)
{
    (void)state;
    char *copy = kp_strdup(NULL);
    assert_string_equal(copy, "");
    free(copy);
}

/* Mean, deviation and interval of 2, 4, 4, 4, 5, 5, 7, 9: 5, sqrt(32 / 7), and t of 7 degrees of freedom. */
static void test_values_of_launches(void **state)
{
    static const double values[] = {2, 4, 4, 4, 5, 5, 7, 9};
    enum { N = sizeof(values) / sizeof(*values) };
    struct kp_result r = {0};
    double half;
    (void)state;
    assert_false(kp_metric_interval(NULL, &half));
    for (size_t i = 0; i < N; i++) {
        assert_int_equal(kp_result_add_value(&r, "m", "ns", values[i]), 0);
        const struct kp_metric *m = kp_result_find(&r, "m");
        assert_int_equal(m->counted, i + 1);
        assert_true(kp_metric_interval(m, &half) == (i >= 2));
        assert_true(i || m->deviation == 0);
    }
    const struct kp_metric *m = kp_result_find(&r, "m");
    assert_true(fabs(m->real - 5) < 1e-12);
    assert_true(fabs(m->deviation - sqrt(32.0 / 7)) < 1e-12);
    assert_true(fabs(half - 2.365 * sqrt(32.0 / 7) * sqrt(2.0 / N)) < 1e-9);
    /* Counts of work that are the same each time have no spread at all. */
    for (size_t i = 0; i < 50; i++)
        assert_int_equal(kp_result_add_value(&r, "exact", "inst", 0.1 + 1e9), 0);
    assert_true(kp_result_find(&r, "exact")->deviation == 0 && kp_result_find(&r, "exact")->real == 0.1 + 1e9);
    assert_true(kp_metric_interval(kp_result_find(&r, "exact"), &half) && half == 0);
    /* A reason is no value. */
    assert_int_equal(kp_result_set_why(&r, "late", kp_why_of(KP_REASON_NOT_COLLECTED, (char *)"not yet")), 0);
    assert_int_equal(kp_result_add_value(&r, "late", "ns", 3), 0);
    assert_int_equal(kp_result_find(&r, "late")->counted, 1);
    assert_int_equal(kp_result_set_spread(&r, "none", 1, 0), -ENOENT);
    kp_result_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values_of_launches),
        cmocka_unit_test(metrics_are_sorted_and_unique),
        cmocka_unit_test(setting_replaces),
        cmocka_unit_test(taking_what_is_missing),
        cmocka_unit_test(instances_belong_to_a_metric),
        cmocka_unit_test(records_weigh_in),
        cmocka_unit_test(counts_add_up),
        cmocka_unit_test(a_further_run_names_what_lacks),
        cmocka_unit_test(many_names_are_counted_once),
        cmocka_unit_test(strdup_of_nothing),
    };
    return cmocka_run_group_tests_name("report/model", tests, NULL, NULL);
}
