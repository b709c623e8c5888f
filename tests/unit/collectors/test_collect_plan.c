/* From sections and metric names to scheduled lists, with the metric tables of the real CUPTI. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectors/plan/plan.h"
#include "collectors/plan/plan_internal.h"
#include "collectors/providers/providers.h"
#include "cupti/internal.h"
#include "report/define/derive.h"
#include "report/define/groups.h"
#include "tests/support/collect_support.h"
#include "tests/support/report_support.h"

static const char chip[] = "GH100";
enum { MAJOR = 9, MINOR = 0 };

/* Rows as in sections.def. */
#define HEADER(label, metric, unit, cc, source)                                                                        \
    {                                                                                                                  \
        label, metric, unit, cc, KP_SRC_##source, KP_ROW_HEADER, KP_BODY_NONE, ""                                      \
    }
#define BODY(kind, title, cc)                                                                                          \
    {                                                                                                                  \
        title, "", "", cc, KP_SRC_LAUNCH, KP_ROW_BODY, KP_BODY_##kind, ""                                              \
    }
#define ITEM(group, label, metric, unit, cc, source)                                                                   \
    {                                                                                                                  \
        label, metric, unit, cc, KP_SRC_##source, KP_ROW_ITEM, KP_BODY_NONE, group                                     \
    }
#define SECTION(rows, cc)                                                                                              \
    {                                                                                                                  \
        "Test", "Test", 1, "", cc, rows, sizeof(rows) / sizeof(*(rows)), KP_PASSES_ANY                                 \
    }

static int make(const struct kp_section *const *sections, size_t n, const char *metrics, struct kp_plan **p, char **err)
{
    return kp_plan_make(kp_test_real_cupti(), chip, NULL, MAJOR, MINOR, sections, n, metrics, 0, p, err);
}

static struct kp_plan *plan_how(const char *metrics, unsigned how)
{
    struct kp_plan *p = NULL;
    char *err = NULL;
    if (kp_plan_make(kp_test_real_cupti(), chip, NULL, MAJOR, MINOR, NULL, 0, metrics, how, &p, &err))
        fail_msg("%s: %s", metrics, err ? err : "no reason given");
    assert_null(err);
    return p;
}

static struct kp_plan *plan_of(const char *metrics)
{
    return plan_how(metrics, 0);
}

/* Does not schedule, which takes nearly all of the time: for what only looks at the metrics. */
static struct kp_plan *metrics_of(const char *metrics)
{
    return plan_how(metrics, KP_PLAN_UNSHARED);
}

static const struct kp_planned *planned(const struct kp_plan *p, const char *name)
{
    const struct kp_planned *found = NULL;
    for (size_t i = 0; i < p->n_metrics; i++)
        if (!strcmp(p->metrics[i].name, name)) {
            assert_null(found); /* once */
            found = &p->metrics[i];
        }
    return found;
}

static const struct chip {
    const char *name;
    int major, minor, opens;
    size_t passes; /* of the basic set; 0: not looked at here */
} chips[] = {
#define KP_CHIP(...) {__VA_ARGS__},
#include "tests/support/chips.def"
};

enum { CHIPS = sizeof(chips) / sizeof(*chips) };

/* CUPTI profiles from compute capability 7.5 on. */
static bool is_profiled(const struct chip *ch)
{
    return ch->opens && 10 * ch->major + ch->minor >= 75;
}

static struct kp_plan *basic_plan(const char *name, int major, int minor, const char *metrics, unsigned how)
{
    const struct kp_section **sections;
    size_t n;
    struct kp_plan *p = NULL;
    char *err = NULL;
    assert_int_equal(kp_sections_select("basic", "", &sections, &n, &err), 0);
    if (kp_plan_make(kp_test_real_cupti(), name, NULL, major, minor, sections, n, metrics, how, &p, &err))
        print_message("%s: %s\n", name, err);
    free(err);
    free(sections);
    return p;
}

/* ---- sections ---- */

/* Whether what takes long is done on the chip: the library schedules for seconds on all of them, and longest for the
 * newest. */
static bool is_sample(size_t i)
{
    return strstr("TU102 GA100 GH100 GB202", chips[i].name);
}

/* Whether the chip before it in the table has the same compute capability. */
static bool is_same(size_t i)
{
    return i && chips[i - 1].major == chips[i].major && chips[i - 1].minor == chips[i].minor;
}

/* Whether another chip of its compute capability stands before it and one behind it in the table. */
static bool is_between(size_t i)
{
    return is_same(i) && i + 1 < CHIPS && is_same(i + 1);
}

/* On every chip with host tables and a supported compute capability, the basic set is there in full. The library
 * schedules it on the first and the last chip of each; test_cupti_host.c has it schedule the others' counters. */
static void test_basic_set_on_every_chip(void **state)
{
    size_t failed = 0;
    (void)state;
    kp_test_skip_sanitized();
    for (size_t i = 0; i < CHIPS; i++) {
        if (!is_profiled(&chips[i]))
            continue;
        struct kp_plan *p =
            basic_plan(chips[i].name, chips[i].major, chips[i].minor, "", is_between(i) ? KP_PLAN_UNSHARED : 0);
        if (!p) {
            failed++;
            continue;
        }
        for (size_t m = 0; m < p->n_metrics; m++)
            if (p->metrics[m].group == KP_CANNOT_COLLECT) {
                print_message("%s: %s: %s\n", chips[i].name, p->metrics[m].name, kp_why_text(&p->metrics[m].why));
                failed++;
            }
        kp_plan_free(p);
    }
    assert_int_equal(failed, 0);
}

/* A set on a chip, and what of it the chip does not have. `priced`: what it takes, too. */
static void write_set(struct kp_test_text *t, const struct chip *ch, const char *set, bool priced)
{
    struct kp_sink out = kp_test_sink(t);
    const struct kp_section **sections;
    struct kp_plan *p = NULL;
    char *err = NULL, line[256], price[64] = "";
    size_t n, counters = 0, derived = 0;
    assert_int_equal(kp_sections_select(set, "", &sections, &n, &err), 0);
    unsigned how = kp_sections_one_pass(sections, n, "") ? KP_PLAN_ONE_PASS : priced ? 0 : KP_PLAN_UNSHARED;
    if (kp_plan_make(kp_test_real_cupti(), ch->name, NULL, ch->major, ch->minor, sections, n, "", how, &p, &err))
        fail_msg("%s, %s: %s", ch->name, set, err);
    for (size_t i = 0; i < p->n_metrics; i++) {
        counters += p->metrics[i].group != KP_NOT_A_COUNTER && p->metrics[i].group != KP_CANNOT_COLLECT;
        derived += p->metrics[i].derived;
    }
    if (how != KP_PLAN_UNSHARED)
        snprintf(price, sizeof(price), " %2zu passes in %zu lists", p->passes, p->n_groups);
    out.write(out.arg, line,
              (size_t)snprintf(line, sizeof(line), "%-5s %2d.%d  %-10s %4zu metrics %4zu counters %3zu derived%s\n",
                               ch->name, ch->major, ch->minor, set, p->n_metrics, counters, derived, price));
    for (size_t i = 0; i < p->n_metrics; i++)
        if (p->metrics[i].why.reason)
            out.write(out.arg, line,
                      (size_t)snprintf(line, sizeof(line), "    without %s: %s\n", p->metrics[i].name,
                                       kp_why_text(&p->metrics[i].why)));
    kp_plan_free(p);
    free(sections);
}

/* Each set on the first and the last chip of each compute capability, which may lack something. What makes a set dearer
 * shows up on one chip of each generation. */
static void test_sets_on_chips(void **state)
{
    struct kp_test_text t = {NULL, 0};
    (void)state;
    kp_test_skip_sanitized();
    if (strcmp(kp_cupti_version(kp_test_real_cupti()), "13.0"))
        skip();
    t.text = calloc(1, 1);
    for (size_t i = 0; i < CHIPS; i++)
        for (const char *const *set = kp_set_names(); *set && is_profiled(&chips[i]) && !is_between(i); set++)
            write_set(&t, &chips[i], *set, is_sample(i));
    kp_test_golden(t.text, "tests/golden/plan_sets.txt");
    free(t.text);
}

/* ncu needs 38 passes for its full set there, of which two sample. */
static void test_full_set_is_no_dearer_than_ncus(void **state)
{
    const struct kp_section **sections;
    struct kp_plan *p = NULL;
    char *err = NULL;
    size_t n;
    (void)state;
    kp_test_skip_sanitized();
    assert_int_equal(kp_sections_select("", "regex:.*", &sections, &n, &err), 0);
    assert_int_equal(make(sections, n, "", &p, &err), 0);
    assert_in_range(p->passes, 9, 36);
    kp_plan_free(p);
    free(sections);
}

/* ---- rows ---- */

static struct kp_plan *plan_section(const struct kp_section *s)
{
    struct kp_plan *p = NULL;
    char *err = NULL;
    if (make(&s, 1, "", &p, &err))
        fail_msg("%s", err ? err : "no reason given");
    assert_null(err);
    return p;
}

/* Of the rows of one place the first one counts that holds and that the chip has. */
static void test_alternatives(void **state)
{
    static const struct kp_row rows[] = {
        HEADER("Second", "sm__no_such_thing.avg", "cycle", "", COUNTER),
        HEADER("Second", "sm__cycles_active.max", "cycle", "", COUNTER),
        HEADER("Second", "sm__cycles_elapsed.min", "cycle", "", COUNTER),
        HEADER("None", "sm__of_another_chip.avg", "", "100-", COUNTER),
        HEADER("None", "sm__first_of_none.avg", "", "", COUNTER),
        HEADER("None", "sm__second_of_none.avg", "", "", COUNTER),
        BODY(TABLE, "One", ""),
        ITEM("", "Place", "sm__another_chips.avg", "", "75", COUNTER),
        ITEM("", "Place", "sm__no_such_item.avg", "", "", COUNTER),
        ITEM("", "Place", "smsp__cycles_active.max", "cycle", "", COUNTER),
        ITEM("", "Place", "smsp__cycles_active.min", "cycle", "", COUNTER),
        ITEM("", "Nowhere", "sm__nowhere.avg", "", "", COUNTER),
        ITEM("Group", "Place", "smsp__cycles_active.sum", "cycle", "", COUNTER),
        BODY(TABLE, "Two", ""),
        ITEM("", "Place", "smsp__cycles_active.avg", "cycle", "", COUNTER),
        ITEM("", "Of the launch", "launch__not_known_by_name", "", "", LAUNCH),
        ITEM("", "Of the launch", "sm__inst_executed.min", "", "", COUNTER),
        BODY(TABLE, "Of another chip", "75"),
        ITEM("", "Place", "sm__inst_executed.max", "inst", "", COUNTER),
    };
    static const struct kp_section section = SECTION(rows, "75,90");
    static const struct {
        const char *metric;
        int group; /* -9: not planned */
    } expected[] = {
        {"sm__no_such_thing.avg", -9},   {"sm__cycles_active.max", 0},      {"sm__cycles_elapsed.min", -9},
        {"sm__of_another_chip.avg", -9}, {"sm__first_of_none.avg", -2},     {"sm__second_of_none.avg", -9},
        {"sm__another_chips.avg", -9},   {"sm__no_such_item.avg", -9},      {"smsp__cycles_active.max", 0},
        {"smsp__cycles_active.min", -9}, {"sm__nowhere.avg", -9},           {"smsp__cycles_active.sum", 0},
        {"smsp__cycles_active.avg", 0},  {"launch__not_known_by_name", -1}, {"sm__inst_executed.min", -9},
        {"sm__inst_executed.max", -9},
    };
    struct kp_plan *p = plan_section(&section);
    (void)state;
    for (size_t i = 0; i < sizeof(expected) / sizeof(*expected); i++) {
        const struct kp_planned *m = planned(p, expected[i].metric);
        if ((m ? m->group : -9) != expected[i].group)
            fail_msg("%s: %d", expected[i].metric, m ? m->group : -9);
    }
    assert_int_equal(p->n_metrics, 6 + 3); /* other roll-ups of the header's counter */
    kp_plan_free(p);
}

