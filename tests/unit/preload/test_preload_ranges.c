/* Which range is open, whether it is counted, and what its launches are told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "preload/contexts/ranges.h"

static void begin(uint64_t id, enum kp_reason why)
{
    struct kp_nvtx nvtx = {.thread = id};
    kp_ranges_begin(id, "step", &nvtx, why);
    assert_true(!nvtx.thread);
    assert_true(kp_ranges_id() == id && kp_ranges_open()->nvtx.thread == id);
    assert_string_equal(kp_ranges_open()->name, "step");
}

static void launches_outside_are_told_what_a_range_is(void **state)
{
    struct kp_options o = {.nvtx_include = ""};
    (void)state;
    kp_ranges_configure(&o);
    assert_int_equal(kp_ranges_why(), KP_REASON_NO_RANGE);
    o.nvtx_include = "step/";
    kp_ranges_configure(&o);
    assert_int_equal(kp_ranges_why(), KP_REASON_NVTX);
    o.only_timeline = true;
    kp_ranges_configure(&o);
    assert_int_equal(kp_ranges_why(), KP_REASON_TIMELINE);
}

static void a_range_that_is_not_chosen_tells_its_reason(void **state)
{
    (void)state;
    begin(10, KP_REASON_DEVICES);
    assert_int_equal(kp_ranges_why(), KP_REASON_DEVICES);
    kp_ranges_open()->undecided = true;
    kp_ranges_end();
    assert_true(!kp_ranges_id() && !kp_ranges_open()->name && !kp_ranges_open()->undecided);
    begin(11, KP_REASON_NONE);
    assert_false(kp_ranges_why());
    kp_ranges_end();
}

static void a_range_that_is_cut_takes_no_more(void **state)
{
    (void)state;
    begin(1, KP_REASON_NONE);
    kp_ranges_cut(KP_REASON_RANGE_CUT);
    assert_int_equal(kp_ranges_why(), KP_REASON_RANGE_CUT);
    kp_ranges_end();
    begin(2, KP_REASON_NONE);
    assert_false(kp_ranges_why());
    kp_ranges_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(launches_outside_are_told_what_a_range_is),
        cmocka_unit_test(a_range_that_is_not_chosen_tells_its_reason),
        cmocka_unit_test(a_range_that_is_cut_takes_no_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
