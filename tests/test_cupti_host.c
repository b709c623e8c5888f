/* The host side of the real CUPTI, which needs no GPU: the section table against the metric tables of every chip,
 * units, and scheduling. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cupti/host.h"
#include "report/sections.h"
#include "tests/collect_support.h"

static const struct chip {
    const char *name;
    int major, minor;
    int opens;
    size_t passes; /* 0: not looked at here */
} chips[] = {
#define KP_CHIP(...) {__VA_ARGS__},
#include "tests/chips.def"
};

enum { CHIPS = sizeof(chips) / sizeof(*chips), MAX_METRICS = 512 };

/* What depends on the version of CUPTI is asserted for the one it was read from. */
static bool is_known_version(const struct kp_cupti *c)
{
    return !strcmp(kp_cupti_version(c), "13.0");
}

static bool listed(const char *const *names, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (!strcmp(names[i], name))
            return true;
    return false;
}

static struct kp_host *open_host(const struct kp_cupti *c, const char *chip)
{
    struct kp_host *h = NULL;
    int rc = kp_host_open(c, chip, NULL, &h);
    if (rc)
        fail_msg("%s cannot be opened: %d", chip, rc);
    return h;
}

/* ---- chips ---- */

static void test_chips(void **state)
{
    const struct kp_cupti *c = kp_test_real_cupti();
    const char *const *names, *known[CHIPS];
    size_t n;
    (void)state;
    assert_int_equal(kp_host_chips(c, &names, &n), 0);
    for (size_t i = 0; i < CHIPS; i++) {
        known[i] = chips[i].name;
        if (is_known_version(c) && !listed(names, n, chips[i].name))
            fail_msg("CUPTI %s does not list %s", kp_cupti_version(c), chips[i].name);
    }
    for (size_t i = 0; i < n; i++)
        if (!listed(known, CHIPS, names[i])) {
            print_message("%s has no row in tests/chips.def: its sections are not checked\n", names[i]);
            assert_false(is_known_version(c));
        }
}

static void test_chips_that_open(void **state)
{
    const struct kp_cupti *c = kp_test_real_cupti();
    (void)state;
    for (size_t i = 0; i < CHIPS; i++) {
        struct kp_host *h = NULL;
        int rc = kp_host_open(c, chips[i].name, NULL, &h);
        if ((rc == 0) != chips[i].opens)
            fail_msg("%s: %d", chips[i].name, rc);
        assert_int_equal(h != NULL, rc == 0);
        kp_host_close(h);
    }
    kp_host_close(NULL);
}

static void test_unknown_chip(void **state)
{
    const struct kp_cupti *c = kp_test_real_cupti();
    struct kp_host *h = (struct kp_host *)1;
    const char *const name = "sm__cycles_active.avg";
    struct kp_config config;
    (void)state;
    assert_int_not_equal(kp_host_open(c, "ZZ999", NULL, &h), 0);
    assert_null(h);
    assert_int_not_equal(kp_host_schedule(c, "ZZ999", NULL, &name, 1, &config), 0);
    assert_null(config.image);
}

/* ---- the section table ---- */

static bool applies(const struct chip *chip, const struct kp_section *s, const struct kp_row *row)
{
    return row->kind != KP_ROW_BODY && row->source == KP_SRC_COUNTER &&
           kp_cc_matches(s->cc, chip->major, chip->minor) && kp_cc_matches(row->cc, chip->major, chip->minor);
}

/* The metric of a row, or the throughput that it breaks down. */
static const char *counter_of(const struct kp_row *row)
{
    size_t n = strlen("breakdown:");
    return strncmp(row->metric, "breakdown:", n) ? row->metric : row->metric + n;
}

/* ncu prints fewer units than the library gives, and never another one. */
static void check_unit(const struct chip *chip, const struct kp_row *row, const char *unit)
{
    bool printed = row->kind == KP_ROW_HEADER || row->kind == KP_ROW_EXTRA;
    if (strcmp(row->unit, unit) && (printed || (*row->unit && strcmp(row->unit, KP_UNIT_OF_CHIP))))
        fail_msg("%s on %s is in \"%s\", its row in \"%s\"", row->metric, chip->name, unit, row->unit);
}

/* Every row of a counter is in the unit that the report believes. Which counters a chip lacks: see
 * tests/test_sections_chips.c. */
