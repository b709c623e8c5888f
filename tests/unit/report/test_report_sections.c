#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/define/sections.h"

/* The selection as identifiers joined by blanks, or the message. */
static void assert_selects(const char *set, const char *list, const char *expected)
{
    const struct kp_section **chosen = NULL;
    char *err = NULL, text[1024] = "";
    size_t n;
    int rc = kp_sections_select(set, list, &chosen, &n, &err);
    for (size_t i = 0; i < n; i++) {
        strcat(text, i ? " " : "");
        strcat(text, chosen[i]->id);
    }
    if (rc) {
        assert_int_equal(rc, -EINVAL);
        assert_null(chosen);
        assert_string_equal(err, expected);
    } else {
        assert_null(err);
        assert_string_equal(text, expected);
    }
    free(chosen);
    free(err);
}

static void selections(void **state)
{
    (void)state;
    assert_selects("basic", "", "SpeedOfLight LaunchStats Occupancy WorkloadDistribution");
    assert_selects("detailed", "",
                   "SpeedOfLight SpeedOfLight_RooflineChart ComputeWorkloadAnalysis MemoryWorkloadAnalysis "
                   "MemoryWorkloadAnalysis_Chart LaunchStats Occupancy WorkloadDistribution SourceCounters");
    assert_selects("full", "",
                   "SpeedOfLight SpeedOfLight_RooflineChart SpeedOfLight_HierarchicalDoubleRooflineChart "
                   "SpeedOfLight_HierarchicalHalfRooflineChart SpeedOfLight_HierarchicalSingleRooflineChart "
                   "SpeedOfLight_HierarchicalTensorRooflineChart PmSampling ComputeWorkloadAnalysis "
                   "MemoryWorkloadAnalysis MemoryWorkloadAnalysis_Chart MemoryWorkloadAnalysis_Tables SchedulerStats "
                   "WarpStateStats "
                   "InstructionStats Nvlink_Topology Nvlink_Tables NumaAffinity LaunchStats Occupancy "
                   "WorkloadDistribution SourceCounters");
    assert_selects("roofline", "",
                   "SpeedOfLight SpeedOfLight_RooflineChart SpeedOfLight_HierarchicalDoubleRooflineChart "
                   "SpeedOfLight_HierarchicalHalfRooflineChart SpeedOfLight_HierarchicalSingleRooflineChart "
                   "SpeedOfLight_HierarchicalTensorRooflineChart WorkloadDistribution");
    assert_selects("nvlink", "", "Nvlink Nvlink_Topology Nvlink_Tables");
    assert_selects("quick", "", "Quick");
    assert_selects("pmsampling", "", "PmSampling PmSampling_WarpStates");
    assert_selects("quick", "SpeedOfLight", "Quick SpeedOfLight");
    assert_selects("basic", "Quick", "Quick SpeedOfLight LaunchStats Occupancy WorkloadDistribution");
    assert_selects("", "", "");
    assert_selects("", "WorkloadDistribution,SpeedOfLight", "SpeedOfLight WorkloadDistribution");
    assert_selects("", " Occupancy , Occupancy ,,", "Occupancy");
    assert_selects("", "C2CLink", "C2CLink"); /* in no set */
    assert_selects("", "regex:.*Light|Work.*", "SpeedOfLight WorkloadDistribution");
    assert_selects("", "regex:Occ|Launch.*", "LaunchStats"); /* in full: Occ alone is no identifier */
    assert_selects("basic", "Occupancy", "SpeedOfLight LaunchStats Occupancy WorkloadDistribution");
}

