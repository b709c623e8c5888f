/* Timelines: the sections of PM sampling and the page pm, of series that are made up. */
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

#include "report/judge/rules.h"
#include "report/pages/details.h"
#include "report/pages/page.h"
#include "report/write/drawings.h"
#include "tests/support/report_support.h"

#define PCT ".avg.pct_of_peak_sustained_elapsed"

enum { SAMPLES = 200 };

static struct kp_session session;
static struct kp_result results[3]; /* sampled, not sampled, what a file may hold */

static void add(struct kp_result *r, const char *name, const char *unit, double interval, double start, size_t n,
                double (*value)(size_t i))
{
    struct kp_series s = {kp_strdup(name), kp_strdup(unit), malloc((n ? n : 1) * sizeof(double)), n, start, interval};
    assert_true(s.name && s.unit && s.values);
    for (size_t i = 0; i < n; i++)
        s.values[i] = value(i);
    assert_int_equal(kp_result_add_series(r, &s), 0);
}

/* Two phases, of which the second is long. */
static double phases(size_t i)
{
    return i < SAMPLES / 4 ? 12.5 : i < SAMPLES / 2 ? 0 : 93.75;
}

static double ramp(size_t i)
{
    return (double)i * 1e9;
}

static double saw(size_t i)
{
    return (double)(i % 2) * 40;
}

static double nothing(size_t i)
{
    (void)i;
    return 0;
}

static double holes(size_t i)
{
    return i % 3 ? NAN : (double)i;
}

static double no_number(size_t i)
{
    return i % 2 ? NAN : INFINITY;
}

static double odd(size_t i)
{
    static const double values[] = {-5, 50, -100, 0.001, NAN};
    return values[i % (sizeof(values) / sizeof(*values))];
}

static void describe(struct kp_result *r, uint64_t id, const char *name)
{
    r->launch = (struct kp_launch_info){.id = id,
                                        .ordinal = id,
                                        .mangled = kp_strdup(name),
                                        .demangled = kp_strdup(name),
                                        .grid = {8, 1, 1},
                                        .block = {128, 1, 1},
                                        .context_id = 1,
                                        .stream_id = 7,
                                        .cc_major = 9,
                                        .chip = kp_strdup("GH100"),
                                        .passes = 3};
}

static int make(void **state)
{
    struct kp_result *r = &results[0];
    (void)state;
    session = (struct kp_session){.pid = 42,
                                  .exe = kp_strdup("/x/program"),
                                  .host = kp_strdup("host"),
                                  .set = kp_strdup("pmsampling"),
                                  .launches_seen = 3,
                                  .launches_profiled = 3,
                                  .metrics = kp_strdup("pmsampling:made__up.sum,pmsampling:made__up.sum,pmsampling:not_"
                                                       "_sampled.sum,pmsampling:gpu__time_duration.sum"),
                                  .complete = true};
    describe(r, 0, "two_phases(int)");
    add(r, "TPC.TriageCompute.sm__cycles_active" PCT, "%", 1500, 1500, SAMPLES, phases);
    add(r, "TPC.TriageCompute.sm__inst_executed_realtime" PCT, "%", 1500, 900, SAMPLES - 1, saw);
    add(r, "LTS.TriageCompute.lts__throughput" PCT, "%", 1500, 1500, SAMPLES, nothing);
    add(r, "PCI.TriageCompute.pcie__read_bytes.sum.per_second", "byte/s", 30000, 15000, 10, ramp);
    add(r, "nvlrx__bytes.sum.per_second", "byte/s", 1500, 1500, SAMPLES, no_number);
    add(r, "made__up.sum", "inst", 1500, 1500, SAMPLES, holes);
    kp_result_set_real(r, "profiler__pmsampler_interval_time", "ns", 1500);
    kp_result_set_count(r, "profiler__pmsampler_pass_groups", "", 2);
    kp_result_set_count(r, "profiler__pmsampler_buffer_size_bytes", "byte", 31000000);
    kp_result_set_count(r, "profiler__pmsampler_dropped_samples", "sample", 1234);
    kp_result_set_real(r, "gpu__time_duration.sum", "ns", 300000);
    kp_result_set_real(r, "gpc__cycles_elapsed.max", "cycle", 500000);
    kp_result_set_na(r, "nvltx__bytes.sum.per_second", KP_REASON_NO_NUMBER);
    kp_result_set_na(r, "PCI.TriageCompute.pcie__write_bytes.sum.per_second", KP_REASON_NO_NUMBER);
    kp_result_set_why(r, "smsp__warps_issue_stalled_wait.avg.per_cycle_elapsed",
                      kp_why_of(KP_REASON_NOT_COLLECTED, (char *)"it takes two passes"));
    kp_result_set_why(r, "smsp__warps_issue_stalled_drain.avg.per_cycle_elapsed",
                      kp_why_of(KP_REASON_NOT_COLLECTED, (char *)"it takes two passes"));
    describe(&results[1], 1, "never_sampled()");
    describe(&results[2], 2, "odd()");
    add(&results[2], "LTS.TriageCompute.lts__throughput" PCT, "%", NAN, INFINITY, 7, odd);
    add(&results[2], "TPC.TriageCompute.sm__cycles_active" PCT, "%", -1, 0, 0, odd);
    add(&results[2], "TPC.TriageCompute.sm__inst_executed_realtime" PCT, "%", 1e308, 1e308, 1000, odd);
    return 0;
}

static int drop(void **state)
{
    (void)state;
    for (size_t i = 0; i < 3; i++)
        kp_result_free(&results[i]);
    kp_session_free(&session);
    return 0;
}

static int each(void *from, int (*fn)(struct kp_result *, void *), void *arg, char **err)
{
    int rc = 0;
    (void)from, (void)err;
    for (size_t i = 0; !rc && i < 3; i++)
        rc = fn(&results[i], arg);
    return rc;
}