static void test_units_of_rows(void **state)
{
    const struct kp_cupti *c = kp_test_real_cupti();
    size_t n = 0;
    const struct kp_section *sections = kp_sections(&n);
    (void)state;
    for (size_t i = 0; i < CHIPS; i++) {
        if (!chips[i].opens)
            continue;
        struct kp_host *h = open_host(c, chips[i].name);
        for (size_t s = 0; s < n; s++)
            for (size_t r = 0; r < sections[s].n_rows; r++) {
                const struct kp_row *row = &sections[s].rows[r];
                struct kp_metric_props props;
                if (applies(&chips[i], &sections[s], row) && !kp_host_metric(h, counter_of(row), &props))
                    check_unit(&chips[i], row, props.unit);
            }
        kp_host_close(h);
    }
}

/* Whether a chip has another row of the label in the place of `row`. */
static bool has_alternate(const struct chip *chip, const struct kp_section *s, const struct kp_row *row)
{
    for (size_t r = 0; r < s->n_rows; r++)
        if (s->rows[r].kind == row->kind && !strcmp(s->rows[r].label, row->label) && applies(chip, s, &s->rows[r]))
            return true;
    return false;
}

/* A header row that is absent somewhere is absent because the chip does not have it, or has it from another metric.
 * Sections of one pass also leave out what does not fit: see tests/test_collect_plan.c. */
static void test_rows_left_out(void **state)
{
    const struct kp_cupti *c = kp_test_real_cupti();
    size_t n = 0, left_out = 0;
    const struct kp_section *sections = kp_sections(&n);
    (void)state;
    for (size_t i = 0; i < CHIPS; i++) {
        if (!chips[i].opens || 10 * chips[i].major + chips[i].minor < 75) /* CUPTI profiles from 7.5 on */
            continue;
        struct kp_host *h = open_host(c, chips[i].name);
        for (size_t s = 0; s < n; s++)
            for (size_t r = 0; r < sections[s].n_rows; r++) {
                const struct kp_row *row = &sections[s].rows[r];
                struct kp_metric_props props;
                if (sections[s].passes == KP_PASSES_ONE || row->source != KP_SRC_COUNTER || !kp_row_required(row) ||
                    !kp_cc_matches(sections[s].cc, chips[i].major, chips[i].minor) ||
                    has_alternate(&chips[i], &sections[s], row))
                    continue;
                left_out++;
                if (!kp_host_metric(h, row->metric, &props))
                    fail_msg("%s has %s, and its row leaves it out", chips[i].name, row->metric);
            }
        kp_host_close(h);
    }
    assert_true(left_out > 0);
}

static size_t basic_counters(const struct kp_cupti *c, const struct chip *chip, const char *names[MAX_METRICS])
{
    size_t n = 0, count = 0;
    const struct kp_section *sections = kp_sections(&n);
    struct kp_host *h = open_host(c, chip->name);
    struct kp_metric_props props;
    for (size_t s = 0; s < n; s++)
        for (size_t r = 0; kp_section_in_set(&sections[s], "basic") && r < sections[s].n_rows; r++) {
            const struct kp_row *row = &sections[s].rows[r];
            if (applies(chip, &sections[s], row) && !listed(names, count, counter_of(row)) &&
                !kp_host_metric(h, counter_of(row), &props))
                names[count++] = counter_of(row);
        }
    kp_host_close(h);
    return count;
}

/* All counters of the basic set in one list: as many passes as were measured on GPUs, and no more on any chip. */
static void test_passes_of_the_basic_set(void **state)
{
    const struct kp_cupti *c = kp_test_real_cupti();
    const char *names[MAX_METRICS];
    (void)state;
    for (size_t i = 0; i < CHIPS; i++) {
        struct kp_config config;
        if (!chips[i].opens)
            continue;
        size_t n = basic_counters(c, &chips[i], names);
        int rc = kp_host_schedule(c, chips[i].name, NULL, names, n, &config);
        print_message("%s (CC %d.%d): basic set, %zu counters, ", chips[i].name, chips[i].major, chips[i].minor, n);
        if (rc)
            print_message("not in one list (%d)\n", rc);
        else
            print_message("%zu passes\n", config.passes);
        if (chips[i].passes && is_known_version(c)) {
            assert_int_equal(rc, 0);
            assert_int_equal(config.passes, chips[i].passes);
        }
        if (!rc)
            kp_config_free(&config);
    }
}

