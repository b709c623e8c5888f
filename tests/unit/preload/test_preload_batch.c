/* A window's results between the counters and the session: what is missing is marked with its reason, and what comes of
 * counts by instruction is computed. Each goes to the session once, by the worker where there are many. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "collectors/plan/plan_internal.h"
#include "preload/os/worker.h"
#include "preload/session/session.h"
#include "preload/results/batch.h"
#include "tests/support/report_support.h"
#include "tests/support/source_support.h"

/* ---- what a batch calls, in the place of the real ones ---- */

enum { MOST = 32, FEW = 16 };

static struct {
    char calls[1024];
    /* what is to be answered */
    bool worker_takes;
    const char *evaluation; /* what is wrong with it; NULL = nothing */
    struct kp_codes *codes;
    /* what was handed over */
    void (*job)(void *arg);
    void *job_arg;
    struct kp_result stored[MOST];
    char bases[MOST][64];
    bool profiled[MOST];
    size_t n_stored;
    char warning[128];
} t;

static void note(const char *call)
{
    size_t len = strlen(t.calls);
    snprintf(t.calls + len, sizeof(t.calls) - len, "%s%s", len ? " " : "", call);
}

bool kp_worker_submit(void (*fn)(void *arg), void *arg)
{
    note("submit");
    if (!t.worker_takes)
        return false;
    t.job = fn;
    t.job_arg = arg;
    return true;
}

bool kp_worker_drain(long ms)
{
    assert_int_equal(ms, KP_FOREVER);
    note("drain");
    return true;
}

/* The address is all that a batch knows of it. */
static struct kp_counters *const counters = (struct kp_counters *)&t;

struct kp_why kp_counters_evaluate(struct kp_counters *k, struct kp_result *const *results)
{
    assert_ptr_equal(k, counters);
    note("evaluate");
    kp_result_set_count(results[0], "counted", "", 7);
    return t.evaluation ? kp_why_of(KP_REASON_NOT_EVALUATED, kp_strdup(t.evaluation)) : kp_why_of(KP_REASON_NONE, NULL);
}

struct kp_why kp_counters_lost(const struct kp_counters *k, size_t result)
{
    assert_ptr_equal(k, counters);
    (void)result;
    return kp_why_of(KP_REASON_NONE, NULL);
}

void kp_counters_free(struct kp_counters *k)
{
    if (k) {
        assert_ptr_equal(k, counters);
        note("free");
    }
}

void kp_session_lacks(const char *base, uint64_t shapes)
{
    (void)base, (void)shapes;
}

void kp_session_skip(enum kp_reason reason, uint64_t launches)
{
    (void)reason, (void)launches;
}

void kp_session_results(struct kp_session_entry *entries, size_t n)
{
    note("store");
    assert_true(t.n_stored + n <= MOST);
    for (size_t i = 0; i < n; i++, t.n_stored++) {
        t.stored[t.n_stored] = *entries[i].result;
        *entries[i].result = (struct kp_result){.n_metrics = 0};
        snprintf(t.bases[t.n_stored], sizeof(t.bases[0]), "%s", entries[i].base);
        t.profiled[t.n_stored] = entries[i].profiled;
    }
}

/* Disassembles the second instruction of the first function, where its code is known. */
void kp_session_prepare_codes(void)
{
    struct kp_code *code = t.codes ? (struct kp_code *)kp_codes_get(t.codes, 1) : NULL;
    if (code && code->n_instructions > 1) {
        free(code->instructions[1].text);
        code->instructions[1].text = kp_strdup("@P0 LDG.E.64 R2, desc[UR4][R2.64]");
    }
}

void kp_session_replace(struct kp_result *result, const char *base, struct kp_session_told *told)
{
    (void)result, (void)base, (void)told;
}

void kp_session_alike(const struct kp_launch_info *l)
{
    (void)l;
}

void kp_session_warn(enum kp_failure kind, const char *text)
{
    (void)kind;
    kp_session_warn_once(text);
}

void kp_session_warn_once(const char *text)
{
    note("warn");
    snprintf(t.warning, sizeof(t.warning), "%s", text);
}

struct kp_codes *kp_context_codes(void)
{
    return t.codes;
}

/* ---- windows ---- */

static struct kp_planned planned[] = {
    {.name = (char *)"counted", .group = 0},
    {.name = (char *)"lacking", .group = KP_CANNOT_COLLECT, .why = {KP_REASON_NOT_OFFERED, (char *)"not on this chip"}},
    {.name = (char *)"of_launch", .group = KP_NOT_A_COUNTER}};