static void test_section_of_another_chip(void **state)
{
    static const struct kp_row rows[] = {HEADER("Here", "sm__cycles_active.avg", "cycle", "", COUNTER)};
    static const struct kp_section section = SECTION(rows, "75-89,100-");
    struct kp_plan *p = plan_section(&section);
    (void)state;
    assert_int_equal(p->n_metrics, 0);
    kp_plan_free(p);
}

/* Rows of users' sections do not tell where a metric comes from, nor the unit. */
static void test_kinds_and_units_by_name(void **state)
{
    static const struct kp_row rows[] = {
        HEADER("Chip's", "gpu__time_duration.sum", KP_UNIT_OF_CHIP, "", COUNTER),
        HEADER("Row's", "sm__cycles_active.avg", "tick", "", COUNTER),
        HEADER("Launch", "launch__grid_size", KP_UNIT_OF_CHIP, "", COUNTER),
        HEADER("Gone", "sm__no_such_thing.avg", KP_UNIT_OF_CHIP, "", COUNTER),
    };
    static const struct kp_section section = SECTION(rows, "");
    struct kp_plan *p = plan_section(&section);
    (void)state;
    assert_string_equal(planned(p, "gpu__time_duration.sum")->unit, "ns");
    assert_string_equal(planned(p, "sm__cycles_active.avg")->unit, "tick");
    assert_string_equal(planned(p, "launch__grid_size")->unit, "");
    assert_int_equal(planned(p, "launch__grid_size")->group, -1);
    assert_string_equal(planned(p, "sm__no_such_thing.avg")->unit, "");
    kp_plan_free(p);
}

/* ---- breakdowns ---- */

static void test_breakdown_of_a_body(void **state)
{
    static const char dram[] = "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed\t"
                               "dram__cycles_active.avg.pct_of_peak_sustained_elapsed,"
                               "fbpa__dram_sectors.avg.pct_of_peak_sustained_elapsed\n";
    static const char active[] = "lts__throughput.max.pct_of_peak_sustained_active\t";
    static const struct kp_row rows[] = {
        BODY(BARS, "One", ""),
        ITEM("", "", "breakdown:gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed", KP_UNIT_OF_CHIP, "", COUNTER),
        BODY(BARS, "Again", ""),
        ITEM("", "", "breakdown:gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed", KP_UNIT_OF_CHIP, "", COUNTER),
        BODY(BARS, "Two", ""),
        ITEM("", "", "breakdown:lts__throughput.max.pct_of_peak_sustained_active", KP_UNIT_OF_CHIP, "", COUNTER),
        BODY(BARS, "None", ""),
        ITEM("", "", "breakdown:lts__no_such_throughput.avg.pct_of_peak_sustained_active", "*", "", COUNTER),
    };
    static const struct kp_section section = SECTION(rows, "");
    struct kp_plan *p = plan_section(&section);
    (void)state;
    assert_memory_equal(p->breakdowns, dram, strlen(dram));
    assert_memory_equal(p->breakdowns + strlen(dram), active, strlen(active));
    const char *end = strchr(p->breakdowns + strlen(dram), '\n');
    assert_string_equal(end, "\n");
    assert_int_equal(planned(p, "dram__cycles_active.avg.pct_of_peak_sustained_elapsed")->group, 0);
    assert_string_equal(planned(p, "fbpa__dram_sectors.avg.pct_of_peak_sustained_elapsed")->unit, "%");
    assert_int_equal(planned(p, "lts__t_sectors.max.pct_of_peak_sustained_active")->group, 0);
    assert_null(planned(p, "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"));
    assert_string_equal(p->listed, "");
    kp_plan_free(p);
}

/* The constituents cost nothing beside the throughputs. */
static void test_breakdowns_are_free(void **state)
{
    static const char throughputs[] = "sm__throughput,gpu__compute_memory_throughput";
    (void)state;
    kp_test_skip_sanitized();
    if (strcmp(kp_cupti_version(kp_test_real_cupti()), "13.0"))
        skip();
    for (size_t i = 0; i < CHIPS; i++) {
        struct kp_plan *bare = NULL, *with = NULL;
        char *err = NULL, both[256];
        if (!is_sample(i))
            continue;
        snprintf(both, sizeof(both), "%s,breakdown:sm__throughput,breakdown:gpu__compute_memory_throughput",
                 throughputs);
        assert_int_equal(kp_plan_make(kp_test_real_cupti(), chips[i].name, NULL, chips[i].major, chips[i].minor, NULL,
                                      0, throughputs, false, &bare, &err),
                         0);
        assert_int_equal(kp_plan_make(kp_test_real_cupti(), chips[i].name, NULL, chips[i].major, chips[i].minor, NULL,
                                      0, both, false, &with, &err),
                         0);
        if (with->passes > bare->passes || with->n_groups != 1 || with->n_metrics < 40)
            fail_msg("%s: %zu metrics, %zu passes, %zu without", chips[i].name, with->n_metrics, with->passes,
                     bare->passes);
        kp_plan_free(bare);
        kp_plan_free(with);
    }
}

/* ---- derived metrics ---- */

static void define(const char *name, const char *expression)
{
    char *err = NULL;
    if (kp_derived_add(&(struct kp_derived){name, "inst", expression}, &err))
        fail_msg("%s: %s", name, err ? err : "no reason given");
}

static int define_all(void **state)
{
    (void)state;
    define("test__per_block", "smsp__inst_executed.sum / launch__grid_size");
    define("test__twice", "test__per_block * 2");
    define("test__absent", "smsp__inst_executed.sum + sm__no_such_thing.sum");
    return 0;
}

static void test_derived_rows(void **state)
{
    static const struct kp_row rows[] = {
        HEADER("Twice", "test__twice", KP_UNIT_OF_CHIP, "", DERIVED),
        HEADER("Absent", "test__absent", "own", "", DERIVED),
        BODY(TABLE, "Body", ""),
        ITEM("", "Absent", "test__absent_here", "", "", DERIVED),
        ITEM("", "Absent", "test__per_block", "", "", DERIVED),
    };
    static const struct kp_section section = SECTION(rows, "");
    struct kp_plan *p = plan_section(&section);
    struct kp_result r = {.metrics = NULL};
    double value = 120, number;
    (void)state;
    assert_true(planned(p, "test__twice")->derived && planned(p, "test__per_block")->derived);
    assert_int_equal(planned(p, "test__twice")->group, -1);
    assert_string_equal(planned(p, "test__twice")->unit, "inst");
    assert_string_equal(planned(p, "test__absent")->unit, "own");
    assert_int_equal(planned(p, "smsp__inst_executed.sum")->group, 0);
    assert_false(planned(p, "smsp__inst_executed.sum")->derived);
    assert_int_equal(planned(p, "launch__grid_size")->group, -1);
    assert_int_equal(planned(p, "sm__no_such_thing.sum")->group, -2); /* why the header row has no value */
    assert_null(planned(p, "test__absent_here"));

    assert_int_equal(kp_result_set_count(&r, "launch__grid_size", "", 10), 0);
    assert_int_equal(p->groups[0].n_names, 1);
    assert_int_equal(kp_plan_store(p, 0, &value, &r), 0);
    assert_int_equal(kp_plan_store_missing(p, kp_why_of(KP_REASON_NOT_COLLECTED, (char *)"lost"), &r), 0);
    assert_int_equal(kp_plan_derive(p, &r), 0);
    assert_true(kp_metric_number(kp_result_find(&r, "test__twice"), &number));
    assert_float_equal(number, 24, 0);
    assert_true(kp_metric_number(kp_result_find(&r, "test__per_block"), &number));
    assert_float_equal(number, 12, 0);
    assert_int_equal(kp_result_find(&r, "test__absent")->kind, KP_VALUE_NA);
    kp_result_free(&r);
    kp_plan_free(p);
}

/* A row of a body whose inputs the chip lacks is left out with them. */
static void test_derived_row_left_out(void **state)
{
    static const struct kp_row rows[] = {BODY(TABLE, "Body", ""), ITEM("", "Absent", "test__absent", "", "", DERIVED)};
    static const struct kp_section section = SECTION(rows, "");
    struct kp_plan *p = plan_section(&section);
    (void)state;
    assert_int_equal(p->n_metrics, 0);
    kp_plan_free(p);
}

static void test_basic_set(void **state)
{
    struct kp_plan *p = basic_plan(chip, MAJOR, MINOR, "", 0);
    size_t counters = 0;
    (void)state;
    assert_non_null(p);
    assert_int_equal(p->n_groups, 1);
    assert_int_equal(p->passes, p->groups[0].passes);
    assert_true(kp_plan_counts(p));
    assert_string_equal(p->listed, "");
    for (size_t i = 0; i < p->n_metrics; i++)
        counters += p->metrics[i].group == 0;
    assert_int_equal(counters, p->groups[0].n_names + p->groups[0].n_more);
    /* in two sections, collected once */
    assert_int_equal(planned(p, "sm__cycles_active.avg")->group, 0);
    assert_string_equal(planned(p, "gpu__time_duration.sum")->unit, "ns");
    assert_int_equal(planned(p, "launch__grid_size")->group, -1);
    assert_int_equal(planned(p, "sm__maximum_warps_per_active_cycle_pct")->group, -1);
    assert_null(planned(p, "mcc__cycles_active.avg")); /* not a row of this chip */
    kp_plan_free(p);
}

