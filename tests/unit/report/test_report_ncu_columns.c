/* The raw page of the face ncu has the columns of ncu's, no more and no fewer: tests/data/columns.tsv lists them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "report/pages/ncu_columns.h"
#include "tests/support/report_support.h"

/* A launch of its own, and the copy of its list that is shown. */
struct subject {
    struct kp_result own, shown;
};

static void show(struct subject *s, const char *set, const char *sections, const char *metrics)
{
    struct kp_session session = {.set = (char *)set, .sections = (char *)sections, .metrics = (char *)metrics};
    s->own.launch.cc_major = 9;
    free(s->shown.metrics);
    s->shown = s->own;
    s->shown.metrics = calloc(s->own.n_metrics + 1, sizeof *s->shown.metrics);
    assert_non_null(s->shown.metrics);
    memcpy(s->shown.metrics, s->own.metrics, s->own.n_metrics * sizeof *s->shown.metrics);
    assert_int_equal(kp_page_ncu_columns(&session, &s->shown), 0);
}

static void forget(struct subject *s)
{
    free(s->shown.metrics);
    kp_result_free(&s->own);
}

static const struct kp_metric *shown(const struct subject *s, const char *name)
{
    return kp_result_find(&s->shown, name);
}

/* Sets the metrics of a line of the table in `all`, and in `had` if kprof has them. */
static void read_line(char *line, struct kp_result *all, struct kp_result *had)
{
    static const char *const roll_ups[] = {".avg", ".max", ".min", ".sum"};
    char *tab = strchr(line, '\t'), name[512];
    bool has = !tab || strchr(tab, ':'); /* a reason of another chip is none here */
    if (tab)
        *tab = '\0';
    char *star = strstr(line, ".*");
    for (size_t i = 0; i < (star ? sizeof roll_ups / sizeof *roll_ups : 1); i++) {
        snprintf(name, sizeof name, "%.*s%s%s", (int)(star ? star - line : (int)strlen(line)), line,
                 star ? roll_ups[i] : "", star ? star + 2 : "");
        assert_int_equal(kp_result_set_count(all, name, "", 1), 0);
        assert_int_equal(has ? kp_result_set_count(had, name, "", 1) : 0, 0);
    }
}

static void columns_of_the_set_full_are_those_of_ncu(void **state)
{
    struct subject s = {.own = {.metrics = NULL}};
    struct kp_result all = {.metrics = NULL};
    char *save = NULL, *text = kp_test_read(kp_test_source("tests/data/columns.tsv"));
    (void)state;
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
        if (*line != '#')
            read_line(line, &all, &s.own);
    free(text);
    assert_true(all.n_metrics > 2200 && all.n_metrics > s.own.n_metrics + 50);
    kp_result_set_count(&s.own, "derived__l1tex__t_bytes_total", "byte", 1); /* of kprof's tables alone */
    kp_result_set_count(&s.own, "dram__bytes.sum", "byte", 1);
    show(&s, "full", "", "");
    for (size_t i = 0; i < all.n_metrics; i++)
        if (!shown(&s, all.metrics[i].name))
            fail_msg("%s is missing", all.metrics[i].name);
    for (size_t i = 0; i < s.shown.n_metrics; i++)
        if (!kp_result_find(&all, s.shown.metrics[i].name))
            fail_msg("ncu has no column %s", s.shown.metrics[i].name);
    for (size_t i = 0; i < s.shown.n_metrics; i++) /* in the same order */
        assert_string_equal(s.shown.metrics[i].name, all.metrics[i].name);
    assert_int_equal(s.shown.n_metrics, all.n_metrics);
    assert_int_equal(shown(&s, "profiler__replayer_passes")->kind, KP_VALUE_NA);
    assert_string_equal(shown(&s, "profiler__replayer_passes")->unit, "pass");
    kp_result_free(&all);
    forget(&s);
}

