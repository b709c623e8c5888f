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
#include "report/pages/details.h"
#include "report/write/account.h"
#include "tests/support/report_support.h"

static const struct kp_display plain; /* by default */

/* The golden file is ncu's own output; the data file holds what its CSV gives, with six decimals of a scaled unit. A
 * cell that those decimals cannot tell belongs here, as "launch name, label": there is none. The waves, which the CSV
 * gives with two decimals only, are computed in the data file from grid size, SM count and block limits. */
static void basic_set_of_14_launches_is_ncus_text(void **state)
{
    (void)state;
    struct kp_recording r = kp_test_recording();
    struct kp_test_text t = {0};
    struct kp_sink out = kp_test_sink(&t);
    struct kp_display wide = plain; /* ncu breaks no header line */
    wide.width = 200;
    assert_int_equal(r.n, 14);
    assert_int_equal(kp_render_process(&out, NULL, &r.session), 0);
    for (size_t i = 0; i < r.n; i++)
        assert_int_equal(kp_test_launch(&out, &wide, &r.session, &r.results[i]), 0);
    kp_test_reference(t.text, "tests/golden/h200_basic.txt");
    free(t.text);
    kp_test_recording_free(&r);
}

/* Every metric of the data is a header row's, in the unit that the row names. */
static void rows_name_the_units_of_the_data(void **state)
{
    (void)state;
    struct kp_recording r = kp_test_recording();
    size_t n_sections, matched = 0;
    const struct kp_section *s = kp_sections(&n_sections);
    for (size_t i = 0; i < n_sections; i++) {
        for (size_t j = 0; kp_section_in_set(&s[i], r.session.set) && j < s[i].n_rows; j++) {
            const struct kp_metric *m = kp_result_find(&r.results[0], s[i].rows[j].metric);
            if (!kp_row_required(&s[i].rows[j]))
                continue;
            if (!kp_cc_matches(s[i].rows[j].cc, 9, 0)) {
                assert_null(m);
                continue;
            }
            assert_non_null(m);
            assert_string_equal(m->unit, s[i].rows[j].unit);
            matched++;
        }
    }
    assert_int_equal(matched, r.results[0].n_metrics + 1); /* sm__cycles_active.avg is in two sections */
    kp_test_recording_free(&r);
}

static char *replace_session_text(char **field, const char *text)
{
    free(*field);
    return *field = kp_strdup(text);
}

static void render_one(struct kp_test_text *t, const struct kp_session *s, const struct kp_result *r)
{
    struct kp_sink out = kp_test_sink(t);
    assert_int_equal(kp_test_launch(&out, &plain, s, r), 0);
}

/* Whatever a kernel is called, the terminal stays as it is. */
static void names_cannot_steer_the_terminal(void **state)
{
    (void)state;
    struct kp_recording r = kp_test_recording();
    struct kp_test_text t = {0};
    char *was = r.results[0].launch.demangled;
    r.results[0].launch.demangled = (char[]){"k\x1b]0;title\x07\x7f\x08(int)"};
    render_one(&t, &r.session, &r.results[0]);
    r.results[0].launch.demangled = was;
    assert_memory_equal(t.text, "  k ]0;title   (int) (", 22);
    for (const char *c = t.text; *c; c++)
        assert_true((unsigned char)*c >= ' ' || *c == '\n');
    free(t.text);
    kp_test_recording_free(&r);
}

/* An A100, an Orin, a T4 and a chip to come: rows of other chips are absent, those of the chip without a value n/a. */
static void rows_follow_the_compute_capability(void **state)
{
    static const int chips[][2] = {{7, 5}, {8, 0}, {8, 7}, {10, 0}};
    (void)state;
    struct kp_recording r = kp_test_recording();
    struct kp_test_text t = {0};
    for (size_t i = 0; i < sizeof chips / sizeof *chips; i++) {
        r.results[0].launch.cc_major = chips[i][0];
        r.results[0].launch.cc_minor = chips[i][1];
        render_one(&t, &r.session, &r.results[0]);
    }
    kp_test_golden(t.text, "tests/golden/report_cc.txt");
    free(t.text);
    kp_test_recording_free(&r);
}

