/* Values by instruction: their totals, the lines they come from, and how both are shown. */
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
#include <sys/stat.h>
#include <unistd.h>

#include "report/define/derive_source.h"
#include "report/define/source.h"
#include "report/judge/rules.h"
#include "report/options/options.h"
#include "report/pages/page.h"
#include "report/write/source_table.h"
#include "tests/support/report_support.h"
#include "tests/support/rules_support.h"
#include "tests/support/source_support.h"

#define STALL  "smsp__pcsamp_warps_issue_stalled_"
#define EXCESS "derived__memory_l2_theoretical_sectors_global_excessive"

/* ---- totals ---- */

static const char *category(const char *opcode)
{
    return strchr("FI", *opcode) && strcmp(opcode, "ISETP") ? "Math" : !strcmp(opcode, "EXIT") ? "Control" : "";
}

static void derive(struct kp_result *r)
{
    struct kp_lookup lookup = kp_test_code_lookup();
    r->launch.cc_major = 9;
    assert_int_equal(kp_derive_source(r, &lookup, category), 0);
}

static double value_of(const struct kp_result *r, const char *metric)
{
    double value = NAN;
    if (!kp_metric_number(kp_result_find(r, metric), &value))
        fail_msg("no %s", metric);
    return value;
}

static void assert_value(const struct kp_result *r, const char *metric, double expected)
{
    if (fabs(value_of(r, metric) - expected) > 1e-9 * fabs(expected))
        fail_msg("%s: %.17g, not %.17g", metric, value_of(r, metric), expected);
}

static void totals_are_sums_over_instructions(void **state)
{
    struct kp_result r = {0};
    (void)state;
    kp_test_add_transpose(&r, 1);
    derive(&r);
    assert_value(&r, "inst_executed", 40960);
    assert_value(&r, "thread_inst_executed", 1310720);
    assert_value(&r, "thread_inst_executed_true", 1179648);
    assert_value(&r, "smsp__branch_targets_threads_divergent", 128);
    assert_value(&r, "memory_l2_theoretical_sectors_global", 147456);
    assert_value(&r, EXCESS, 114688);
    assert_value(&r, "smsp__pcsamp_sample_count", 1916 + 116);
    assert_value(&r, STALL "long_scoreboard", 1916);
    assert_value(&r, STALL "long_scoreboard_not_issued", 1916);
    assert_value(&r, STALL "wait", 116);
    /* 0 everywhere is left out of the counts, but was counted */
    assert_value(&r, STALL "barrier", 0);
    assert_value(&r, "memory_l1_wavefronts_shared", 0);
    assert_value(&r, "derived__memory_l1_wavefronts_shared_excessive", 0);
    assert_string_equal(kp_result_find(&r, EXCESS)->unit, "sector");
    assert_string_equal(kp_result_find(&r, STALL "branch_resolving")->unit, "branches");
    kp_result_free(&r);
}

/* Formulas as those of ncu that are known from its values: the two instructions that were not executed count with 0
 * threads of 32, the padding behind them does not. */
static void averages_are_sums_of_ratios(void **state)
{
    struct kp_result r = {0};
    (void)state;
    kp_test_add_transpose(&r, 3);
    derive(&r);
    assert_value(&r, "derived__avg_thread_executed", 320);
    assert_value(&r, "derived__avg_thread_executed_true", 288);
    assert_value(&r, "derived__avg_thread_unexecuted_true", 64);
    assert_value(&r, "derived__derivative_avg_thread_executed_true", 96);
    assert_value(&r, "derived__memory_l1_conflicts_shared_nway", 0);
    kp_result_free(&r);
    kp_test_add_sum(&r);
    derive(&r);
    assert_value(&r, "derived__memory_l1_conflicts_shared_nway", 32);
    assert_value(&r, "derived__memory_l1_wavefronts_shared_excessive", 65536 - 8192);
    kp_result_free(&r);
}

/* Values may name instructions that were not executed; what is padding is only known from the code. */
static void never_executed_instructions_have_idle_threads(void **state)
{
    struct kp_result r = {0};
    struct kp_code_counts s = kp_test_counts(KP_TEST_TRANSPOSE, 14);
    (void)state;
    uint64_t *executed = kp_test_metric(&s, "inst_executed"), *on = kp_test_metric(&s, "thread_inst_executed_true");
    executed[0] = 2;
    on[0] = 40;
    assert_int_equal(kp_result_add_counts(&r, &s), 0);
    derive(&r);
    assert_value(&r, "derived__avg_thread_executed_true", 20);
    assert_value(&r, "derived__avg_thread_unexecuted_true", 12 + 10 * 32);
    assert_value(&r, "derived__derivative_avg_thread_executed_true", 20);
    assert_int_equal(kp_derive_source(&r, NULL, NULL), 0);
    assert_value(&r, "derived__avg_thread_unexecuted_true", 12 + 13 * 32);
    kp_result_free(&r);
}

