/* Counter data recorded on a GPU (tests/gpu/record_image.c), evaluated here by the real host library without one: the
 * values are those of the machine it was recorded on, and those that follow from the kernel. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collectors/plan/plan.h"
#include "cupti/host.h"
#include "report/define/derive.h"
#include "report/pages/details.h"
#include "tests/support/collect_support.h"
#include "tests/support/report_support.h"

enum { MAX_METRICS = 4096, MAX_GROUPS = 4, MAX_RANGES = 2, WARP = 32 };

/* One list of counters of the plan, in an image of its own. */
struct group {
    size_t image_size, n_ranges, n_metrics;
    uint8_t *image;
    const char *names[MAX_METRICS];
    double recorded[MAX_RANGES][MAX_METRICS], values[MAX_RANGES][MAX_METRICS];
};

static struct {
    char *text; /* axpy.txt, which the names point into */
    const char *chip;
    size_t instructions, n_groups;
    double blocks[MAX_RANGES], threads[MAX_RANGES];
    struct group groups[MAX_GROUPS];
    bool evaluated;
} rec;

/* ---- reading ---- */

/* Ranges list the same metrics in the same order. */
static void read_metric(struct group *g, const char *name, const char *value, size_t *m)
{
    assert_true(g && g->n_ranges > 0 && *m < MAX_METRICS);
    if (g->n_ranges == 1)
        g->names[g->n_metrics++] = name;
    assert_string_equal(g->names[*m], name);
    g->recorded[g->n_ranges - 1][(*m)++] = strtod(value, NULL);
}