static void unavailable_rows_say_why_once(void **state)
{
    (void)state;
    struct kp_recording r = kp_test_recording();
    struct kp_result *first = &r.results[0];
    struct kp_test_text t = {0};
    const char *why = "no permission to read counters";
    replace_session_text(&r.session.set, "");
    replace_session_text(&r.session.sections, "SpeedOfLight,LaunchStats");
    kp_result_set_why(first, "gpu__time_duration.sum",
                      kp_why_of(KP_REASON_NOT_COLLECTED, (char *)"the device was reset"));
    kp_result_set_why(first, "dram__cycles_elapsed.avg.per_second", kp_why_of(KP_REASON_NOT_COLLECTED, (char *)why));
    kp_result_set_why(first, "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
                      kp_why_of(KP_REASON_NOT_COLLECTED, (char *)why));
    kp_result_set_why(first, "sm__throughput.avg.pct_of_peak_sustained_elapsed",
                      kp_why_of(KP_REASON_NOT_COLLECTED, (char *)why));
    first->launch.note = kp_strdup("Counters could not be read: the driver keeps them for administrators. Load the "
                                   "nvidia module with NVreg_RestrictProfilingToAdminUsers=0, or run as root.");
    render_one(&t, &r.session, first);
    kp_test_golden(t.text, "tests/golden/report_na.txt");
    free(t.text);
    kp_test_recording_free(&r);
}

static void metrics_asked_for_come_last_under_their_names(void **state)
{
    (void)state;
    struct kp_recording r = kp_test_recording();
    struct kp_result *first = &r.results[0];
    struct kp_test_text t = {0};
    replace_session_text(&r.session.set, "");
    replace_session_text(&r.session.sections, "Occupancy");
    replace_session_text(&r.session.metrics, "smsp__inst_executed.sum,dram__bytes.sum.per_second,"
                                             "smsp__inst_executed.sum,missing__metric.sum,device__name");
    kp_result_set_count(first, "smsp__inst_executed.sum", "inst", 12058624);
    kp_result_set_real(first, "dram__bytes.sum.per_second", "byte/s", 4331234567890);
    kp_result_set_text(first, "device__name", "", "A graphics device with a name of more than thirty letters");
    render_one(&t, &r.session, first);
    replace_session_text(&r.session.sections, "");
    render_one(&t, &r.session, first);
    kp_test_golden(t.text, "tests/golden/report_metrics.txt");
    free(t.text);
    kp_test_recording_free(&r);
}

/* Values that differ by the row, for the counters of the section of one pass on CC 9.0, but for one that did not fit.
 */
static void count_once(struct kp_result *r)
{
    const struct kp_section *quick = kp_section_quick();
    r->launch.passes = 1;
    for (size_t i = 0; i < quick->n_rows; i++) {
        const struct kp_row *row = &quick->rows[i];
        if (row->source == KP_SRC_COUNTER && kp_cc_matches(row->cc, 9, 0) && strcmp(row->metric, "lts__t_sectors.sum"))
            kp_result_set_real(r, row->metric, row->unit, 10.0 * (double)i + 5);
    }
}

static void take_metric(struct kp_result *r, const char *name)
{
    struct kp_metric *m = (struct kp_metric *)kp_result_find(r, name);
    free(m->name);
    free(m->unit);
    free(m->text);
    memmove(m, m + 1, (size_t)(r->metrics + r->n_metrics-- - (m + 1)) * sizeof *m);
}

/* A launch of the recording that was not replayed: of the counters that the sections want, those that the section of
 * one pass has too were read. The others are missing for what the note tells. */
static void leave_unreplayed(struct kp_result *r, const char *why)
{
    size_t n;
    const struct kp_section *s = kp_sections(&n);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; s[i].passes != KP_PASSES_ONE && j < s[i].n_rows; j++)
            if (s[i].rows[j].source == KP_SRC_COUNTER && kp_result_find(r, s[i].rows[j].metric))
                kp_result_set_why(r, s[i].rows[j].metric, kp_why_of(KP_REASON_NOT_COLLECTED, (char *)why));
    r->launch.note = kp_strdup(why);
}

static void the_section_of_one_pass_keeps_its_order(void **state)
{
    (void)state;
    struct kp_recording r = kp_test_recording();
    struct kp_test_text t = {0};
    replace_session_text(&r.session.set, "quick");
    count_once(&r.results[0]);
    kp_result_set_na(&r.results[0], "lts__t_sectors.sum", KP_REASON_NO_FIT);
    render_one(&t, &r.session, &r.results[0]);
    replace_session_text(&r.session.sections, "Occupancy"); /* which is sorted, beside it */
    render_one(&t, &r.session, &r.results[1]);
    kp_test_golden(t.text, "tests/golden/report_quick.txt");
    free(t.text);
    kp_test_recording_free(&r);
}