/* Counts of several functions come in any order, with other counts of launches between them. */
static void the_own_function_comes_first(void **state)
{
    static const uint64_t order[] = {KP_TEST_NO_CODE, KP_TEST_SUM_PART, KP_TEST_TRANSPOSE, KP_TEST_SUM};
    struct kp_lookup lookup = kp_test_code_lookup();
    struct kp_result r = {0};
    struct kp_code code;
    (void)state;
    assert_int_equal(lookup.code(lookup.arg, KP_TEST_TRANSPOSE, &code), 0);
    r.launch.mangled = kp_strdup(code.function);
    kp_code_free(&code);
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        struct kp_code_counts s = kp_test_counts(order[i], 1 + i);
        kp_test_metric(&s, "inst_executed")[0] = 1 + i;
        assert_int_equal(kp_result_add_counts(&r, &s), 0);
    }
    derive(&r);
    assert_true(r.counts[0].code == KP_TEST_TRANSPOSE && r.counts[0].n_offsets == 3);
    assert_true(r.counts[1].code == KP_TEST_NO_CODE && r.counts[2].code == KP_TEST_SUM_PART &&
                r.counts[3].code == KP_TEST_SUM);
    assert_value(&r, "inst_executed", 1 + 2 + 3 + 4);
    kp_result_free(&r);
}

static void assert_instance(const struct kp_metric *m, size_t i, const char *key, double value)
{
    assert_true(i < m->n_instances);
    assert_string_equal(m->instances[i].key, key);
    assert_true(m->instances[i].value == value);
}

static void mixes_come_by_number(void **state)
{
    struct kp_result r = {0};
    (void)state;
    kp_test_add_transpose(&r, 1);
    derive(&r);
    const struct kp_metric *m = kp_result_find(&r, "sass__inst_executed_per_opcode");
    assert_int_equal(m->count, 40960);
    assert_int_equal(m->n_instances, 7);
    assert_instance(m, 0, "IMAD", 12288);
    assert_instance(m, 1, "EXIT", 8192);
    assert_instance(m, 2, "ISETP", 4096); /* of the same number by name */
    assert_instance(m, 6, "STG", 4096);
    m = kp_result_find(&r, "sass__inst_executed_per_opcode_category");
    assert_int_equal(m->n_instances, 3);
    assert_instance(m, 0, "Other", 20480);
    assert_instance(m, 1, "Math", 12288);
    assert_instance(m, 2, "Control", 8192);
    /* accesses of memory alone */
    m = kp_result_find(&r, "memory_type");
    assert_int_equal(m->count, 8192);
    assert_string_equal(m->unit, "inst");
    assert_int_equal(m->n_instances, 1);
    assert_instance(m, 0, "Global", 8192);
    m = kp_result_find(&r, "memory_access_type");
    assert_int_equal(m->n_instances, 2);
    assert_instance(m, 0, "Load", 4096);
    assert_instance(m, 1, "Store", 4096);
    m = kp_result_find(&r, "memory_access_size_type");
    assert_int_equal(m->count, 8192);
    assert_string_equal(m->unit, "inst");
    assert_int_equal(m->n_instances, 1);
    assert_instance(m, 0, "32", 8192);
    kp_result_free(&r);
    /* without code there is no mix, and a reason */
    kp_test_add_without_code(&r);
    derive(&r);
    assert_int_equal(kp_result_find(&r, "sass__inst_executed_per_opcode")->kind, KP_VALUE_NA);
    assert_value(&r, "inst_executed", 10);
    kp_result_free(&r);
    kp_test_add_transpose(&r, 1);
    assert_int_equal(kp_derive_source(&r, NULL, NULL), 0);
    assert_int_equal(kp_result_find(&r, "sass__inst_executed_per_opcode")->kind, KP_VALUE_NA);
    assert_int_equal(kp_result_find(&r, "sass__inst_executed_per_opcode_category")->kind, KP_VALUE_NA);
    assert_int_equal(kp_result_find(&r, "memory_type")->kind, KP_VALUE_NA);
    assert_value(&r, "derived__avg_thread_unexecuted_true", 32);
    kp_result_free(&r);
}

/* Opcodes as the disassembly has them, without predicates; the thread's where the predicate is on. */
static void modifiers_are_those_of_the_disassembly(void **state)
{
    static const char all[] = "sass__inst_executed_per_opcode_with_modifier_all";
    struct kp_result r = {0};
    (void)state;
    kp_test_add_transpose(&r, 1);
    derive(&r);
    const struct kp_metric *m = kp_result_find(&r, all);
    assert_int_equal(m->count, 40960);
    assert_int_equal(m->n_instances, 7);
    assert_instance(m, 0, "IMAD", 12288);
    assert_instance(m, 1, "EXIT", 8192); /* with a predicate and without */
    assert_instance(m, 2, "ISETP.GE.AND", 4096);
    assert_instance(m, 4, "LDG.E.CONSTANT", 4096);
    m = kp_result_find(&r, "sass__thread_inst_executed_true_per_opcode_with_modifier_all");
    assert_int_equal(m->count, 9 * 131072);
    assert_int_equal(m->n_instances, 7);
    assert_instance(m, 1, "EXIT", 131072);
    kp_result_free(&r);
    kp_test_add_transpose(&r, 1);
    assert_int_equal(kp_derive_source(&r, NULL, NULL), 0);
    m = kp_result_find(&r, all);
    assert_int_equal(m->kind, KP_VALUE_NA);
    assert_non_null(strstr(m->text, "was not disassembled"));
    assert_int_equal(kp_result_find(&r, "memory_access_size_type")->kind, KP_VALUE_NA);
    kp_result_free(&r);
    assert_true(kp_derive_source_reads_texts("inst_executed,sass__inst_executed_per_opcode_with_modifier_all"));
    assert_false(kp_derive_source_reads_texts("sass__inst_executed_per_opcode,memory_access_size_type"));
    assert_false(kp_derive_source_reads_texts(NULL));
}