/* malloc'ed. */
static char *print(const struct kp_display *d)
{
    struct kp_test_text t = {0};
    struct kp_sink sink = kp_test_sink(&t);
    struct kp_launches launches = {.each = each, .from = NULL};
    char *err = NULL;
    assert_int_equal(kp_page_print(&sink, d, &session, &launches, &err), 0);
    assert_null(err);
    return t.text;
}

static void assert_prints(const struct kp_display *d, const char *golden)
{
    char *text = print(d);
    kp_test_golden(text, golden);
    free(text);
}

static void sections(void **state)
{
    static const struct kp_display header,
        all = {.details = KP_DETAILS_ALL, .rules = KP_RULES_ALL},
        names = {.details = KP_DETAILS_BODY, .naming = KP_NAMING_BOTH, .base_units = true};
    (void)state;
    assert_prints(&header, "tests/golden/series_header.txt");
    assert_prints(&all, "tests/golden/series_all.txt");
    assert_prints(&names, "tests/golden/series_names.txt");
}

static void page(void **state)
{
    static const struct kp_display text = {.n_pages = 1, .pages = {KP_PAGE_PM}},
                                   csv = {.n_pages = 1, .pages = {KP_PAGE_PM}, .format = KP_FORMAT_CSV};
    (void)state;
    assert_prints(&text, "tests/golden/series_page.txt");
    char *rows = print(&csv), *line = rows;
    size_t n = 0;
    for (; (line = strstr(line, "\n")); line++)
        n++;
    assert_int_equal(n, 1 + 4 * SAMPLES + (SAMPLES - 1) + 10 + 7 + 1000);
    static const char *const some[] = {
        "\"ID\",\"Metric Name\",\"Metric Unit\",\"Sample\",\"Time (ns)\",\"Metric Value\"\n",
        "\"0\",\"TPC.TriageCompute.sm__cycles_active" PCT "\",\"%\",\"0\",\"1500\",\"12.5\"\n",
        "\"0\",\"TPC.TriageCompute.sm__inst_executed_realtime" PCT "\",\"%\",\"198\",\"297900\",\"0\"\n",
        "\"0\",\"PCI.TriageCompute.pcie__read_bytes.sum.per_second\",\"byte/s\",\"9\",\"285000\",\"9000000000\"\n",
        "\"0\",\"made__up.sum\",\"inst\",\"1\",\"3000\",\"n/a\"\n",
    };
    for (size_t i = 0; i < sizeof(some) / sizeof(*some); i++)
        if (!strstr(rows, some[i]))
            fail_msg("no row %s", some[i]);
    free(rows);
}

/* Whatever a file holds is drawn somehow. */
static double wild(size_t i)
{
    static const double values[] = {1e308, -1e308, 1e308, NAN, INFINITY, -INFINITY, 5e-324, 0};
    return values[i % (sizeof(values) / sizeof(*values))];
}

static void hostile(void **state)
{
    static const double times[] = {0, -1, 1, 1e-300, 1e308, NAN, INFINITY, -INFINITY};
    static const struct kp_display d;
    enum { TIMES = sizeof(times) / sizeof(*times) };
    (void)state;
    for (size_t i = 0; i < TIMES * TIMES; i++) {
        struct kp_test_text t = {0};
        struct kp_sink sink = kp_test_sink(&t);
        struct kp_out o = {.sink = &sink, .display = &d};
        struct kp_result r = {.launch = {.cc_major = 9}};
        add(&r, "a", "%", times[i / TIMES], times[i % TIMES], 100, wild);
        struct kp_series_row row = {"a", &r.series[0]};
        kp_write_series_drawing(&o, &row, 1, NAN);
        assert_int_equal(o.rc, 0);
        free(t.text);
        kp_result_free(&r);
    }
}

/* A line is as wide as the page, and each of its columns the mean of what was sampled in it. */
static void folding(void **state)
{
    struct kp_test_text t = {0};
    struct kp_sink sink = kp_test_sink(&t);
    static const struct kp_display d;
    struct kp_out o = {.sink = &sink, .display = &d};
    struct kp_result r = {.launch = {.cc_major = 9}};
    (void)state;
    add(&r, "a", "%", 10, 10, 5600, phases);
    struct kp_series_row row = {"a", kp_result_find_series(&r, "a")};
    kp_write_series_drawing(&o, &row, 1, 0);
    assert_int_equal(o.rc, 0);
    /* the first hundred samples are one column: 50 of 12.5, 50 of 0, of a maximum of 93.75 */
    assert_non_null(strstr(t.text, " .@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@\n"));
    for (const char *line = t.text; *line; line = strchr(line, '\n') + 1)
        assert_true(strcspn(line, "\n") <= KP_LINE_WIDTH);
    free(t.text);
    kp_result_free(&r);
}

static void finding(void **state)
{
    (void)state;
    assert_ptr_equal(kp_result_find_series(&results[0], "made__up.sum"), &results[0].series[5]);
    assert_null(kp_result_find_series(&results[0], "made__up"));
    assert_null(kp_result_find_series(&results[1], "made__up.sum"));
    assert_true(kp_view_series_dropped(&results[0]) == 1234);
    assert_true(kp_view_series_dropped(&results[1]) == 0);
    assert_true(kp_shown_section_has_any(kp_section_find("PmSampling"), &results[2]));
    assert_false(kp_shown_section_has_any(kp_section_find("PmSampling"), &results[1]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sections), cmocka_unit_test(page),    cmocka_unit_test(hostile),
        cmocka_unit_test(folding),  cmocka_unit_test(finding),
    };
    return cmocka_run_group_tests(tests, make, drop);
}
