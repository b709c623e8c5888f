/* Which range is open, whether it is counted, and what its launches are told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "preload/program/ranges.h"

static void begin(const struct kp_options *o, uint64_t id)
{
    struct kp_nvtx nvtx = {.thread = id};
    kp_ranges_begin(o, id, "step", &nvtx);
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
}

static void numbers_choose_ranges(void **state)
{
    const struct kp_options o = {.nvtx_include = "", .launch_skip = 1, .launch_count = 2};
    static const char *const told[] = {KP_SKIP_LAUNCH_SKIP, NULL, NULL, KP_SKIP_LAUNCH_COUNT};
    (void)state;
    for (uint64_t i = 0; i < 4; i++) {
        begin(&o, 10 + i);
        if (told[i])
            assert_string_equal(kp_ranges_why(), told[i]);
        else
            assert_null(kp_ranges_why());
        kp_ranges_end();
        assert_true(!kp_ranges_id() && !kp_ranges_open()->name);
    }
}

static void a_range_that_is_cut_takes_no_more(void **state)
{
    const struct kp_options o = {.nvtx_include = "", .launch_skip = 0};
    (void)state;
    begin(&o, 1);
    kp_ranges_cut(KP_SKIP_RANGE_CUT);
    assert_string_equal(kp_ranges_why(), KP_SKIP_RANGE_CUT);
    kp_ranges_end();
    begin(&o, 2);
    assert_null(kp_ranges_why());
    kp_ranges_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(launches_outside_are_told_what_a_range_is),
        cmocka_unit_test(numbers_choose_ranges),
        cmocka_unit_test(a_range_that_is_cut_takes_no_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
