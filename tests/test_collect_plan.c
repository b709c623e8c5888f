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

#include "collectors/plan.h"
#include "tests/collect_support.h"

static const char chip[] = "GH100";
enum { MAJOR = 9, MINOR = 0 };

static int make(const struct kp_section *const *sections, size_t n, const char *metrics, struct kp_plan **p, char **err)
{
    return kp_plan_make(kp_test_real_cupti(), chip, NULL, MAJOR, MINOR, sections, n, metrics, false, p, err);
}

static struct kp_plan *plan_of(const char *metrics)
{
    struct kp_plan *p = NULL;
    char *err = NULL;
    if (make(NULL, 0, metrics, &p, &err))
        fail_msg("%s: %s", metrics, err ? err : "no reason given");
    assert_null(err);
    return p;
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
#include "tests/chips.def"
};

enum { CHIPS = sizeof(chips) / sizeof(*chips) };

/* CUPTI profiles from compute capability 7.5 on. */
static bool is_profiled(const struct chip *ch)
{
    return ch->opens && 10 * ch->major + ch->minor >= 75;
}

static struct kp_plan *basic_plan(const char *name, int major, int minor, const char *metrics)
{
    const struct kp_section **sections;
    size_t n;
    struct kp_plan *p = NULL;
    char *err = NULL;
    assert_int_equal(kp_sections_select("basic", "", &sections, &n, &err), 0);
    if (kp_plan_make(kp_test_real_cupti(), name, NULL, major, minor, sections, n, metrics, false, &p, &err))
        print_message("%s: %s\n", name, err);
    free(err);
    free(sections);
    return p;
}

/* ---- sections ---- */

/* On every chip with host tables and a supported compute capability, the basic set is collected in full. */
static void test_basic_set_on_every_chip(void **state)
{
    const struct kp_cupti *c = kp_test_real_cupti();
    size_t failed = 0;
    (void)state;
    for (size_t i = 0; i < CHIPS; i++) {
        if (!is_profiled(&chips[i]))
            continue;
        struct kp_plan *p = basic_plan(chips[i].name, chips[i].major, chips[i].minor, "");
        if (!p) {
            failed++;
            continue;
        }
        if (chips[i].passes && !strcmp(kp_cupti_version(c), "13.0"))
            assert_int_equal(p->passes, chips[i].passes);
        for (size_t m = 0; m < p->n_metrics; m++)
            if (p->metrics[m].group < -1) {
                print_message("%s: %s: %s\n", chips[i].name, p->metrics[m].name, p->metrics[m].why);
                failed++;
            }
        kp_plan_free(p);
    }
    assert_int_equal(failed, 0);
}

static void test_basic_set(void **state)
{
    struct kp_plan *p = basic_plan(chip, MAJOR, MINOR, "");
    size_t counters = 0;
    (void)state;
    assert_non_null(p);
    assert_int_equal(p->n_groups, 1);
    assert_int_equal(p->passes, p->groups[0].passes);
    assert_true(kp_plan_counts(p));
    assert_string_equal(p->listed, "");
    for (size_t i = 0; i < p->n_metrics; i++)
        counters += p->metrics[i].group == 0;
    assert_int_equal(counters, p->groups[0].n_names);
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
    static const struct kp_row rows[] = {{"Here", "sm__cycles_active.avg", "cycle", "", KP_SRC_COUNTER},
                                         {"Gone", "sm__no_such_thing.avg", "cycle", "", KP_SRC_COUNTER},
                                         {"Elsewhere", "sm__nor_this.avg", "cycle", "120-", KP_SRC_COUNTER},
                                         {"Launch", "launch__grid_size", "", "", KP_SRC_LAUNCH}};
    static const struct kp_section section = {"Test", "Test", 1, "", rows, 4, KP_PASSES_ANY};
    const struct kp_section *const list[] = {&section};
    struct kp_plan *p = NULL;
    struct kp_result r = {.metrics = NULL};
    char *err = NULL;
    const double value = 12.5;
    (void)state;
    assert_int_equal(make(list, 1, "", &p, &err), 0);
    assert_int_equal(planned(p, "sm__cycles_active.avg")->group, 0);
    assert_int_equal(planned(p, "sm__no_such_thing.avg")->group, -2);
    assert_non_null(planned(p, "sm__no_such_thing.avg")->why);
    assert_null(planned(p, "sm__nor_this.avg"));
    assert_int_equal(p->groups[0].n_names, 1);

    assert_int_equal(kp_plan_store(p, 0, &value, &r), 0);
    assert_int_equal(kp_plan_store_missing(p, "not this time", &r), 0);
    assert_int_equal(r.n_metrics, 2);
    assert_float_equal(kp_result_find(&r, "sm__cycles_active.avg")->real, 12.5, 0);
    assert_string_equal(kp_result_find(&r, "sm__no_such_thing.avg")->text, planned(p, "sm__no_such_thing.avg")->why);
    kp_result_free(&r);
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
            print_message("%s: %s: %s\n", ch->name, p->metrics[i].name, p->metrics[i].why);
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

/* A row of another chip that this chip could count is left out because it does not fit beside its own rows, or because
 * a row of its own has the label. */
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
    if (strcmp(kp_cupti_version(kp_test_real_cupti()), "13.0"))
        skip();
    for (size_t i = 0; i < CHIPS; i++)
        if (is_profiled(&chips[i]))
            check_left_out(&chips[i], kp_section_quick());
}