/* A metric that a section wants and the chip does not have is marked and does not spoil the rest. */
static void test_missing_metric_of_a_section(void **state)
{
    static const struct kp_row rows[] = {HEADER("Here", "sm__cycles_active.avg", "cycle", "", COUNTER),
                                         HEADER("Gone", "sm__no_such_thing.avg", "cycle", "", COUNTER),
                                         HEADER("Elsewhere", "sm__nor_this.avg", "cycle", "120-", COUNTER),
                                         HEADER("Launch", "launch__grid_size", "", "", LAUNCH)};
    static const struct kp_section section = {"Test", "Test", 1, "", "", rows, 4, KP_PASSES_ANY};
    const struct kp_section *const list[] = {&section};
    struct kp_plan *p = NULL;
    struct kp_result r = {.metrics = NULL};
    char *err = NULL;
    const double values[] = {12.5, 14, 11, 25};
    (void)state;
    assert_int_equal(make(list, 1, "", &p, &err), 0);
    assert_int_equal(planned(p, "sm__cycles_active.avg")->group, 0);
    assert_int_equal(planned(p, "sm__no_such_thing.avg")->group, -2);
    assert_true(planned(p, "sm__no_such_thing.avg")->why.reason);
    assert_null(planned(p, "sm__nor_this.avg"));
    assert_int_equal(p->groups[0].n_names, 1);
    assert_int_equal(p->groups[0].n_more, 3);

    assert_int_equal(kp_plan_store(p, 0, values, &r), 0);
    assert_int_equal(kp_plan_store_missing(p, kp_why_of(KP_REASON_NOT_COLLECTED, (char *)"not this time"), &r), 0);
    assert_int_equal(r.n_metrics, 5);
    assert_float_equal(kp_result_find(&r, "sm__cycles_active.avg")->real, 12.5, 0);
    assert_float_equal(kp_result_find(&r, "sm__cycles_active.sum")->real, 25, 0);
    assert_string_equal(kp_result_find(&r, "sm__no_such_thing.avg")->text,
                        kp_why_text(&planned(p, "sm__no_such_thing.avg")->why));
    kp_result_free(&r);
    kp_plan_free(p);
}

/* The other roll-ups of a section's counters come without a schedule; those of tables of memory, of ratios, of what the
 * user lists, and of a plan that turns or has one pass, do not. */
static void test_roll_ups(void **state)
{
    static const struct kp_row rows[] = {
        HEADER("Line", "sm__cycles_active.avg", "tick", "", COUNTER),
        HEADER("Ratio", "smsp__thread_inst_executed_per_inst_executed.ratio", "", "", COUNTER),
        BODY(BARS, "Bars", ""),
        ITEM("", "Bar", "breakdown:gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed", "%", "", COUNTER),
        BODY(GRID, "Grid", ""),
        ITEM("a", "b", "lts__t_sectors.sum", "sector", "", COUNTER),
    };
    static const struct kp_section section = {"MemoryTest", "Test", 1, "", "", rows, 6, KP_PASSES_ANY};
    const struct kp_section *const list[] = {&section};
    static const struct {
        const char *name;
        bool planned, rolled;
    } expected[] = {
        {"sm__cycles_active.avg", true, false},
        {"sm__cycles_active.max", true, true},
        {"sm__cycles_active.min", true, true},
        {"sm__cycles_active.sum", true, true},
        {"dram__cycles_active.avg.pct_of_peak_sustained_elapsed", true, false},
        {"dram__cycles_active.sum.pct_of_peak_sustained_elapsed", true, true},
        {"dram__cycles_active.sum", false, false},
        {"lts__t_sectors.sum", true, false},
        {"lts__t_sectors.max", false, false},
        {"smsp__cycles_active.avg", true, false}, /* the user's */
        {"smsp__cycles_active.max", false, false},
    };
    (void)state;
    static const unsigned without[] = {KP_PLAN_ONE_PASS, KP_PLAN_ROTATE, KP_PLAN_RUNS};
    struct kp_plan *p = NULL;
    char *err = NULL;
    assert_int_equal(make(list, 1, "smsp__cycles_active.avg", &p, &err), 0);
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        const struct kp_planned *m = planned(p, expected[i].name);
        if (!m != !expected[i].planned || (m && m->rolled != expected[i].rolled))
            fail_msg("%s: %s", expected[i].name, !m ? "not planned" : m->rolled ? "rolled" : "scheduled");
    }
    assert_string_equal(planned(p, "sm__cycles_active.sum")->unit, "tick");
    size_t more = p->groups[0].n_more, passes = p->passes;
    assert_int_equal(p->groups[0].n_names + more, p->n_metrics);
    assert_true(more >= 6);
    kp_plan_free(p);
    for (size_t i = 0; i < sizeof without / sizeof *without; i++) {
        assert_int_equal(
            kp_plan_make(kp_test_real_cupti(), chip, NULL, MAJOR, MINOR, list, 1, "", without[i], &p, &err), 0);
        assert_null(planned(p, "sm__cycles_active.max"));
        kp_plan_free(p);
    }
    /* what watches the host's memory makes the first list anew */
    assert_int_equal(kp_plan_make(kp_test_real_cupti(), chip, NULL, MAJOR, MINOR, list, 1, "", 0, &p, &err), 0);
    assert_int_equal(kp_plan_watch_more(kp_test_real_cupti(), chip, NULL, p), 0);
    assert_int_equal(p->groups[0].n_more, more);
    assert_int_equal(p->passes, passes);
    kp_plan_free(p);
}

static void test_no_counters_wanted(void **state)
{
    struct kp_plan *p = plan_of("launch__grid_size,launch__block_size");
    (void)state;
    assert_int_equal(p->n_groups, 0);
    assert_int_equal(p->passes, 0);
    assert_false(kp_plan_counts(p));
    assert_string_equal(p->listed, "launch__grid_size,launch__block_size");
    kp_plan_free(p);
    p = plan_of("");
    assert_int_equal(p->n_metrics, 0);
    assert_string_equal(p->listed, "");
    kp_plan_free(p);
    kp_plan_free(NULL);
}

/* ---- one pass ---- */

static struct kp_plan *one_pass_plan(const struct chip *ch, const struct kp_section *s, const char *metrics)
{
    struct kp_plan *p = NULL;
    char *err = NULL;
    if (kp_plan_make(kp_test_real_cupti(), ch->name, NULL, ch->major, ch->minor, &s, 1, metrics, true, &p, &err))
        fail_msg("%s: %s", ch->name, err ? err : "no reason given");
    assert_null(err);
    return p;
}

static const struct chip *chip_named(const char *name)
{
    for (size_t i = 0; i < CHIPS; i++)
        if (!strcmp(chips[i].name, name))
            return &chips[i];
    fail_msg("no chip %s", name);
    return NULL;
}

/* Whether the chip has a row of the label, and it is collected. */
static bool collected(const struct chip *ch, const struct kp_section *s, const struct kp_plan *p, const char *label)
{
    for (size_t i = 0; i < s->n_rows; i++)
        if (!strcmp(s->rows[i].label, label) && kp_cc_matches(s->rows[i].cc, ch->major, ch->minor))
            return planned(p, s->rows[i].metric)->group == 0;
    return false;
}

static size_t check_quick_rows(const struct chip *ch, const struct kp_section *s, const struct kp_plan *p)
{
    static const char *const everywhere[] = {
        "Duration",
        "Elapsed Cycles",
        "SM Active Cycles",
        "Executed Ipc Active",
        "Achieved Occupancy",
        "L1/TEX Hit Rate",
        "L2 Request Hit Rate",
        "Tensor Pipe Utilization",
        "FMA Pipe Utilization",
    };
    static const char *const dram[] = {"Memory Throughput", "DRAM Bytes Read", "DRAM Bytes Written"};
    struct kp_metric_props props;
    struct kp_host *h = NULL;
    size_t failed = 0;
    assert_int_equal(kp_host_open(kp_test_real_cupti(), ch->name, NULL, &h), 0);
    bool has_dram = !kp_host_metric(h, "dram__bytes.sum", &props);
    kp_host_close(h);
    for (size_t i = 0; i < sizeof(everywhere) / sizeof(*everywhere); i++)
        if (!collected(ch, s, p, everywhere[i]) && ++failed)
            print_message("%s: no %s\n", ch->name, everywhere[i]);
    for (size_t i = 0; i < sizeof(dram) / sizeof(*dram); i++)
        if (collected(ch, s, p, dram[i]) != has_dram && ++failed)
            print_message("%s: %s\n", ch->name, dram[i]);
    for (size_t i = 0; i < p->n_metrics; i++)
        if (p->metrics[i].group < -1 && ++failed)
            print_message("%s: %s: %s\n", ch->name, p->metrics[i].name, kp_why_text(&p->metrics[i].why));
    return failed;
}

/* On every chip the section for one pass has the metrics that tell most, and all of its rows fit into the pass. */
static void test_quick_on_every_chip(void **state)
{
    const struct kp_section *quick = kp_section_quick();
    size_t failed = 0;
    (void)state;
    for (size_t i = 0; i < CHIPS; i++) {
        if (!is_profiled(&chips[i]))
            continue;
        struct kp_plan *p = one_pass_plan(&chips[i], quick, "");
        assert_int_equal(p->n_groups, 1);
        assert_int_equal(p->passes, 1);
        assert_int_equal(p->groups[0].passes, 1);
        if (!strcmp(kp_cupti_version(kp_test_real_cupti()), "13.0"))
            failed += check_quick_rows(&chips[i], quick, p);
        kp_plan_free(p);
    }
    assert_int_equal(failed, 0);
}

static void test_quick_on_gh100(void **state)
{
    const struct kp_section *quick = kp_section_quick();
    const struct chip *ch = chip_named(chip);
    struct kp_plan *p = one_pass_plan(ch, quick, "");
    (void)state;
    assert_true(collected(ch, quick, p, "L2 Request Hit Rate"));
    assert_true(collected(ch, quick, p, "DRAM Throughput"));
    assert_true(collected(ch, quick, p, "Eligible Warps Per Scheduler"));
    assert_int_equal(planned(p, "launch__waves_per_multiprocessor")->group, -1);
    assert_null(planned(p, "dram__bytes_op_read.sum")); /* not a row of this chip */
    assert_true(p->groups[0].n_names >= 19);
    kp_plan_free(p);
}