static void errors_name_what_is_valid(void **state)
{
    (void)state;
    assert_selects("basci", "", "unknown set 'basci'; did you mean 'basic'?");
    assert_selects("everything", "",
                   "unknown set 'everything'; valid: basic, detailed, full, roofline, nvlink, quick, pmsampling, none");
    assert_selects("", "Occupancy,SpeedOfLigth", "unknown section 'SpeedOfLigth'; did you mean 'SpeedOfLight'?");
    assert_selects("", "occupancy", "unknown section 'occupancy'; did you mean 'Occupancy'?");
    assert_selects("", "X",
                   "unknown section 'X'; valid: Quick, SpeedOfLight, SpeedOfLight_RooflineChart, "
                   "SpeedOfLight_HierarchicalDoubleRooflineChart, SpeedOfLight_HierarchicalHalfRooflineChart, "
                   "SpeedOfLight_HierarchicalSingleRooflineChart, SpeedOfLight_HierarchicalTensorRooflineChart, "
                   "PmSampling, PmSampling_WarpStates, ComputeWorkloadAnalysis, MemoryWorkloadAnalysis, "
                   "MemoryWorkloadAnalysis_Chart, "
                   "MemoryWorkloadAnalysis_Tables, SchedulerStats, WarpStateStats, InstructionStats, C2CLink, Nvlink, "
                   "Nvlink_Topology, Nvlink_Tables, NumaAffinity, LaunchStats, Occupancy, WorkloadDistribution, "
                   "SourceCounters");
    assert_selects("", "regex:Nothing", "no section matches 'regex:Nothing'");
    assert_selects("", "regex:a)(b", "bad expression 'a)(b': unmatched closing parenthesis (character 1)");
}

static void cc_conditions(void **state)
{
    (void)state;
    assert_true(kp_cc_matches("", 5, 0));
    assert_true(kp_cc_matches("75-86,89-100,103,120", 7, 5));
    assert_true(kp_cc_matches("75-86,89-100,103,120", 8, 6));
    assert_false(kp_cc_matches("75-86,89-100,103,120", 8, 7));
    assert_true(kp_cc_matches("75-86,89-100,103,120", 10, 0));
    assert_true(kp_cc_matches("75-86,89-100,103,120", 10, 3));
    assert_false(kp_cc_matches("75-86,89-100,103,120", 10, 1));
    assert_false(kp_cc_matches("75-86,89-100,103,120", 12, 1));
    assert_false(kp_cc_matches("75-86,89-100,103,120", 7, 0));
    assert_true(kp_cc_matches("90-", 9, 0));
    assert_true(kp_cc_matches("90-", 12, 1));
    assert_false(kp_cc_matches("90-", 8, 9));
    assert_true(kp_cc_matches("87,90-,110", 12, 0)); /* an open end inside the list */
}

static bool one_pass(const char *set, const char *list, const char *metrics)
{
    const struct kp_section **chosen;
    char *err;
    size_t n;
    assert_int_equal(kp_sections_select(set, list, &chosen, &n, &err), 0);
    bool answer = kp_sections_one_pass(chosen, n, metrics);
    free(chosen);
    return answer;
}

static void one_pass_selections(void **state)
{
    (void)state;
    assert_true(one_pass("quick", "", ""));
    assert_true(one_pass("quick", "", " ,"));
    assert_true(one_pass("", "Quick", ""));
    assert_true(one_pass("quick", "regex:Q.*", ""));
    assert_false(one_pass("quick", "", "gpu__time_duration.sum"));
    assert_false(one_pass("quick", "", " , gpu__time_duration.sum"));
    assert_false(one_pass("quick", "Occupancy", ""));
    assert_false(one_pass("", "Occupancy", ""));
    assert_false(one_pass("basic", "Quick", ""));
    assert_false(one_pass("basic", "", ""));
    assert_false(one_pass("", "", "gpu__time_duration.sum"));
    assert_false(one_pass("", "", "")); /* nothing is no selection */
}

static void one_section_for_what_is_not_replayed(void **state)
{
    const struct kp_section *quick = kp_section_quick(), *s;
    size_t n, found = 0;
    (void)state;
    s = kp_sections(&n);
    for (size_t i = 0; i < n; i++)
        found += s[i].passes == KP_PASSES_ONE;
    assert_int_equal(found, 1);
    assert_int_equal(quick->passes, KP_PASSES_ONE);
    assert_string_equal(quick->id, "Quick");
    assert_string_equal(quick->sets, "quick"); /* no other set has it */
    assert_string_equal(quick->rows[0].metric, "gpu__time_duration.sum");
}