static struct kp_plan plan = {.metrics = planned, .n_metrics = sizeof(planned) / sizeof(*planned)};

static struct kp_context context;
static struct kp_options options;
static const struct kp_mode mode = {.again = KP_AGAIN_REPLAY};
static struct kp_context_setup setup;

static int set_up(void **state)
{
    (void)state;
    memset(&t, 0, sizeof(t));
    plan.n_groups = 1;
    context = (struct kp_context){.plan = &plan, .device = {.cc_major = 9}};
    options = (struct kp_options){.metrics = ""};
    setup = (struct kp_context_setup){.options = &options, .mode = &mode};
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    for (size_t i = 0; i < t.n_stored; i++)
        kp_result_free(&t.stored[i]);
    t.n_stored = 0;
    return 0;
}

/* Launches called k0, k1 ... */
static struct kp_batch *batch_of(size_t n)
{
    struct kp_batch *b = kp_batch_new(n);
    assert_non_null(b);
    for (size_t i = 0; i < n; i++) {
        char base[24];
        struct kp_result *r = calloc(1, sizeof(*r));
        assert_non_null(r);
        r->launch.ordinal = i;
        r->launch.cc_major = 9;
        snprintf(base, sizeof(base), "k%zu", i);
        kp_batch_add(b, r, base, NULL, 0); /* which it copies */
    }
    return b;
}

static const char *missing(size_t launch, const char *metric)
{
    const struct kp_metric *m = kp_result_find(&t.stored[launch], metric);
    return !m ? "not there" : m->kind == KP_VALUE_NA ? m->text : "there";
}

static void finish(size_t n, struct kp_counters *k, const char *why)
{
    char *passing = why ? kp_strdup(why) : NULL;
    kp_batch_finish(batch_of(n), &setup, &context, k, kp_why_of(why ? KP_REASON_NOT_STARTED : KP_REASON_NONE, passing));
    if (passing)
        memset(passing, 'x', strlen(passing)); /* it has a copy */
    free(passing);
}

/* ---- the way ---- */

static void test_few_are_stored_at_once(void **state)
{
    (void)state;
    t.worker_takes = true;
    finish(FEW - 1, counters, NULL);
    assert_string_equal(t.calls, "drain evaluate store free");
    assert_int_equal(t.n_stored, FEW - 1);
    for (size_t i = 0; i < t.n_stored; i++) {
        char base[16];
        snprintf(base, sizeof(base), "k%zu", i);
        assert_int_equal(t.stored[i].launch.ordinal, i);
        assert_string_equal(t.bases[i], base);
        assert_true(t.profiled[i]);
    }
}

static void test_many_are_the_workers(void **state)
{
    (void)state;
    t.worker_takes = true;
    finish(FEW, counters, "a reason");
    assert_string_equal(t.calls, "submit");
    t.job(t.job_arg);
    assert_string_equal(t.calls, "submit evaluate store free");
    assert_int_equal(t.n_stored, FEW);
    assert_string_equal(missing(1, "counted"), "a reason");
}

/* What waits for the worker is bounded: a batch holds the counter data of its passes. The thread that makes more than
 * the worker has done waits for it, and evaluates itself. */
static void test_a_full_queue_waits(void **state)
{
    enum { WAITING = 8 };
    void (*jobs[WAITING])(void *arg);
    void *args[WAITING];
    (void)state;
    t.worker_takes = true;
    for (size_t i = 0; i < WAITING; i++) {
        t.calls[0] = '\0';
        finish(FEW, counters, NULL);
        assert_string_equal(t.calls, "submit");
        jobs[i] = t.job;
        args[i] = t.job_arg;
    }
    t.calls[0] = '\0';
    finish(FEW, counters, NULL);
    assert_string_equal(t.calls, "drain evaluate store free");
    for (size_t i = 0; i < WAITING; i++) {
        tear_down(state);
        t.worker_takes = true;
        jobs[i](args[i]);
        assert_int_equal(t.n_stored, FEW);
    }
    t.calls[0] = '\0';
    finish(FEW, counters, NULL); /* there is room again */
    assert_string_equal(t.calls, "submit");
    t.job(t.job_arg);
}