/* A row of another chip that this chip could count is left out for a reason: it does not fit beside the chip's own
 * rows, or a row of its own has the label. */
static void check_left_out(const struct chip *ch, const struct kp_section *s)
{
    struct kp_metric_props props;
    struct kp_host *h = NULL;
    assert_int_equal(kp_host_open(kp_test_real_cupti(), ch->name, NULL, &h), 0);
    struct kp_plan *own = one_pass_plan(ch, s, "");
    for (size_t i = 0; i < s->n_rows; i++) {
        const struct kp_row *row = &s->rows[i];
        if (row->source != KP_SRC_COUNTER || kp_cc_matches(row->cc, ch->major, ch->minor) ||
            kp_host_metric(h, row->metric, &props) || collected(ch, s, own, row->label))
            continue;
        struct kp_plan *p = one_pass_plan(ch, s, row->metric);
        if (planned(p, row->metric)->group == 0)
            fail_msg("%s could have %s", ch->name, row->metric);
        kp_plan_free(p);
    }
    kp_plan_free(own);
    kp_host_close(h);
}

static void test_quick_leaves_out_only_what_does_not_fit(void **state)
{
    (void)state;
    kp_test_skip_sanitized();
    if (strcmp(kp_cupti_version(kp_test_real_cupti()), "13.0"))
        skip();
    for (size_t i = 0; i < CHIPS; i++)
        if (is_profiled(&chips[i]))
            check_left_out(&chips[i], kp_section_quick());
}

/* Metrics that fit one by one, in an order that makes some of them too much: more pipes than an SM counts at a time, a
 * rate of two passes, a throughput of many. So are counters of the link, which do not go with those of the SM. */
static const char *const crowd[] = {
    "gpu__time_duration.sum",
    "sm__warps_active.avg.per_cycle_active",
    "lts__t_sector_hit_rate.pct",
    "sm__inst_executed_pipe_alu.sum",
    "sm__inst_executed_pipe_lsu.sum",
    "pcie__read_bytes.sum",
    "sm__inst_executed_pipe_xu.sum",
    "sm__inst_executed_pipe_fma.sum",
    "sm__throughput.avg.pct_of_peak_sustained_elapsed",
    "sm__inst_executed_pipe_fp16.sum",
    "sm__inst_executed_pipe_tex.sum",
    "sm__pipe_tensor_cycles_active.sum",
    "dram__bytes.sum",
    "smsp__warps_eligible.sum",
};

enum { CROWD = sizeof(crowd) / sizeof(*crowd) };

/* Which of crowd[] one after the other finds room. */
static size_t crowd_one_by_one(const struct chip *ch, bool fits[CROWD])
{
    const char *names[CROWD];
    size_t n = 0;
    for (size_t i = 0; i < CROWD; i++) {
        struct kp_config config;
        names[n] = crowd[i];
        int rc = kp_host_schedule(kp_test_real_cupti(), ch->name, NULL, names, n + 1, &config);
        fits[i] = !rc && config.passes == 1;
        n += fits[i];
        if (!rc)
            kp_config_free(&config);
    }
    return n;
}

static void check_crowd(const struct chip *ch, const struct kp_section *s)
{
    bool fits[CROWD];
    struct kp_config again;
    size_t n = crowd_one_by_one(ch, fits), next = 0;
    assert_in_range(n, 3, CROWD - 3);
    struct kp_plan *p = one_pass_plan(ch, s, "");
    assert_int_equal(p->n_groups, 1);
    assert_int_equal(p->passes, 1);
    assert_int_equal(p->groups[0].n_names, n);
    for (size_t i = 0; i < CROWD; i++) {
        const struct kp_planned *m = planned(p, crowd[i]);
        if (m->group != (fits[i] ? 0 : -2))
            fail_msg("%s: %s: %d", ch->name, m->name, m->group);
        assert_int_equal(m->why.reason != KP_REASON_NONE, !fits[i]);
        if (fits[i])
            assert_string_equal(p->groups[0].names[next++], m->name);
    }
    assert_non_null(
        strstr(kp_why_text(&planned(p, "sm__throughput.avg.pct_of_peak_sustained_elapsed")->why), "one pass"));
    assert_non_null(strstr(kp_why_text(&planned(p, "pcie__read_bytes.sum")->why), "CUPTI"));
    /* what is configured is what is listed */
    assert_int_equal(
        kp_host_schedule(kp_test_real_cupti(), ch->name, NULL, p->groups[0].names, p->groups[0].n_names, &again), 0);
    assert_int_equal(again.size, p->groups[0].size);
    assert_memory_equal(again.image, p->groups[0].image, again.size);
    kp_config_free(&again);
    kp_plan_free(p);
}

static void test_rows_in_order_as_long_as_they_fit(void **state)
{
    struct kp_row rows[CROWD];
    const struct kp_section section = {"Test", "Test", 1, "", "", rows, CROWD, KP_PASSES_ONE};
    (void)state;
    for (size_t i = 0; i < CROWD; i++)
        rows[i] = (struct kp_row)HEADER(crowd[i], crowd[i], "", "", COUNTER);
    check_crowd(chip_named("GH100"), &section);
    check_crowd(chip_named("GA100"), &section);
}

static void test_one_pass_of_nothing(void **state)
{
    static const struct kp_row rows[] = {HEADER("Two", "lts__t_sector_hit_rate.pct", "%", "", COUNTER),
                                         HEADER("Gone", "sm__no_such_thing.avg", "cycle", "", COUNTER),
                                         HEADER("Launch", "launch__grid_size", "", "", LAUNCH)};
    static const struct kp_section section = {"Test", "Test", 1, "", "", rows, 3, KP_PASSES_ONE};
    struct kp_plan *p = one_pass_plan(chip_named(chip), &section, "");
    (void)state;
    assert_false(kp_plan_counts(p));
    assert_int_equal(p->passes, 0);
    assert_int_equal(planned(p, "lts__t_sector_hit_rate.pct")->group, -2);
    assert_int_equal(planned(p, "sm__no_such_thing.avg")->group, -2);
    assert_int_equal(planned(p, "launch__grid_size")->group, -1);
    kp_plan_free(p);
}

/* Beside a section of many passes the rows are collected like the others: none is left out. */
static void test_quick_beside_another_section(void **state)
{
    const struct kp_section *const both[] = {kp_section_quick(), kp_section_find("SpeedOfLight")};
    struct kp_plan *p = NULL;
    char *err = NULL;
    (void)state;
    assert_int_equal(make(both, 2, "", &p, &err), 0);
    assert_int_equal(p->n_groups, 1);
    assert_true(p->passes > 1);
    for (size_t i = 0; i < p->n_metrics; i++)
        if (p->metrics[i].group < -1)
            fail_msg("%s: %s", p->metrics[i].name, kp_why_text(&p->metrics[i].why));
    kp_plan_free(p);
}

/* ---- names that the user lists ---- */

