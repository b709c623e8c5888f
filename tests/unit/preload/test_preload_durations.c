/* Sums of how long kernels took, by kernel and shape: records from a sink, in the place of CUPTI's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "collectors/providers/observe.h"
#include "preload/who/durations.h"

static struct {
    kp_record_sink *sink;
    bool kernels, missing;
    unsigned began, paused, resumed, flushed, forced, full;
    int rc;
} t;

bool kp_observe_available(const struct kp_cupti *c)
{
    (void)c;
    return !t.missing;
}

int kp_observe_begin(const struct kp_cupti *c, kp_record_sink *sink, bool kernels)
{
    (void)c;
    t.sink = sink;
    t.kernels = kernels;
    t.began++;
    return t.rc;
}

int kp_observe_pause(const struct kp_cupti *c)
{
    (void)c;
    t.paused++;
    return 0;
}

int kp_observe_resume(const struct kp_cupti *c)
{
    (void)c;
    t.resumed++;
    return t.rc;
}

int kp_observe_flush(const struct kp_cupti *c, bool all)
{
    (void)c;
    t.flushed++;
    t.forced += all;
    return 0;
}

static void is_full(void)
{
    t.full++;
}

static struct kp_device_record record(const char *name, uint32_t grid, int64_t ns)
{
    return (struct kp_device_record){{.kind = KP_ACTIVITY_KERNEL,
                                      .context_id = 1,
                                      .grid = {grid, 1, 1},
                                      .block = {64, 1, 1},
                                      .start_ns = 1000,
                                      .end_ns = 1000 + ns},
                                     name,
                                     16};
}

static void tell(const char *name, uint32_t grid, int64_t ns)
{
    const struct kp_device_record r = record(name, grid, ns);
    kp_durations_add(&r);
}

/* Expects so many launches of such a kernel, and their time. */
static void expect(const char *name, uint32_t grid, uint64_t launches, double ns)
{
    const uint32_t grids[] = {grid, 1, 1}, blocks[] = {64, 1, 1};
    const struct kp_duration_of what = {name, 1, grids, blocks, 16};
    double sum = -1;
    assert_int_equal(kp_durations_of(&what, &sum), launches);
    assert_true(sum == ns);
}

static int begin(void **state)
{
    (void)state;
    memset(&t, 0, sizeof(t));
    return 0;
}

static void nothing_before_it_begins(void **state)
{
    (void)state;
    tell("k", 1, 5);
    kp_durations_pause();
    kp_durations_resume();
    kp_durations_flush(true);
    kp_durations_end();
    expect("k", 1, 0, 0);
    assert_true(!t.paused && !t.resumed && !t.flushed);
    t.missing = true;
    assert_int_equal(kp_durations_begin(NULL, false, is_full), -ENOTSUP);
    t.missing = false;
    t.rc = 7;
    assert_int_equal(kp_durations_begin(NULL, false, is_full), 7);
    assert_false(kp_durations_are_on());
}

static void launches_of_a_kernel_and_shape_add_up(void **state)
{
    (void)state;
    assert_int_equal(kp_durations_begin(NULL, false, is_full), 0);
    assert_true(t.kernels && t.sink && kp_durations_are_on());
    tell("sum", 1, 5);
    tell("sum", 1, 7);
    tell("sum", 2, 100);
    tell("summary", 1, 1000);
    expect("sum", 1, 2, 12);
    expect("sum", 2, 1, 100);
    expect("summary", 1, 1, 1000);
    expect("sum", 3, 0, 0);
    /* another context, dynamic shared memory or block is another kind; a copy, or a kernel without times, is none */
    struct kp_device_record others[] = {record("sum", 1, 9), record("sum", 1, 9), record("sum", 1, 9),
                                        record("sum", 1, 9), record("sum", 1, 9), record("sum", 1, -9)};
    others[0].activity.context_id = 2;
    others[1].dynamic_shared = 17;
    others[2].activity.block[1] = 2;
    others[3].activity.kind = KP_ACTIVITY_COPY;
    others[4].activity.start_ns = 0;
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
        t.sink(&others[i]);
    expect("sum", 1, 2, 12);
    kp_durations_flush(false);
    kp_durations_flush(true);
    assert_true(t.flushed == 3 && t.forced == 1);
}

static void it_pauses_and_ends(void **state)
{
    (void)state;
    assert_int_equal(kp_durations_begin(NULL, false, is_full), 0);
    kp_durations_pause();
    kp_durations_resume();
    assert_true(t.paused == 1 && t.resumed == 1 && kp_durations_are_on());
    t.rc = 3;
    kp_durations_pause();
    kp_durations_resume(); /* fails */
    assert_false(kp_durations_are_on());
    tell("ended", 1, 5);
    expect("ended", 1, 0, 0);
    t.rc = 0;
    assert_int_equal(kp_durations_begin(NULL, true, is_full), 0); /* beside a timeline, which has the records */
    kp_durations_pause();
    kp_durations_flush(true);
    assert_true(t.began == 1 && t.paused == 2 && !t.flushed);
    tell("beside", 1, 5);
    expect("beside", 1, 1, 5);
    kp_durations_end();
    assert_false(kp_durations_are_on());
}

static void it_is_bounded(void **state)
{
    char name[32];
    (void)state;
    assert_int_equal(kp_durations_begin(NULL, false, is_full), 0);
    for (int i = 0; i < 9000; i++) { /* more kernels than there is room for */
        snprintf(name, sizeof(name), "k%d", i);
        tell(name, 1, 3);
    }
    expect("k0", 1, 1, 3);
    expect("k8999", 1, 0, 0);
    assert_false(kp_durations_are_full());
    for (int i = 0; i < KP_DURATIONS_MOST; i++)
        tell("k1", 1, 1);
    assert_true(kp_durations_are_full() && t.full == 1);
    const uint32_t one[] = {1, 1, 1}, blocks[] = {64, 1, 1};
    const struct kp_duration_of k1 = {"k1", 1, one, blocks, 16};
    double ns;
    uint64_t launches = kp_durations_of(&k1, &ns);
    assert_true(launches > KP_DURATIONS_MOST - 10000 && launches <= KP_DURATIONS_MOST);
    kp_durations_pause();
    kp_durations_resume(); /* no more are needed */
    assert_true(!t.resumed && !kp_durations_are_on());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(nothing_before_it_begins, begin),
        cmocka_unit_test_setup(launches_of_a_kernel_and_shape_add_up, begin),
        cmocka_unit_test_setup(it_pauses_and_ends, begin),
        cmocka_unit_test_setup(it_is_bounded, begin),
    };
    return cmocka_run_group_tests_name("preload/durations", tests, NULL, NULL);
}