/* What was counted once is printed although nobody asked for it, and what the note tells is not told again. */
static void a_launch_that_was_not_replayed_has_what_was_counted_once(void **state)
{
    static const char why[] = "waits for other processes or devices, not replayed";
    (void)state;
    struct kp_recording r = kp_test_recording();
    struct kp_result *nccl = &r.results[0], *graph = &r.results[1];
    struct kp_test_text t = {0};
    leave_unreplayed(nccl, why);
    count_once(nccl);
    render_one(&t, &r.session, nccl);
    replace_session_text(&r.session.metrics, "smsp__inst_executed.sum,dram__bytes.sum,launch__grid_size");
    kp_result_set_why(nccl, "dram__bytes.sum",
                      kp_why_of(KP_REASON_NOT_COLLECTED, (char *)why)); /* asked for by name: shown as missing */
    replace_session_text(&r.session.set, "");
    render_one(&t, &r.session, nccl);
    graph->launch.kind = KP_WORKLOAD_GRAPH;
    take_metric(graph, "launch__waves_per_multiprocessor");
    leave_unreplayed(graph, kp_reason_text(KP_REASON_GRAPH_CONDITIONAL));
    count_once(graph);
    replace_session_text(&r.session.metrics, "");
    replace_session_text(&r.session.sections, "WorkloadDistribution");
    render_one(&t, &r.session, graph);
    kp_test_golden(t.text, "tests/golden/report_not_replayed.txt");
    free(t.text);
    kp_test_recording_free(&r);
}

/* A note alone does not bring in the section of one pass: only a metric does that nobody asked for. */
static void a_launch_without_counters_has_the_other_values(void **state)
{
    (void)state;
    struct kp_recording r = kp_test_recording();
    struct kp_test_text t = {0};
    leave_unreplayed(&r.results[0], kp_reason_text(KP_REASON_REHEARSAL_FAILED));
    render_one(&t, &r.session, &r.results[0]);
    r.results[1].launch.note = kp_strdup("caches were warm");
    r.results[1].launch.passes = 1;
    replace_session_text(&r.session.set, "");
    replace_session_text(&r.session.metrics, "smsp__inst_executed.sum,gpu__time_duration.sum,lts__t_sectors.sum");
    kp_result_set_count(&r.results[1], "lts__t_sectors.sum", "sector", 7);
    kp_result_set_count(&r.results[1], "smsp__inst_executed.sum", "inst", 8);
    replace_session_text(&r.session.sections, "SpeedOfLight,WorkloadDistribution,Occupancy");
    render_one(&t, &r.session, &r.results[1]);
    kp_test_golden(t.text, "tests/golden/report_note.txt");
    free(t.text);
    kp_test_recording_free(&r);
}

static void a_graph_has_no_grid_and_no_launch_rows(void **state)
{
    (void)state;
    struct kp_recording r = kp_test_recording();
    struct kp_result graph = {.launch = {.kind = KP_WORKLOAD_GRAPH, .context_id = 1, .stream_id = 13, .cc_major = 9}};
    struct kp_test_text t = {0};
    graph.launch.demangled = kp_strdup("CUDA Graph 3 (12 kernel nodes)");
    kp_result_set_real(&graph, "gpu__time_duration.sum", "ns", 2000);
    render_one(&t, &r.session, &graph);
    kp_test_golden(t.text, "tests/golden/report_graph.txt");
    free(t.text);
    kp_result_free(&graph);
    kp_test_recording_free(&r);
}

static void account(struct kp_test_text *t, const struct kp_session *s)
{
    struct kp_sink out = kp_test_sink(t);
    assert_int_equal(kp_render_account(&out, s, NULL), 0);
}

static void account_tells_what_happened(void **state)
{
    (void)state;
    struct kp_test_text t = {0};
    struct kp_session s = {.launches_seen = 1234567, .launches_profiled = 2, .passes = 20, .profiling_ns = 3.21e9};
    kp_session_add_skip(&s, kp_why_of(KP_REASON_KERNEL_NAME, NULL), 1234561);
    kp_session_add_skip(
        &s, kp_why_of(KP_REASON_NOT_COLLECTED, (char *)"waits for other processes or devices, not replayed"), 2);
    kp_session_add_skip(
        &s, kp_why_of(KP_REASON_NOT_COLLECTED, (char *)"waits for other processes or devices, not replayed"), 1);
    account(&t, &s);
    kp_session_free(&s);
    s = (struct kp_session){.launches_seen = 1, .launches_profiled = 1, .passes = 1, .profiling_ns = 512};
    account(&t, &s);
    kp_test_golden(t.text, "tests/golden/report_account.txt");
    free(t.text);
}

