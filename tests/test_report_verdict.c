#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/summary.h"
#include "report/verdict.h"
#include "tests/rules_support.h"

static void apply(const struct kp_recording *r, size_t i, struct kp_messages *m)
{
    size_t n;
    const struct kp_section *const *sections = kp_test_rule_sections("", &n);
    assert_int_equal(kp_rules_apply(&r->results[i], &r->session, sections, n, KP_RULES_ALL, m), 0);
}

/* What each kernel was written for. */
static const struct {
    const char *kernel, *what;
    enum kp_bound bound;
} expected[] = {
    {"stream_triad", "DRAM", KP_BOUND_MEMORY},
    {"fma_bound", "FMA pipe", KP_BOUND_COMPUTE},
    {"fp64_bound", "FP64 pipe", KP_BOUND_COMPUTE},
    {"transpose_naive", "L2", KP_BOUND_MEMORY},
    {"transpose_conflict", "L1", KP_BOUND_MEMORY},
    {"divergent", "ALU pipe", KP_BOUND_COMPUTE},
    {"pointer_chase", "launch size", KP_BOUND_LAUNCH},
    {"atomics_hot", "latency", KP_BOUND_LATENCY},
    {"tiny_grid", "launch size", KP_BOUND_LAUNCH},
    {"spill", "L2", KP_BOUND_MEMORY},
    {"smem_limited", "latency", KP_BOUND_LATENCY},
    {"wmma_gemm", "L1", KP_BOUND_MEMORY},
    {"constant_divergent", "ADU pipe", KP_BOUND_COMPUTE},
    {"tail_wave", "issue slots", KP_BOUND_COMPUTE},
};

static void each_kernel_has_the_bound_it_was_written_for(void **state)
{
    (void)state;
    struct kp_recording r = kp_test_rules_recording();
    assert_int_equal(r.n, sizeof expected / sizeof *expected);
    for (size_t i = 0; i < r.n; i++) {
        struct kp_messages m;
        struct kp_verdict v;
        apply(&r, i, &m);
        kp_verdict(&r.results[i], &r.session, &m, &v);
        assert_memory_equal(r.results[i].launch.demangled, expected[i].kernel, strlen(expected[i].kernel));
        if (strcmp(v.what, expected[i].what) || v.bound != expected[i].bound)
            fail_msg("%s: expected %s, got %s", expected[i].kernel, expected[i].what, v.what);
        kp_messages_free(&m);
    }
    kp_test_recording_free(&r);
}

static void the_best_gains_are_named_once_each(void **state)
{
    (void)state;
    struct kp_recording r = kp_test_rules_recording();
    for (size_t i = 0; i < r.n; i++) {
        struct kp_messages m;
        struct kp_verdict v;
        apply(&r, i, &m);
        kp_verdict(&r.results[i], &r.session, &m, &v);
        for (size_t j = 0; j < KP_VERDICT_GAINS && v.gains[j]; j++) {
            assert_true(v.gains[j]->speedup >= 1);
            if (j)
                assert_false(kp_gain_before(v.gains[j], v.gains[j - 1]));
            for (size_t k = 0; k < j; k++)
                assert_ptr_not_equal(v.gains[k]->rule, v.gains[j]->rule);
        }
        /* No message that is better and of a rule not named. */
        for (size_t j = 0; j < m.n; j++) {
            bool named = false;
            for (size_t k = 0; k < KP_VERDICT_GAINS && v.gains[k]; k++)
                named |= v.gains[k]->rule == m.list[j].rule;
            if (!named && m.list[j].speedup >= 1) {
                assert_non_null(v.gains[KP_VERDICT_GAINS - 1]);
                assert_false(kp_gain_before(&m.list[j], v.gains[KP_VERDICT_GAINS - 1]));
            }
        }
        kp_messages_free(&m);
    }
    kp_test_recording_free(&r);
}

