/* The host side of the real CUPTI, which needs no GPU: the section table against the metric tables of every chip,
 * units, and scheduling. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cupti/host.h"
#include "cupti/internal.h"
#include "report/define/sections.h"
#include "tests/support/collect_support.h"

static const struct chip {
    const char *name;
    int major, minor;
    int opens;
    size_t passes; /* 0: not looked at here */
} chips[] = {
#define KP_CHIP(...) {__VA_ARGS__},
#include "tests/support/chips.def"
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
            print_message("%s has no row in tests/support/chips.def: its sections are not checked\n", names[i]);
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
 * tests/unit/report/test_report_sections_chips.c. */
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
                if (*row->unit == *KP_UNIT_DRAWN) /* of the drawing alone */
                    continue;
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
 * Sections of one pass also leave out what does not fit: see tests/unit/collectors/test_collect_plan.c. */
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

/* Lists in turn give the same image, whether the first one is there already or is scheduled anew. */
static void test_lists_in_turn(void **state)
{
    const struct kp_cupti *c = kp_test_real_cupti();
    static const char *const sm[] = {"sm__cycles_active.avg", "smsp__inst_executed.sum", "lts__t_sectors.sum"};
    static const char *const dram[] = {"dram__bytes_read.sum", "smsp__warps_active.sum"};
    struct kp_config lists[2][2];
    struct kp_host *kept = NULL;
    size_t good;
    (void)state;
    assert_int_equal(kp_host_schedule_kept(c, "GH100", NULL, sm, 3, &lists[0][0], &kept), 0);
    assert_non_null(kept);
    assert_int_equal(kp_host_schedule(c, "GH100", NULL, sm, 3, &lists[1][0]), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(kp_host_schedule(c, "GH100", NULL, dram, 2, &lists[i][1]), 0);
        good = 0;
        assert_int_equal(kp_host_schedule_turns(c, "GH100", NULL, lists[i], 2, i ? NULL : kept, &good), 0);
        assert_int_equal(good, 2);
        assert_int_equal(lists[i][1].turn, lists[i][0].passes);
        assert_int_equal(lists[i][0].turns, lists[i][0].passes + lists[i][1].passes);
    }
    for (int list = 0; list < 2; list++) {
        assert_int_equal(lists[0][list].size, lists[1][list].size);
        assert_memory_equal(lists[0][list].image, lists[1][list].image, lists[1][list].size);
    }
    for (int i = 0; i < 4; i++)
        kp_config_free(&lists[i / 2][i % 2]);
    assert_int_not_equal(kp_host_schedule_kept(c, "ZZ999", NULL, sm, 3, &lists[0][0], &kept), 0);
    assert_null(kept);
}

/* A list of an image is one of patched code where any list of it is. */
static void test_patched_code_in_an_image(void **state)
{
    const struct kp_cupti *c = kp_test_real_cupti();
    static const char *const names[] = {"sm__cycles_active.avg",
                                        "smsp__sass_thread_inst_executed_op_integer_pred_on.sum"};
    struct kp_config lists[2];
    size_t good = 0;
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(kp_host_schedule(c, "GH100", NULL, &names[i], 1, &lists[i]), 0);
        assert_int_equal(kp_config_patches(&lists[i]), i);
    }
    assert_int_equal(kp_host_schedule_turns(c, "GH100", NULL, lists, 2, NULL, &good), 0);
    assert_int_equal(good, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_true(kp_config_patches(&lists[i]));
        kp_config_free(&lists[i]);
    }
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

/* Whether a list fits one pass is what its schedule says, whatever was asked before: for that is remembered, and
 * answers what is part of it, or has it as a part. */
static void test_what_fits_a_pass(void **state)
{
    static const char *const chip_names[] = {"TU102", "GH100", "GB20B"};
    static const size_t sizes[] = {1, 2, 4, 9, 3, 16};
    const struct kp_cupti *c = kp_test_real_cupti();
    const char *names[MAX_METRICS];
    (void)state;
    kp_test_skip_sanitized();
    for (size_t i = 0; i < CHIPS; i++) {
        size_t n, fit = 0, asked = 0, kind = 0;
        if (!listed(chip_names, sizeof(chip_names) / sizeof(*chip_names), chips[i].name))
            continue;
        n = basic_counters(c, &chips[i], names);
        struct kp_host *h = open_host(c, chips[i].name);
        for (size_t at = 0; at + sizes[kind] <= n; at++, kind = (kind + 1) % (sizeof(sizes) / sizeof(*sizes))) {
            struct kp_config config;
            bool fits;
            if (kp_host_schedule(c, chips[i].name, NULL, names + at, sizes[kind], &config))
                continue;
            assert_int_equal(kp_host_fits_pass(h, names + at, sizes[kind], &fits), 0);
            if (fits != (config.passes == 1))
                fail_msg("%s: %zu from %s on take %zu", chips[i].name, sizes[kind], names[at], config.passes);
            fit += fits;
            asked++;
            kp_config_free(&config);
        }
        assert_in_range(fit, 5, asked - 5);
        kp_host_close(h);
    }
}

static void test_what_cannot_be_asked(void **state)
{
    static const char *const names[] = {"sm__cycles_active.avg", "sm__no_such_thing.avg", "sm__cycles_active"};
    struct kp_cupti without = *kp_test_real_cupti();
    struct kp_host *h = open_host(kp_test_real_cupti(), "GH100");
    bool fits;
    (void)state;
    for (int twice = 0; twice < 2; twice++) {
        assert_int_equal(kp_host_fits_pass(h, names, 2, &fits), -EINVAL);
        assert_false(fits);
        assert_int_equal(kp_host_fits_pass(h, names + 2, 1, &fits), -EINVAL);
        assert_int_equal(kp_host_fits_pass(h, names, 1, &fits), 0);
        assert_true(fits);
    }
    kp_host_close(h);
    without.NVPW_RawCounterConfig_AreRawCountersSchedulable = NULL;
    h = open_host(&without, "GH100");
    assert_int_equal(kp_host_fits_pass(h, names, 1, &fits), -ENOSYS);
    assert_int_equal(kp_host_fits_pass(h, names, 1, &fits), -ENOSYS);
    kp_host_close(h);
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
        kp_cupti_unit_from_dimension(rows[i].dimension, unit, sizeof(unit));
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
            kp_cupti_unit_from_dimension(dimension, unit, 48);
            assert_int_equal(unit[48], '#');
            assert_true(strlen(unit) < 48);
            unit[8] = '#';
            kp_cupti_unit_from_dimension(dimension, unit, 8);
            assert_int_equal(unit[8], '#');
        }
}

