/* What metrics are, in words of ours: each that no library describes has some. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "report/define/metric_words.h"
#include "report/define/source.h"

#define STALLED "smsp__pcsamp_warps_issue_stalled_"

static void assert_words(const char *name, const char *expected)
{
    char text[256] = "?";
    assert_int_equal(kp_section_metric_words(name, text, sizeof text), *expected != '?');
    assert_string_equal(text, expected);
}

static const char *const names[] = {
#define KP_METRIC_WORDS(name, words) name,
#include "report/define/metric_words.def"
};

static void metrics_are_described(void **state)
{
    char text[256];
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!kp_section_metric_words(names[i], text, sizeof text))
            fail_msg("%s is not found: is it in its place?", names[i]);
    assert_words("launch__block_dim_y", "threads of a block in y");
    assert_words("thread_inst_executed_true", "threads that executed an instruction with its predicate on");
    assert_words("sm__cycles_active.avg", "?");
    assert_words("", "?");
}

static void samples_are_described(void **state)
{
    char name[128], text[256];
    (void)state;
    assert_words(STALLED "barrier", "samples of a warp that waited for others of its block at a barrier");
    assert_words(
        STALLED "wait_not_issued",
        "samples of a warp that waited a fixed time for the instruction before, when its scheduler issued nothing");
    assert_words(STALLED "wait_issued", "?");
    assert_words(STALLED "nothing", "?");
    for (size_t i = 0; i < KP_STALL_REASONS; i++) {
        snprintf(name, sizeof name, "%s_not_issued", kp_stall_reasons[i].metric);
        if (!kp_section_metric_words(kp_stall_reasons[i].metric, text, sizeof text) ||
            !kp_section_metric_words(name, text, sizeof text))
            fail_msg("%s has no words", kp_stall_reasons[i].metric);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(metrics_are_described),
        cmocka_unit_test(samples_are_described),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