/* One local load in two functions: what the compiler notes of it makes the difference. */
static void spills_are_told_from_other_local_memory(void **state)
{
    struct kp_result r = {0};
    (void)state;
    assert_int_equal(kp_result_set_why(&r, "derived__local_spilling_requests",
                                       kp_why_of(KP_REASON_NOT_COLLECTED, (char *)"not known")),
                     0);
    kp_test_add_sum(&r);
    derive(&r);
    assert_value(&r, "derived__local_spilling_requests", 0);
    assert_value(&r, "derived__local_spilling_requests_pct", 0);
    assert_value(&r, "sass__inst_executed_register_spilling_op_read", 0);
    kp_result_free(&r);
    kp_test_add_sum(&r);
    struct kp_code_counts s = kp_test_counts(KP_TEST_SUM_PART, 1);
    kp_test_metric(&s, "sass__inst_executed_register_spilling")[0] = 512;
    kp_test_metric(&s, "sass__inst_executed_register_spilling_op_read")[0] = 512;
    assert_int_equal(kp_result_add_counts(&r, &s), 0);
    derive(&r);
    assert_value(&r, "derived__local_spilling_requests", 512);
    assert_value(&r, "derived__local_spilling_requests_pct", 25); /* of 2,048 executed LDL */
    assert_value(&r, "sass__inst_executed_register_spilling_op_read", 512);
    assert_value(&r, "sass__inst_executed_register_spilling_op_write", 0);
    kp_result_free(&r);
    /* nobody knows what the instructions of this one are */
    kp_test_add_without_code(&r);
    derive(&r);
    assert_null(kp_result_find(&r, "derived__local_spilling_requests"));
    assert_null(kp_result_find(&r, "sass__inst_executed_register_spilling"));
    kp_result_free(&r);
}

/* Of the counter, which does not count what a predicate switched off, where it was collected. */
static void loads_and_stores_are_those_of_the_counter(void **state)
{
    struct kp_result r = {0};
    (void)state;
    kp_test_add_transpose(&r, 1);
    derive(&r);
    assert_null(kp_result_find(&r, "sass__inst_executed_global_stores"));
    assert_int_equal(kp_result_set_real(&r, "smsp__sass_inst_executed_op_global_st.sum", "inst", 4095), 0);
    assert_int_equal(kp_result_set_why(&r, "smsp__sass_inst_executed_op_shared_ld.sum",
                                       kp_why_of(KP_REASON_NOT_COLLECTED, (char *)"lost")),
                     0);
    derive(&r);
    assert_value(&r, "sass__inst_executed_global_stores", 4095);
    assert_string_equal(kp_result_find(&r, "sass__inst_executed_global_stores")->unit, "inst");
    assert_int_equal(kp_result_find(&r, "sass__inst_executed_shared_loads")->kind, KP_VALUE_NA);
    assert_null(kp_result_find(&r, "sass__inst_executed_global_loads"));
    kp_result_free(&r);
}

static void what_was_not_collected_is_not_set(void **state)
{
    struct kp_result r = {.launch = {.cc_major = 7, .cc_minor = 5}};
    (void)state;
    assert_int_equal(kp_derive_source(&r, NULL, NULL), 0);
    assert_int_equal(r.n_metrics, 0);
    /* sampled, but nothing was hit */
    assert_int_equal(kp_result_set_count(&r, "smsp__pcsamp_sample_count", "", 0), 0);
    assert_int_equal(kp_derive_source(&r, NULL, NULL), 0);
    assert_value(&r, STALL "wait", 0);
    assert_null(kp_result_find(&r, STALL "warpgroup_arrive")); /* not of this chip */
    assert_null(kp_result_find(&r, "memory_l1_wavefronts_shared"));
    assert_null(kp_result_find(&r, "inst_executed"));
    kp_result_free(&r);
    /* counted without samples; a value that is n/a, and the collector's own number, stay */
    kp_test_add_transpose(&r, 0);
    assert_int_equal(kp_result_set_why(&r, "memory_l1_tag_requests_global",
                                       kp_why_of(KP_REASON_NOT_COLLECTED, (char *)"no such counter")),
                     0);
    assert_int_equal(kp_result_set_real(&r, "inst_executed", "inst", 7), 0);
    derive(&r);
    assert_null(kp_result_find(&r, STALL "wait"));
    assert_int_equal(kp_result_find(&r, "memory_l1_tag_requests_global")->kind, KP_VALUE_NA);
    assert_value(&r, "inst_executed", 40960);
    kp_result_free(&r);
    kp_test_add_transpose(&r, 1);
    assert_int_equal(kp_result_set_count(&r, "smsp__pcsamp_sample_count", "", 5000), 0);
    derive(&r);
    assert_value(&r, "smsp__pcsamp_sample_count", 5000);
    kp_result_free(&r);
}

