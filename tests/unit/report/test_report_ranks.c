/* What ranks counted of a kernel, put together, and the times that it took on each. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/model/ranks.h"

static void add_all(struct kp_result *r, const double *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        assert_int_equal(kp_result_add_value(r, "m", "ns", values[i]), 0);
}

static void assert_near(double got, double wanted)
{
    if (!(fabs(got - wanted) < 1e-9))
        fail_msg("%.17g instead of %.17g", got, wanted);
}

/* 1, 2, 3 and 5, 7: means 2 and 6, sums of squares 2 and 2. Together 18 / 5 = 3.6, and the squares are
 * 2 + 2 + (6 - 2)^2 * 3 * 2 / 5 = 23.2, so that the variance is 23.2 / 4 = 5.8. The t of 4 degrees of freedom is 2.776.
 */
static void two_means(void **state)
{
    static const double a[] = {1, 2, 3}, b[] = {5, 7};
    struct kp_result x = {0}, y = {0};
    double half;
    (void)state;
    add_all(&x, a, 3);
    add_all(&y, b, 2);
    x.launch = (struct kp_launch_info){
        .alike = 30, .counted = 3, .groups = 4, .groups_counted = 2, .passes = 2, .recorded = 20, .recorded_ns = 5};
    y.launch = (struct kp_launch_info){
        .alike = 12, .counted = 2, .groups = 4, .groups_counted = 3, .passes = 3, .recorded = 7, .recorded_ns = 4};
    assert_int_equal(kp_ranks_add(&x, &y), 0);
    const struct kp_metric *m = kp_result_find(&x, "m");
    assert_int_equal(m->counted, 5);
    assert_near(m->real, 3.6);
    assert_near(m->deviation, sqrt(5.8));
    assert_true(kp_metric_interval(m, &half));
    assert_near(half, 2.776 * sqrt(5.8) * sqrt(2.0 / 5));
    assert_int_equal(x.launch.alike, 42);
    assert_true(x.launch.recorded == 27 && x.launch.recorded_ns == 9);
    assert_int_equal(x.launch.counted, 5);
    assert_int_equal(x.launch.groups, 4);
    assert_int_equal(x.launch.groups_counted, 3);
    assert_int_equal(x.launch.passes, 5);
    kp_result_free(&x);
    kp_result_free(&y);
}

/* One launch on each rank: no spread of their own, but one between them. 4 and 10: mean 7, variance 18. */
static void one_launch_each(void **state)
{
    static const double a[] = {4}, b[] = {10}, c[] = {7};
    struct kp_result x = {0}, y = {0}, z = {0};
    (void)state;
    add_all(&x, a, 1);
    add_all(&y, b, 1);
    add_all(&z, c, 1);
    assert_int_equal(kp_ranks_add(&x, &y), 0);
    assert_near(kp_result_find(&x, "m")->real, 7);
    assert_near(kp_result_find(&x, "m")->deviation, sqrt(18));
    assert_int_equal(kp_ranks_add(&x, &z), 0); /* 4, 10, 7: squares 18 */
    assert_near(kp_result_find(&x, "m")->real, 7);
    assert_near(kp_result_find(&x, "m")->deviation, 3);
    kp_result_free(&x);
    kp_result_free(&y);
    kp_result_free(&z);
}

/* A metric that one rank did not count comes from another, with its spread; of facts the first rank's stay; a reason
 * stays where no rank has a value. */