static void test_base_names(void **state)
{
    static const struct {
        const char *asked, *listed;
    } rows[] = {
        {"sm__cycles_active",
         "sm__cycles_active.avg,sm__cycles_active.max,sm__cycles_active.min,sm__cycles_active.sum"},
        {"sm__cycles_active.max", "sm__cycles_active.max"},
        {"smsp__thread_inst_executed_per_inst_executed", "smsp__thread_inst_executed_per_inst_executed.ratio"},
        {"sm__throughput", "sm__throughput.avg.pct_of_peak_sustained_elapsed"},
        {"gpu__time_duration.sum, sm__throughput",
         "gpu__time_duration.sum,sm__throughput.avg.pct_of_peak_sustained_elapsed"},
        {" ,sm__cycles_active.max\tlaunch__grid_size,\r\n", "sm__cycles_active.max,launch__grid_size"},
        {"sm__cycles_active.max,\nlaunch__grid_size", "sm__cycles_active.max,launch__grid_size"},
        {"sm__cycles_active.max,sm__cycles_active.max", "sm__cycles_active.max"},
        /* names of some units have dots in them */
        {"TPC.TriageCompute.sm__cycles_active",
         "TPC.TriageCompute.sm__cycles_active.avg,TPC.TriageCompute.sm__cycles_active.max,"
         "TPC.TriageCompute.sm__cycles_active.min,TPC.TriageCompute.sm__cycles_active.sum"},
        {"TPC.TriageCompute.sm__cycles_active.sum", "TPC.TriageCompute.sm__cycles_active.sum"},
        {"regex:^pcie__read_b", "pcie__read_bytes.avg,pcie__read_bytes.max,pcie__read_bytes.min,pcie__read_bytes.sum"},
        {"regex:^(gpu__dram_throughput|l1tex__average_t_sector)$",
         "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"},
        {"regex:^smsp__(average_)?thread_inst_executed_per_inst_executed$,sm__throughput",
         "smsp__average_thread_inst_executed_per_inst_executed.ratio,"
         "smsp__thread_inst_executed_per_inst_executed.ratio,sm__throughput.avg.pct_of_peak_sustained_elapsed"},
        {"regex:launch__grid_size", "launch__grid_size"},
        /* full names, where the base name does not match */
        {"regex:^pcie__(read|write)_bytes.sum$", "pcie__read_bytes.sum,pcie__write_bytes.sum"},
        {"regex:^pcie__read_bytes\\.(?!sum)[a-z]+$", "pcie__read_bytes.avg,pcie__read_bytes.max,pcie__read_bytes.min"},
        {"regex:^gpu__dram_throughput\\.avg\\..*elapsed$", "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"},
        {"regex:^l1tex__t_sector_hit_rate.pct$", "l1tex__t_sector_hit_rate.pct"},
        {"breakdown:gpu__dram_throughput", "dram__cycles_active.avg.pct_of_peak_sustained_elapsed,"
                                           "fbpa__dram_sectors.avg.pct_of_peak_sustained_elapsed"},
        {"breakdown:FBSP.TriageCompute.dramc__throughput",
         "FBSP.TriageCompute.dramc__throughput_internal_activity.avg.pct_of_peak_sustained_elapsed"},
        {"breakdown:dram__throughput.max.pct_of_peak_sustained_active",
         "dram__cycles_active.max.pct_of_peak_sustained_active"},
        {"test__twice", "test__twice"},
        {"regex:^test__(twice|absent)$", "test__twice"},
        {"regex:pcsamp_interval", "smsp__pcsamp_interval,smsp__pcsamp_interval_cycles"},
        {"regex:^(sass__inst|thread_inst).*(code|ted)$", "thread_inst_executed,sass__inst_executed_per_opcode"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct kp_plan *p = plan_of(rows[i].asked);
        assert_string_equal(p->listed, rows[i].listed);
        kp_plan_free(p);
    }
}

static void test_duplicates(void **state)
{
    struct kp_plan *p = plan_of("sm__cycles_active.avg,sm__cycles_active.avg,sm__cycles_active");
    (void)state;
    assert_int_equal(p->n_metrics, 4);
    assert_int_equal(p->groups[0].n_names, 4);
    kp_plan_free(p);
    p = basic_plan(chip, MAJOR, MINOR, "gpu__time_duration.sum,gpc__cycles_elapsed.max", 0);
    struct kp_plan *bare = basic_plan(chip, MAJOR, MINOR, "", 0);
    assert_int_equal(p->n_metrics, bare->n_metrics);
    assert_int_equal(p->passes, bare->passes);
    assert_string_equal(p->listed, "gpu__time_duration.sum,gpc__cycles_elapsed.max"); /* asked for, and shown again */
    kp_plan_free(bare);
    kp_plan_free(p);
}

static void refused(const char *metrics, const char *named, const char *nearest)
{
    struct kp_plan *p = (struct kp_plan *)1;
    char *err = NULL;
    assert_int_equal(make(NULL, 0, metrics, &p, &err), -EINVAL);
    assert_null(p);
    assert_non_null(err);
    if (!strstr(err, named) || !strstr(err, nearest) || !strstr(err, chip) || strchr(err, '\n'))
        fail_msg("%s: %s", metrics, err);
    free(err);
}

static void test_unknown_metrics(void **state)
{
    (void)state;
    refused("sm__cycles_activ", "\"sm__cycles_activ\"", "did you mean sm__cycles_active?");
    refused("sm__cycles_activ.avg", "\"sm__cycles_activ.avg\"", "did you mean sm__cycles_active.avg?");
    refused("sm__throughputs.avg.pct_of_peak_sustained_elapsed", "\"sm__throughputs.avg",
            "did you mean sm__throughput.avg.pct_of_peak_sustained_elapsed?");
    refused("sm__cycles_activ.average", "\"sm__cycles_activ.average\"", "did you mean sm__cycles_active?");
    refused("sm__throughputs", "\"sm__throughputs\"", "did you mean sm__throughput?");
    refused("sm__cycles_active.average", "\"sm__cycles_active.average\"", "did you mean sm__cycles_active.avg?");
    refused("dram__bytes.summ", "\"dram__bytes.summ\"", "did you mean dram__bytes.sum?");
    refused("dram__bytes.sum.per_secnd", "_secnd\"", "did you mean dram__bytes.sum.per_second?");
    refused("dram__bytes.nothing", "\"dram__bytes.nothing\"", "dram__bytes does not have that suffix");
    refused("launch__grid_sise", "\"launch__grid_sise\"", "did you mean launch__grid_size?");
    refused("test__twicee", "\"test__twicee\"", "did you mean test__twice?");
    refused("smsp__pcsamp_sample_cout", "no metric \"smsp__pcsamp_sample_cout\"",
            "did you mean smsp__pcsamp_sample_count?");
    refused("smsp__pcsamp_intervall_cycles", "\"smsp__pcsamp_intervall_cycles\"",
            "did you mean smsp__pcsamp_interval_cycles?");
    refused("smsp__pcsamp_warps_issue_stalled_wiat_not_issued", "_wiat_",
            "did you mean smsp__pcsamp_warps_issue_stalled_wait_not_issued?");
    refused("smsp__pcsamp_sample_count.sum", "\"smsp__pcsamp_sample_count.sum\"",
            "smsp__pcsamp_sample_count does not have that suffix");
    refused("thread_inst_execute", "\"thread_inst_execute\"", "did you mean thread_inst_executed?");
    refused("smsp__sass_thread_inst_exected_op_fadd_pred_on.sum", "_exected_",
            "did you mean smsp__sass_thread_inst_executed_op_fadd_pred_on.sum?");
    refused("sass__inst_executed_per_opcodes", "\"sass__inst_executed_per_opcodes\"",
            "did you mean sass__inst_executed_per_opcode?");
    refused("group:smsp__pcsamp_warp_stall_reason", "no group \"smsp__pcsamp_warp_stall_reason\"",
            "did you mean group:smsp__pcsamp_warp_stall_reasons?");
    refused("group:smsp__pcsamp_warp_stall_reasons_notissued", "no group",
            "did you mean group:smsp__pcsamp_warp_stall_reasons_not_issued?");
    refused("pmsampling:sm__cycle_active.avg", "no metric to sample \"sm__cycle_active.avg\"",
            "did you mean pmsampling:sm__cycles_active.avg?");
    refused("pmsampling:TPC.TriageCompute.sm__cycles_activ.avg", "\"TPC.TriageCompute.sm__cycles_activ.avg\"",
            "did you mean pmsampling:TPC.TriageCompute.sm__cycles_active.avg?");
    refused("pmsampling:sm__cycles_active.averages", "\"sm__cycles_active.averages\"",
            "did you mean pmsampling:sm__cycles_active.avg?");
    refused("pmsampling:sm__cycles_active", "\"pmsampling:sm__cycles_active\"",
            "write pmsampling:sm__cycles_active.avg");
    refused("breakdown:sm__troughput", "no throughput \"sm__troughput\"", "did you mean breakdown:sm__throughput?");
    refused("breakdown:sm__throughput.sum", "break down \"sm__throughput.sum\"", "its suffix");
    refused("breakdown:dram__bytes", "no throughput \"dram__bytes\"", "");
    refused("regex:^no_such_name", "no metric", "matches \"regex:^no_such_name\"");
    refused("regex:^test__absent", "no metric", "matches \"regex:^test__absent\"");
    refused("regex:.", "but at most", "name fewer");
    refused("regex:^(([a-z]|_)*)*[!]?$(?<=!)", "it takes too long", "metrics of");
}

/* Names that no chip has, as scripts ask for them, do not cost the rest of the list. */
static void test_unknown_metrics_in_a_list(void **state)
{
    static const char *const wrong[] = {"sm__inst_executed_pipe_fp32.avg.pct_of_peak_sustained_active",
                                        "group:memory__l2_cache_tabel", "breakdown:sm__troughput",
                                        "regex:^no_such_name", "pmsampling:sm__cycle_active.avg"};
    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
        for (int first = 0; first < 2; first++) {
            struct kp_plan *p = NULL;
            char *err = NULL, list[256];
            snprintf(list, sizeof(list), first ? "%s,%s" : "%2$s %1$s", wrong[i], "gpu__time_duration.sum");
            assert_int_equal(make(NULL, 0, list, &p, &err), 0);
            assert_null(err);
            assert_string_equal(p->listed, "gpu__time_duration.sum");
            assert_int_equal(p->n_metrics, 1);
            assert_memory_equal(p->unknown, wrong[i], strlen(wrong[i]));
            assert_memory_equal(p->unknown + strlen(wrong[i]), "\tKPROF_METRICS: ", 16);
            assert_ptr_equal(strchr(p->unknown, '\n'), p->unknown + strlen(p->unknown) - 1);
            if (!strstr(p->unknown, strchr(wrong[i], ':') ? strchr(wrong[i], ':') + 1 : wrong[i]))
                fail_msg("%s: %s", wrong[i], p->unknown);
            kp_plan_free(p);
        }
    struct kp_plan *p = basic_plan(chip, MAJOR, MINOR, "sm__cycles_activ", 0); /* the sections are left */
    assert_non_null(strstr(p->unknown, "did you mean sm__cycles_active?\n"));
    assert_string_equal(p->listed, "");
    kp_plan_free(p);
}

/* A line each, of the first ones. */
static void test_a_list_of_unknown_metrics(void **state)
{
    struct kp_plan *p = NULL;
    char *err = NULL;
    (void)state;
    assert_int_equal(make(NULL, 0, "a__b,c__d", &p, &err), -EINVAL);
    assert_null(p);
    if (!strstr(err, "no metric \"a__b\"") || !strstr(err, "\nKPROF_METRICS: GH100 has no metric \"c__d\"") ||
        err[strlen(err) - 1] == '\n')
        fail_msg("%s", err);
    free(err);
    assert_int_equal(make(NULL, 0, "x__1,x__2,x__3,x__4,x__5,x__6,x__7,x__8,x__9,x__10,launch__grid_size", &p, &err),
                     0);
    assert_string_equal(p->listed, "launch__grid_size");
    assert_non_null(strstr(p->unknown, "\"x__8\""));
    assert_null(strstr(p->unknown, "\"x__9\""));
    assert_non_null(strstr(p->unknown, "\n\tKPROF_METRICS: and 2 more that GH100 does not have\n"));
    kp_plan_free(p);
}

static void test_bad_expression(void **state)
{
    struct kp_plan *p = NULL;
    char *err = NULL;
    (void)state;
    assert_int_equal(make(NULL, 0, "regex:(sm", &p, &err), -EINVAL);
    assert_non_null(strstr(err, "KPROF_METRICS: bad expression '(sm'"));
    free(err);
}

/* ---- groups ---- */

static int check_group(const struct kp_group *group, void *arg)
{
    size_t *groups = arg;
    const char *name = group->name, *title = group->title;
    char item[256];
    snprintf(item, sizeof(item), "group:%s", name);
    struct kp_plan *p = metrics_of(item);
    if (!*p->listed || !p->n_metrics)
        fail_msg("%s of \"%s\" is empty", name, title);
    for (const char *c = name; *c; c++)
        if (!strchr("abcdefghijklmnopqrstuvwxyz0123456789_", *c))
            fail_msg("%s of \"%s\" cannot be listed", name, title);
    kp_plan_free(p);
    ++*groups;
    return 0;
}

static void test_groups(void **state)
{
    size_t groups = 0;
    (void)state;
    assert_int_equal(kp_groups_each(MAJOR, MINOR, check_group, &groups), 0);
    assert_true(groups >= 12); /* the known ones, under two names each */
}

static int find_group(const struct kp_group *group, void *arg)
{
    return !strcmp(group->name, arg);
}

/* Before the device is known all groups are. */
static void test_groups_of_any_chip(void **state)
{
    char of_later_chips[] = "memory__l2_cache_evict_policy_table";
    (void)state;
    assert_int_equal(kp_groups_each(7, 5, find_group, of_later_chips), 0);
    assert_int_equal(kp_groups_each(8, 0, find_group, of_later_chips), 1);
    assert_int_equal(kp_groups_each(KP_ANY_CC, 0, find_group, of_later_chips), 1);
}

/* ncu's names for what PC sampling tells, in the order of the reasons; those of other chips are left out. */
static void test_groups_of_stall_reasons(void **state)
{
    static const struct {
        const char *group, *behind;
        int major, minor;
        size_t reasons;
    } rows[] = {{"smsp__pcsamp_warp_stall_reasons", "", 9, 0, 19},
                {"smsp__pcsamp_warp_stall_reasons_not_issued", "_not_issued", 9, 0, 19},
                {"smsp__pcsamp_warp_stall_reasons", "", 8, 6, 18},
                {"smsp__pcsamp_warp_stall_reasons_not_issued", "_not_issued", 8, 6, 18},
                {"smsp__pcsamp_warp_stall_reasons_not_issued", "_not_issued", 10, 0, 17}};
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        static const char *const other_chips[] = {[8] = "GA102", [9] = "GH100", [10] = "GB100"};
        char item[128], last[128];
        struct kp_plan *p = NULL;
        char *err = NULL;
        snprintf(item, sizeof(item), "group:%s", rows[i].group);
        if (kp_plan_make(kp_test_real_cupti(), other_chips[rows[i].major], NULL, rows[i].major, rows[i].minor, NULL, 0,
                         item, 0, &p, &err))
            fail_msg("%s", err);
        assert_int_equal(p->n_metrics, rows[i].reasons);
        assert_int_equal(p->n_groups, 0); /* nothing for the counters to do */
        snprintf(last, sizeof(last), "smsp__pcsamp_warps_issue_stalled_barrier%s,", rows[i].behind);
        assert_memory_equal(p->listed, last, strlen(last));
        snprintf(last, sizeof(last), ",smsp__pcsamp_warps_issue_stalled_wait%s", rows[i].behind);
        assert_non_null(strstr(p->listed, last));
        kp_plan_free(p);
    }
}

