/* Handles by context: added once, dropped from all contexts, and none lost when there are many. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>

#include "preload/gate/handle_set.h"

#define HANDLE(n)  ((const void *)(uintptr_t)(0x100 + (n)))
#define CONTEXT(n) ((CUcontext)(uintptr_t)(0x1000 + (n)))

static void test_added_once(void **state)
{
    struct kp_seen s = {0};
    (void)state;
    assert_false(kp_seen_has(&s, CONTEXT(1), HANDLE(1)));
    assert_int_equal(kp_seen_add(&s, CONTEXT(1), HANDLE(1)), 0);
    assert_int_equal(kp_seen_add(&s, CONTEXT(1), HANDLE(1)), -EEXIST);
    assert_int_equal(kp_seen_add(&s, CONTEXT(2), HANDLE(1)), 0);
    assert_true(kp_seen_has(&s, CONTEXT(1), HANDLE(1)));
    assert_false(kp_seen_has(&s, CONTEXT(1), HANDLE(2)));
    kp_seen_empty(&s);
    assert_false(kp_seen_has(&s, CONTEXT(1), HANDLE(1)));
    assert_int_equal(kp_seen_add(&s, CONTEXT(1), HANDLE(1)), 0);
    free(s.list);
}

static void test_dropped(void **state)
{
    struct kp_seen s = {0};
    enum { MANY = 1000 };
    (void)state;
    for (unsigned n = 0; n < MANY; n++)
        assert_int_equal(kp_seen_add(&s, CONTEXT(n % 2), HANDLE(n / 4)), n % 4 < 2 ? 0 : -EEXIST);
    for (unsigned n = 0; n < MANY / 4; n += 2)
        kp_seen_drop(&s, HANDLE(n));
    for (unsigned n = 0; n < MANY / 4; n++)
        for (unsigned ctx = 0; ctx < 2; ctx++)
            assert_int_equal(kp_seen_has(&s, CONTEXT(ctx), HANDLE(n)), n % 2);
    free(s.list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_added_once), cmocka_unit_test(test_dropped)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