static void groups_fill_up(void **state)
{
    struct kp_result x = {0}, y = {0};
    (void)state;
    assert_int_equal(kp_result_set_why(&x, "late", kp_why_of(KP_REASON_NOT_COLLECTED, (char *)"not reached")), 0);
    assert_int_equal(kp_result_add_mean(&y, "late", "inst", &(struct kp_mean){4, 100, 2}), 0);
    assert_int_equal(kp_result_add_mean(&x, "early", "inst", &(struct kp_mean){3, 50, 1}), 0);
    assert_int_equal(kp_result_set_why(&y, "early", kp_why_of(KP_REASON_NOT_COLLECTED, (char *)"not reached")), 0);
    assert_int_equal(kp_result_add_mean(&y, "other", "inst", &(struct kp_mean){2, 9, 0}), 0);
    assert_int_equal(kp_result_set_count(&x, "launch__registers", "", 16), 0);
    assert_int_equal(kp_result_set_count(&y, "launch__registers", "", 18), 0);
    assert_int_equal(kp_result_set_why(&x, "never", kp_why_of(KP_REASON_NOT_COLLECTED, (char *)"of two kinds")), 0);
    assert_int_equal(kp_result_set_why(&y, "never", kp_why_of(KP_REASON_NOT_COLLECTED, (char *)"not reached")), 0);
    assert_int_equal(kp_ranks_add(&x, &y), 0);
    const struct kp_metric *late = kp_result_find(&x, "late"), *early = kp_result_find(&x, "early");
    assert_true(late->kind == KP_VALUE_REAL && late->real == 100 && late->counted == 4 && late->deviation == 2);
    assert_string_equal(late->unit, "inst");
    assert_true(early->kind == KP_VALUE_REAL && early->real == 50 && early->counted == 3 && early->deviation == 1);
    assert_int_equal(kp_result_find(&x, "other")->counted, 2);
    assert_int_equal(kp_result_find(&x, "launch__registers")->count, 16);
    assert_string_equal(kp_result_find(&x, "never")->text, "of two kinds");
    kp_result_free(&x);
    kp_result_free(&y);
}

/* 100, 130 and 100 ns: the mean is 110, and 130 is 18.18 % above it. 10, 20 and 40 launches take 1000 + 2600 + 4000 ns;
 * those of 100 would wait 30 ns for each of their launches. The third has no duration. */
static void times_of_ranks(void **state)
{
    static const struct kp_rank at[] = {
        {"0", 10, {4, 100, 11}}, {"1", 20, {5, 130, 22}}, {"3", 5, {0, 0, 0}}, {"2", 40, {6, 100, 33}}};
    struct kp_result r = {0};
    struct kp_ranks of;
    (void)state;
    assert_false(kp_ranks_of(&r, &of));
    assert_int_equal(kp_ranks_set(&r, at, 4), 0);
    assert_true(kp_ranks_of(&r, &of));
    assert_int_equal(of.n, 3);
    assert_int_equal(of.launches, 75);
    assert_near(of.mean, 110);
    assert_near(of.low, 100);
    assert_near(of.high, 130);
    assert_string_equal(of.slowest, "1");
    assert_near(of.imbalance, 100 * (130.0 / 110 - 1));
    /* The slowest one's 22 moves it by 22 * (1 / 110 - 130 / (3 * 110^2)), the others' 11 and 33 by 130 / (3 * 110^2)
     * of them: 20 * (1 - 13 / 33) = 400 / 33, 130 / 33 and 390 / 33 percent. Four launches: a t of 3.182. */
    double deviation = sqrt(400.0 * 400 + 130.0 * 130 + 390.0 * 390) / 33;
    assert_int_equal(kp_result_find(&r, KP_RANK_IMBALANCE)->counted, 4);
    assert_near(kp_result_find(&r, KP_RANK_IMBALANCE)->deviation, deviation);
    assert_near(of.half, 3.182 * deviation * sqrt(2.0 / 4));
    assert_near(of.total, 7600);
    assert_near(of.lost, 30 * 10 + 30 * 40);
    assert_near(kp_result_find(&r, KP_RANK_IMBALANCE)->real, of.imbalance);
    const struct kp_metric *launches = kp_result_find(&r, KP_RANK_LAUNCHES);
    assert_int_equal(launches->n_instances, 4);
    assert_string_equal(launches->instances[2].key, "3");
    assert_near(launches->instances[2].value, 5);
    kp_result_free(&r);
    assert_int_equal(kp_ranks_set(&r, &at[2], 1), 0); /* no duration at all */
    assert_false(kp_ranks_of(&r, &of));
    assert_null(kp_result_find(&r, KP_RANK_IMBALANCE));
    kp_result_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_means),
        cmocka_unit_test(one_launch_each),
        cmocka_unit_test(groups_fill_up),
        cmocka_unit_test(times_of_ranks),
    };
    return cmocka_run_group_tests_name("report/ranks", tests, NULL, NULL);
}