/* The worker is waited for where it has what tells of a kernel for the first time, once. */
static void test_settles(void **state)
{
    static struct kp_plan with;
    assert_non_null(kp_plan_add(&with, "lts__t_sectors_srcunit_tex_aperture_sysmem_op_write.sum", "", 0));
    for (int how = 0; how < 4; how++) {
        bool waits = how == 3;
        t.worker_takes = true;
        t.calls[0] = '\0';
        struct kp_batch *b = batch_of(FEW);
        if (how)
            kp_batch_watch(b, how != 1);
        context.plan = how == 2 ? &plan : &with;
        kp_batch_finish(b, &setup, &context, counters, kp_why_of(KP_REASON_NONE, NULL));
        kp_batch_settle();
        kp_batch_settle();
        assert_string_equal(t.calls, waits ? "submit drain" : "submit");
        t.job(t.job_arg);
        tear_down(state);
    }
}

static void test_without_a_worker(void **state)
{
    (void)state;
    finish(FEW, counters, NULL);
    assert_string_equal(t.calls, "submit drain evaluate store free");
    assert_int_equal(t.n_stored, FEW);
}

/* Nothing is left behind, and nobody is waited for. */
static void test_no_results(void **state)
{
    (void)state;
    kp_batch_finish(kp_batch_new(3), &setup, &context, counters, kp_why_of(KP_REASON_NOT_STARTED, NULL));
    kp_batch_finish(NULL, &setup, &context, counters, kp_why_of(KP_REASON_NONE, NULL)); /* there was no memory */
    assert_string_equal(t.calls, "free free");
}

/* ---- what is missing ---- */

static void test_reasons(void **state)
{
    (void)state;
    finish(2, counters, NULL);
    assert_string_equal(missing(0, "counted"), "there");
    assert_string_equal(missing(1, "counted"), kp_reason_text(KP_REASON_NOT_COLLECTED));
    assert_string_equal(missing(1, "lacking"), "not on this chip");
    assert_string_equal(missing(1, "of_launch"), "not there");
    assert_null(t.stored[0].launch.note);
    finish(1, NULL, "a reason");
    assert_string_equal(missing(2, "counted"), "a reason");
    assert_string_equal(t.stored[2].launch.note, "a reason");
    assert_false(t.profiled[2]);
    /* the context's own reason is no launch's */
    context.no_counters = kp_why_of(KP_REASON_NOT_STARTED, (char *)"none at all");
    finish(1, NULL, "none at all");
    assert_string_equal(missing(3, "counted"), "none at all");
    assert_null(t.stored[3].launch.note);
}

static void test_evaluation_fails(void **state)
{
    (void)state;
    t.evaluation = "cannot evaluate";
    finish(2, counters, "of before");
    assert_string_equal(t.calls, "drain evaluate warn store free");
    assert_string_equal(t.warning, "cannot evaluate");
    assert_string_equal(missing(0, "counted"), "there");
    assert_string_equal(missing(1, "counted"), "cannot evaluate");
    assert_string_equal(t.stored[1].launch.note, "cannot evaluate");
}

/* Where nothing was to be counted a launch without counters is as it should be. */
static void test_nothing_to_count(void **state)
{
    (void)state;
    plan.n_groups = 0;
    finish(1, NULL, NULL);
    assert_string_equal(t.calls, "drain store");
    assert_true(t.profiled[0]);
    context.plan = NULL;
    finish(1, NULL, NULL);
    assert_false(t.profiled[1]);
}

/* Without a plan the sections say what is missing: counted rows of their header tables, of this chip. */
static void test_without_a_plan(void **state)
{
    static const struct kp_section *sections[2];
    (void)state;
    sections[0] = kp_section_find("SpeedOfLight");
    sections[1] = kp_section_find("LaunchStats");
    setup = (struct kp_context_setup){.options = &options, .mode = &mode, .sections = sections, .n_sections = 2};
    options.metrics = "sm__cycles_active.avg, regex:sm__ sm__warps_active.avg\tlts__t_sectors.sum";
    context.plan = NULL;
    finish(1, NULL, "no CUPTI");
    assert_string_equal(missing(0, "gpu__time_duration.sum"), "no CUPTI");
    assert_string_equal(missing(0, "launch__grid_size"), "not there");
    assert_string_equal(missing(0, "counted"), "not there");
    assert_string_equal(missing(0, "sm__cycles_active.avg"), "no CUPTI"); /* asked for by name */
    assert_string_equal(missing(0, "sm__warps_active.avg"), "no CUPTI");
    assert_string_equal(missing(0, "lts__t_sectors.sum"), "no CUPTI");
    assert_string_equal(missing(0, "regex:sm__"), "not there");
    for (size_t i = 0; i < t.stored[0].n_metrics; i++)
        assert_string_equal(t.stored[0].metrics[i].text, "no CUPTI");
}

