/* What a program has CUPTI do itself: which calls begin something, what holds CUPTI, and what ends it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "preload/contexts/other_cupti.h"

enum { DRIVER_API = 1, RUNTIME_API = 2, RESOURCE = 3, SYNCHRONIZE = 4 };

#define ARGS(...) ((const uint64_t[KP_OTHER_ARGS]){__VA_ARGS__})

static void note(enum kp_other_effect effect, const uint64_t *args)
{
    kp_other_note(effect, args, false);
}

static int reset(void **state)
{
    (void)state;
    note(KP_OTHER_FINALIZES, ARGS(0));
    return kp_other_holds();
}

static void test_what_begins(void **state)
{
    (void)state;
    assert_true(kp_other_begins(KP_OTHER_SUBSCRIBES, ARGS(1, 2, 3)));
    assert_false(kp_other_begins(KP_OTHER_UNSUBSCRIBES, ARGS(1)));
    assert_true(kp_other_begins(KP_OTHER_CALLBACK, ARGS(1, 9, DRIVER_API, 307)));
    assert_false(kp_other_begins(KP_OTHER_CALLBACK, ARGS(0, 9, DRIVER_API, 307)));
    assert_false(kp_other_begins(KP_OTHER_CALLBACK, ARGS(1, 9, RESOURCE, 1)));
    assert_false(kp_other_begins(KP_OTHER_DOMAIN, ARGS(UINT64_C(1) << 32, 9, DRIVER_API))); /* not of the argument */
    assert_true(kp_other_begins(KP_OTHER_DOMAINS, ARGS(1, 9)));
    assert_true(kp_other_begins(KP_OTHER_RECORDS, ARGS(10)));
    assert_false(kp_other_begins(KP_OTHER_NO_RECORDS, ARGS(10)));
    assert_true(kp_other_begins(KP_OTHER_COUNTS, ARGS(9)));
    assert_false(kp_other_begins(KP_OTHER_COUNTS_NOT, ARGS(9)));
    assert_true(kp_other_begins(KP_OTHER_FINALIZES, ARGS(0)));
}

static void test_a_call_holds(void **state)
{
    (void)state;
    kp_other_enter();
    kp_other_enter();
    kp_other_leave();
    assert_true(kp_other_holds());
    kp_other_leave();
    assert_false(kp_other_holds());
}

static void test_callbacks(void **state)
{
    (void)state;
    note(KP_OTHER_SUBSCRIBES, ARGS(1, 2, 3));
    assert_false(kp_other_holds()); /* nothing is called back */
    assert_true(kp_other_has_state());
    note(KP_OTHER_CALLBACK, ARGS(1, 9, RESOURCE, 1));
    assert_false(kp_other_holds());
    note(KP_OTHER_CALLBACK, ARGS(1, 9, DRIVER_API, 307));
    note(KP_OTHER_CALLBACK, ARGS(1, 9, DRIVER_API, 307));
    note(KP_OTHER_CALLBACK, ARGS(1, 9, RUNTIME_API, 211));
    note(KP_OTHER_CALLBACK, ARGS(0, 9, DRIVER_API, 307));
    assert_true(kp_other_holds());
    note(KP_OTHER_CALLBACK, ARGS(0, 9, RUNTIME_API, 211));
    assert_false(kp_other_holds());
    note(KP_OTHER_DOMAIN, ARGS(1, 9, SYNCHRONIZE));
    note(KP_OTHER_CALLBACK, ARGS(0, 9, SYNCHRONIZE, 1));
    assert_true(kp_other_holds());
    note(KP_OTHER_DOMAINS, ARGS(0, 9));
    assert_false(kp_other_holds());
    note(KP_OTHER_DOMAINS, ARGS(1, 9));
    note(KP_OTHER_UNSUBSCRIBES, ARGS(9));
    assert_false(kp_other_holds());
}

static void test_another_copy(void **state)
{
    (void)state;
    kp_other_note(KP_OTHER_SUBSCRIBES, ARGS(1, 2, 3), true);
    assert_true(kp_other_holds());
    assert_false(kp_other_has_state());
    kp_other_note(KP_OTHER_UNSUBSCRIBES, ARGS(9), true);
    assert_false(kp_other_holds());
}

static void test_records(void **state)
{
    (void)state;
    note(KP_OTHER_BUFFERS, ARGS(1, 2));
    assert_false(kp_other_holds());
    note(KP_OTHER_RECORDS, ARGS(10));
    note(KP_OTHER_RECORDS_OF, ARGS(0xc0de, 1));
    note(KP_OTHER_NO_RECORDS, ARGS(10));
    assert_true(kp_other_holds());
    note(KP_OTHER_NO_RECORDS, ARGS(10));
    note(KP_OTHER_NO_RECORDS_OF, ARGS(0xc0de, 1));
    assert_false(kp_other_holds());
    assert_true(kp_other_has_state()); /* the functions for buffers are still registered */
}

static void test_counters(void **state)
{
    (void)state;
    note(KP_OTHER_COUNTS, ARGS(9));
    note(KP_OTHER_COUNTS, ARGS(9));
    note(KP_OTHER_COUNTS_NOT, ARGS(9));
    assert_true(kp_other_holds());
    note(KP_OTHER_COUNTS_NOT, ARGS(9));
    note(KP_OTHER_COUNTS_NOT, ARGS(9)); /* ended twice */
    assert_false(kp_other_holds());
    note(KP_OTHER_COUNTS, ARGS(9));
    assert_true(kp_other_holds());
}

static void test_the_end(void **state)
{
    (void)state;
    kp_other_enter();
    note(KP_OTHER_COUNTS, ARGS(9));
    note(KP_OTHER_RECORDS, ARGS(10));
    note(KP_OTHER_DOMAINS, ARGS(1, 9));
    note(KP_OTHER_FINALIZES, ARGS(0));
    kp_other_leave();
    assert_false(kp_other_holds());
    assert_false(kp_other_has_state());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_what_begins, reset), cmocka_unit_test_setup(test_a_call_holds, reset),
        cmocka_unit_test_setup(test_callbacks, reset),   cmocka_unit_test_setup(test_another_copy, reset),
        cmocka_unit_test_setup(test_records, reset),     cmocka_unit_test_setup(test_counters, reset),
        cmocka_unit_test_setup(test_the_end, reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