static void verdicts_as_text(void **state)
{
    (void)state;
    struct kp_recording r = kp_test_rules_recording();
    struct kp_test_text t = {0};
    struct kp_sink out = kp_test_sink(&t);
    for (size_t i = 0; i < r.n; i++) {
        struct kp_messages m;
        struct kp_verdict v;
        const char *name = r.results[i].launch.demangled;
        apply(&r, i, &m);
        kp_verdict(&r.results[i], &r.session, &m, &v);
        out.write(out.arg, "  ", 2);
        out.write(out.arg, name, strlen(name));
        out.write(out.arg, "\n", 1);
        assert_int_equal(kp_render_verdict(&out, &v), 0);
        kp_messages_free(&m);
    }
    kp_test_golden(t.text, "tests/golden/verdict_h200.txt");
    free(t.text);
    kp_test_recording_free(&r);
}

/* Nothing is known, nothing is said; the whole units stand for their parts where only those are there. */
static void a_verdict_needs_little(void **state)
{
    (void)state;
    struct kp_result r = {.launch = {.cc_major = 8}};
    struct kp_messages none = {0};
    struct kp_verdict v;
    struct kp_test_text t = {calloc(1, 1), 0};
    struct kp_sink out = kp_test_sink(&t);
    kp_verdict(&r, NULL, &none, &v);
    assert_int_equal(v.bound, KP_BOUND_UNKNOWN);
    assert_int_equal(kp_render_verdict(&out, &v), 0);
    assert_string_equal(t.text, "");
    kp_result_set_real(&r, "sm__throughput.avg.pct_of_peak_sustained_elapsed", "%", 30);
    kp_result_set_real(&r, "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed", "%", 61);
    kp_verdict(&r, NULL, &none, &v);
    assert_string_equal(v.what, "memory");
    kp_result_set_real(&r, "lts__throughput.avg.pct_of_peak_sustained_elapsed", "%", 61);
    kp_result_set_real(&r, "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed", "%", 20);
    kp_verdict(&r, NULL, &none, &v);
    assert_string_equal(v.what, "L2");
    kp_result_set_real(&r, "sm__throughput.avg.pct_of_peak_sustained_elapsed", "%", 90);
    kp_verdict(&r, NULL, &none, &v);
    assert_string_equal(v.what, "compute");
    kp_result_set_real(&r, "sm__inst_issued.avg.pct_of_peak_sustained_elapsed", "%", 90);
    kp_verdict(&r, NULL, &none, &v);
    assert_string_equal(v.what, "issue slots");
    kp_result_set_real(&r, "sm__throughput.avg.pct_of_peak_sustained_elapsed", "%", 59);
    kp_result_set_real(&r, "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed", "%", 59);
    kp_verdict(&r, NULL, &none, &v);
    assert_int_equal(v.bound, KP_BOUND_LATENCY);
    kp_result_set_real(&r, "launch__waves_per_multiprocessor", "", 0.99);
    kp_verdict(&r, NULL, &none, &v);
    assert_int_equal(v.bound, KP_BOUND_LAUNCH);
    free(t.text);
    kp_result_free(&r);
}

/* A drawn gain stays in the order of the messages, however many come after it. */
static void equal_gains_stay_in_order(void **state)
{
    (void)state;
    const char *const rules[] = {"CPIStall", "AchievedOccupancy", "WorkloadImbalance", "CPIStall", "ThreadDivergence"};
    const double speedups[] = {10, 10, 10, 10, 20};
    struct kp_message list[5] = {0};
    struct kp_messages m = {list, 5, 5};
    struct kp_result r = {0};
    struct kp_verdict v;
    for (size_t i = 0; i < 5; i++)
        list[i] = (struct kp_message){.rule = kp_rule_find(rules[i]), .speedup = speedups[i], .global = true};
    kp_verdict(&r, NULL, &m, &v);
    assert_ptr_equal(v.gains[0], &list[4]);
    assert_ptr_equal(v.gains[1], &list[0]);
    assert_ptr_equal(v.gains[2], &list[1]);
    list[3].speedup = 30; /* takes the place of the other message of its rule */
    list[1].global = false;
    kp_verdict(&r, NULL, &m, &v);
    assert_ptr_equal(v.gains[0], &list[3]);
    assert_ptr_equal(v.gains[1], &list[4]);
    assert_ptr_equal(v.gains[2], &list[2]);
}