/* Accesses always have an ideal. */
static void an_ideal_that_was_not_counted_makes_no_excess(void **state)
{
    struct kp_result r = {0};
    struct kp_code_counts s = kp_test_counts(KP_TEST_TRANSPOSE, 2);
    struct kp_code_cache *cache = kp_codecache_new(NULL, NULL);
    struct kp_source_map source;
    double share;
    const char *what;
    (void)state;
    kp_test_metric(&s, "inst_executed")[0] = 1;
    kp_test_metric(&s, "memory_l2_theoretical_sectors_global")[0] = 32;
    assert_int_equal(kp_result_add_counts(&r, &s), 0);
    derive(&r);
    assert_int_equal(kp_result_find(&r, EXCESS)->kind, KP_VALUE_NA);
    assert_int_equal(kp_result_find(&r, "memory_l2_theoretical_sectors_global_ideal")->kind, KP_VALUE_NA);
    assert_value(&r, "memory_l2_theoretical_sectors_global", 32);
    assert_value(&r, "memory_l1_wavefronts_shared_ideal", 0); /* nothing was accessed */
    assert_int_equal(kp_source_load(&r, cache, &source), 0);
    assert_int_equal(source.all.v[KP_AT_SECTORS_EXCESS], 0);
    assert_null(kp_source_hottest(&source, KP_HOT_GLOBAL, &share, &what));
    kp_source_free(&source);
    kp_codecache_free(cache);
    kp_result_free(&r);
}

/* ---- pages ---- */

enum { LAUNCHES = 6 };

static struct kp_recording rec;

static void name_launch(struct kp_result *r, const char *name)
{
    free(r->launch.demangled);
    r->launch.demangled = kp_strdup(name);
}

static int make_session(void **state)
{
    (void)state;
    rec = kp_test_recording();
    while (rec.n > LAUNCHES)
        kp_result_free(&rec.results[--rec.n]);
    for (size_t i = 0; i < 3; i++)
        name_launch(&rec.results[i], "transpose_naive(const float *, float *, int)");
    kp_test_add_transpose(&rec.results[0], 1000);
    kp_test_add_transpose(&rec.results[1], 1);
    kp_test_add_transpose(&rec.results[2], 0);
    name_launch(&rec.results[3], "sum(const float *, float *)");
    kp_test_add_sum(&rec.results[3]);
    name_launch(&rec.results[4], "unknown(int)");
    kp_test_add_without_code(&rec.results[4]);
    name_launch(&rec.results[5], "not_sampled(int)");
    assert_int_equal(kp_result_set_real(&rec.results[0], "smsp__pcsamp_interval_cycles", "cycle", 2048), 0);
    assert_int_equal(kp_result_set_count(&rec.results[2], "smsp__pcsamp_sample_count", "", 0), 0);
    for (size_t i = 0; i < rec.n; i++)
        derive(&rec.results[i]);
    free(rec.session.set);
    free(rec.session.sections);
    rec.session.set = kp_strdup("");
    rec.session.sections = kp_strdup("SourceCounters,InstructionStats");
    return 0;
}

static int drop_session(void **state)
{
    (void)state;
    kp_test_recording_free(&rec);
    return 0;
}

static int each(void *from, int (*fn)(struct kp_result *, void *), void *arg, char **err)
{
    struct kp_recording *r = from;
    int rc = 0;
    (void)err;
    for (size_t i = 0; !rc && i < r->n; i++)
        rc = fn(&r->results[i], arg);
    return rc;
}

/* What the options print of `session`. */
static char *print_with(struct kp_recording *session, struct kp_lookup lookup, char *const env[])
{
    struct kp_test_text t = {calloc(1, 1), 0};
    struct kp_sink sink = kp_test_sink(&t);
    struct kp_launches launches = {.each = each, .from = session, .lookup = lookup};
    struct kp_options o;
    char *err = NULL;
    if (kp_options_from_env(&o, env, &err))
        fail_msg("%s", err);
    struct kp_display d = kp_display_of(&o);
    d.width = 120; /* of a terminal */
    assert_int_equal(kp_page_print(&sink, &d, &session->session, &launches, &err), 0);
    assert_null(err);
    kp_options_free(&o);
    return t.text;
}

static char *print(char *const env[])
{
    return print_with(&rec, kp_test_code_lookup(), env);
}

/* Characters, not bytes: source text may be UTF-8. */
static void assert_fits(const char *text)
{
    for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        size_t n = strcspn(line, "\n"), columns = 0;
        for (size_t i = 0; i < n; i++) {
            columns += ((unsigned char)line[i] & 0xc0) != 0x80;
            if ((unsigned char)line[i] < ' ' || line[i] == '\x7f')
                fail_msg("a control character in: %.*s", (int)n, line);
        }
        if (columns > 120)
            fail_msg("%zu columns: %.*s", columns, (int)n, line);
    }
}