static void account_says_why_nothing_was_profiled(void **state)
{
    static const enum kp_reason reasons[] = {
        KP_REASON_KERNEL_NAME,  KP_REASON_LAUNCH_SKIP, KP_REASON_LAUNCH_COUNT, KP_REASON_KERNEL_ID, KP_REASON_DEVICES,
        KP_REASON_BEFORE_MATCH, KP_REASON_DELAY,       KP_REASON_DURATION,     KP_REASON_PROFILER,  KP_REASON_NO_RANGE,
        KP_REASON_NO_COUNTERS,  KP_REASON_NOT_ENABLED, KP_REASON_GRAPHS};
    (void)state;
    struct kp_test_text t = {0};
    struct kp_session s = {0};
    account(&t, &s); /* killed in its first window */
    s.complete = true;
    account(&t, &s);
    s.launches_seen = 3;
    account(&t, &s);
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++) {
        kp_session_add_skip(&s,
                            kp_why_of(reasons[i], reasons[i] == KP_REASON_NOT_ENABLED
                                                      ? (char *)"no permission to read counters"
                                                      : NULL),
                            3);
        for (int k = 0; k < (i ? 2 : 12); k++) {
            char name[24];
            snprintf(name, sizeof name, "kernel_%d", k);
            kp_session_add_kernel(&s, name, 1);
        }
        s.devices = calloc(s.n_devices = 1, sizeof *s.devices);
        *s.devices = (struct kp_device_info){.ordinal = 2, .name = kp_strdup("A GPU"), .cc_major = 9};
        account(&t, &s);
        kp_session_free(&s);
        s.launches_seen = 3;
    }
    /* Of several filters, the last one that launches came to. */
    s.launches_seen = 4;
    kp_session_add_skip(&s, kp_why_of(KP_REASON_DELAY, NULL), 1);
    kp_session_add_skip(&s, kp_why_of(KP_REASON_KERNEL_NAME, NULL), 1);
    kp_session_add_skip(&s, kp_why_of(KP_REASON_NVTX, NULL), 1);
    kp_session_add_skip(&s, kp_why_of(KP_REASON_LAUNCH_SKIP, NULL), 1);
    account(&t, &s);
    kp_session_free(&s);
    kp_test_golden(t.text, "tests/golden/report_nothing.txt");
    free(t.text);
}

static int full_disk(void *arg, const char *text, size_t len)
{
    (void)text;
    (void)len;
    ++*(int *)arg;
    return -ENOSPC;
}

static void a_sink_that_fails_ends_the_rendering(void **state)
{
    (void)state;
    struct kp_recording r = kp_test_recording();
    int calls = 0;
    struct kp_sink out = {full_disk, &calls};
    assert_int_equal(kp_render_process(&out, NULL, &r.session), -ENOSPC);
    assert_int_equal(kp_test_launch(&out, &plain, &r.session, &r.results[0]), -ENOSPC);
    assert_int_equal(kp_render_account(&out, &r.session, NULL), -ENOSPC);
    assert_int_equal(calls, 3); /* one call each, none after its failure */
    kp_test_recording_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(basic_set_of_14_launches_is_ncus_text),
        cmocka_unit_test(rows_name_the_units_of_the_data),
        cmocka_unit_test(names_cannot_steer_the_terminal),
        cmocka_unit_test(rows_follow_the_compute_capability),
        cmocka_unit_test(unavailable_rows_say_why_once),
        cmocka_unit_test(metrics_asked_for_come_last_under_their_names),
        cmocka_unit_test(the_section_of_one_pass_keeps_its_order),
        cmocka_unit_test(a_launch_that_was_not_replayed_has_what_was_counted_once),
        cmocka_unit_test(a_launch_without_counters_has_the_other_values),
        cmocka_unit_test(a_graph_has_no_grid_and_no_launch_rows),
        cmocka_unit_test(account_tells_what_happened),
        cmocka_unit_test(account_says_why_nothing_was_profiled),
        cmocka_unit_test(a_sink_that_fails_ends_the_rendering),
    };
    return cmocka_run_group_tests_name("report/render", tests, NULL, NULL);
}