/* ---- scheduling ---- */

static void test_config(void **state)
{
    const struct kp_cupti *c = kp_test_real_cupti();
    const char *const names[] = {"sm__cycles_active.avg", "smsp__inst_executed.sum"};
    struct kp_config config;
    (void)state;
    assert_int_equal(kp_host_schedule(c, "GH100", NULL, names, 2, &config), 0);
    assert_non_null(config.image);
    assert_true(config.size > 0);
    assert_int_equal(config.passes, 1);
    assert_int_equal(config.n_names, 2);
    assert_ptr_not_equal(config.names, names);
    assert_ptr_equal(config.names[0], names[0]);
    assert_ptr_equal(config.names[1], names[1]);
    kp_config_free(&config);
    assert_null(config.image);
    assert_null(config.names);
    kp_config_free(&config);
}

/* PCIe counters cannot be collected with those of the SM; after the refusal the next list is none the worse. */
static void test_metrics_that_do_not_mix(void **state)
{
    const struct kp_cupti *c = kp_test_real_cupti();
    static const char *const chip_names[] = {"GH100", "GA100", "AD102", "GB202"};
    const char *const mixed[] = {"sm__cycles_active.avg", "pcie__read_bytes.sum"};
    struct kp_config config;
    (void)state;
    for (size_t i = 0; i < sizeof(chip_names) / sizeof(*chip_names); i++) {
        assert_int_not_equal(kp_host_schedule(c, chip_names[i], NULL, mixed, 2, &config), 0);
        assert_null(config.image);
        assert_null(config.names);
        for (size_t k = 0; k < 2; k++) {
            assert_int_equal(kp_host_schedule(c, chip_names[i], NULL, &mixed[k], 1, &config), 0);
            assert_true(config.passes >= 1);
            kp_config_free(&config);
        }
    }
}

static void test_unknown_metric_in_a_list(void **state)
{
    const struct kp_cupti *c = kp_test_real_cupti();
    const char *const names[] = {"sm__cycles_active.avg", "sm__no_such_thing.avg"};
    struct kp_config config;
    (void)state;
    assert_int_not_equal(kp_host_schedule(c, "GH100", NULL, names, 2, &config), 0);
    assert_int_equal(kp_host_schedule(c, "GH100", NULL, names, 1, &config), 0);
    kp_config_free(&config);
}

/* ---- names and properties ---- */

static void test_names(void **state)
{
    static const char *const of_type[KP_METRIC_TYPES] = {[KP_METRIC_COUNTER] = "sm__cycles_active",
                                                         [KP_METRIC_RATIO] =
                                                             "smsp__thread_inst_executed_per_inst_executed",
                                                         [KP_METRIC_THROUGHPUT] = "sm__throughput"};
    struct kp_host *h = open_host(kp_test_real_cupti(), "GH100");
    (void)state;
    for (int type = 0; type < KP_METRIC_TYPES; type++) {
        const char *const *names;
        size_t n;
        struct kp_metric_props props;
        assert_int_equal(kp_host_names(h, (enum kp_metric_type)type, &names, &n), 0);
        assert_true(n > 20);
        if (!listed(names, n, of_type[type]))
            fail_msg("%s is not of type %d", of_type[type], type);
        assert_int_equal(kp_host_metric(h, of_type[type], &props), 0);
        assert_int_equal(props.type, type);
        assert_true(strlen(props.description) > 0);
    }
    kp_host_close(h);
}