static void what_is_shown_depends_on_what_was_asked_for(void **state)
{
    static const char spills[] = "derived__local_spilling_requests", sampled[] = "profiler__pmsampler_ctxsw_0";
    struct subject s = {.own = {.metrics = NULL}};
    (void)state;
    kp_result_set_count(&s.own, spills, "", 0);
    kp_result_set_count(&s.own, "dram__bytes.sum", "byte", 1);
    show(&s, "basic", "", "");
    assert_null(shown(&s, spills));
    assert_null(shown(&s, "dram__bytes.sum"));
    assert_null(shown(&s, sampled));
    assert_non_null(shown(&s, "profiler__replayer_bytes_mem_accessible.sum"));
    show(&s, "", "MemoryWorkloadAnalysis,PmSampling", "");
    assert_non_null(shown(&s, spills));
    assert_non_null(shown(&s, sampled));
    show(&s, "", "", "sm__cycles_active.avg,dram__bytes");
    assert_null(shown(&s, spills));
    assert_int_equal(shown(&s, "dram__bytes.sum")->count, 1);
    assert_null(shown(&s, "profiler__replayer_bytes_mem_accessible.sum"));
    assert_int_equal(shown(&s, "gpu__time_duration.sum")->kind, KP_VALUE_NA);
    forget(&s);
}

static void values_and_units_are_those_of_ncu(void **state)
{
    static const char all[] = "sass__inst_executed_per_opcode_with_modifier_all";
    static const char rate[] = "nvlrx__bytes.sum.per_second", up[] = "nvlink__enabled_mask";
    struct subject s = {.own = {.metrics = NULL}};
    (void)state;
    kp_result_set_text(&s.own, "numa__cpu_affinity", "", "2 (0-15; 16-31)");
    kp_result_set_text(&s.own, "launch__kernel_name", "", "k(int)");
    kp_result_set_count(&s.own, "memory_type", "inst", 16384);
    kp_result_set_real(&s.own, "derived__lts__lts2xbar_bytes.sum.per_second", "byte/s", 5e11);
    kp_result_set_na(&s.own, all, KP_REASON_NOT_DISASSEMBLED);
    kp_result_set_na(&s.own, rate, KP_REASON_NOT_COLLECTED);
    show(&s, "full", "", "");
    assert_int_equal(shown(&s, "numa__cpu_affinity")->count, 2);
    assert_string_equal(shown(&s, "launch__kernel_name")->text, "");
    assert_int_equal(shown(&s, "memory_type")->count, 0);
    assert_string_equal(shown(&s, "memory_type")->unit, "");
    assert_string_equal(shown(&s, "derived__lts__lts2xbar_bytes.sum.per_second")->unit, "byte");
    assert_float_equal(shown(&s, "derived__lts__lts2xbar_bytes.sum.per_second")->real, 5e11, 0);
    assert_int_equal(shown(&s, all)->kind, KP_VALUE_NA); /* nothing else tells */
    assert_int_equal(shown(&s, rate)->kind, KP_VALUE_NA);
    kp_result_set_count(&s.own, "sass__inst_executed_per_opcode", "", 416);
    kp_result_set_count(&s.own, up, "", 3);
    show(&s, "full", "", "");
    assert_int_equal(shown(&s, all)->count, 416);
    assert_int_equal(shown(&s, rate)->kind, KP_VALUE_NA);
    kp_result_set_count(&s.own, up, "", 0);
    show(&s, "full", "", "");
    assert_int_equal(shown(&s, rate)->kind, KP_VALUE_COUNT);
    assert_int_equal(shown(&s, rate)->count, 0);
    assert_string_equal(shown(&s, rate)->unit, "byte/s");
    forget(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_of_the_set_full_are_those_of_ncu),
        cmocka_unit_test(what_is_shown_depends_on_what_was_asked_for),
        cmocka_unit_test(values_and_units_are_those_of_ncu),
    };
    return cmocka_run_group_tests_name("report/ncu_columns", tests, NULL, NULL);
}
