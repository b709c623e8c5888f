/* The columns of ncu's raw page, set full of a GH100 (tests/data/columns.tsv): a session has each of them, or the table
 * says why not. The same for those that CUPTI has on a GA100. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectors/facts/launch.h"
#include "collectors/plan/plan.h"
#include "collectors/providers/providers.h"
#include "collectors/providers/tables.h"
#include "tests/support/collect_support.h"
#include "tests/support/report_support.h"

enum { MOST_TOLD = 40 };

/* What a session of the set full has on a chip. */
struct had {
    const char *chip;
    int major, minor;
    struct kp_plan *plan;
    struct kp_host *host;
    const char *asked;
    bool found;
};

/* What providers set beside the metrics that a list may name. */
static const char *const beside[] = {"profiler__pmsampler_buffer_size_bytes", "profiler__pmsampler_interval_time",
                                     "profiler__pmsampler_pass_groups",       "sass__inst_executed_global_loads",
                                     "sass__inst_executed_global_stores",     "sass__inst_executed_local_loads",
                                     "sass__inst_executed_local_stores",      "sass__inst_executed_shared_loads",
                                     "sass__inst_executed_shared_stores",     NULL};

static int is_asked(const char *name, const char *unit, void *arg)
{
    struct had *h = arg;
    (void)unit;
    h->found |= !strcmp(name, h->asked);
    return h->found;
}

static bool has_column(struct had *h, const char *name)
{
    h->asked = name;
    h->found = false;
    for (size_t i = 0; !h->found && i < h->plan->n_metrics; i++)
        h->found = !strcmp(h->plan->metrics[i].name, name);
    for (const char *const *one = beside; !h->found && *one; one++)
        h->found = !strcmp(*one, name);
    return h->found || kp_launch_is_metric(name) || kp_providers_metrics(h->major, h->minor, is_asked, h);
}

static void open_chip(struct had *h)
{
    const struct kp_section **sections;
    size_t n;
    char *err = NULL;
    assert_int_equal(kp_sections_select("full", "", &sections, &n, &err), 0);
    assert_int_equal(kp_plan_make(kp_test_real_cupti(), h->chip, NULL, h->major, h->minor, sections, n, "",
                                  KP_PLAN_RULES, &h->plan, &err),
                     0);
    assert_int_equal(kp_tables_open(kp_test_real_cupti(), KP_TABLES_COUNTED, h->chip, NULL, &h->host), 0);
    free(sections);
}

static void close_chip(struct had *h)
{
    kp_plan_free(h->plan);
    kp_tables_close(h->host);
}

/* What the columns of the table showed. */
struct seen {
    size_t columns, missing, wrong;
};

static void look_at(struct had *h, const char *name, const char *reason, bool only_of_chip, struct seen *seen)
{
    struct kp_metric_props props;
    if (only_of_chip && kp_tables_metric(h->host, name, &props))
        return;
    bool has = has_column(h, name);
    seen->columns++;
    seen->missing += !has;
    if (has == !*reason)
        return;
    if (seen->wrong++ < MOST_TOLD)
        print_message("%s: %s %s\n", h->chip, name, has ? "is there, though the table has a reason" : "is missing");
}

/* Looks at a line of the table: a name, where ".*" stands for all roll-ups, and perhaps a tab and a reason. */
static void look_at_line(struct had *h, char *line, bool only_of_chip, struct seen *seen)
{
    static const char *const roll_ups[] = {".avg", ".max", ".min", ".sum"};
    char *tab = strchr(line, '\t'), *star = strstr(line, ".*");
    if (tab)
        *tab = '\0';
    const char *reason = tab ? tab + 1 : "", *colon = strchr(reason, ':');
    if (colon) /* one for a chip alone */
        reason = strncmp(reason, h->chip, strlen(h->chip)) ? "" : colon + 1;
    if (!star)
        look_at(h, line, reason, only_of_chip, seen);
    for (size_t i = 0; star && i < sizeof roll_ups / sizeof *roll_ups; i++) {
        char name[512];
        snprintf(name, sizeof name, "%.*s%s%s", (int)(star - line), line, roll_ups[i], star + 2);
        look_at(h, name, reason, only_of_chip, seen);
    }
}

static struct seen look_at_table(struct had *h, const char *path, bool only_of_chip)
{
    struct seen seen = {0};
    char *save = NULL, *text = kp_test_read(path);
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
        if (*line != '#')
            look_at_line(h, line, only_of_chip, &seen);
    free(text);
    return seen;
}

/* `least`: the columns that are looked at at least. */
static void compare(struct had *h, bool only_of_chip, size_t least)
{
    kp_test_skip_sanitized();
    open_chip(h);
    struct seen seen = look_at_table(h, kp_test_source("tests/data/columns.tsv"), only_of_chip);
    print_message("%s: %zu columns of ncu, %zu missing for a reason\n", h->chip, seen.columns, seen.missing);
    assert_int_equal(seen.wrong, 0);
    assert_true(seen.columns > least);
    close_chip(h);
}

static void test_columns_of_gh100(void **state)
{
    (void)state;
    compare(&(struct had){.chip = "GH100", .major = 9, .minor = 0}, false, 2200);
}

static void test_columns_of_ga100(void **state)
{
    (void)state;
    compare(&(struct had){.chip = "GA100", .major = 8, .minor = 0}, true, 1000);
}

/* The test would see a column that is not there, and a reason that is none. */
static void test_the_comparison_sees_both_faults(void **state)
{
    struct had h = {.chip = "GH100", .major = 9, .minor = 0};
    char absent[] = "sm__no_such_counter.*", present[] = "sm__cycles_elapsed.max\twhy";
    struct seen seen = {0};
    (void)state;
    kp_test_skip_sanitized();
    open_chip(&h);
    look_at_line(&h, absent, false, &seen);
    look_at_line(&h, present, false, &seen);
    assert_int_equal(seen.wrong, 5);
    close_chip(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_columns_of_gh100),
        cmocka_unit_test(test_columns_of_ga100),
        cmocka_unit_test(test_the_comparison_sees_both_faults),
    };
    return cmocka_run_group_tests_name("collectors/columns", tests, NULL, NULL);
}