/* Each launch `times` times, so that names are found again. */
static struct kp_summary *summary_of(const struct kp_recording *r, size_t times)
{
    struct kp_summary *s = kp_summary_new();
    assert_non_null(s);
    for (size_t n = 0; n < times; n++)
        for (size_t i = r->n; i--;) {
            struct kp_messages m;
            apply(r, i, &m);
            assert_int_equal(kp_summary_add(s, &r->session, &r->results[i], &m), 0);
            kp_messages_free(&m);
        }
    return s;
}

static char *summary_text(const struct kp_summary *s)
{
    struct kp_test_text t = {calloc(1, 1), 0};
    struct kp_sink out = kp_test_sink(&t);
    assert_int_equal(kp_summary_render(s, &out), 0);
    return t.text;
}

static void the_summary_as_text(void **state)
{
    (void)state;
    struct kp_recording r = kp_test_rules_recording();
    struct kp_summary *s = summary_of(&r, 3);
    char *text = summary_text(s);
    kp_test_golden(text, "tests/golden/summary_h200.txt");
    free(text);
    kp_summary_free(s);
    kp_test_recording_free(&r);
}

/* A launch of `name` that took `ns`, with one message. */
static void add_made_up(struct kp_summary *s, const char *name, double ns, const char *rule, double speedup,
                        bool global)
{
    struct kp_result r = {.launch = {.cc_major = 9, .demangled = kp_strdup(name)}};
    size_t n;
    const struct kp_section *section = kp_test_rule_sections(kp_rule_find(rule)->section, &n)[0];
    struct kp_message m = {
        .rule = kp_rule_find(rule), .section = section, .text = NULL, .speedup = speedup, .global = global};
    struct kp_messages messages = {&m, 1, 1};
    if (ns != 0)
        assert_int_equal(kp_result_set_real(&r, "gpu__time_duration.sum", "ns", ns), 0);
    assert_int_equal(kp_summary_add(s, NULL, &r, &messages), 0);
    kp_result_free(&r);
}

static void assert_first_line(const struct kp_summary *s, const char *start, const char *contains)
{
    char *text = summary_text(s);
    if (strncmp(text, start, strlen(start)) || !strstr(text, contains))
        fail_msg("expected '%s' and '%s' in: %s", start, contains, text);
    free(text);
}

/* Gains count by the time they save, not by their percentage. */
static void gains_are_weighted_by_time(void **state)
{
    (void)state;
    struct kp_summary *s = kp_summary_new();
    char *nothing = summary_text(s);
    assert_string_equal(nothing, "");
    free(nothing);
    add_made_up(s, "short", 100, "CPIStall", 90, true);
    assert_first_line(s, "==KPROF== Fix first: short", "90.0% of");
    add_made_up(s, "long", 900, "ThreadDivergence", 20, true);
    assert_first_line(s, "==KPROF== Fix first: long", "18.0% of");
    add_made_up(s, "short", 1000, "CPIStall", 40, true);
    assert_first_line(s, "==KPROF== Fix first: short", "24.5% of");
    /* Neither of one unit nor of data that may not allow it. */
    add_made_up(s, "unit", 1e6, "CPIStall", 100, false);
    add_made_up(s, "data", 1e6, "MemoryL2Compression", 100, true);
    assert_first_line(s, "==KPROF== Fix first: short", "5 launches of 4 kernels");
    kp_summary_free(s);
    s = kp_summary_new();
    add_made_up(s, "untimed", 0, "CPIStall", 50, true);
    assert_first_line(s, "==KPROF== Look first at: untimed", "1 launch of 1 kernel,");
    add_made_up(s, "timed", 100, "CPIStall", 50, true);
    const double broken[] = {NAN, INFINITY, -1000};
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++)
        add_made_up(s, "broken", broken[i], "CPIStall", 50, true);
    assert_first_line(s, "==KPROF== Fix first: timed", "5 launches of 3 kernels, 100 ns of GPU time");
    kp_summary_free(s);
}