static const int profiled[] = {75, 80, 86, 87, 89, 90, 100, 103, 110, 120, 121};

static bool same_place(const struct kp_row *a, const struct kp_row *b)
{
    return a->kind == b->kind && !strcmp(a->group, b->group) && !strcmp(a->label, b->label);
}

/* No chip has two rows of one place. */
static void check_places(const struct kp_row *rows, size_t n)
{
    for (size_t c = 0; c < sizeof profiled / sizeof *profiled; c++)
        for (size_t i = 0; i < n; i++)
            for (size_t j = 0; j < i; j++)
                if (same_place(&rows[i], &rows[j]) && kp_cc_matches(rows[i].cc, profiled[c] / 10, profiled[c] % 10) &&
                    kp_cc_matches(rows[j].cc, profiled[c] / 10, profiled[c] % 10))
                    fail_msg("%d: %s and %s", profiled[c], rows[i].metric, rows[j].metric);
}

static bool begins(const char *text, const char *with)
{
    return !strncmp(text, with, strlen(with));
}

/* A name tells where a metric comes from; the row must agree. */
static void check_source(const struct kp_row *row)
{
    bool launch = begins(row->metric, "launch__") || begins(row->metric, "numa__") || begins(row->metric, "nvlink__");
    bool computed = begins(row->metric, "derived__") && !begins(row->metric, "derived__pct_occupancy_") &&
                    !begins(row->metric, "derived__local_spilling_");
    assert_true(*row->metric && !(launch && row->source == KP_SRC_COUNTER));
    bool by_instruction = row->source == KP_SRC_SASS || row->source == KP_SRC_PCSAMP;
    assert_true(computed ? row->source == KP_SRC_DERIVED || row->source == KP_SRC_SASS : true);
    assert_int_equal(begins(row->metric, "smsp__pcsamp_"), row->source == KP_SRC_PCSAMP);
    assert_true(by_instruction || !(begins(row->metric, "memory_") || begins(row->metric, "sass__")));
    assert_true(begins(row->metric, "profiler__") ? row->source == KP_SRC_PM : true);
    if (row->source == KP_SRC_DERIVED)
        assert_true(computed || !strcmp(row->metric, "inst_executed"));
}

/* What kinds of rows a body of a kind consists of, and which fields they use. */
static void check_body(const struct kp_section *s, const struct kp_row *body, const struct kp_row *end)
{
    bool rates = body->body == KP_BODY_ROOFLINE, groups = body->body == KP_BODY_GRID || body->body == KP_BODY_CHART;
    assert_true(body->body != KP_BODY_NONE && *body->label && !*body->metric && !*body->cc);
    if (body + 1 == end)
        fail_msg("%s: \"%s\" is empty", s->id, body->label);
    for (const struct kp_row *row = body + 1; row < end; row++) {
        assert_int_equal(row->body, KP_BODY_NONE);
        assert_int_equal(body->body == KP_BODY_SERIES, row->source == KP_SRC_PM);
        assert_int_equal(rates, row->kind != KP_ROW_ITEM);
        assert_int_equal(rates || groups, *row->group != '\0');
        assert_int_equal(begins(row->metric, "breakdown:"), !*row->label);
        assert_true(*row->label || body->body == KP_BODY_BARS);
    }
    check_places(body + 1, (size_t)(end - body) - 1);
}

static const struct kp_row *next_body(const struct kp_row *row, const struct kp_row *end)
{
    while (row < end && row->kind != KP_ROW_BODY)
        row++;
    return row;
}

