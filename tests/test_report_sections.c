#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/sections.h"

/* The selection as identifiers joined by blanks, or the message. */
static void assert_selects(const char *set, const char *list, const char *expected)
{
    const struct kp_section **chosen = NULL;
    char *err = NULL, text[512] = "";
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
    assert_selects("quick", "", "Quick");
    assert_selects("quick", "SpeedOfLight", "Quick SpeedOfLight");
    assert_selects("basic", "Quick", "Quick SpeedOfLight LaunchStats Occupancy WorkloadDistribution");
    assert_selects("", "", "");
    assert_selects("", "WorkloadDistribution,SpeedOfLight", "SpeedOfLight WorkloadDistribution");
    assert_selects("", " Occupancy , Occupancy ,,", "Occupancy");
    assert_selects("", "regex:.*ig.*|Work.*", "SpeedOfLight WorkloadDistribution");
    assert_selects("", "regex:Occ|Launch.*", "LaunchStats"); /* in full: Occ alone is no identifier */
    assert_selects("basic", "Occupancy", "SpeedOfLight LaunchStats Occupancy WorkloadDistribution");
}

static void errors_name_what_is_valid(void **state)
{
    (void)state;
    assert_selects("basci", "", "unknown set 'basci'; did you mean 'basic'?");
    assert_selects("everything", "", "unknown set 'everything'; valid: basic, quick");
    assert_selects("", "Occupancy,SpeedOfLigth", "unknown section 'SpeedOfLigth'; did you mean 'SpeedOfLight'?");
    assert_selects("", "occupancy", "unknown section 'occupancy'; did you mean 'Occupancy'?");
    assert_selects("", "X",
                   "unknown section 'X'; valid: Quick, SpeedOfLight, LaunchStats, Occupancy, WorkloadDistribution");
    assert_selects("", "regex:Nothing", "no section matches 'regex:Nothing'");
    assert_selects("", "regex:a)(b", "bad expression 'a)(b': Unmatched ( or \\(");
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

/* The table's own rules: order, identifiers, one source and unit a metric, and sets on both sides. */
static void table_is_sound(void **state)
{
    (void)state;
    size_t n;
    const struct kp_section *s = kp_sections(&n);
    for (size_t i = 0; i < n; i++) {
        assert_true(!i || s[i - 1].order <= s[i].order);
        assert_ptr_equal(kp_section_find(s[i].id), &s[i]);
        assert_true(s[i].n_rows > 0);
        for (size_t j = 0; j < s[i].n_rows; j++) {
            const struct kp_row *row = &s[i].rows[j];
            bool launch_name = !strncmp(row->metric, "launch__", 8);
            assert_false(launch_name && row->source == KP_SRC_COUNTER);
            for (size_t k = 0; k < j; k++)
                assert_string_not_equal(row->metric, s[i].rows[k].metric);
        }
        char sets[128], *save = NULL;
        snprintf(sets, sizeof sets, "%s", s[i].sets);
        for (char *set = strtok_r(sets, ",", &save); set; set = strtok_r(NULL, ",", &save)) {
            const char *const *known = kp_set_names();
            while (*known && strcmp(*known, set))
                known++;
            assert_non_null(*known);
        }
    }
    for (const char *const *set = kp_set_names(); *set; set++) {
        bool used = false;
        for (size_t i = 0; i < n; i++)
            used |= kp_section_in_set(&s[i], *set);
        assert_true(used);
    }
    assert_null(kp_section_find("speedoflight"));
    assert_false(kp_section_in_set(&s[0], "bas"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(selections),          cmocka_unit_test(errors_name_what_is_valid),
        cmocka_unit_test(one_pass_selections), cmocka_unit_test(one_section_for_what_is_not_replayed),
        cmocka_unit_test(cc_conditions),       cmocka_unit_test(table_is_sound),
    };
    return cmocka_run_group_tests_name("report/sections", tests, NULL, NULL);
}
