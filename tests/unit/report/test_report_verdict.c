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

#include "report/judge/verdict.h"
#include "report/write/advice.h"
#include "report/write/run_summary.h"
#include "tests/support/rules_support.h"

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
            assert_true(v.gains[j]->global);
            assert_string_not_equal(v.gains[j]->rule->id, "MemoryL2Compression");
            if (j)
                assert_true(v.gains[j]->speedup <= v.gains[j - 1]->speedup);
            for (size_t k = 0; k < j; k++)
                assert_ptr_not_equal(v.gains[k]->rule, v.gains[j]->rule);
        }
        /* No message that is better and of a rule not named. */
        for (size_t j = 0; j < m.n; j++) {
            bool named = false;
            for (size_t k = 0; k < KP_VERDICT_GAINS && v.gains[k]; k++)
                named |= v.gains[k]->rule == m.list[j].rule;
            if (!named && kp_verdict_is_gain(&m.list[j])) {
                assert_non_null(v.gains[KP_VERDICT_GAINS - 1]);
                assert_true(m.list[j].speedup <= v.gains[KP_VERDICT_GAINS - 1]->speedup);
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
        assert_int_equal(kp_render_verdict(&(struct kp_out){.sink = &out}, &v), 0);
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
    assert_int_equal(kp_render_verdict(&(struct kp_out){.sink = &out}, &v), 0);
    assert_string_equal(t.text, "");
    kp_result_set_real(&r, "sm__throughput.avg.pct_of_peak_sustained_elapsed", "%", 30);
    kp_result_set_real(&r, "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed", "%", 61);
    kp_verdict(&r, NULL, &none, &v);
    assert_string_equal(v.what, "memory");
    kp_result_set_real(&r, "lts__throughput.avg.pct_of_peak_sustained_elapsed", "%", 61.04);
    kp_result_set_real(&r, "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed", "%", 20);
    kp_verdict(&r, NULL, &none, &v);
    assert_string_equal(v.what, "L2");
    /* A throughput of the L2 that is above that of the memory comes from a part that does not belong to it. */
    kp_result_set_real(&r, "lts__throughput.avg.pct_of_peak_sustained_elapsed", "%", 64);
    kp_verdict(&r, NULL, &none, &v);
    assert_string_equal(v.what, "memory");
    kp_result_set_real(&r, "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed", "%", 61);
    kp_verdict(&r, NULL, &none, &v);
    assert_string_equal(v.what, "DRAM");
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

static void set_stall(struct kp_result *r, const char *reason, double cycles)
{
    char name[96];
    snprintf(name, sizeof name, "smsp__average_warps_issue_stalled_%s_per_issue_active.ratio", reason);
    assert_int_equal(kp_result_set_real(r, name, "inst", cycles), 0);
}

static void assert_verdict(const struct kp_result *r, const struct kp_messages *m, const char *text)
{
    struct kp_verdict v;
    struct kp_test_text t = {calloc(1, 1), 0};
    struct kp_sink out = kp_test_sink(&t);
    kp_verdict(r, NULL, m, &v);
    assert_int_equal(kp_render_verdict(&(struct kp_out){.sink = &out}, &v), 0);
    assert_string_equal(t.text, text);
    free(t.text);
}

/* Under its name in the chart; being ready, or issued, is no wait. */
static void the_longest_wait_is_named(void **state)
{
    (void)state;
    struct kp_result r = {.launch = {.cc_major = 9}};
    const struct kp_messages none = {0};
    kp_result_set_real(&r, "sm__throughput.avg.pct_of_peak_sustained_elapsed", "%", 30);
    kp_result_set_real(&r, "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed", "%", 20);
    kp_result_set_real(&r, "smsp__average_warp_latency_per_inst_issued.ratio", "cycle", 10);
    set_stall(&r, "not_selected", 4.5);
    set_stall(&r, "selected", 3.5);
    assert_verdict(&r, &none, "    Verdict: bound by latency; compute 30.0%, memory 20.0% of peak\n");
    set_stall(&r, "wait", 1);
    set_stall(&r, "long_scoreboard", 3.42);
    assert_verdict(&r, &none,
                   "    Verdict: bound by latency; compute 30.0%, memory 20.0% of peak; longest wait: Long Scoreboard "
                   "(34.2% of the time)\n");
    set_stall(&r, "wait", 5);
    assert_verdict(&r, &none,
                   "    Verdict: bound by latency; compute 30.0%, memory 20.0% of peak; warps mostly wait for Wait "
                   "(50.0% of the time)\n");
    kp_result_free(&r);
}

/* Rule, its estimate, whether that is of the whole kernel, use of compute and memory, and what they make the bound. */
static const struct {
    const char *rule;
    double speedup;
    bool global;
    double compute, memory;
    const char *what;
} near_the_threshold[] = {
    {"SharedMemoryConflicts", 50, true, 16, 59.4, "L1"},
    {"SharedMemoryConflicts", 50, true, 16, 55, "L1"},
    {"SharedMemoryConflicts", 50, true, 16, 54.9, "latency"},
    {"SharedMemoryConflicts", 50, true, 50, 59, "latency"},  /* in balance */
    {"SharedMemoryConflicts", 50, true, 59, 16, "latency"},  /* not its unit */
    {"SharedMemoryConflicts", 50, false, 16, 59, "latency"}, /* of the unit alone */
    {"SharedMemoryConflicts", 5, true, 16, 59, "latency"},   /* something else would help more */
    {"ThreadDivergence", 50, true, 59, 16, "compute"},
    {"FPInstructions", 50, true, 59, 16, "compute"},
    {"WorkloadImbalance", 50, true, 59, 16, "latency"},
};

static void a_unit_just_below_the_threshold_is_the_bound_where_it_gains_most(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof near_the_threshold / sizeof *near_the_threshold; i++) {
        struct kp_result r = {.launch = {.cc_major = 9}};
        struct kp_message list[] = {{.rule = kp_rule_find("CPIStall"), .speedup = 10, .global = true},
                                    {.rule = kp_rule_find(near_the_threshold[i].rule),
                                     .speedup = near_the_threshold[i].speedup,
                                     .global = near_the_threshold[i].global}};
        const struct kp_messages m = {list, 2};
        struct kp_verdict v;
        double memory = near_the_threshold[i].memory;
        kp_result_set_real(&r, "sm__throughput.avg.pct_of_peak_sustained_elapsed", "%", near_the_threshold[i].compute);
        kp_result_set_real(&r, "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed", "%", memory);
        kp_result_set_real(&r, "l1tex__throughput.avg.pct_of_peak_sustained_active", "%", memory);
        kp_verdict(&r, NULL, &m, &v);
        if (strcmp(v.what, near_the_threshold[i].what))
            fail_msg("row %zu: %s, not %s", i, v.what, near_the_threshold[i].what);
        kp_result_free(&r);
    }
}

/* A drawn gain stays in the order of the messages, however many come after it. */
static void equal_gains_stay_in_order(void **state)
{
    (void)state;
    const char *const rules[] = {"CPIStall", "AchievedOccupancy", "WorkloadImbalance", "CPIStall", "ThreadDivergence"};
    const double speedups[] = {10, 10, 10, 10, 20};
    struct kp_message list[5] = {0};
    struct kp_messages m = {list, 5};
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

/* An estimate for one unit, or for data that may not be there, is advice and no gain of the kernel, however large. */
static void local_estimates_and_ceilings_are_no_gains(void **state)
{
    (void)state;
    struct kp_message list[] = {{.rule = kp_rule_find("MemoryL2Compression"), .speedup = 90, .global = true},
                                {.rule = kp_rule_find("AchievedOccupancy"), .speedup = 80, .global = false},
                                {.rule = kp_rule_find("CPIStall"), .speedup = 10, .global = true}};
    struct kp_messages m = {list, 3};
    struct kp_result r = {0};
    struct kp_verdict v;
    kp_verdict(&r, NULL, &m, &v);
    assert_ptr_equal(v.gains[0], &list[2]);
    assert_null(v.gains[1]);
    m.n = 2;
    kp_verdict(&r, NULL, &m, &v);
    assert_null(v.gains[0]);
    assert_verdict(&r, &m, "");
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
    static const struct kp_display display = {.top = 20};
    assert_int_equal(kp_write_run_summary(s, &(struct kp_out){.sink = &out, .display = &display}), 0);
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
static void add_made_up_of(struct kp_summary *s, enum kp_workload_kind kind, const char *name, double ns,
                           const char *rule, double speedup, bool global)
{
    struct kp_result r = {.launch = {.kind = kind, .cc_major = 9, .demangled = kp_strdup(name)}};
    size_t n;
    const struct kp_section *section = kp_test_rule_sections(kp_rule_find(rule)->section, &n)[0];
    struct kp_message m = {
        .rule = kp_rule_find(rule), .section = section, .text = NULL, .speedup = speedup, .global = global};
    struct kp_messages messages = {&m, 1};
    if (ns != 0)
        assert_int_equal(kp_result_set_real(&r, "gpu__time_duration.sum", "ns", ns), 0);
    assert_int_equal(kp_summary_add(s, NULL, &r, &messages), 0);
    kp_result_free(&r);
}

static void add_made_up(struct kp_summary *s, const char *name, double ns, const char *rule, double speedup,
                        bool global)
{
    add_made_up_of(s, KP_WORKLOAD_KERNEL, name, ns, rule, speedup, global);
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
    assert_first_line(s, "==KPROF== 1 launch of 1 kernel, without a duration\n",
                      " n/a        1 not known                untimed");
    add_made_up(s, "timed", 100, "CPIStall", 50, true);
    const double broken[] = {NAN, INFINITY, -1000};
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++)
        add_made_up(s, "broken", broken[i], "CPIStall", 50, true);
    assert_first_line(s, "==KPROF== Fix first: timed",
                      "5 launches of 3 kernels, 100 ns of GPU time; gains are of that; 4 launches have no duration\n");
    assert_first_line(s, "==KPROF== Fix first: timed", "     n/a        n/a        3 not known");
    kp_summary_free(s);
}

/* The text for a graph or a range is no signature, of which the name of a function would be left: it loses its end. */
static void texts_are_no_signatures(void **state)
{
    (void)state;
    static const char name[] = "CUDA graph of 2 kernels, 0 copies, 1 memset, 3 memory allocations, 3 memory frees, and "
                               "of host functions that are called in its middle",
                      shown[] = "\n   100.0     100 ns        1 not known   90.0 CPIStall CUDA graph of 2 kernels, ";
    struct kp_summary *s = kp_summary_new();
    add_made_up_of(s, KP_WORKLOAD_GRAPH, name, 100, "CPIStall", 90, true);
    assert_first_line(s, "==KPROF== Fix first: CUDA graph of 2 kernels", shown);
    assert_first_line(s, "==KPROF== Fix first: CUDA graph of 2 kernels", "(90.0% of its own)");
    assert_first_line(s, "==KPROF== Fix first: CUDA graph of 2 kernels", "1 launch of 1 workload, ");
    kp_summary_free(s);
    s = kp_summary_new(); /* of a kernel, the function alone is left */
    add_made_up(s, name, 100, "CPIStall", 90, true);
    char *text = summary_text(s);
    assert_null(strstr(text, shown));
    free(text);
    kp_summary_free(s);
}

/* Where no duration was measured no time is told, and no kernel is the first to look at. */
static void without_durations(void **state)
{
    (void)state;
    struct kp_summary *s = kp_summary_new();
    add_made_up(s, "broken", NAN, "CPIStall", 50, true);
    add_made_up(s, "broken", NAN, "CPIStall", 50, true);
    assert_first_line(s, "==KPROF== 2 launches of 1 kernel, without a duration\n",
                      "     n/a        n/a        2 not known");
    char *text = summary_text(s);
    assert_null(strstr(text, "0 ns"));
    assert_null(strstr(text, "Look first"));
    free(text);
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
    assert_first_line(s, "==KPROF== Look first at: varied, bound by compute;", "1 launch of");
    add_bound(s, 150, 10, 90);
    add_bound(s, 10, 10, 10);
    assert_first_line(s, "==KPROF== Look first at: varied, bound by memory;", "3 launches of 1 kernel,");
    add_bound(s, 60, 90, 10);
    assert_first_line(s, "==KPROF== Look first at: varied, bound by compute;", "320 ns of GPU time");
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

/* What rules would save is named from one percent of the kernel's time on, however little that is of the run. */
static void small_gains_are_not_named(void **state)
{
    (void)state;
    struct kp_summary *s = kp_summary_new();
    add_made_up(s, "almost", 10000, "CPIStall", 0.99, true);
    add_made_up(s, "enough", 1, "CPIStall", 1, true);
    add_made_up(s, "more", 200, "CPIStall", 3, true);
    char *text = summary_text(s);
    assert_non_null(strstr(text, "        1 not known                 almost\n"));
    assert_non_null(strstr(text, "        1 not known   <0.1 CPIStall enough\n"));
    assert_non_null(strstr(text, "        1 not known    0.1 CPIStall more\n"));
    free(text);
    kp_summary_free(s);
}

#define PAIR "std::array<char *, 2>"
#define LONG_TYPE                                                                                                      \
    "at::native::CUDAFunctor_add<c10::complex<double>>, at::native::BinaryFunctor<float, float, float, "               \
    "at::native::binary_internal::MulFunctor<float>>"

/* The names of kernels and what is printed for them, in the order of the table. */
static const struct {
    const char *name, *printed;
} long_names[] = {
    {"short_one(float *, int)", "short_one(float *, int)"},
    {"void at::native::reduce_kernel<(int)128, (int)4>(" LONG_TYPE ")",
     "at::native::reduce_kernel<(int)128, (int)4>(...)"},
    {"void at::native::elementwise_kernel_with_index_one<(int)128, (int)4>(" LONG_TYPE ")",
     "elementwise_kernel_with_index_one<(int)128, (int)4>(...)"},
    {"void at::native::<unnamed>::apply<" LONG_TYPE ", (int)4, " PAIR ">(int, T2, T3)",
     "apply...(int)4, std::array<char *, 2>>(int, T2, T3)"},
    {"void at::native::<unnamed>::apply<" LONG_TYPE ", (int)8, " PAIR ">(int, T2, T3)",
     "apply...(int)8, std::array<char *, 2>>(int, T2, T3)"},
    {"void at::native::<unnamed>::apply<" LONG_TYPE ", (int)8, " PAIR ">(int, T2, T4)",
     "apply...(int)8, std::array<char *, 2>>(int, T2, T4)"},
    {"sm90_xmma_fprop_implicit_gemm_f16f16_f16f32_f32_nhwckrsc_nhwc_tilesize256x64x32_warpgroupsize1x1x1_g1_execute",
     "sm90_xmma_fprop_implicit_gemm_f16f16_f16f32_f32_nhwckrsc_nhwc_..."},
};

static void long_names_are_cut_and_stay_apart(void **state)
{
    (void)state;
    struct kp_summary *s = kp_summary_new();
    size_t n = sizeof long_names / sizeof *long_names, longest = 0;
    char line[256];
    for (size_t i = 0; i < n; i++)
        add_made_up(s, long_names[i].name, 1000 - (double)i, "CPIStall", 10, true);
    char *text = summary_text(s);
    for (const char *at = text; *at; at += strcspn(at, "\n") + 1)
        longest = strcspn(at, "\n") > longest ? strcspn(at, "\n") : longest;
    assert_true(longest <= 120);
    for (size_t i = 0; i < n; i++) {
        snprintf(line, sizeof line, " CPIStall %s\n", long_names[i].printed);
        if (!strstr(text, line))
            fail_msg("no '%s'", long_names[i].printed);
    }
    assert_non_null(strstr(text, "7 launches of 7 kernels"));
    free(text);
    kp_summary_free(s);
}

/* Under its text; a name of any length leaves room for the rest. */
static void what_to_fix_first_is_indented(void **state)
{
    (void)state;
    struct kp_summary *s = kp_summary_new();
    add_made_up(s, "void ns::f<" LONG_TYPE ">(" LONG_TYPE ")", 1000, "CPIStall", 10, true);
    assert_first_line(s,
                      "==KPROF== Fix first: f<at::native::CUDAFunctor_add<c10::complex<double>>, "
                      "at::native::BinaryFunctor<float, f...: rule\n                     CPIStall",
                      "\n                     kernel's)\n");
    kp_summary_free(s);
}

/* No name breaks it, whatever is in it. */
static void names_may_be_malformed(void **state)
{
    (void)state;
    static const char *const shapes[] = {"%0*d)", "%0*d>",      "%0*d>)",  "<%0*d)",
                                         "(%0*d", ")>%0*d :: ", "%0*d::(", "a %0*d>>>> ]"};
    struct kp_summary *s = kp_summary_new();
    char name[400];
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        snprintf(name, sizeof name, shapes[i], 300, 0);
#pragma GCC diagnostic pop
        add_made_up(s, name, 1000, "CPIStall", 10, true);
    }
    char *text = summary_text(s);
    for (const char *at = text; *at; at += strcspn(at, "\n") + 1)
        assert_true(strcspn(at, "\n") <= 120);
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
    assert_int_equal(kp_render_verdict(&(struct kp_out){.sink = &out}, &v), -ENOSPC);
    assert_int_equal(kp_write_run_summary(s, &(struct kp_out){.sink = &out}), -ENOSPC);
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
        cmocka_unit_test(local_estimates_and_ceilings_are_no_gains),
        cmocka_unit_test(verdicts_as_text),
        cmocka_unit_test(a_verdict_needs_little),
        cmocka_unit_test(the_longest_wait_is_named),
        cmocka_unit_test(a_unit_just_below_the_threshold_is_the_bound_where_it_gains_most),
        cmocka_unit_test(the_summary_as_text),
        cmocka_unit_test(gains_are_weighted_by_time),
        cmocka_unit_test(texts_are_no_signatures),
        cmocka_unit_test(without_durations),
        cmocka_unit_test(a_kernel_with_two_bounds),
        cmocka_unit_test(many_kernels_make_a_short_table),
        cmocka_unit_test(small_gains_are_not_named),
        cmocka_unit_test(long_names_are_cut_and_stay_apart),
        cmocka_unit_test(what_to_fix_first_is_indented),
        cmocka_unit_test(names_may_be_malformed),
        cmocka_unit_test(the_sinks_error_is_returned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