static void golden(char *text, const char *name)
{
    kp_test_golden(text, name);
    free(text);
}

static void page_as_text(void **state)
{
    char *text = print((char *[]){"KPROF_PAGE=source", NULL});
    (void)state;
    assert_fits(text);
    golden(text, "tests/golden/source_page.txt");
}

static void dropped_samples_are_told_with_what_keeps_them(void **state)
{
    static char *const environments[][3] = {
        {"KPROF_PAGE=source"},
        {"KPROF_PAGE=source", "KPROF_PRINT_SOURCE=sass"},
        {"KPROF_SECTION=SourceCounters"},
        {"KPROF_SECTION=SourceCounters", "KPROF_PRINT_DETAILS=body"},
    };
    struct kp_result *r = &rec.results[0];
    (void)state;
    for (uint64_t dropped = 0; dropped <= 1234; dropped += 1234) {
        kp_result_set_count(r, "smsp__pcsamp_dropped_samples", "", dropped);
        for (size_t i = 0; i < sizeof environments / sizeof *environments; i++) {
            char *text = print((char **)environments[i]);
            const char *note = strstr(text, "Note: 1,234 of "),
                       *again = note ? strstr(note + 1, "Note: 1,234 of ") : NULL;
            assert_int_equal(!!note, !!dropped);
            assert_null(again);
            assert_int_equal(!!strstr(text, "warp samples were dropped: raise KPROF_WARP_SAMPLING_BUFFER_SIZE"),
                             !!note);
            assert_fits(text);
            free(text);
        }
    }
    kp_result_set_count(r, "smsp__pcsamp_dropped_samples", "", 0);
}

static void parts_of_the_page(void **state)
{
    char *lines = print((char *[]){"KPROF_PAGE=source", "KPROF_PRINT_SOURCE=cuda", NULL});
    char *sass = print((char *[]){"KPROF_PAGE=source", "KPROF_PRINT_SOURCE=sass", NULL});
    (void)state;
    assert_non_null(strstr(lines, "Hottest Lines"));
    assert_null(strstr(lines, "SASS:"));
    assert_null(strstr(sass, "Hottest"));
    assert_non_null(strstr(sass, "SASS:"));
    free(lines);
    free(sass);
}

/* By line of the PTX, or the instructions below it; a function without PTX says so. */
static void page_with_ptx(void **state)
{
    static char *const environments[][3] = {
        {"KPROF_PAGE=source", "KPROF_PRINT_SOURCE=ptx"},
        {"KPROF_PAGE=source", "KPROF_PRINT_SOURCE=sass,ptx"},
    };
    static const char *const files[] = {"tests/golden/source_page_ptx.txt", "tests/golden/source_page_sass_ptx.txt"};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        char *text = print((char **)environments[i]);
        assert_fits(text);
        golden(text, files[i]);
    }
}

static void page_as_csv(void **state)
{
    (void)state;
    golden(print((char *[]){"KPROF_PAGE=source", "KPROF_CSV=1", NULL}), "tests/golden/source_page.csv");
}

/* The five hottest lines come with the section whatever is printed of it. */
static void section_has_the_hottest_lines(void **state)
{
    char *text = print((char *[]){"KPROF_APPLY_RULES=no", NULL});
    (void)state;
    assert_fits(text);
    golden(text, "tests/golden/source_section.txt");
    text = print((char *[]){"KPROF_APPLY_RULES=no", "KPROF_PRINT_DETAILS=all", NULL});
    assert_fits(text);
    golden(text, "tests/golden/source_section_all.txt");
}

static void numbers_are_short(void **state)
{
    static const struct {
        uint64_t value;
        const char *text;
    } cases[] = {{0, "0"},
                 {9999, "9999"},
                 {10000, "10.0k"},
                 {99999, "99.9k"},
                 {100000, "100k"},
                 {999999, "999k"},
                 {1000000, "1.00M"},
                 {1059999, "1.05M"},
                 {12345678, "12.3M"},
                 {999999999, "999M"},
                 {1000000000, "1.00G"},
                 {UINT64_MAX, "18.4E"}};
    char text[KP_SHORT_MAX];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        kp_write_short_number(cases[i].value, text);
        assert_string_equal(text, cases[i].text);
    }
}

/* ---- rules ---- */

static void assert_message(const struct kp_messages *m, const char *rule, const char *words)
{
    bool found = false;
    for (size_t i = 0; i < m->n; i++)
        found |= !strcmp(m->list[i].rule->id, rule) && strstr(m->list[i].text, words);
    for (size_t i = 0; !found && i < m->n; i++)
        print_message("%s: %s\n", m->list[i].rule->id, m->list[i].text);
    if (!found)
        fail_msg("%s does not say: %s", rule, words);
}