/* ---- parts of names and of throughputs ---- */

static void test_suffixes(void **state)
{
    const struct kp_cupti *c = kp_test_real_cupti();
    struct kp_host *h = open_host(c, "GH100");
    const char *const *suffixes;
    size_t n;
    (void)state;
    assert_int_equal(kp_host_suffixes(h, KP_METRIC_COUNTER, "sm__cycles_active", &suffixes, &n), 0);
    assert_true(listed(suffixes, n, ".sum") && listed(suffixes, n, ".avg.per_cycle_elapsed"));
    assert_false(listed(suffixes, n, ".ratio"));
    assert_int_equal(
        kp_host_suffixes(h, KP_METRIC_RATIO, "smsp__thread_inst_executed_per_inst_executed", &suffixes, &n), 0);
    assert_true(listed(suffixes, n, ".ratio"));
    assert_int_equal(kp_host_suffixes(h, KP_METRIC_THROUGHPUT, "sm__throughput", &suffixes, &n), 0);
    assert_true(listed(suffixes, n, ".avg.pct_of_peak_sustained_elapsed"));
    assert_int_not_equal(kp_host_suffixes(h, KP_METRIC_COUNTER, "sm__no_such_thing", &suffixes, &n), 0);
    assert_null(suffixes);
    assert_int_equal(n, 0);
    kp_host_close(h);
}

