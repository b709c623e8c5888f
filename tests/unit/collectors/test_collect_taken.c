/* What is noted of the device's memory that kprof takes, with answers of the driver that the test gives. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "collectors/replay/taken.h"

enum { DEVICE = 3, BUFFERS = 700, REST = 20 };

static size_t left;
static unsigned asked;

static CUresult tell_left(size_t *of, size_t *total)
{
    asked++;
    *of = left;
    *total = 1 << 20;
    return CUDA_SUCCESS;
}

static const struct kp_driver driver = {.cuMemGetInfo = tell_left};

static struct kp_taken t;

static int setup(void **state)
{
    (void)state;
    left = 1 << 20;
    kp_taken_open(&t, &driver, DEVICE);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    kp_taken_close(&t);
    return kp_taken_on(-1) || kp_taken_gives();
}

static void begin_counting(size_t takes)
{
    kp_taken_enables(&t);
    left -= takes;
    kp_taken_started(&t);
}

static void disable(size_t gives)
{
    kp_taken_disables(&t);
    left += gives;
    kp_taken_disabled(&t);
}

/* A window that begins to count, with what other processes take meanwhile. */
static void window(size_t takes, size_t others)
{
    kp_taken_begin(&t, true);
    begin_counting(takes);
    left -= others;
    kp_taken_end(&t);
    kp_taken_window_over(&t);
}

static void test_counting(void **state)
{
    (void)state;
    kp_taken_begin(&t, true);
    left -= REST;
    kp_taken_end(&t);
    assert_int_equal(kp_taken_on(DEVICE), REST);
    assert_int_equal(kp_taken_gives(), 0);
    left -= 5000; /* the program's */
    window(BUFFERS, 0);
    assert_int_equal(kp_taken_on(DEVICE), REST + BUFFERS);
    assert_int_equal(kp_taken_on(DEVICE - 1), 0);
    assert_int_equal(kp_taken_on(-1), REST + BUFFERS);
    assert_int_equal(kp_taken_gives(), BUFFERS);
    kp_taken_begin(&t, false);
    disable(BUFFERS - 7);
    kp_taken_end(&t);
    assert_int_equal(kp_taken_on(DEVICE), REST + 7);
    assert_int_equal(kp_taken_gives(), 0);
}

/* Later windows ask nothing while the profiler stays enabled. */
static void test_asks(void **state)
{
    (void)state;
    window(BUFFERS, 0);
    asked = 0;
    for (int i = 0; i < 5; i++) {
        kp_taken_begin(&t, true);
        kp_taken_started(&t);
        kp_taken_end(&t);
        kp_taken_window_over(&t);
    }
    kp_taken_begin(&t, false);
    kp_taken_end(&t);
    assert_int_equal(asked, 0);
    assert_int_equal(kp_taken_on(DEVICE), BUFFERS);
}

/* What other processes take does not pile up: the last time counts. */
static void test_others(void **state)
{
    (void)state;
    for (size_t i = 1; i <= 10; i++) {
        window(BUFFERS, 100 * i);
        assert_int_equal(kp_taken_on(DEVICE), BUFFERS + 100 * i + (i > 1 ? REST : 0));
        kp_taken_begin(&t, true);
        kp_taken_disables(&t);
        left += BUFFERS + 100 * i - REST;
        kp_taken_disabled(&t);
        kp_taken_end(&t);
        assert_int_equal(kp_taken_on(DEVICE), REST);
    }
    kp_taken_begin(&t, true);
    left += 4 * BUFFERS; /* given back by another process */
    begin_counting(BUFFERS);
    kp_taken_end(&t);
    assert_in_range(kp_taken_on(DEVICE), 0, BUFFERS + REST);
}

/* Enabled anew within a window, and where the program can allocate. */
static void test_anew(void **state)
{
    (void)state;
    kp_taken_begin(&t, true);
    begin_counting(BUFFERS);
    disable(BUFFERS - REST);
    begin_counting(2 * BUFFERS);
    kp_taken_begin(&t, true);
    left -= 1;
    kp_taken_end(&t);
    kp_taken_end(&t);
    assert_int_equal(kp_taken_on(DEVICE), 2 * BUFFERS + 1 + REST);
    assert_int_equal(kp_taken_gives(), 2 * BUFFERS + 1);
    asked = 0;
    kp_taken_disables(&t);
    kp_taken_disabled(&t);
    assert_int_equal(asked, 0);
    assert_int_equal(kp_taken_on(DEVICE), REST);
}

/* Copies are told elsewhere. */
static void test_copies(void **state)
{
    (void)state;
    kp_taken_begin(&t, true);
    left -= 4096 + REST;
    kp_taken_copied(&t, 4096);
    kp_taken_end(&t);
    assert_int_equal(kp_taken_on(DEVICE), REST);
    kp_taken_begin(&t, true);
    left += 4096;
    kp_taken_copied(&t, 0);
    kp_taken_end(&t);
    assert_int_equal(kp_taken_on(DEVICE), REST);
}

static void test_nothing(void **state)
{
    struct kp_taken closed = {.driver = NULL};
    (void)state;
    asked = 0;
    for (int i = 0; i < 2; i++) {
        struct kp_taken *of = i ? &closed : NULL;
        kp_taken_begin(of, true);
        kp_taken_enables(of);
        kp_taken_started(of);
        kp_taken_copied(of, 1);
        kp_taken_disables(of);
        kp_taken_disabled(of);
        kp_taken_end(of);
        kp_taken_window_over(of);
        kp_taken_close(of);
    }
    assert_int_equal(asked, 0);
    assert_int_equal(kp_taken_on(-1), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_counting, setup, teardown),
        cmocka_unit_test_setup_teardown(test_asks, setup, teardown),
        cmocka_unit_test_setup_teardown(test_others, setup, teardown),
        cmocka_unit_test_setup_teardown(test_anew, setup, teardown),
        cmocka_unit_test_setup_teardown(test_copies, setup, teardown),
        cmocka_unit_test(test_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