static void read_values(void)
{
    char *save = NULL;
    size_t m = 0;
    struct group *g = NULL;
    for (char *line = strtok_r(rec.text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        char *fields = NULL, *name = strtok_r(line, "\t", &fields);
        const char *value = strtok_r(NULL, "\t", &fields);
        if (*line == '#')
            continue;
        assert_non_null(value);
        if (!strcmp(name, "chip")) {
            rec.chip = value;
        } else if (!strcmp(name, "instructions")) {
            rec.instructions = strtoul(value, NULL, 10);
        } else if (!strcmp(name, "image")) {
            assert_true(rec.n_groups < MAX_GROUPS);
            g = &rec.groups[rec.n_groups++];
            g->image_size = strtoul(value, NULL, 10);
        } else if (!strcmp(name, "range")) {
            const char *threads = strtok_r(NULL, "\t", &fields);
            assert_true(g && threads && g->n_ranges < MAX_RANGES);
            rec.blocks[g->n_ranges] = strtod(value, NULL);
            rec.threads[g->n_ranges++] = strtod(threads, NULL);
            m = 0;
        } else {
            read_metric(g, name, value, &m);
        }
    }
    assert_true(rec.chip && rec.instructions && rec.n_groups && rec.groups[0].n_metrics);
}

static const char *image_path(size_t group)
{
    char name[64];
    snprintf(name, sizeof(name), "tests/data/axpy.%zu.image.gz", group);
    return kp_test_source(name);
}

static void read_image(struct group *g, const char *path)
{
    char *command = NULL;
    assert_true(asprintf(&command, "gzip -dc '%s'", path) > 0);
    FILE *in = popen(command, "r");
    assert_non_null(in);
    g->image = malloc(g->image_size + 1);
    assert_non_null(g->image);
    assert_int_equal(fread(g->image, 1, g->image_size + 1, in), g->image_size);
    assert_int_equal(pclose(in), 0);
    free(command);
}

static void evaluate(const struct kp_cupti *c, struct group *g)
{
    struct kp_host *h = NULL;
    assert_int_equal(kp_host_open(c, rec.chip, NULL, &h), 0);
    for (size_t r = 0; r < g->n_ranges; r++)
        assert_int_equal(kp_host_evaluate(h, g->image, g->image_size, r, g->names, g->n_metrics, g->values[r]), 0);
    kp_host_close(h);
}

/* Reads and evaluates on the first call; skips, saying why, where there is no recording. */
static void load(void)
{
    const struct kp_cupti *c = kp_test_real_cupti();
    if (rec.evaluated)
        return;
    if (access(kp_test_source("tests/data/axpy.txt"), R_OK)) {
        print_message("tests/data has no axpy.txt: tests/gpu/record_image makes it on a GPU\n");
        skip();
    }
    memset(&rec, 0, sizeof(rec)); /* an attempt that failed leaves nothing */
    rec.text = kp_test_read(kp_test_source("tests/data/axpy.txt"));
    read_values();
    for (size_t i = 0; i < rec.n_groups; i++) {
        read_image(&rec.groups[i], image_path(i));
        evaluate(c, &rec.groups[i]);
    }
    rec.evaluated = true;
}

static int unload(void **state)
{
    (void)state;
    for (size_t i = 0; i < rec.n_groups; i++)
        free(rec.groups[i].image);
    free(rec.text);
    return 0;
}

static const double *find(size_t range, const char *metric)
{
    for (size_t i = 0; i < rec.n_groups; i++)
        for (size_t m = 0; m < rec.groups[i].n_metrics; m++)
            if (!strcmp(rec.groups[i].names[m], metric))
                return &rec.groups[i].values[range][m];
    return NULL;
}

static double value(size_t range, const char *metric)
{
    const double *v = find(range, metric);
    if (!v)
        fail_msg("%s was not recorded", metric);
    return *v;
}

static double warps(size_t range)
{
    return rec.blocks[range] * rec.threads[range] / WARP;
}

/* ---- the report ---- */

/* Puts what was recorded where a plan puts what was collected. What the plan has come to ask for since is missing. */
static void fill(const struct kp_plan *plan, size_t range, struct kp_result *r)
{
    for (size_t i = 0; i < plan->n_metrics; i++) {
        const struct kp_planned *m = &plan->metrics[i];
        const double *v = m->group >= 0 ? find(range, m->name) : NULL;
        if (v)
            assert_int_equal(kp_result_set_real(r, m->name, m->unit, *v), 0);
    }
    assert_int_equal(kp_plan_derive(plan, r), 0);
}

/* Calls `use` with a launch of range 0 that has what `sections` show. */
static void with_launch(const char *sections, void (*use)(const char *sections, struct kp_result *r))
{
    const struct kp_section **selected;
    struct kp_plan *plan = NULL;
    struct kp_result r = {0};
    size_t n;
    char *err = NULL;
    load();
    assert_int_equal(kp_sections_select("", sections, &selected, &n, &err), 0);
    assert_int_equal(kp_plan_make(kp_test_real_cupti(), rec.chip, NULL, 9, 0, selected, n, "", 0, &plan, &err), 0);
    r.launch.mangled = kp_strdup("axpy");
    r.launch.demangled = kp_strdup("axpy");
    r.launch.chip = kp_strdup(rec.chip);
    r.launch.cc_major = 9;
    r.launch.grid[0] = (uint32_t)rec.blocks[0];
    r.launch.block[0] = (uint32_t)rec.threads[0];
    r.launch.grid[1] = r.launch.grid[2] = r.launch.block[1] = r.launch.block[2] = 1;
    fill(plan, 0, &r);
    use(sections, &r);
    kp_result_free(&r);
    kp_plan_free(plan);
    free(selected);
}

static char *shown; /* what `show` printed last */

static void show(const char *sections, struct kp_result *r)
{
    struct kp_test_text t = {0};
    struct kp_sink sink = kp_test_sink(&t);
    const struct kp_display d = {
        .details = KP_DETAILS_BODY, .choose = true, .set = "", .sections = sections, .metrics = ""};
    struct kp_session s = {.set = "", .sections = "", .metrics = ""};
    assert_int_equal(kp_test_launch(&sink, &d, &s, r), 0);
    shown = t.text;
}

/* The words of the line that begins with `row` below the title `table`; fails when there is none. Static storage. */
static char *line_of(const char *table, const char *row)
{
    static char line[1024];
    const char *at = strstr(shown, table);
    if (!at)
        fail_msg("no table %s in:\n%s", table, shown);
    for (at = strchr(at, '\n'); at; at = strchr(at + 1, '\n')) {
        const char *text = at + 1 + strspn(at + 1, " ");
        if (!strncmp(text, row, strlen(row))) {
            snprintf(line, sizeof(line), "%.*s", (int)strcspn(text, "\n"), text);
            return line;
        }
    }
    fail_msg("no row %s in table %s:\n%s", row, table, shown);
    return line;
}

/* The `column`-th number of a row. Thousands are separated by commas. */
static double cell(const char *table, const char *row, size_t column)
{
    char digits[64], *line = line_of(table, row) + strlen(row), *save = NULL;
    for (char *word = strtok_r(line, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
        size_t n = 0;
        for (const char *c = word; *c && n + 1 < sizeof(digits); c++)
            if (*c != ',')
                digits[n++] = *c;
        digits[n] = 0;
        if (!column--)
            return strtod(digits, NULL);
    }
    fail_msg("row %s of table %s has too few columns:\n%s", row, table, shown);
    return NAN;
}

/* ---- tests ---- */

static void test_as_on_the_gpu_machine(void **state)
{
    (void)state;
    load();
    for (size_t i = 0; i < rec.n_groups; i++) {
        const struct group *g = &rec.groups[i];
        assert_int_equal(g->n_ranges, MAX_RANGES);
        for (size_t r = 0; r < MAX_RANGES; r++)
            for (size_t m = 0; m < g->n_metrics; m++) {
                double was = g->recorded[r][m], is = g->values[r][m];
                if (isnan(was) ? !isnan(is) : was != is && !(fabs(is - was) <= 1e-12 * fabs(was)))
                    fail_msg("%s of range %zu is %.17g, was %.17g", g->names[m], r, is, was);
            }
    }
}

/* One load of x, one of y, one store, by each warp: 4 sectors of 32 byte for its 32 floats. */
static void test_memory_of_the_kernel(void **state)
{
    (void)state;
    load();
    for (size_t r = 0; r < MAX_RANGES; r++) {
        assert_true(value(r, "smsp__warps_launched.sum") == warps(r));
        assert_true(value(r, "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum") == 2 * warps(r));
        assert_true(value(r, "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum") == warps(r));
        assert_true(value(r, "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum") == 8 * warps(r));
        assert_true(value(r, "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum") == 4 * warps(r));
    }
}

/* The kernel has no branch: every warp executes its code once, with all threads. */
static void test_instructions_of_the_kernel(void **state)
{
    (void)state;
    load();
    for (size_t r = 0; r < MAX_RANGES; r++) {
        assert_true(value(r, "smsp__inst_executed.sum") == warps(r) * (double)rec.instructions);
        assert_true(value(r, "smsp__thread_inst_executed.sum") == WARP * warps(r) * (double)rec.instructions);
        assert_true(value(r, "smsp__thread_inst_executed_per_inst_executed.ratio") == WARP);
    }
}

/* Metrics of one range that follow from each other. */
static void test_metrics_agree(void **state)
{
    (void)state;
    load();
    for (size_t r = 0; r < MAX_RANGES; r++) {
        double ns = value(r, "gpu__time_duration.sum");
        assert_true(ns > 500 && ns < 1e6);
        assert_true(value(r, "sm__cycles_active.avg") <= value(r, "gpc__cycles_elapsed.max"));
        /* The clock of one pass, the time of another. */
        assert_true(
            fabs(value(r, "gpc__cycles_elapsed.avg.per_second") * ns * 1e-9 / value(r, "gpc__cycles_elapsed.max") - 1) <
            0.2);
        double occupancy = value(r, "sm__warps_active.avg.pct_of_peak_sustained_active");
        assert_true(occupancy > 0 && occupancy <= 100);
        assert_true(value(r, "sm__throughput.avg.pct_of_peak_sustained_elapsed") <= 100.5);
    }
}

/* The largest of the constituents of a throughput, evaluated from the same counters. */
static double largest_of(struct kp_host *h, const struct group *g, size_t range, const char *throughput)
{
    const char **parts;
    double largest = 0;
    size_t n;
    assert_int_equal(kp_host_constituents(h, throughput, &parts, &n), 0);
    for (size_t i = 0; i < n; i++) {
        char name[512];
        const char *metric = name;
        double v = NAN;
        struct kp_metric_props props;
        snprintf(name, sizeof(name), "%s%s", parts[i], strchr(throughput, '.'));
        if (!kp_host_metric(h, name, &props) && !kp_host_evaluate(h, g->image, g->image_size, range, &metric, 1, &v) &&
            v > largest)
            largest = v;
    }
    free(parts);
    return largest;
}

/* Application replay counts the constituents of a throughput in different runs, and takes the largest. */
static void test_throughputs_are_the_largest(void **state)
{
    struct kp_host *h = NULL;
    size_t checked = 0;
    (void)state;
    load();
    assert_int_equal(kp_host_open(kp_test_real_cupti(), rec.chip, NULL, &h), 0);
    for (size_t i = 0; i < rec.n_groups; i++)
        for (size_t m = 0; m < rec.groups[i].n_metrics; m++) {
            const char *name = rec.groups[i].names[m];
            struct kp_metric_props props;
            if (kp_host_metric(h, name, &props) || props.type != KP_METRIC_THROUGHPUT)
                continue;
            for (size_t r = 0; r < MAX_RANGES; r++, checked++) {
                double largest = largest_of(h, &rec.groups[i], r, name), is = rec.groups[i].values[r][m];
                if (!(fabs(largest - is) <= 1e-9 * fabs(is)))
                    fail_msg("%s of range %zu is %.17g, the largest of its constituents %.17g", name, r, is, largest);
            }
        }
    kp_host_close(h);
    assert_true(checked > 10);
}

/* Each thread: one fused multiply-add in either precision, one addition, one multiplication. */
static void test_arithmetic_of_the_kernel(void **state)
{
    (void)state;
    load();
    for (size_t r = 0; r < MAX_RANGES; r++) {
        double threads = WARP * warps(r);
        assert_true(value(r, "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum") == threads);
        assert_true(value(r, "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum") == threads);
        assert_true(value(r, "smsp__sass_thread_inst_executed_op_fmul_pred_on.sum") == threads);
        assert_true(value(r, "smsp__sass_thread_inst_executed_op_dfma_pred_on.sum") == threads);
    }
}

/* Evaluates one metric over the recorded counters; NAN where they lack it. */
static double evaluated(struct kp_host *h, const char *metric)
{
    double v = NAN;
    for (size_t i = 0; i < rec.n_groups && !isfinite(v); i++)
        if (kp_host_evaluate(h, rec.groups[i].image, rec.groups[i].image_size, 0, &metric, 1, &v))
            v = NAN;
    return v;
}

/* What a rotation composes of one-pass metrics is what the library computes over one set of counters. */
static void test_composed_metrics(void **state)
{
    enum { LEAST = 15 };
    const struct kp_section **selected;
    struct kp_plan *plan = NULL;
    struct kp_result r = {0};
    struct kp_host *h = NULL;
    size_t n, compared = 0;
    char *err = NULL;
    (void)state;
    kp_test_skip_sanitized();
    load();
    assert_int_equal(kp_sections_select("detailed", "", &selected, &n, &err), 0);
    assert_int_equal(
        kp_plan_make(kp_test_real_cupti(), rec.chip, NULL, 9, 0, selected, n, "", KP_PLAN_ROTATE, &plan, &err), 0);
    assert_int_equal(kp_host_open(kp_test_real_cupti(), rec.chip, NULL, &h), 0);
    for (size_t i = 0; i < plan->n_metrics; i++) {
        const struct kp_planned *m = &plan->metrics[i];
        double v = m->group >= 0 ? evaluated(h, m->name) : NAN;
        if (isfinite(v))
            assert_int_equal(kp_result_set_real(&r, m->name, m->unit, v), 0);
    }
    assert_int_equal(kp_plan_compose(plan, &r), 0);
    for (size_t i = 0; i < plan->n_metrics; i++) {
        const struct kp_planned *m = &plan->metrics[i];
        double is, was = m->composed ? evaluated(h, m->name) : NAN;
        if (!isfinite(was) || !kp_metric_number(kp_result_find(&r, m->name), &is))
            continue;
        if (!(fabs(is - was) <= 1e-9 * fabs(was)))
            fail_msg("%s is composed as %.17g, the library says %.17g", m->name, is, was);
        compared++;
    }
    print_message("%zu composed metrics\n", compared);
    assert_true(compared >= LEAST);
    kp_host_close(h);
    kp_result_free(&r);
    kp_plan_free(plan);
    free(selected);
}

/* A store and a load of 4 byte by each thread: no bank is asked twice. */
static void test_shared_memory_table(void **state)
{
    (void)state;
    with_launch("MemoryWorkloadAnalysis_Tables", show);
    assert_true(cell("Shared Memory", "Shared Load", 0) == warps(0)); /* instructions */
    assert_true(cell("Shared Memory", "Shared Load", 1) == warps(0)); /* wavefronts */
    assert_true(cell("Shared Memory", "Shared Store", 0) == warps(0));
    assert_true(cell("Shared Memory", "Shared Store", 1) == warps(0));
    assert_true(cell("Shared Memory", "Total", 0) == 2 * warps(0));
    free(shown);
}

/* Cold caches: x and y come from device memory once, 4 sectors of 32 byte a warp each. */
static void test_cache_tables(void **state)
{
    (void)state;
    with_launch("MemoryWorkloadAnalysis_Tables", show);
    assert_true(cell("L1/TEX Cache", "Global Load", 0) == 2 * warps(0)); /* instructions */
    assert_true(cell("L1/TEX Cache", "Global Store", 0) == warps(0));
    assert_true(cell("L2 Cache", "L1/TEX Load", 0) == 2 * warps(0)); /* requests */
    assert_true(cell("L2 Cache", "L1/TEX Load", 2) == 8 * warps(0)); /* sectors */
    assert_true(cell("L2 Cache", "L1/TEX Store", 2) == 4 * warps(0));
    double sectors = cell("Device Memory", "Load", 0), bytes = value(0, "dram__bytes_read.sum");
    assert_true(sectors >= 8 * warps(0) && sectors < 8.1 * warps(0));
    assert_true(sectors * 32 == bytes);
    free(shown);
}

static void check_rooflines(const char *sections, struct kp_result *r)
{
    /* Work in a second is what the points of the drawings stand for. */
    double ns = value(0, "gpu__time_duration.sum"), threads = WARP * warps(0);
    double single = value(0, "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum.per_cycle_elapsed") * 2 +
                    value(0, "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum.per_cycle_elapsed") +
                    value(0, "smsp__sass_thread_inst_executed_op_fmul_pred_on.sum.per_cycle_elapsed");
    double per_second = single * value(0, "smsp__cycles_elapsed.avg.per_second");
    assert_true(fabs(per_second / (4 * threads / ns * 1e9) - 1) < 0.2);
    show(sections, r);
}

static void test_rooflines(void **state)
{
    (void)state;
    with_launch("SpeedOfLight_RooflineChart,SpeedOfLight_HierarchicalSingleRooflineChart,"
                "SpeedOfLight_HierarchicalDoubleRooflineChart",
                check_rooflines);
    kp_test_golden(shown, "tests/golden/recorded_rooflines.txt");
    free(shown);
}

/* Every body of the full set is drawn from what was recorded, as it was when it was looked at. */
static void test_all_tables(void **state)
{
    (void)state;
    with_launch("SpeedOfLight,ComputeWorkloadAnalysis,MemoryWorkloadAnalysis,MemoryWorkloadAnalysis_Chart,"
                "MemoryWorkloadAnalysis_Tables,SchedulerStats,WarpStateStats",
                show);
    kp_test_golden(shown, "tests/golden/recorded_tables.txt");
    free(shown);
}

/* Evaluates what a plan adds beside its schedule, all at once. Returns how many of them have a value where the counter
 * that was scheduled has one. */
static size_t roll_ups_with_values(struct kp_host *h, const struct kp_config *list, const struct group *g)
{
    double *values = calloc(list->n_more + 1, sizeof *values);
    size_t n = 0;
    assert_non_null(values);
    assert_int_equal(kp_host_evaluate(h, g->image, g->image_size, 0, list->names + list->n_names, list->n_more, values),
                     0);
    for (size_t i = 0; i < list->n_more; i++)
        n += isfinite(values[i]);
    free(values);
    return n;
}

/* The image of one roll-up has the others: they are in no schedule. */
static void test_roll_ups_need_no_counter(void **state)
{
    const struct kp_section **sections;
    struct kp_plan *plan = NULL;
    struct kp_host *h = NULL;
    size_t n;
    char *err = NULL;
    (void)state;
    load();
    assert_int_equal(kp_sections_select("", "SpeedOfLight,WorkloadDistribution,SchedulerStats", &sections, &n, &err),
                     0);
    assert_int_equal(kp_plan_make(kp_test_real_cupti(), rec.chip, NULL, 9, 0, sections, n, "", 0, &plan, &err), 0);
    assert_int_equal(kp_host_open(kp_test_real_cupti(), rec.chip, NULL, &h), 0);
    assert_true(plan->groups[0].n_more > 200);
    assert_int_equal(roll_ups_with_values(h, &plan->groups[0], &rec.groups[0]), plan->groups[0].n_more);

    double values[4];
    const char *const cycles[] = {"sm__cycles_active.avg", "sm__cycles_active.max", "sm__cycles_active.min",
                                  "sm__cycles_active.sum"};
    assert_int_equal(kp_host_evaluate(h, rec.groups[0].image, rec.groups[0].image_size, 0, cycles, 4, values), 0);
    assert_float_equal(values[0], value(0, cycles[0]), 1e-6);
    assert_true(values[2] < values[0] && values[0] < values[1] && values[1] < values[3]);
    kp_host_close(h);
    kp_plan_free(plan);
    free(sections);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_on_the_gpu_machine),
        cmocka_unit_test(test_memory_of_the_kernel),
        cmocka_unit_test(test_instructions_of_the_kernel),
        cmocka_unit_test(test_composed_metrics),
        cmocka_unit_test(test_metrics_agree),
        cmocka_unit_test(test_throughputs_are_the_largest),
        cmocka_unit_test(test_arithmetic_of_the_kernel),
        cmocka_unit_test(test_shared_memory_table),
        cmocka_unit_test(test_cache_tables),
        cmocka_unit_test(test_rooflines),
        cmocka_unit_test(test_all_tables),
        cmocka_unit_test(test_roll_ups_need_no_counter),
    };
    return cmocka_run_group_tests(tests, NULL, unload);
}