/* ncu's names for the tables of the memory sections. */
static void test_memory_groups(void **state)
{
    static const struct {
        const char *group, *own, *metric;
    } rows[] = {
        {"memory__chart", "memory_chart", "smsp__sass_inst_executed_op_global_ld.sum"},
        {"memory__shared_table", "shared_memory", "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"},
        {"memory__first_level_cache_table", "l1_tex_cache", "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"},
        {"memory__l2_cache_table", "l2_cache", "lts__t_requests_srcunit_tex_op_read.sum"},
        {"memory__l2_cache_evict_policy_table", "l2_cache_eviction_policies",
         "lts__t_sectors_srcunit_tex_op_read_evict_first_lookup_hit.sum"},
        {"memory__dram_table", "device_memory", "dram__bytes_read.sum"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        char item[128];
        snprintf(item, sizeof(item), "group:%s", rows[i].group);
        struct kp_plan *p = plan_of(item);
        const struct kp_planned *m = planned(p, rows[i].metric);
        if (!m || !m->listed || m->group)
            fail_msg("%s has no %s: %s", rows[i].group, rows[i].metric, p->listed);
        snprintf(item, sizeof(item), "group:%s", rows[i].own);
        struct kp_plan *own = metrics_of(item);
        assert_string_equal(own->listed, p->listed);
        kp_plan_free(own);
        kp_plan_free(p);
    }
    refused("group:memory__l2_cache_tabel", "no group \"memory__l2_cache_tabel\"",
            "did you mean group:memory__l2_cache_table?");
    refused("group:xyz", "no group \"xyz\"", "");
}

/* ---- lists ---- */

/* Counters of the PCIe link have a list of their own, whose passes add up with the others'. */
static void test_apart(void **state)
{
    struct kp_plan *p =
        plan_of("pcie__read_bytes.sum,sm__cycles_active.avg,pcie__write_bytes.sum,smsp__inst_executed.sum");
    (void)state;
    assert_int_equal(p->n_groups, 2);
    assert_int_equal(planned(p, "sm__cycles_active.avg")->group, 0);
    assert_int_equal(planned(p, "smsp__inst_executed.sum")->group, 0);
    assert_int_equal(planned(p, "pcie__read_bytes.sum")->group, 1);
    assert_int_equal(planned(p, "pcie__write_bytes.sum")->group, 1);
    assert_int_equal(p->groups[0].n_names, 2);
    assert_int_equal(p->groups[1].n_names, 2);
    assert_int_equal(p->passes, p->groups[0].passes + p->groups[1].passes);
    kp_plan_free(p);
    p = plan_of("pcie__read_bytes.sum");
    assert_int_equal(p->n_groups, 1);
    assert_int_equal(planned(p, "pcie__read_bytes.sum")->group, 0);
    kp_plan_free(p);
}

/* What has a collector of its own is no part of the plan; of what the user lists it is told here that it exists. */
static void test_what_is_not_counted(void **state)
{
    static const struct kp_row rows[] = {
        HEADER("Interval", "profiler__pmsampler_interval_time", "ns", "", PM),
        HEADER("Branches", "sass__inst_executed_branch", "inst", "", SASS),
        HEADER("Samples", "smsp__pcsamp_sample_buffer_full", "", "", PCSAMP),
        BODY(SERIES, "Over Time", ""),
        ITEM("", "SM Active", "sm__cycles_active.avg", "cycle", "", PM),
    };
    static const struct kp_section section = SECTION(rows, "");
    struct kp_plan *p = plan_section(&section);
    (void)state;
    assert_int_equal(p->n_metrics, 0);
    kp_plan_free(p);
    p = plan_of("pmsampling:lts__t_requests.sum,pmsampling:sm__cycles_active.avg gpu__time_duration.sum");
    assert_int_equal(p->n_metrics, 1);
    assert_non_null(planned(p, "gpu__time_duration.sum"));
    assert_string_equal(p->listed,
                        "pmsampling:lts__t_requests.sum,pmsampling:sm__cycles_active.avg,gpu__time_duration.sum");
    kp_plan_free(p);
    refused("pmsampling:sm__no_such_thing.sum", "no metric to sample \"sm__no_such_thing.sum\"", "");
}

/* ncu times each launch that has counters, and the list stays what was asked for. */
static void test_duration_beside_counters(void **state)
{
    struct kp_plan *p = plan_how("sm__cycles_active.avg", KP_PLAN_DURATION);
    (void)state;
    assert_true(planned(p, "gpu__time_duration.sum")->group >= 0);
    assert_string_equal(p->listed, "sm__cycles_active.avg");
    assert_int_equal(p->n_metrics, 2);
    kp_plan_free(p);
    p = plan_how("launch__grid_size", KP_PLAN_DURATION);
    assert_int_equal(p->n_metrics, 1);
    kp_plan_free(p);
}

/* What the library refuses beside the others, without being known for it, does not spoil them; what it refuses
 * altogether is said to be so. */
static void test_what_does_not_go_together(void **state)
{
    static const char refused_alone[] = "CTC.TriageCompute.ctc__throughput.avg.pct_of_peak_sustained_elapsed";
    struct kp_plan *p = plan_of("sm__cycles_active.avg,CTC.TriageCompute.ctc__rx_bytes.sum,"
                                "CTC.TriageCompute.ctc__throughput,smsp__inst_executed.sum,"
                                "CTC.TriageCompute.ctc__tx_bytes.sum,lts__t_sector_hit_rate.pct");
    (void)state;
    assert_int_equal(p->n_groups, 2);
    assert_int_equal(p->groups[0].n_names, 3);
    assert_int_equal(p->groups[1].n_names, 2);
    assert_int_equal(planned(p, "lts__t_sector_hit_rate.pct")->group, 0);
    assert_int_equal(planned(p, "CTC.TriageCompute.ctc__tx_bytes.sum")->group, 1);
    assert_int_equal(planned(p, refused_alone)->group, -2);
    assert_non_null(strstr(kp_why_text(&planned(p, refused_alone)->why), "CUPTI refuses it: "));
    assert_int_equal(p->passes, p->groups[0].passes + p->groups[1].passes);
    kp_plan_free(p);
}

static struct kp_cupti counting;
static unsigned lists; /* that were given to the library to schedule */

static CUptiResult CUPTIAPI count_list(CUpti_Profiler_Host_ConfigAddMetrics_Params *p)
{
    lists++;
    return kp_test_real_cupti()->cuptiProfilerHostConfigAddMetrics(p);
}

/* Each call of the library takes milliseconds, or a second with thousands of names: hundreds of names that do not go
 * with those before them are left for another list by their unit, not one by one. */
static void test_many_that_do_not_go_together(void **state)
{
    enum { UNITS = 2, MANY = 200 };
    struct kp_plan *p = NULL;
    char *err = NULL;
    (void)state;
    counting = *kp_test_real_cupti();
    counting.cuptiProfilerHostConfigAddMetrics = count_list;
    lists = 0;
    assert_int_equal(kp_plan_make(&counting, chip, NULL, MAJOR, MINOR, NULL, 0,
                                  "CTC.TriageCompute.ctc__rx_bytes.sum,regex:^sm__inst_executed,regex:^l1tex__data,"
                                  "CTC.TriageCompute.ctc__throughput,CTC.TriageCompute.ctc__tx_bytes.sum",
                                  false, &p, &err),
                     0);
    assert_int_equal(p->n_groups, UNITS);
    assert_int_equal(p->groups[0].n_names, 2);
    assert_true(p->groups[1].n_names > MANY);
    assert_int_equal(planned(p, "CTC.TriageCompute.ctc__throughput.avg.pct_of_peak_sustained_elapsed")->group,
                     KP_CANNOT_COLLECT);
    for (size_t i = 0; i < p->n_metrics; i++)
        assert_true(p->metrics[i].group >= KP_CANNOT_COLLECT); /* none is forgotten */
    assert_in_range(lists, UNITS, MANY / 8);
    kp_plan_free(p);
}

/* However the names are ordered for the library, it is never more passes than in the order of the list. */
static void test_no_more_passes_than_as_listed(void **state)
{
    struct kp_plan *p =
        plan_of("regex:^sm__inst_executed_pipe,regex:^smsp__average_warps,sm__throughput,lts__throughput");
    const char **names = calloc(p->n_metrics, sizeof(*names));
    struct kp_config listed;
    (void)state;
    assert_non_null(names);
    for (size_t i = 0; i < p->n_metrics; i++)
        names[i] = p->metrics[i].name;
    assert_int_equal(kp_host_schedule(kp_test_real_cupti(), chip, NULL, names, p->n_metrics, &listed), 0);
    assert_int_equal(p->n_groups, 1);
    assert_int_equal(p->groups[0].n_names, p->n_metrics);
    assert_true(p->passes <= listed.passes);
    kp_config_free(&listed);
    free(names);
    kp_plan_free(p);
}

/* ---- values ---- */

/* values[i] is that of the group's i-th name, whatever stands between them in the list of metrics. */
static void test_store(void **state)
{
    struct kp_plan *p = plan_of("pcie__read_bytes.sum,launch__grid_size,sm__cycles_active.avg,pcie__write_bytes.sum,"
                                "smsp__inst_executed.sum,gpu__time_duration.sum");
    struct kp_result r = {.metrics = NULL};
    const double first[] = {1.5, NAN, 3.5}, second[] = {10, INFINITY};
    (void)state;
    assert_int_equal(p->groups[0].n_names, 3);
    assert_int_equal(kp_plan_store(p, 0, first, &r), 0);
    for (size_t i = 0; i < 3; i++) {
        const struct kp_metric *m = kp_result_find(&r, p->groups[0].names[i]);
        assert_non_null(m);
        if (i == 1) {
            assert_int_equal(m->kind, KP_VALUE_NA);
            assert_non_null(m->text);
        } else {
            assert_int_equal(m->kind, KP_VALUE_REAL);
            assert_float_equal(m->real, first[i], 0);
        }
    }
    assert_string_equal(kp_result_find(&r, "gpu__time_duration.sum")->unit, "ns");
    assert_int_equal(r.n_metrics, 3);
    assert_int_equal(kp_plan_store_missing(p, kp_why_of(KP_REASON_NOT_COLLECTED, (char *)"lost"), &r), 0);
    assert_int_equal(r.n_metrics, 5); /* not the launch's own */
    assert_string_equal(kp_result_find(&r, "pcie__read_bytes.sum")->text, "lost");
    assert_float_equal(kp_result_find(&r, p->groups[0].names[0])->real, 1.5, 0);
    assert_int_equal(kp_plan_store(p, 1, second, &r), 0);
    assert_float_equal(kp_result_find(&r, p->groups[1].names[0])->real, 10, 0);
    assert_int_equal(kp_result_find(&r, p->groups[1].names[1])->kind, KP_VALUE_NA);
    kp_result_free(&r);
    kp_plan_free(p);
}

static void test_unknown_chip(void **state)
{
    struct kp_plan *p = (struct kp_plan *)1;
    char *err = NULL;
    (void)state;
    assert_int_equal(kp_plan_make(kp_test_real_cupti(), "ZZ999", NULL, 9, 0, NULL, 0, "", false, &p, &err), -EIO);
    assert_null(p);
    assert_non_null(err);
    free(err);
}

/* ---- lists of one pass each ---- */

static bool in_list(const struct kp_config *config, const char *name)
{
    for (size_t i = 0; i < config->n_names; i++)
        if (!strcmp(config->names[i], name))
            return true;
    return false;
}

/* Every counter is in a list of one pass, or composed, or refused with a reason. */
static void check_rotation(const struct kp_plan *p, size_t most_lists, size_t most_without)
{
    size_t without = 0;
    assert_true(p->n_groups > 1);
    if (p->n_groups > most_lists)
        fail_msg("%zu lists", p->n_groups);
    assert_int_equal(p->passes, p->n_groups);
    for (size_t g = 0; g < p->n_groups; g++) {
        assert_int_equal(p->groups[g].passes, 1);
        without +=
            !in_list(&p->groups[g], "gpu__time_duration.sum") || !in_list(&p->groups[g], "sm__cycles_elapsed.max");
    }
    assert_true(without <= most_without);
    for (size_t i = 0; i < p->n_metrics; i++) {
        const struct kp_planned *m = &p->metrics[i];
        if (m->group >= 0)
            assert_true(in_list(&p->groups[m->group], m->name));
        else if (m->group == KP_CANNOT_COLLECT)
            assert_true(m->composed || m->why.reason);
        assert_true(kp_plan_is_counter(p, m->name) == (m->group >= 0));
    }
}

/* Beside a replay all lists are passes of one image; else each has its own. */
static void check_turns(const struct kp_plan *p, bool shared)
{
    for (size_t g = 0; g < p->n_groups; g++) {
        if (!shared) {
            assert_int_equal(p->groups[g].turns, 0);
            assert_int_equal(p->groups[g].passes, 1);
            assert_true(!g || !kp_config_same(&p->groups[g], &p->groups[0]));
            continue;
        }
        assert_int_equal(p->groups[g].turn, g);
        assert_int_equal(p->groups[g].turns, p->n_groups);
        assert_true(kp_config_same(&p->groups[g], &p->groups[0]));
    }
}

static void test_rotation(void **state)
{
    static const struct {
        const char *set, *sections;
        size_t most_lists, most_without;
    } sets[] = {{"basic", "", 12, 0}, {"", "SpeedOfLight,SpeedOfLight_RooflineChart", 14, 2}};
    (void)state;
    kp_test_skip_sanitized(); /* the library schedules hundreds of lists, ten times slower */
    for (size_t i = 0; i < sizeof(sets) / sizeof(*sets); i++) {
        const struct kp_section **selected;
        struct kp_plan *p = NULL;
        size_t n;
        char *err = NULL;
        unsigned beside = i ? KP_PLAN_BESIDE : 0;
        assert_int_equal(kp_sections_select(sets[i].set, sets[i].sections, &selected, &n, &err), 0);
        assert_int_equal(kp_plan_make(kp_test_real_cupti(), chip, NULL, MAJOR, MINOR, selected, n, "",
                                      KP_PLAN_ROTATE | KP_PLAN_RULES | beside, &p, &err),
                         0);
        check_rotation(p, sets[i].most_lists, sets[i].most_without);
        check_turns(p, beside);
        assert_non_null(planned(p, "sm__throughput.avg.pct_of_peak_sustained_elapsed")->composed);
        kp_plan_free(p);
        free(selected);
    }
}

static struct kp_plan *rotation_of(const struct kp_cupti *c, const struct kp_section *const *sections, size_t n,
                                   const char *metrics)
{
    struct kp_plan *p = NULL;
    char *err = NULL;
    if (kp_plan_make(c, chip, NULL, MAJOR, MINOR, sections, n, metrics, KP_PLAN_ROTATE | KP_PLAN_BESIDE | KP_PLAN_RULES,
                     &p, &err))
        fail_msg("%s", err);
    return p;
}

static NVPA_Status everything_fits(NVPW_RawCounterConfig_AreRawCountersSchedulable_Params *p)
{
    p->schedulable = true;
    return NVPA_STATUS_SUCCESS;
}

/* A schedule takes milliseconds: there are two for each list, and a few more. Without quick answers, or with such that
 * are wrong, there are more lists, of the same counters. */
static void test_rotation_by_quick_answers(void **state)
{
    struct kp_cupti other = *kp_test_real_cupti();
    char metrics[2048] = "";
    (void)state;
    kp_test_skip_sanitized();
    for (size_t i = 0; i < CROWD; i++)
        snprintf(metrics + strlen(metrics), sizeof(metrics) - strlen(metrics), "%s,", crowd[i]);
    counting = *kp_test_real_cupti();
    counting.cuptiProfilerHostConfigAddMetrics = count_list;
    lists = 0;
    struct kp_plan *quick = rotation_of(&counting, NULL, 0, metrics);
    if (!strcmp(kp_cupti_version(kp_test_real_cupti()), "13.0"))
        assert_in_range(lists, 2 * quick->n_groups, 3 * quick->n_groups); /* and each once as a pass of their image */
    for (int wrong = 0; wrong < 2; wrong++) {
        other.NVPW_RawCounterConfig_AreRawCountersSchedulable = wrong ? everything_fits : NULL;
        struct kp_plan *slow = rotation_of(&other, NULL, 0, metrics);
        check_rotation(slow, 2 * quick->n_groups, 1);
        assert_int_equal(slow->n_metrics, quick->n_metrics);
        assert_true(slow->n_groups >= quick->n_groups); /* what does not fit at once is left to later lists */
        for (size_t i = 0; i < slow->n_metrics; i++) {
            const struct kp_planned *m = &slow->metrics[i], *was = planned(quick, m->name);
            assert_int_equal(m->group < 0, was->group < 0);
        }
        kp_plan_free(slow);
    }
    kp_plan_free(quick);
}

/* Counters of units apart get lists of their own, at the price of few schedules: of units that are known for it, or
 * that the library is asked about. What the library refuses even alone is not counted. */
static void test_rotation_of_other_units(void **state)
{
    static const struct {
        const char *apart[2], *refused;
        unsigned most; /* schedules */
    } rows[] = {
        {{"pcie__read_bytes.sum", "pcie__write_bytes.sum"}, NULL, 9},
        {{"smsp__sass_inst_executed_op_tma_ld.sum", "smsp__sass_inst_executed_op_tma_st.sum"}, NULL, 9},
        {{"CTC.TriageCompute.ctc__rx_bytes.sum", "CTC.TriageCompute.ctc__tx_bytes.sum"},
         "CTC.TriageCompute.ctc__throughput.avg.pct_of_peak_sustained_elapsed",
         25},
    };
    (void)state;
    counting = *kp_test_real_cupti();
    counting.cuptiProfilerHostConfigAddMetrics = count_list;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        char metrics[512];
        snprintf(metrics, sizeof(metrics),
                 "sm__cycles_active.avg,%s,smsp__inst_executed.sum,%s,%s,lts__t_sectors.sum,dram__bytes.sum,"
                 "l1tex__t_sectors.sum,gpc__cycles_elapsed.max",
                 rows[i].apart[0], rows[i].refused ? rows[i].refused : "", rows[i].apart[1]);
        lists = 0;
        struct kp_plan *p = rotation_of(&counting, NULL, 0, metrics);
        check_rotation(p, 2, 1);
        assert_int_equal(planned(p, "sm__cycles_active.avg")->group, planned(p, "smsp__inst_executed.sum")->group);
        assert_int_equal(planned(p, rows[i].apart[0])->group, planned(p, rows[i].apart[1])->group);
        assert_int_not_equal(planned(p, rows[i].apart[0])->group, planned(p, "sm__cycles_active.avg")->group);
        if (rows[i].refused)
            assert_int_equal(planned(p, rows[i].refused)->group, KP_CANNOT_COLLECT);
        assert_in_range(lists, 2, rows[i].most);
        kp_plan_free(p);
    }
}

