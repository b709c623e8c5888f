/* Which range is open, whether it is counted, and what its launches are told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "preload/contexts/ranges.h"

static void begin(uint64_t id, const char *why)
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
    assert_string_equal(kp_ranges_why(), KP_SKIP_NO_RANGE);
    o.nvtx_include = "step/";
    kp_ranges_configure(&o);
    assert_string_equal(kp_ranges_why(), KP_SKIP_NVTX);
    o.only_timeline = true;
    kp_ranges_configure(&o);
    assert_string_equal(kp_ranges_why(), KP_SKIP_TIMELINE);
}

static void a_range_that_is_not_chosen_tells_its_reason(void **state)
{
    (void)state;
    begin(10, KP_SKIP_DEVICES);
    assert_string_equal(kp_ranges_why(), KP_SKIP_DEVICES);
    kp_ranges_open()->undecided = true;
    kp_ranges_end();
    assert_true(!kp_ranges_id() && !kp_ranges_open()->name && !kp_ranges_open()->undecided);
    begin(11, NULL);
    assert_null(kp_ranges_why());
    kp_ranges_end();
}

static void a_range_that_is_cut_takes_no_more(void **state)
{
    (void)state;
    begin(1, NULL);
    kp_ranges_cut(KP_SKIP_RANGE_CUT);
    assert_string_equal(kp_ranges_why(), KP_SKIP_RANGE_CUT);
    kp_ranges_end();
    begin(2, NULL);
    assert_null(kp_ranges_why());
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