/* A section is header rows, extra rows, then bodies. */
static void check_rows(const struct kp_section *s)
{
    const struct kp_row *end = s->rows + s->n_rows, *bodies = next_body(s->rows, end);
    for (const struct kp_row *row = s->rows; row < end; row++)
        if (row->kind != KP_ROW_BODY)
            check_source(row);
    for (const struct kp_row *row = s->rows; row < bodies; row++) {
        assert_true(row->kind == KP_ROW_HEADER || row->kind == KP_ROW_EXTRA);
        assert_true(row == s->rows || row[-1].kind <= row->kind);
        assert_true(*row->label && !*row->group);
        for (const struct kp_row *other = s->rows; other < row; other++) /* a metric is printed once in a table */
            assert_string_not_equal(row->metric, other->metric);
    }
    check_places(s->rows, (size_t)(bodies - s->rows));
    for (const struct kp_row *body = bodies; body < end;) {
        const struct kp_row *next = next_body(body + 1, end);
        check_body(s, body, next);
        body = next;
    }
}

static void check_sets(const struct kp_section *s)
{
    char sets[128], *save = NULL;
    snprintf(sets, sizeof sets, "%s", s->sets);
    for (char *set = strtok_r(sets, ",", &save); set; set = strtok_r(NULL, ",", &save)) {
        const char *const *known = kp_set_names();
        while (*known && strcmp(*known, set))
            known++;
        assert_non_null(*known);
    }
}

/* The table's own rules: order, identifiers, rows, and sets on both sides. */
static void table_is_sound(void **state)
{
    (void)state;
    size_t n;
    const struct kp_section *s = kp_sections(&n);
    for (size_t i = 0; i < n; i++) {
        assert_true(!i || s[i - 1].order <= s[i].order);
        assert_ptr_equal(kp_section_find(s[i].id), &s[i]);
        assert_true(s[i].n_rows > 0);
        check_rows(&s[i]);
        check_sets(&s[i]);
    }
    for (const char *const *set = kp_set_names(); *set; set++) {
        bool used = false;
        for (size_t i = 0; i < n; i++)
            used |= kp_section_in_set(&s[i], *set);
        assert_int_equal(used, strcmp(*set, "none") != 0);
    }
    assert_null(kp_section_find("speedoflight"));
    assert_false(kp_section_in_set(&s[0], "bas"));
}

/* Whether a chip has a row of the kind in the group; rows[0..n) are a body's. */
static bool has_rate(const struct kp_row *rows, size_t n, const char *group, int cc, enum kp_row_kind kind)
{
    for (size_t i = 0; i < n; i++)
        if (rows[i].kind == kind && !strcmp(rows[i].group, group) && kp_cc_matches(rows[i].cc, cc / 10, cc % 10))
            return true;
    return false;
}

/* The work of a roof or a point has a clock, and traffic beside it; the peak traffic is per cycle, the measured is not.
 * Only the plain roofline keeps its work on chips without DRAM of their own. */
static void check_rates(const struct kp_section *s, const struct kp_row *rows, size_t n)
{
    bool plain = !strcmp(s->id, "SpeedOfLight_RooflineChart");
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; rows[i].kind == KP_ROW_WORK && c < sizeof profiled / sizeof *profiled; c++) {
            const char *group = rows[i].group;
            int cc = profiled[c];
            bool work = has_rate(rows, n, group, cc, KP_ROW_WORK), point = begins(group, KP_POINT_MARK);
            bool traffic = has_rate(rows, n, group, cc, KP_ROW_TRAFFIC);
            if (work != has_rate(rows, n, group, cc, KP_ROW_WORK_CLOCK) || (work != traffic && !(plain && work)) ||
                (traffic && !point) != has_rate(rows, n, group, cc, KP_ROW_TRAFFIC_CLOCK))
                fail_msg("%s: %s is not whole on %d", s->id, group, cc);
        }
}

static void roofs_are_whole(void **state)
{
    static const char *const ids[] = {"SpeedOfLight_RooflineChart", "SpeedOfLight_HierarchicalDoubleRooflineChart",
                                      "SpeedOfLight_HierarchicalHalfRooflineChart",
                                      "SpeedOfLight_HierarchicalSingleRooflineChart",
                                      "SpeedOfLight_HierarchicalTensorRooflineChart"};
    (void)state;
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        const struct kp_section *s = kp_section_find(ids[i]);
        const struct kp_row *end = s->rows + s->n_rows, *body = next_body(s->rows, end);
        assert_int_equal(body->body, KP_BODY_ROOFLINE);
        check_rates(s, body + 1, (size_t)(next_body(body + 1, end) - body) - 1);
    }
}