/* ---- counts by instruction ---- */

static const void *no_cubin(uint32_t crc, size_t *size)
{
    (void)crc;
    *size = 0;
    return NULL;
}

static void test_counts_by_instruction(void **state)
{
    double total = 0;
    (void)state;
    t.codes = kp_codes_new(no_cubin, false);
    uint64_t id = kp_codes_id(t.codes, 1, "k0");
    struct kp_batch *b = kp_batch_new(1);
    struct kp_result *r = calloc(1, sizeof(*r));
    struct kp_code_counts counts = kp_test_counts(id, 3);
    r->launch.cc_major = 9;
    kp_test_metric(&counts, "inst_executed")[1] = 5;
    uint64_t *threads = kp_test_metric(&counts, "thread_inst_executed");
    threads[0] = 32;
    threads[1] = 8;
    assert_int_equal(kp_result_add_counts(r, &counts), 0);
    kp_batch_add(b, r, "k0", NULL, 0);
    kp_batch_finish(b, &setup, &context, counters, kp_why_of(KP_REASON_NONE, NULL));
    assert_true(kp_metric_number(kp_result_find(&t.stored[0], "thread_inst_executed"), &total));
    assert_int_equal(total, 40);
    kp_codes_free(t.codes);
}

static uint8_t image[65536];
static size_t image_size;

static const void *image_of(uint32_t crc, size_t *size)
{
    (void)crc;
    *size = image_size;
    return image;
}

/* Code is disassembled before metrics are made of it. */
static void test_texts_come_first(void **state)
{
    (void)state;
    FILE *f = fopen(kp_test_source("tests/data/inline.sm90-cuda13.cubin"), "re");
    assert_non_null(f);
    image_size = fread(image, 1, sizeof(image), f);
    fclose(f);
    t.codes = kp_codes_new(image_of, true);
    uint64_t id = kp_codes_id(t.codes, 1, "nested");
    struct kp_batch *b = kp_batch_new(1);
    struct kp_result *r = calloc(1, sizeof(*r));
    struct kp_code_counts counts = kp_test_counts(id, 3);
    r->launch.cc_major = 9;
    kp_test_metric(&counts, "inst_executed")[1] = 5;
    assert_int_equal(kp_result_add_counts(r, &counts), 0);
    kp_batch_add(b, r, "k0", NULL, 0);
    kp_batch_finish(b, &setup, &context, counters, kp_why_of(KP_REASON_NONE, NULL));
    const struct kp_metric *m = kp_result_find(&t.stored[0], "sass__inst_executed_per_opcode_with_modifier_all");
    assert_int_equal(m->count, 5);
    assert_int_equal(m->n_instances, 1);
    assert_string_equal(m->instances[0].key, "LDG.E.64");
    kp_codes_free(t.codes);
}

/* Values that there was no memory for are not missing without a word. */
static void test_values_that_were_lost(void **state)
{
    (void)state;
    struct kp_batch *b = batch_of(1);
    kp_batch_finish(b, &setup, &context, counters, kp_why_of(KP_REASON_NONE, NULL));
    assert_string_equal(t.warning, "");
    b = kp_batch_new(1);
    struct kp_result *r = calloc(1, sizeof(*r));
    r->launch.cc_major = 9;
    r->lossy = true;
    kp_batch_add(b, r, "k0", NULL, 0);
    kp_batch_finish(b, &setup, &context, counters, kp_why_of(KP_REASON_NONE, NULL));
    assert_string_equal(t.warning, "out of memory: values of launches are missing");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_few_are_stored_at_once),
        TEST(test_many_are_the_workers),
        TEST(test_a_full_queue_waits),
        TEST(test_settles),
        TEST(test_without_a_worker),
        TEST(test_no_results),
        TEST(test_reasons),
        TEST(test_evaluation_fails),
        TEST(test_nothing_to_count),
        TEST(test_without_a_plan),
        TEST(test_counts_by_instruction),
        TEST(test_texts_come_first),
        TEST(test_values_that_were_lost),
    };
    return cmocka_run_group_tests_name("preload/batch", tests, NULL, NULL);
}
