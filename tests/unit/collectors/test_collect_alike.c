/* Launches that are alike, and those that are not: spread too far, or of two kinds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "collectors/plan/alike.h"

static const char duration[] = "gpu__time_duration.sum";
static char why[320];

#define ALIKE(...)                                                                                                     \
    kp_alike(duration, (double[]){__VA_ARGS__}, sizeof((double[]){__VA_ARGS__}) / sizeof(double), why, sizeof(why))

static void test_alike(void **state)
{
    (void)state;
    assert_true(kp_alike(duration, NULL, 0, why, sizeof(why)));
    assert_true(ALIKE(5) && ALIKE(0, 0, 0, 0, 0, 0, 0));
    assert_true(ALIKE(10, 10, 10, 10, 10, 10));
    assert_true(ALIKE(9.5, 10.6, 9.8, 10.1, 10, 10.3));
    /* One outlier is no mode, and no great spread. */
    assert_true(ALIKE(10, 10.1, 10, 10.1, 10.2, 9.9, 10, 10.1, 12, 10));
    /* Two values that come again and again are none where they are near, or where there are few. */
    assert_true(ALIKE(10, 10, 10, 10.5, 10.5, 10.5));
    assert_true(ALIKE(10, 10, 12, 12));
}

static void test_two_kinds(void **state)
{
    (void)state;
    assert_false(ALIKE(12, 10, 12, 10, 10, 12));
    assert_non_null(strstr(why, "of two kinds: gpu__time_duration.sum is 10 in 3 of them, 12 in 3"));
    assert_false(ALIKE(100, 101, 99, 100, 100, 101, 99, 200, 201));
    assert_non_null(strstr(why, "is 100 in 7 of them, 200.5 in 2"));
}

static void test_spread(void **state)
{
    (void)state;
    assert_false(ALIKE(10, 5, 15));
    assert_non_null(strstr(why, "gpu__time_duration.sum spreads by 50 % (at most 20)"));
    assert_true(ALIKE(10, 8.1, 11.9));
    assert_false(ALIKE(10, 7.9, 12.1));
}

/* Launches of one kind are seldom refused. */
static void test_false_alarms(void **state)
{
    enum { TRIALS = 2000, LAUNCHES = 12 };
    uint64_t seed = 1;
    unsigned refused = 0;
    (void)state;
    for (int t = 0; t < TRIALS; t++) {
        double values[LAUNCHES];
        for (int i = 0; i < LAUNCHES; i++) {
            double sum = 0; /* of twelve draws: nearly normal, with a deviation of 1 */
            for (int k = 0; k < 12; k++) {
                seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
                sum += (double)(seed >> 11) / 9007199254740992.0;
            }
            values[i] = 100 + 8 * (sum - 6);
        }
        refused += !kp_alike(duration, values, LAUNCHES, why, sizeof(why));
    }
    print_message("%u of %d refused\n", refused, TRIALS);
    assert_true(refused <= TRIALS / 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alike),
        cmocka_unit_test(test_two_kinds),
        cmocka_unit_test(test_spread),
        cmocka_unit_test(test_false_alarms),
    };
    return cmocka_run_group_tests_name("alike", tests, NULL, NULL);
}