/* What Nsight Compute 2025.3 shows as the breakdowns on CC 9.0. */
static void test_constituents_on_gh100(void **state)
{
    static const char *const compute[] = {
        "idc__request_cycles_active",
        "sm__inst_executed_pipe_adu",
        "sm__inst_executed_pipe_cbu_pred_on_any",
        "sm__inst_executed_pipe_ipa",
        "sm__inst_executed_pipe_lsu",
        "sm__inst_executed_pipe_tex",
        "sm__inst_executed_pipe_uniform",
        "sm__inst_executed_pipe_xu",
        "sm__inst_executed",
        "sm__instruction_throughput_internal_activity",
        "sm__issue_active",
        "sm__memory_throughput_internal_activity",
        "sm__mio2rf_writeback_active",
        "sm__mio_inst_issued",
        "sm__mio_pq_read_cycles_active",
        "sm__mio_pq_write_cycles_active",
        "sm__pipe_alu_cycles_active",
        "sm__pipe_fma_cycles_active",
        "sm__pipe_fmaheavy_cycles_active",
        "sm__pipe_fp64_cycles_active",
        "sm__pipe_shared_cycles_active",
        "sm__pipe_tensor_cycles_active",
        "sm__pipe_tensor_op_dmma_cycles_active",
        "sm__pipe_tensor_type_hmma_hgmma_qgmma_imma_igmma_bmma_bgmma_cycles_active",
        "sm__pipe_tma_cycles_active",
    };
    static const char *const memory[] = {
        "dram__cycles_active",
        "fbpa__dram_sectors",
        "gpu__compute_memory_access_throughput_internal_activity",
        "gpu__compute_memory_request_throughput_internal_activity",
        "l1tex__data_bank_reads",
        "l1tex__data_bank_writes",
        "l1tex__data_pipe_lsu_wavefronts",
        "l1tex__data_pipe_tex_wavefronts",
        "l1tex__f_wavefronts",
        "l1tex__lsu_writeback_active",
        "l1tex__lsuin_requests",
        "l1tex__m_l1tex2xbar_req_cycles_active",
        "l1tex__m_xbar2l1tex_read_sectors_mem_dshared",
        "l1tex__m_xbar2l1tex_read_sectors",
        "l1tex__tex_writeback_active",
        "l1tex__texin_sm2tex_req_cycles_active",
        "l1tex__tmain_requests",
        "lts__d_atomic_input_cycles_active",
        "lts__d_decomp_input_sectors",
        "lts__d_sectors_fill_device",
        "lts__d_sectors_fill_sysmem",
        "lts__d_sectors",
        "lts__lts2xbar_cycles_active",
        "lts__t_sectors",
        "lts__t_tag_requests",
        "lts__xbar2lts_cycles_active",
    };
    static const struct {
        const char *throughput;
        const char *const *parts;
        size_t n;
    } rows[] = {
        {"sm__throughput", compute, sizeof(compute) / sizeof(*compute)},
        {"sm__throughput.avg.pct_of_peak_sustained_elapsed", compute, sizeof(compute) / sizeof(*compute)},
        {"gpu__compute_memory_throughput", memory, sizeof(memory) / sizeof(*memory)},
    };
    struct kp_host *h = open_host(kp_test_real_cupti(), "GH100");
    (void)state;
    if (!is_known_version(kp_test_real_cupti()))
        skip();
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        const char **names = NULL;
        size_t n = 0;
        assert_int_equal(kp_host_constituents(h, rows[i].throughput, &names, &n), 0);
        assert_int_equal(n, rows[i].n);
        for (size_t k = 0; k < n; k++)
            if (!listed(rows[i].parts, rows[i].n, names[k]) || listed(names, k, names[k]))
                fail_msg("%s: %s", rows[i].throughput, names[k]);
        free(names);
    }
    kp_host_close(h);
}

static void test_no_constituents(void **state)
{
    static const char *const names[] = {"dram__bytes", "smsp__thread_inst_executed_per_inst_executed", "no_such_thing",
                                        ""};
    struct kp_host *h = open_host(kp_test_real_cupti(), "GH100");
    const char **parts = (const char **)1;
    size_t n = 1;
    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        assert_int_equal(kp_host_constituents(h, names[i], &parts, &n), -EINVAL);
        assert_null(parts);
        assert_int_equal(n, 0);
    }
    kp_host_close(h);
}

/* On every chip each throughput has constituents that the chip can collect under the same suffix. */
static void test_constituents_on_every_chip(void **state)
{
    const struct kp_cupti *c = kp_test_real_cupti();
    (void)state;
    for (size_t i = 0; i < CHIPS; i++) {
        const char *const *throughputs;
        size_t n, parts;
        if (!chips[i].opens)
            continue;
        struct kp_host *h = open_host(c, chips[i].name);
        assert_int_equal(kp_host_names(h, KP_METRIC_THROUGHPUT, &throughputs, &n), 0);
        for (size_t t = 0; t < n; t++) {
            const char **names = NULL;
            assert_int_equal(kp_host_constituents(h, throughputs[t], &names, &parts), 0);
            assert_true(parts > 0);
            for (size_t k = 0; k < parts; k++) {
                struct kp_metric_props props;
                char full[256];
                snprintf(full, sizeof(full), "%s.avg.pct_of_peak_sustained_elapsed", names[k]);
                if (kp_host_metric(h, full, &props))
                    fail_msg("%s: %s has the part %s, which it cannot collect", chips[i].name, throughputs[t], full);
                assert_string_equal(props.unit, "%");
            }
            free(names);
        }
        kp_host_close(h);
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
        cmocka_unit_test(test_lists_in_turn),
        cmocka_unit_test(test_patched_code_in_an_image),
        cmocka_unit_test(test_metrics_that_do_not_mix),
        cmocka_unit_test(test_unknown_metric_in_a_list),
        cmocka_unit_test(test_what_fits_a_pass),
        cmocka_unit_test(test_what_cannot_be_asked),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_properties),
        cmocka_unit_test(test_units),
        cmocka_unit_test(test_long_dimensions),
        cmocka_unit_test(test_suffixes),
        cmocka_unit_test(test_constituents_on_gh100),
        cmocka_unit_test(test_no_constituents),
        cmocka_unit_test(test_constituents_on_every_chip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