static size_t position(const char *id)
{
    size_t n;
    const struct kp_section *s = kp_section_find(id);
    return s ? (size_t)(s - kp_sections(&n)) : SIZE_MAX;
}

/* Sections beside those of the table. Comes last: they stay. */
static void added_sections(void **state)
{
    static const struct kp_row row = {
        .label = "x", .metric = "sm__cycles_active.sum", .unit = "", .cc = "", .group = ""};
    size_t before, n;
    const struct kp_section *held = kp_sections(&before);
    const struct kp_section first = held[0], last = held[before - 1];
    const struct kp_section added[] = {
        {"AddedLast", "a", last.order, "new_set,basic", "", &row, 1, KP_PASSES_ANY},
        {"AddedFirst", "b", first.order - 1, "new_set", "", &row, 1, KP_PASSES_ANY},
        {last.id, "replaced", first.order - 2, "other_set", "", &row, 1, last.passes},
        {"AddedLast", "again", last.order, "new_set,basic", "", &row, 1, KP_PASSES_ANY},
    };
    (void)state;
    assert_int_equal(kp_sections_add(added, 4), 0);
    kp_sections(&n);
    assert_int_equal(n, before + 2);
    assert_int_equal(position(last.id), 0);
    assert_int_equal(position("AddedFirst"), 1);
    assert_int_equal(position(first.id), 2);
    assert_int_equal(position("AddedLast"), n - 1);
    assert_string_equal(kp_section_find("AddedLast")->display, "again");
    assert_string_equal(kp_section_find(last.id)->display, "replaced");
    assert_string_equal(held[before - 1].display, last.display); /* what was handed out is as it was */
    held = kp_sections_builtin(&n);
    assert_int_equal(n, before);
    assert_string_equal(held[n - 1].display, last.display);
    assert_selects("new_set", "", "AddedFirst AddedLast");
    char both[128];
    snprintf(both, sizeof both, "%s AddedFirst", last.id);
    assert_selects("other_set", "AddedFirst", both);
    assert_selects("", "regex:Added.*", "AddedFirst AddedLast");
    assert_selects("new_sett", "", "unknown set 'new_sett'; did you mean 'new_set'?");
    assert_selects("", "AddedLst", "unknown section 'AddedLst'; did you mean 'AddedLast'?");
    /* behind those of its order; and back from the front to the end */
    const struct kp_section tie = {"AddedTie", "c", first.order, "", "", &row, 1, KP_PASSES_ANY};
    const struct kp_section back = {"AddedFirst", "b", last.order + 1, "new_set", "", &row, 1, KP_PASSES_ANY};
    assert_int_equal(kp_sections_add(&tie, 1), 0);
    assert_int_equal(position("AddedTie"), position(first.id) + 1);
    assert_int_equal(kp_sections_add(&back, 1), 0);
    assert_int_equal(position("AddedFirst"), before + 2);
    assert_int_equal(position(first.id), 1);
    const char *const *sets = kp_set_names();
    assert_int_equal(kp_sections_add(added, 4), 0);
    for (n = 0; kp_set_names()[n]; n++)
        assert_string_equal(kp_set_names()[n], sets[n]); /* no name twice */
    assert_null(sets[n]);
    assert_string_equal(kp_section_quick()->id, "Quick");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(selections),          cmocka_unit_test(errors_name_what_is_valid),
        cmocka_unit_test(one_pass_selections), cmocka_unit_test(one_section_for_what_is_not_replayed),
        cmocka_unit_test(cc_conditions),       cmocka_unit_test(table_is_sound),
        cmocka_unit_test(roofs_are_whole),     cmocka_unit_test(added_sections),
    };
    return cmocka_run_group_tests_name("report/sections", tests, NULL, NULL);
}