static void test_properties(void **state)
{
    static const struct {
        const char *name, *unit;
        enum kp_metric_type type;
    } rows[] = {
        {"gpu__time_duration.sum", "ns", KP_METRIC_COUNTER},
        {"gpc__cycles_elapsed.avg.per_second", "hz", KP_METRIC_COUNTER},
        {"gpc__cycles_elapsed.max", "cycle", KP_METRIC_COUNTER},
        {"dram__bytes_read.sum", "byte", KP_METRIC_COUNTER},
        {"dram__bytes_read.sum.per_second", "byte/s", KP_METRIC_COUNTER},
        {"smsp__inst_executed.sum", "inst", KP_METRIC_COUNTER},
        {"sm__inst_executed.avg.per_cycle_active", "inst/cycle", KP_METRIC_COUNTER},
        {"sm__throughput.avg.pct_of_peak_sustained_elapsed", "%", KP_METRIC_THROUGHPUT},
        {"sm__warps_active.avg.per_cycle_active", "warp", KP_METRIC_COUNTER},
        {"smsp__thread_inst_executed_per_inst_executed.ratio", "", KP_METRIC_RATIO},
    };
    struct kp_host *h = open_host(kp_test_real_cupti(), "GH100");
    struct kp_metric_props props;
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        if (kp_host_metric(h, rows[i].name, &props))
            fail_msg("no %s", rows[i].name);
        if (strcmp(props.unit, rows[i].unit) || props.type != rows[i].type)
            fail_msg("%s: \"%s\", type %d", rows[i].name, props.unit, props.type);
    }
    assert_int_not_equal(kp_host_metric(h, "sm__no_such_thing.avg", &props), 0);
    assert_int_not_equal(kp_host_metric(h, "sm__cycles_active.no_such_suffix", &props), 0);
    kp_host_close(h);
}

/* Dimensions as the library spells them, for metrics of the chips above; units as the report does. */
static void test_units(void **state)
{
    static const struct {
        const char *dimension, *unit;
    } rows[] = {
        {"", ""},
        {"percent", "%"},
        {"nanosecond", "ns"},
        {"gpc_cycle", "cycle"},
        {"dram_cycle", "cycle"},
        {"gpc_cycle/second", "hz"},
        {"dram_cycle/second", "hz"},
        {"mcc_cycle/second", "hz"},
        {"instruction", "inst"},
        {"instruction/gpc_cycle", "inst/cycle"},
        {"instruction/warp", "inst/warp"},
        {"instruction/second", "inst/s"},
        {"byte", "byte"},
        {"byte/second", "byte/s"},
        {"byte/dram_cycle", "byte/cycle"},
        {"byte/cta", "byte/block"},
        {"byte/l2_sector", "byte/sector"},
        {"cta", "block"},
        {"cga", "cluster"},
        {"warp", "warp"},
        {"thread/warp", "thread/warp"},
        {"register/thread", "register/thread"},
        {"branch_target", "branches"},
        {"l2_sector", "sector"},
        {"l2_sector/second", "sector/s"},
        {"l2_sector/l1tex_request", "sector/request"},
        {"l1tex_request", "request"},
        {"l1tex_wavefront/second", "wavefront/s"},
        {"l1tex_line", "line"},
        {"L2_tag", "tag"},
        {"workload", "workload"},
    };
    char unit[48];
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        memset(unit, 'x', sizeof(unit));
        kp_unit_from_dimension(rows[i].dimension, unit, sizeof(unit));
        if (strcmp(unit, rows[i].unit))
            fail_msg("%s is written \"%s\", not \"%s\"", rows[i].dimension, unit, rows[i].unit);
    }
}

/* Whatever a later library says, what is written stays inside. */
static void test_long_dimensions(void **state)
{
    char dimension[401], unit[49];
    (void)state;
    for (size_t length = 1; length < sizeof(dimension); length++)
        for (size_t slash = 0; slash <= length; slash += 37) {
            memset(dimension, 'a', length);
            dimension[length] = '\0';
            if (slash < length)
                dimension[slash] = '/';
            unit[8] = unit[48] = '#';
            kp_unit_from_dimension(dimension, unit, 48);
            assert_int_equal(unit[48], '#');
            assert_true(strlen(unit) < 48);
            unit[8] = '#';
            kp_unit_from_dimension(dimension, unit, 8);
            assert_int_equal(unit[8], '#');
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chips),
        cmocka_unit_test(test_chips_that_open),
        cmocka_unit_test(test_unknown_chip),
        cmocka_unit_test(test_units_of_rows),
        cmocka_unit_test(test_rows_left_out),
        cmocka_unit_test(test_passes_of_the_basic_set),
        cmocka_unit_test(test_config),
        cmocka_unit_test(test_metrics_that_do_not_mix),
        cmocka_unit_test(test_unknown_metric_in_a_list),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_properties),
        cmocka_unit_test(test_units),
        cmocka_unit_test(test_long_dimensions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
