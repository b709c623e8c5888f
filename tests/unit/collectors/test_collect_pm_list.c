/* What is sampled on which chip, against the real CUPTI's tables and scheduling. Needs no GPU. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectors/providers/pm_list.h"
#include "cupti/pm.h"
#include "tests/support/chips_support.h"
#include "tests/support/collect_support.h"
#include "tests/support/report_support.h"

static const char golden[] = "tests/golden/pm_chips.txt";

static struct kp_host *open_host(const struct kp_test_chip *chip)
{
    struct kp_host *h = NULL;
    assert_int_equal(kp_pm_host(kp_test_real_cupti(), chip->name, NULL, &h), 0);
    return h;
}

/* The series that a section shows on the chip, or would if the chip had their metrics. */
static size_t rows_of(const struct kp_section *s, const struct kp_test_chip *chip, const struct kp_row **rows,
                      size_t most)
{
    size_t n = 0;
    for (size_t i = kp_section_body_end(s, 0) + 1; i < s->n_rows; i++)
        if (kp_cc_matches(s->rows[i].cc, chip->major, chip->minor)) {
            assert_true(n < most);
            rows[n++] = &s->rows[i];
        }
    return n;
}

static bool has(const struct kp_pm_list *l, const char *name)
{
    for (size_t i = 0; i < l->n; i++)
        if (!strcmp(l->names[i], name))
            return true;
    return false;
}

/* The report believes the row's unit. */
static void check_unit(struct kp_host *h, const struct kp_test_chip *chip, const struct kp_row *row)
{
    struct kp_metric_props props;
    assert_int_equal(kp_host_metric(h, row->metric, &props), 0);
    if (strcmp(props.unit, row->unit))
        fail_msg("%s: %s is in %s", chip->name, row->metric, props.unit);
}

static void print_groups(FILE *f, const struct kp_pm_groups *g)
{
    fprintf(f, "%zu pass groups", g->n);
    for (size_t i = 0; i < g->n; i++) {
        assert_int_equal(g->at[i].passes, 1);
        fprintf(f, "%s %zu", i ? "," : " of", g->at[i].n_names);
    }
    for (size_t i = 0; i < g->n_left_out; i++) {
        assert_int_equal(g->left_out[i].why, KP_PM_SEVERAL_PASSES);
        fprintf(f, "%s %s", i ? "," : "; several passes:", g->left_out[i].name);
    }
}

static void print_section(FILE *f, const struct kp_test_chip *chip, struct kp_host *h, const char *id)
{
    const struct kp_section *s = kp_section_find(id);
    const struct kp_row *rows[64];
    struct kp_pm_list l;
    struct kp_pm_groups g;
    size_t n = rows_of(s, chip, rows, 64);
    assert_non_null(s);
    assert_int_equal(kp_providers_pm_list(h, chip->major, chip->minor, &s, 1, "", &l), 0);
    assert_int_equal(kp_providers_pm_wanted(chip->major, chip->minor, &s, 1, ""),
                     kp_cc_matches(s->cc, chip->major, chip->minor));
    if (!kp_cc_matches(s->cc, chip->major, chip->minor)) {
        assert_int_equal(l.n, 0);
        fprintf(f, "  %s: not of this chip\n", id);
        return;
    }
    assert_int_equal(kp_pm_schedule(kp_test_real_cupti(), chip->name, NULL, (const char *const *)l.names, l.n, 0, &g),
                     0);
    fprintf(f, "  %s: ", id);
    print_groups(f, &g);
    for (size_t i = 0; i < n; i++)
        if (has(&l, rows[i]->metric))
            check_unit(h, chip, rows[i]);
        else
            fprintf(f, "; no %s", rows[i]->label);
    fputc('\n', f);
    kp_pm_groups_free(&g);
    kp_providers_pm_list_free(&l);
}

/* malloc'ed. */
static char *describe(const struct kp_test_chip *chip)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    struct kp_host *h = open_host(chip);
    assert_non_null(f);
    print_section(f, chip, h, "PmSampling");
    print_section(f, chip, h, "PmSampling_WarpStates");
    assert_int_equal(fclose(f), 0);
    kp_host_close(h);
    return text;
}

static void test_every_chip(void **state)
{
    (void)state;
    kp_test_skip_sanitized();
    kp_test_every_chip(describe, golden);
}

static const struct kp_test_chip *find_chip(const char *name)
{
    size_t n;
    const struct kp_test_chip *chips = kp_test_chips(&n);
    for (size_t i = 0; i < n; i++)
        if (!strcmp(chips[i].name, name))
            return &chips[i];
    fail_msg("no chip %s", name);
    return NULL;
}

/* Listed names follow those of the sections, each once, whatever stands between them. */
static void test_listed(void **state)
{
    kp_test_real_cupti();
    struct kp_host *h = open_host(find_chip("GH100"));
    const struct kp_section *s = kp_section_find("PmSampling");
    struct kp_pm_list l, of_section;
    (void)state;
    assert_int_equal(kp_providers_pm_list(h, 9, 0, &s, 1, "", &of_section), 0);
    assert_int_equal(kp_providers_pm_list(
                         h, 9, 0, &s, 1,
                         "sm__inst_executed.sum pmsampling:lts__t_requests.sum,pmsampling:not_there.sum\t"
                         "pmsampling:TPC.TriageCompute.sm__cycles_active.avg.pct_of_peak_sustained_elapsed,pmsampling:,"
                         "pmsampling:lts__t_requests.sum",
                         &l),
                     0);
    assert_int_equal(l.n, of_section.n + 2);
    assert_string_equal(l.names[0], "TPC.TriageCompute.sm__cycles_active.avg.pct_of_peak_sustained_elapsed");
    assert_string_equal(l.names[of_section.n], "lts__t_requests.sum");
    assert_string_equal(l.names[of_section.n + 1], "not_there.sum");
    kp_providers_pm_list_free(&l);
    kp_providers_pm_list_free(&of_section);
    assert_int_equal(kp_providers_pm_list(h, 9, 0, NULL, 0, "", &l), 0);
    assert_int_equal(l.n, 0);
    kp_providers_pm_list_free(&l);
    kp_host_close(h);
}

static void test_wanted(void **state)
{
    const struct kp_section *none[] = {kp_section_find("SpeedOfLight"), kp_section_find("Occupancy")};
    const struct kp_section *states[] = {none[0], kp_section_find("PmSampling_WarpStates")};
    (void)state;
    assert_false(kp_providers_pm_wanted(9, 0, none, 2, ""));
    assert_false(kp_providers_pm_wanted(9, 0, none, 2, "sm__cycles_active.avg,pmsampling:"));
    assert_true(kp_providers_pm_wanted(9, 0, none, 2, "sm__cycles_active.avg pmsampling:x"));
    assert_true(kp_providers_pm_wanted(9, 0, states, 2, ""));
    assert_false(kp_providers_pm_wanted(8, 0, states, 2, "")); /* of other chips */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_chip),
        cmocka_unit_test(test_listed),
        cmocka_unit_test(test_wanted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