static const char lacking[] = "sm__inst_executed.avg.per_cycle_elapsed";

static CUptiResult CUPTIAPI refuse_one(CUpti_Profiler_Host_ConfigAddMetrics_Params *p)
{
    for (size_t i = 0; i < p->numMetrics; i++)
        if (!strcmp(p->ppMetricNames[i], lacking))
            return CUPTI_ERROR_INVALID_PARAMETER;
    return count_list(p);
}

/* A counter that the device lacks costs the question which others it lacks, and no more. */
static void test_rotation_without_a_counter(void **state)
{
    const struct kp_section **sections;
    size_t n;
    char *err = NULL;
    (void)state;
    kp_test_skip_sanitized();
    assert_int_equal(kp_sections_select("basic", "", &sections, &n, &err), 0);
    counting = *kp_test_real_cupti();
    counting.cuptiProfilerHostConfigAddMetrics = refuse_one;
    lists = 0;
    struct kp_plan *p = rotation_of(&counting, sections, n, lacking);
    check_rotation(p, 12, 0);
    assert_int_equal(planned(p, lacking)->why.reason, KP_REASON_CUPTI_REFUSES);
    assert_in_range(lists, p->n_groups, p->n_metrics + 4 * p->n_groups);
    kp_plan_free(p);
    free(sections);
}