/* Messages of recorded launches name the line of the values given to them. */
static void rules_name_the_line(void **state)
{
    struct kp_recording r = kp_test_rules_recording();
    struct kp_lookup lookup = kp_test_code_lookup();
    struct kp_code_cache *cache = kp_codecache_new(&lookup, "");
    struct kp_source_map source;
    struct kp_messages m;
    size_t n;
    const struct kp_section *const *sections = kp_test_rule_sections("", &n);
    (void)state;
    struct kp_result *transposed = &r.results[3], *spilled = &r.results[9];
    kp_test_add_transpose(transposed, 1);
    derive(transposed);
    assert_int_equal(kp_source_load(transposed, cache, &source), 0);
    assert_int_equal(kp_rules_apply_at(transposed, &r.session, &source, sections, n, KP_RULES_ALL, &m), 0);
    assert_message(&m, "CPIStall", "Hottest line: transpose.cu:9, 99.8% of its samples.");
    assert_message(&m, "CPIStall",
                   "start at the line with the most. Hottest line: transpose.cu:9, 95.4% of the samples.");
    assert_message(&m, "IssueSlotUtilization", "Hottest line: transpose.cu:9, 95.4% of the samples.");
    assert_message(&m, "MemoryCacheAccessPattern", "elements. Hottest line: transpose.cu:9, 100.0% of the sectors");
    assert_message(&m, "UncoalescedGlobalAccess", "move 114,688 sectors more than their threads need, 78% of 147,456.");
    assert_message(&m, "UncoalescedGlobalAccess",
                   "shared memory. Hottest line: transpose.cu:9, 100.0% of these sectors.");
    kp_messages_free(&m);
    kp_source_free(&source);
    /* without lines it is the instruction; and where nothing is known of the matter, the section */
    kp_test_add_sum(spilled);
    derive(spilled);
    kp_result_set_real(spilled, "smsp__thread_inst_executed_per_inst_executed.ratio", "", 20);
    kp_result_set_real(spilled, "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum", "", 1);
    assert_int_equal(kp_source_load(spilled, cache, &source), 0);
    assert_int_equal(kp_rules_apply_at(spilled, &r.session, &source, sections, n, KP_RULES_ALL, &m), 0);
    assert_message(&m, "UncoalescedSharedAccess", "Hottest instruction: sum+0x0, 100.0% of these wavefronts.");
    assert_message(&m, "ThreadDivergence", "Hottest instruction: sum+0x30, 50.0% of the idle threads' instructions.");
    assert_message(&m, "FPInstructions", "Hottest instruction: sum+0x10, 50.0% of the non-fused ones.");
    assert_message(&m, "LocalMemoryTraffic", "Look at Source Counters");
    kp_messages_free(&m);
    kp_source_free(&source);
    kp_codecache_free(cache);
    kp_test_recording_free(&r);
}

/* ---- lines ---- */

static void lines_are_found(void **state)
{
    struct kp_lookup lookup = kp_test_code_lookup();
    struct kp_code_cache *cache = kp_codecache_new(&lookup, "");
    struct kp_source_map s;
    double share;
    const char *what;
    (void)state;
    assert_int_equal(kp_source_load(&rec.results[1], cache, &s), 0);
    assert_true(s.has_code && s.has_lines && s.has_samples);
    assert_int_equal(s.n_instructions, 14);
    assert_int_equal(s.n_lines, 8); /* of which one is what has no line */
    char *place = kp_source_place(&s, &s.lines[0]);
    assert_string_equal(place, "transpose.cu:9");
    free(place);
    place = kp_source_place(&s, &s.lines[2]);
    assert_string_equal(place, "index.h:3, inlined at transpose.cu:10");
    assert_int_equal(s.lines[2].sites, 2);
    assert_int_equal(s.lines[2].sums.v[KP_AT_SAMPLES], 25);
    assert_string_equal(kp_source_main_stall(&s.lines[2].sums)->label, "stall_wait");
    free(place);
    assert_int_equal(s.all.v[KP_AT_SECTORS_EXCESS], 114688);
    assert_ptr_equal(kp_source_hottest_stall(&s, "wait", &share, &what), &s.lines[1]);
    assert_true(fabs(share - 31.0 / 116) < 1e-12);
    assert_null(kp_source_hottest_stall(&s, "gmma", &share, &what));
    assert_null(kp_source_hottest(&s, KP_HOT_FP64, &share, &what));
    for (size_t i = 0; i < s.n_instructions; i++) /* each is in the line of its own location */
        assert_true(s.instructions[i].location == s.instructions[s.lines[s.instructions[i].line].hottest].location ||
                    s.instructions[i].location->line ==
                        s.instructions[s.lines[s.instructions[i].line].hottest].location->line);
    kp_source_free(&s);
    kp_codecache_free(cache);
}

static void write_file(const char *path, const char *text, size_t size)
{
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
}

static void assert_line(struct kp_code_cache *cache, const struct kp_code *c, uint32_t line, const char *expected)
{
    size_t len;
    const char *text = kp_codecache_line(cache, c, 0, line, &len);
    if (!expected) {
        assert_null(text);
        return;
    }
    assert_non_null(text);
    assert_int_equal(len, strlen(expected));
    assert_memory_equal(text, expected, len);
}