static void add_bound(struct kp_summary *s, double ns, double compute, double memory)
{
    struct kp_result r = {.launch = {.cc_major = 9, .mangled = kp_strdup("varied")}};
    struct kp_messages none = {0};
    kp_result_set_real(&r, "gpu__time_duration.sum", "ns", ns);
    kp_result_set_real(&r, "sm__throughput.avg.pct_of_peak_sustained_elapsed", "%", compute);
    kp_result_set_real(&r, "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed", "%", memory);
    assert_int_equal(kp_summary_add(s, NULL, &r, &none), 0);
    kp_result_free(&r);
}

/* The bound of most of its time is the kernel's. */
static void a_kernel_with_two_bounds(void **state)
{
    (void)state;
    struct kp_summary *s = kp_summary_new();
    add_bound(s, 100, 90, 10);
    assert_first_line(s, "==KPROF== Look first at: varied, bound by compute:", "1 launch of");
    add_bound(s, 150, 10, 90);
    add_bound(s, 10, 10, 10);
    assert_first_line(s, "==KPROF== Look first at: varied, bound by memory:", "3 launches of 1 kernel,");
    add_bound(s, 60, 90, 10);
    assert_first_line(s, "==KPROF== Look first at: varied, bound by compute:", "320 ns of GPU time");
    kp_summary_free(s);
}

/* A table of many kernels ends with the longest twenty. */
static void many_kernels_make_a_short_table(void **state)
{
    (void)state;
    struct kp_summary *s = kp_summary_new();
    char name[32];
    for (int i = 0; i < 1000; i++) {
        snprintf(name, sizeof name, "kernel_%d", i * 7919 % 100);
        add_made_up(s, name, 100 + i * 7919 % 100, "CPIStall", 10, true);
    }
    char *text = summary_text(s);
    size_t lines = 0;
    for (const char *c = text; *c; c++)
        lines += *c == '\n';
    assert_true(strstr(text, "1000 launches of 100 kernels"));
    assert_true(strstr(text, "the 20 longest"));
    assert_true(strstr(text, "       10 not known    0.1 CPIStall kernel_99\n"));
    assert_null(strstr(text, "kernel_79\n"));
    assert_int_equal(lines, 1 + 1 + 4 + 20 + 1);
    free(text);
    kp_summary_free(s);
}

static int refuse(void *arg, const char *text, size_t len)
{
    (void)arg, (void)text, (void)len;
    return -ENOSPC;
}

static void the_sinks_error_is_returned(void **state)
{
    (void)state;
    struct kp_recording r = kp_test_rules_recording();
    struct kp_summary *s = summary_of(&r, 1);
    struct kp_sink out = {refuse, NULL};
    struct kp_messages m;
    struct kp_verdict v;
    apply(&r, 0, &m);
    kp_verdict(&r.results[0], &r.session, &m, &v);
    assert_int_equal(kp_render_verdict(&out, &v), -ENOSPC);
    assert_int_equal(kp_summary_render(s, &out), -ENOSPC);
    kp_messages_free(&m);
    kp_summary_free(s);
    kp_test_recording_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_kernel_has_the_bound_it_was_written_for),
        cmocka_unit_test(the_best_gains_are_named_once_each),
        cmocka_unit_test(equal_gains_stay_in_order),
        cmocka_unit_test(verdicts_as_text),
        cmocka_unit_test(a_verdict_needs_little),
        cmocka_unit_test(the_summary_as_text),
        cmocka_unit_test(gains_are_weighted_by_time),
        cmocka_unit_test(a_kernel_with_two_bounds),
        cmocka_unit_test(many_kernels_make_a_short_table),
        cmocka_unit_test(the_sinks_error_is_returned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