static void test_rotation_of_names(void **state)
{
    struct kp_plan *p = NULL;
    char *err = NULL;
    (void)state;
    assert_int_equal(kp_plan_make(kp_test_real_cupti(), chip, NULL, MAJOR, MINOR, NULL, 0,
                                  "lts__t_sector_hit_rate.pct,smsp__sass_thread_inst_executed_op_ffma_pred_on.sum."
                                  "per_second,gcc__xbar2gcc_sectors.sum,sm__warps_active.avg",
                                  KP_PLAN_ROTATE, &p, &err),
                     0);
    check_rotation(p, 4, 2);
    assert_string_equal(planned(p, "lts__t_sector_hit_rate.pct")->composed,
                        "100 * lts__t_sectors_lookup_hit.sum / lts__t_sectors.sum");
    assert_string_equal(planned(p, "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum.per_second")->composed,
                        "1000000000 * smsp__sass_thread_inst_executed_op_ffma_pred_on.sum / gpu__time_duration.sum");
    assert_non_null(strstr(kp_why_text(&planned(p, "gcc__xbar2gcc_sectors.sum")->why), "needs several passes"));
    kp_plan_free(p);
    /* What is in each list anyway has one where nothing else is asked for. */
    assert_int_equal(kp_plan_make(kp_test_real_cupti(), chip, NULL, MAJOR, MINOR, NULL, 0, "sm__cycles_elapsed.max",
                                  KP_PLAN_ROTATE, &p, &err),
                     0);
    assert_true(kp_plan_counts(p));
    assert_int_equal(p->n_groups, 1);
    assert_int_equal(planned(p, "sm__cycles_elapsed.max")->group, 0);
    kp_plan_free(p);
    /* What is not counted needs no list. */
    assert_int_equal(kp_plan_make(kp_test_real_cupti(), chip, NULL, MAJOR, MINOR, NULL, 0, "launch__block_size",
                                  KP_PLAN_ROTATE, &p, &err),
                     0);
    assert_false(kp_plan_counts(p));
    kp_plan_free(p);
}

/* The spread of what is computed follows from that of its inputs. */
static void test_spread(void **state)
{
    struct kp_plan *p = NULL;
    struct kp_result r = {0};
    char *err = NULL;
    (void)state;
    assert_int_equal(kp_plan_make(kp_test_real_cupti(), chip, NULL, MAJOR, MINOR, NULL, 0,
                                  "lts__t_sector_hit_rate.pct,derived__lts__t_bytes", KP_PLAN_ROTATE, &p, &err),
                     0);
    for (int i = -1; i <= 1; i++) {
        assert_int_equal(kp_result_add_value(&r, "lts__t_sectors_lookup_hit.sum", "sector", 50 + 3 * i), 0);
        assert_int_equal(kp_result_add_value(&r, "lts__t_sectors.sum", "sector", 100), 0);
    }
    assert_int_equal(kp_result_add_value(&r, "lts__t_sectors.sum", "sector", 100), 0);
    assert_int_equal(kp_plan_compose(p, &r), 0);
    assert_int_equal(kp_plan_derive(p, &r), 0);
    assert_int_equal(kp_plan_spread(p, &r), 0);
    const struct kp_metric *rate = kp_result_find(&r, "lts__t_sector_hit_rate.pct");
    assert_true(rate->real == 50 && rate->counted == 3 && fabs(rate->deviation - 3) < 1e-9);
    const struct kp_metric *bytes = kp_result_find(&r, "derived__lts__t_bytes");
    assert_true(bytes->real == 3200 && bytes->counted == 4 && bytes->deviation == 0);
    kp_result_free(&r);
    kp_plan_free(p);
}

/* ---- what kernels write to host memory ---- */

#define HOST_WRITES(unit, how) unit "__t_sectors_srcunit_tex_aperture_sysmem_op_" how ".sum"

/* It joins the basic set, by the chip's name of it, without a further pass; results do not have it. */
static void test_watched(void **state)
{
    static const struct {
        const char *chip;
        int major, minor;
        const char *writes, *atomics;
    } rows[] = {{"TU102", 7, 5, HOST_WRITES("lts", "write"), HOST_WRITES("lts", "atom")},
                {"GH100", 9, 0, HOST_WRITES("lts", "write"), HOST_WRITES("lts", "atom")},
                {"GB202", 12, 0, HOST_WRITES("syslts", "write"), HOST_WRITES("syslts", "atom")}};
    (void)state;
    kp_test_skip_sanitized();
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct kp_plan *without = basic_plan(rows[i].chip, rows[i].major, rows[i].minor, "", 0);
        struct kp_plan *p = basic_plan(rows[i].chip, rows[i].major, rows[i].minor, "", KP_PLAN_WATCH);
        struct kp_result r = {0};
        assert_int_equal(p->passes, without->passes);
        assert_int_equal(p->n_metrics, without->n_metrics + 3);
        assert_true(kp_plan_is_counter(p, rows[i].writes) && planned(p, rows[i].writes)->watch);
        double *values = calloc(p->groups[0].n_names, sizeof(*values));
        for (size_t k = 0; k < p->groups[0].n_names; k++)
            values[k] = !strcmp(p->groups[0].names[k], rows[i].writes)    ? 5
                        : !strcmp(p->groups[0].names[k], rows[i].atomics) ? 2
                                                                          : 0;
        assert_int_equal(kp_plan_store(p, 0, values, &r), 0);
        assert_true(kp_plan_host_writes(p, &r) == 7);
        assert_null(kp_result_find(&r, rows[i].writes));
        assert_true(kp_plan_host_writes(p, &r) == 0);
        assert_int_equal(kp_plan_store_missing(p, kp_why_of(KP_REASON_NOT_COLLECTED, (char *)"lost"), &r), 0);
        assert_null(kp_result_find(&r, rows[i].writes));
        free(values);
        kp_result_free(&r);
        assert_int_equal(kp_plan_watch_more(kp_test_real_cupti(), rows[i].chip, NULL, without), 0);
        assert_int_equal(without->passes, p->passes);
        assert_int_equal(without->n_metrics, p->n_metrics);
        assert_int_equal(without->groups[0].size, p->groups[0].size);
        assert_memory_equal(without->groups[0].image, p->groups[0].image, p->groups[0].size);
        assert_true(planned(without, rows[i].writes)->watch);
        kp_plan_free(p);
        kp_plan_free(without);
    }
    /* One that was asked for stays. */
    struct kp_result r = {0};
    struct kp_plan *p = plan_how(HOST_WRITES("lts", "write"), KP_PLAN_WATCH);
    assert_false(planned(p, HOST_WRITES("lts", "write"))->watch);
    assert_int_equal(kp_result_set_real(&r, HOST_WRITES("lts", "write"), "sector", 3), 0);
    assert_true(kp_plan_host_writes(p, &r) == 3);
    assert_non_null(kp_result_find(&r, HOST_WRITES("lts", "write")));
    kp_result_free(&r);
    kp_plan_free(p);
    /* Where it would take another list, it is left out. */
    p = plan_how("pcie__read_bytes.sum", KP_PLAN_WATCH);
    assert_null(planned(p, HOST_WRITES("lts", "write")));
    kp_plan_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_duration_beside_counters),
        cmocka_unit_test(test_rotation),
        cmocka_unit_test(test_rotation_by_quick_answers),
        cmocka_unit_test(test_rotation_of_other_units),
        cmocka_unit_test(test_rotation_without_a_counter),
        cmocka_unit_test(test_rotation_of_names),
        cmocka_unit_test(test_spread),
        cmocka_unit_test(test_basic_set_on_every_chip),
        cmocka_unit_test(test_sets_on_chips),
        cmocka_unit_test(test_full_set_is_no_dearer_than_ncus),
        cmocka_unit_test(test_basic_set),
        cmocka_unit_test(test_alternatives),
        cmocka_unit_test(test_section_of_another_chip),
        cmocka_unit_test(test_kinds_and_units_by_name),
        cmocka_unit_test(test_breakdown_of_a_body),
        cmocka_unit_test(test_breakdowns_are_free),
        cmocka_unit_test(test_derived_rows),
        cmocka_unit_test(test_derived_row_left_out),
        cmocka_unit_test(test_missing_metric_of_a_section),
        cmocka_unit_test(test_roll_ups),
        cmocka_unit_test(test_no_counters_wanted),
        cmocka_unit_test(test_quick_on_every_chip),
        cmocka_unit_test(test_quick_on_gh100),
        cmocka_unit_test(test_quick_leaves_out_only_what_does_not_fit),
        cmocka_unit_test(test_rows_in_order_as_long_as_they_fit),
        cmocka_unit_test(test_one_pass_of_nothing),
        cmocka_unit_test(test_quick_beside_another_section),
        cmocka_unit_test(test_base_names),
        cmocka_unit_test(test_duplicates),
        cmocka_unit_test(test_unknown_metrics),
        cmocka_unit_test(test_unknown_metrics_in_a_list),
        cmocka_unit_test(test_a_list_of_unknown_metrics),
        cmocka_unit_test(test_bad_expression),
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_what_is_not_counted),
        cmocka_unit_test(test_groups_of_any_chip),
        cmocka_unit_test(test_groups_of_stall_reasons),
        cmocka_unit_test(test_memory_groups),
        cmocka_unit_test(test_apart),
        cmocka_unit_test(test_what_does_not_go_together),
        cmocka_unit_test(test_many_that_do_not_go_together),
        cmocka_unit_test(test_no_more_passes_than_as_listed),
        cmocka_unit_test(test_store),
        cmocka_unit_test(test_watched),
        cmocka_unit_test(test_unknown_chip),
    };
    return cmocka_run_group_tests(tests, define_all, NULL);
}