/* At its path, embedded, or below one of the folders with as much of its path as fits. */
static void source_text_is_found(void **state)
{
    const char *folder = kp_test_folder();
    char path[512], folders[600], *big = calloc(1, (1 << 20) + 1);
    struct kp_source_file file = {path, NULL};
    struct kp_code c = {.files = &file, .n_files = 1};
    size_t len;
    (void)state;
    snprintf(path, sizeof path, "%s/here.cu", folder);
    write_file(path, "one\ntwo\n\nfour", 13);
    struct kp_code_cache *cache = kp_codecache_new(NULL, NULL);
    assert_line(cache, &c, 1, "one");
    assert_line(cache, &c, 3, "");
    assert_line(cache, &c, 4, "four");
    assert_line(cache, &c, 5, NULL);
    assert_line(cache, &c, 0, NULL);
    assert_null(kp_codecache_line(cache, &c, 1, 1, &len)); /* no such file of the code */
    kp_codecache_free(cache);
    assert_int_equal(kp_source_embed(&c), 0);
    assert_string_equal(file.text, "one\ntwo\n\nfour");
    free(file.text);
    file.text = NULL;
    memset(big, '\n', 1 << 20);
    write_file(path, big, 1 << 20);
    assert_int_equal(kp_source_embed(&c), 0);
    assert_non_null(file.text);
    free(file.text);
    file.text = NULL;
    write_file(path, big, (1 << 20) + 1);
    assert_int_equal(kp_source_embed(&c), 0);
    assert_null(file.text);
    write_file(path, "moved", 5);
    snprintf(folders, sizeof folders, "/no/such/folder, %s", folder);
    snprintf(path, sizeof path, "/build/somewhere/else/here.cu");
    cache = kp_codecache_new(NULL, folders);
    assert_line(cache, &c, 1, "moved");
    assert_true(kp_codecache_has_file(cache, &c, 0));
    kp_codecache_free(cache);
    snprintf(path, sizeof path, "%s/pipe", folder); /* is neither waited for nor read */
    assert_int_equal(mkfifo(path, 0600), 0);
    cache = kp_codecache_new(NULL, NULL);
    assert_line(cache, &c, 1, NULL);
    assert_false(kp_codecache_has_file(cache, &c, 0));
    kp_codecache_free(cache);
    free(big);
    kp_test_remove_folder(folder);
}

/* ---- what must not do harm ---- */

static int bad_code(void *arg, uint64_t id, struct kp_code *out)
{
    static const char escape[] =
        "\x1b[2Jlong/\x1f}{@x/\xff\xfe/averyveryveryveryveryveryveryverylongnameofafolder/file.cu";
    (void)arg;
    *out = (struct kp_code){.id = id, .n_instructions = 6, .n_locations = 3, .n_files = 1};
    if (id == 2) /* empty */
        return memset(out, 0, sizeof *out), 0;
    if (id == 3)
        return -EIO;
    out->function = kp_strdup("_Z\x1b[31mNameThatIsNotMangled_and_is_long_and_is_long_and_is_long_and_is_long_and_long_"
                              "and_is_long_and_is_long_and_is_long");
    out->instructions = calloc(6, sizeof *out->instructions);
    out->locations = calloc(3, sizeof *out->locations);
    out->files = calloc(1, sizeof *out->files);
    out->files[0] = (struct kp_source_file){kp_strdup(escape), kp_strdup("x\r\x1b]0;y\x07\n\xff\xfe\xf0\x9f\n")};
    out->locations[0] = (struct kp_location){0, 1, 2, kp_strdup("f")}; /* inlined into each other */
    out->locations[1] = (struct kp_location){0, 2, 1, NULL};
    out->locations[2] = (struct kp_location){7, UINT32_MAX, 99, NULL};
    static const uint32_t offsets[] = {16, 16, 0, 48, 32, UINT32_MAX}; /* not ascending */
    for (size_t i = 0; i < 6; i++)
        out->instructions[i] = (struct kp_instruction){
            .offset = offsets[i], .location = (uint32_t)i, .ptx = (uint32_t)(3 * i), .access_bits = UINT16_MAX};
    for (uint32_t i = 0; i < 3; i++) /* not ascending, either */
        kp_code_add_ptx(out, 9 - 3 * i, escape, SIZE_MAX);
    out->instructions[5].text =
        kp_strdup("A\x1b_token_that_cannot_be_broken_anywhere_and_is_much_longer_than_its_column");
    out->instructions[5].opcode = kp_strdup("");
    return 0;
}