/* Metrics that fit one by one, in an order that makes some of them too much: more pipes than an SM counts at a time, a
 * rate of two passes, a throughput of many, and counters of the link, which do not go with those of the SM. */
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
        assert_int_equal(m->why != NULL, !fits[i]);
        if (fits[i])
            assert_string_equal(p->groups[0].names[next++], m->name);
    }
    assert_non_null(strstr(planned(p, "sm__throughput.avg.pct_of_peak_sustained_elapsed")->why, "one pass"));
    assert_non_null(strstr(planned(p, "pcie__read_bytes.sum")->why, "CUPTI"));
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
    const struct kp_section section = {"Test", "Test", 1, "", rows, CROWD, KP_PASSES_ONE};
    (void)state;
    for (size_t i = 0; i < CROWD; i++)
        rows[i] = (struct kp_row){crowd[i], crowd[i], "", "", KP_SRC_COUNTER};
    check_crowd(chip_named("GH100"), &section);
    check_crowd(chip_named("GA100"), &section);
}

static void test_one_pass_of_nothing(void **state)
{
    static const struct kp_row rows[] = {{"Two", "lts__t_sector_hit_rate.pct", "%", "", KP_SRC_COUNTER},
                                         {"Gone", "sm__no_such_thing.avg", "cycle", "", KP_SRC_COUNTER},
                                         {"Launch", "launch__grid_size", "", "", KP_SRC_LAUNCH}};
    static const struct kp_section section = {"Test", "Test", 1, "", rows, 3, KP_PASSES_ONE};
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
            fail_msg("%s: %s", p->metrics[i].name, p->metrics[i].why);
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
        {" ,sm__cycles_active.max\tlaunch__grid_size,", "sm__cycles_active.max,launch__grid_size"},
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
    p = basic_plan(chip, MAJOR, MINOR, "gpu__time_duration.sum,gpc__cycles_elapsed.max");
    struct kp_plan *bare = basic_plan(chip, MAJOR, MINOR, "");
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
    refused("sm__cycles_activ.avg", "\"sm__cycles_activ.avg\"", "did you mean sm__cycles_active?");
    refused("gpu__time_duration.sum,sm__throughputs", "\"sm__throughputs\"", "did you mean sm__throughput?");
    refused("sm__cycles_active.average", "\"sm__cycles_active.average\"", "suffix is not one that sm__cycles_active");
}

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
    assert_int_equal(kp_plan_store_missing(p, "lost", &r), 0);
    assert_int_equal(r.n_metrics, 5); /* not the launch's own */
    assert_string_equal(kp_result_find(&r, "pcie__read_bytes.sum")->text, "lost");
    assert_float_equal(kp_result_find(&r, "sm__cycles_active.avg")->real, 1.5, 0);
    assert_int_equal(kp_plan_store(p, 1, second, &r), 0);
    assert_float_equal(kp_result_find(&r, "pcie__read_bytes.sum")->real, 10, 0);
    assert_int_equal(kp_result_find(&r, "pcie__write_bytes.sum")->kind, KP_VALUE_NA);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_basic_set_on_every_chip),
        cmocka_unit_test(test_basic_set),
        cmocka_unit_test(test_missing_metric_of_a_section),
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
        cmocka_unit_test(test_apart),
        cmocka_unit_test(test_store),
        cmocka_unit_test(test_unknown_chip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