static void hostile_values_are_shown_as_well_as_can_be(void **state)
{
    struct kp_recording bad = kp_test_recording();
    char *const environments[][3] = {{"KPROF_PAGE=source"},
                                     {"KPROF_PAGE=source", "KPROF_CSV=1"},
                                     {"KPROF_PAGE=source", "KPROF_PRINT_SOURCE=ptx"},
                                     {"KPROF_PAGE=source", "KPROF_PRINT_SOURCE=cuda,sass,ptx"},
                                     {"KPROF_SECTION=SourceCounters,WarpStateStats", "KPROF_PRINT_DETAILS=all"}};
    (void)state;
    while (bad.n > 1)
        kp_result_free(&bad.results[--bad.n]);
    name_launch(&bad.results[0], "bad");
    for (uint64_t id = 0; id < 4; id++) {
        struct kp_code_counts s = kp_test_counts(id, 4);
        uint64_t *executed = kp_test_metric(&s, "inst_executed"),
                 *samples = kp_test_metric(&s, STALL "branch_resolving");
        uint64_t *sectors = kp_test_metric(&s, "memory_l2_theoretical_sectors_global");
        s.offsets[3] = UINT32_MAX;
        s.offsets[1] = 4;
        for (size_t i = 0; i < 4; i++)
            executed[i] = samples[i] = sectors[i] = UINT64_MAX / (i + 1);
        assert_int_equal(kp_result_add_counts(&bad.results[0], &s), 0);
    }
    struct kp_code_counts empty = {.code = 1};
    assert_int_equal(kp_result_add_counts(&bad.results[0], &empty), 0);
    struct kp_lookup lookup = {.code = bad_code};
    assert_int_equal(kp_derive_source(&bad.results[0], &lookup, category), 0);
    for (size_t i = 0; i < sizeof environments / sizeof *environments; i++) {
        char *text = print_with(&bad, lookup, environments[i]);
        if (i != 1)
            assert_fits(text);
        free(text);
        free(print_with(&bad, (struct kp_lookup){0}, environments[i]));
    }
    kp_test_recording_free(&bad);
}

static int no_memory(void *arg, uint64_t id, struct kp_code *out)
{
    (void)arg, (void)id;
    *out = (struct kp_code){0};
    return -ENOMEM;
}

static void errors_are_handed_on(void **state)
{
    struct kp_lookup lookup = {.code = no_memory};
    struct kp_code_cache *cache = kp_codecache_new(&lookup, NULL);
    struct kp_source_map s;
    struct kp_result r = {0};
    (void)state;
    kp_test_add_transpose(&r, 1);
    assert_int_equal(kp_derive_source(&r, &lookup, NULL), -ENOMEM);
    assert_int_equal(kp_source_load(&r, cache, &s), -ENOMEM);
    kp_codecache_free(cache);
    kp_result_free(&r);
}

/* ---- options ---- */

static void assert_wants(char *const env[], const char *set, const char *section)
{
    struct kp_options o;
    char *err = NULL;
    assert_int_equal(kp_options_from_env(&o, env, &err), 0);
    assert_string_equal(o.set, set);
    assert_string_equal(o.section, section);
    kp_options_free(&o);
}

static void the_page_collects_what_it_shows(void **state)
{
    (void)state;
    assert_wants((char *[]){"KPROF_PAGE=source", NULL}, "", "SourceCounters");
    assert_wants((char *[]){"KPROF_PAGE=details,source", NULL}, "basic", "SourceCounters");
    assert_wants((char *[]){"KPROF_PAGE=pm", NULL}, "", "PmSampling");
    assert_wants((char *[]){"KPROF_PAGE=pm,summary", NULL}, "basic", "PmSampling");
    assert_wants((char *[]){"KPROF_PAGE=source,pm", NULL}, "", "SourceCounters,PmSampling");
    assert_wants((char *[]){"KPROF_PAGE=pm", "KPROF_METRICS=pmsampling:m", NULL}, "", "");
    assert_wants((char *[]){"KPROF_PAGE=source", "KPROF_SET=full", NULL}, "full", "");
    assert_wants((char *[]){"KPROF_PAGE=source", "KPROF_SECTION=Occupancy", NULL}, "", "Occupancy");
    assert_wants((char *[]){"KPROF_PAGE=details", NULL}, "basic", "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(totals_are_sums_over_instructions),
        cmocka_unit_test(averages_are_sums_of_ratios),
        cmocka_unit_test(never_executed_instructions_have_idle_threads),
        cmocka_unit_test(the_own_function_comes_first),
        cmocka_unit_test(mixes_come_by_number),
        cmocka_unit_test(modifiers_are_those_of_the_disassembly),
        cmocka_unit_test(spills_are_told_from_other_local_memory),
        cmocka_unit_test(loads_and_stores_are_those_of_the_counter),
        cmocka_unit_test(what_was_not_collected_is_not_set),
        cmocka_unit_test(an_ideal_that_was_not_counted_makes_no_excess),
        cmocka_unit_test(numbers_are_short),
        cmocka_unit_test(lines_are_found),
        cmocka_unit_test(source_text_is_found),
        cmocka_unit_test(page_as_text),
        cmocka_unit_test(parts_of_the_page),
        cmocka_unit_test(dropped_samples_are_told_with_what_keeps_them),
        cmocka_unit_test(page_with_ptx),
        cmocka_unit_test(page_as_csv),
        cmocka_unit_test(section_has_the_hottest_lines),
        cmocka_unit_test(rules_name_the_line),
        cmocka_unit_test(hostile_values_are_shown_as_well_as_can_be),
        cmocka_unit_test(errors_are_handed_on),
        cmocka_unit_test(the_page_collects_what_it_shows),
    };
    return cmocka_run_group_tests_name("report/source", tests, make_session, drop_session);
}
