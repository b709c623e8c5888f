/* Two sessions compared: over sessions that are made of recorded launches, and as the kprof command does it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd/diff.h"
#include "report/model/launch_names.h"
#include "report/judge/rules.h"
#include "report/pages/page.h"
#include "report/write/run_summary.h"
#include "tests/support/report_support.h"

static const struct kp_display plain = {.rules = KP_RULES_ALL};
static const struct kp_diff_options by_launch = {.threshold = 1};

static char folder[PATH_MAX / 4];

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "%s", kp_test_folder());
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    kp_test_remove_folder(folder);
    return 0;
}

static const char *inside(const char *name)
{
    static char paths[4][PATH_MAX];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, PATH_MAX, "%s/%s", folder, name);
    return path;
}

/* Stores the recording as folder/name, and frees it. */
static void save(struct kp_recording *r, const char *name)
{
    struct kp_store *s = NULL;
    char *err = NULL;
    assert_int_equal(kp_store_create(inside(name), true, &s, &err), 0);
    assert_int_equal(kp_store_put_session(s, &r->session, &err), 0);
    for (size_t i = 0; i < r->n; i++)
        assert_int_equal(kp_store_put_result(s, &r->results[i], &err), 0);
    kp_store_close(s);
    kp_test_recording_free(r);
}

/* A session of launches of our own making, with no set: their metrics are asked for by name. */
static struct kp_recording made(const char *metrics)
{
    struct kp_recording r = kp_test_recording();
    for (size_t i = 0; i < r.n; i++)
        kp_result_free(&r.results[i]);
    r.n = 0;
    free(r.session.set);
    free(r.session.metrics);
    r.session.set = kp_strdup("");
    r.session.metrics = kp_strdup(metrics);
    return r;
}

static struct kp_result *add_launch(struct kp_recording *r, const char *name, uint32_t grid, double ns)
{
    struct kp_result *l = &r->results[r->n]; /* there is room for those of the recording */
    *l = (struct kp_result){.launch = {.id = r->n, .ordinal = r->n, .cc_major = 9, .passes = 3}};
    l->launch.mangled = kp_strdup(name);
    l->launch.demangled = kp_strdup(name);
    l->launch.chip = kp_strdup("GH100");
    for (int i = 0; i < 3; i++)
        l->launch.grid[i] = l->launch.block[i] = i ? 1 : grid;
    kp_result_set_real(l, KP_DIFF_DURATION, "ns", ns);
    r->n++;
    return l;
}

struct compared {
    int rc;
    char *text, *err;
    struct kp_diff_outcome outcome;
};

static struct compared compare_with(const char *other, char letter, const struct kp_display *d,
                                    const struct kp_diff_options *o)
{
    struct compared c = {0};
    struct kp_test_text t = {calloc(1, 1), 0};
    struct kp_sink out = kp_test_sink(&t);
    struct kp_diff_input input[2] = {{"a.kprof", 'A', NULL}, {other, letter, NULL}};
    char *err = NULL;
    for (int i = 0; i < 2; i++)
        assert_int_equal(kp_store_open(inside(input[i].name), &input[i].store, &err), 0);
    c.rc = kp_diff(&out, d, o, input, &c.outcome, &c.err);
    for (int i = 0; i < 2; i++)
        kp_store_close(input[i].store);
    c.text = t.text;
    return c;
}

static struct compared compare(const struct kp_display *d, const struct kp_diff_options *o)
{
    return compare_with("b.kprof", 'B', d, o);
}

static void compared_free(struct compared *c)
{
    free(c->text);
    free(c->err);
    free(c->outcome.warnings);
    free(c->outcome.missing);
}

static void assert_says(const struct compared *c, const char *text)
{
    if (!strstr(c->text, text))
        fail_msg("no '%s' in\n%s", text, c->text);
}

static void assert_silent(const struct compared *c, const char *text)
{
    if (strstr(c->text, text))
        fail_msg("'%s' in\n%s", text, c->text);
}

/* Runs `kprof arguments` in the folder; *out and *err stay until the next call. Returns the exit status. */
static int run(const char *arguments, const char **out, const char **err)
{
    static char *texts[2];
    char line[2 * PATH_MAX], kprof[PATH_MAX];
    snprintf(kprof, sizeof kprof, "%s", kp_test_build("kprof"));
    snprintf(line, sizeof line, "cd '%s' && ASAN_OPTIONS=\"$ASAN_OPTIONS:detect_leaks=0\" '%s' %s >out 2>err", folder,
             kprof, arguments);
    int status = system(line);
    free(texts[0]);
    free(texts[1]);
    *out = texts[0] = kp_test_read(inside("out"));
    *err = texts[1] = kp_test_read(inside("err"));
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* ---- the page ---- */

static void scale(struct kp_result *r, const char *metric, double factor)
{
    const struct kp_metric *m = kp_result_find(r, metric);
    double value;
    assert_true(kp_metric_number(m, &value));
    char *unit = strdup(m->unit);
    assert_int_equal(kp_result_set_real(r, metric, unit, value * factor), 0);
    free(unit);
}

/* Of the same 14 launches: one slower, one faster with other limits, one as good as the same, one with another grid. */
static void save_two_builds(void)
{
    struct kp_recording a = kp_test_recording(), b = kp_test_recording();
    b.session.pid = 1001;
    scale(&b.results[0], KP_DIFF_DURATION, 1.1);
    scale(&b.results[0], "gpc__cycles_elapsed.max", 1.1);
    scale(&b.results[1], KP_DIFF_DURATION, 0.5);
    scale(&b.results[1], "sm__warps_active.avg.pct_of_peak_sustained_active", 0.4);
    scale(&b.results[2], KP_DIFF_DURATION, 1.005);
    b.results[3].launch.grid[0]++;
    assert_int_equal(kp_result_set_count(&b.results[4], "launch__grid_size", "", 1), 0);
    save(&a, "a.kprof");
    save(&b, "b.kprof");
}

static void the_page_shows_what_changed(void **state)
{
    (void)state;
    save_two_builds();
    struct compared c = compare(&plain, &by_launch);
    assert_int_equal(c.rc, 0);
    assert_int_equal(c.outcome.pairs, 13);
    kp_test_golden(c.text, "tests/golden/diff_launches.txt");
    compared_free(&c);
}

static void all_rows_are_shown_when_asked_for(void **state)
{
    (void)state;
    struct kp_diff_options all = {.all = true, .threshold = 1};
    struct kp_display base = {.rules = KP_RULES_ALL, .base_units = true, .naming = KP_NAMING_NAME};
    save_two_builds();
    struct compared c = compare(&plain, &by_launch);
    assert_silent(&c, "Registers Per Thread");
    compared_free(&c);
    c = compare(&plain, &all);
    assert_says(&c, "Registers Per Thread             register/thread");
    assert_silent(&c, "not shown");
    compared_free(&c);
    c = compare(&base, &all);
    assert_says(&c, "\n    gpu__time_duration.sum ");
    assert_says(&c, "of all launches: 4,");
    assert_says(&c, " ns in A, ");
    compared_free(&c);
}

/* The same in both is nothing. */
static void a_session_does_not_differ_from_itself(void **state)
{
    (void)state;
    struct kp_diff_options none = {.threshold = 0};
    struct kp_recording a = kp_test_recording(), b = kp_test_recording();
    save(&a, "a.kprof");
    save(&b, "b.kprof");
    struct compared c = compare(&(struct kp_display){.rules = KP_RULES_ALL, .details = KP_DETAILS_ALL}, &none);
    assert_says(&c, "==KPROF== 14 launches compared, 0 of them changed; ");
    assert_silent(&c, "Section");
    assert_silent(&c, "Only in");
    compared_free(&c);
}

static void bodies_are_compared_where_they_are_shown(void **state)
{
    (void)state;
    struct kp_recording a = kp_test_recording_of("tests/golden/h200_bodies.tsv");
    struct kp_recording b = kp_test_recording_of("tests/golden/h200_bodies.tsv");
    struct kp_display d = {.details = KP_DETAILS_BODY, .choose = true, .set = "full"};
    scale(&b.results[0], "lts__t_sectors_srcunit_tex_op_read.sum", 1.5);
    scale(&b.results[0], "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum.per_cycle_elapsed", 2); /* of rooflines */
    scale(&b.results[0], KP_DIFF_DURATION, 2);
    save(&a, "a.kprof");
    save(&b, "b.kprof");
    struct compared c = compare(&d, &by_launch);
    kp_test_golden(c.text, "tests/golden/diff_bodies.txt");
    compared_free(&c);
    d.details = KP_DETAILS_HEADER;
    c = compare(&d, &by_launch);
    assert_says(&c, "\n    Duration ");
    assert_silent(&c, "L1/TEX Load");
    compared_free(&c);
}

/* ---- pairs ---- */

static void launches_of_a_key_are_paired_in_order(void **state)
{
    (void)state;
    struct kp_recording a = made(""), b = made("");
    add_launch(&a, "k", 1, 100);
    add_launch(&a, "z", 1, 10);
    add_launch(&a, "k", 2, 1000);
    add_launch(&a, "k", 1, 200);
    add_launch(&a, "k", 1, 300);
    add_launch(&b, "k", 1, 200);
    add_launch(&b, "k", 2, 1500);
    add_launch(&b, "k", 1, 100);
    add_launch(&b, "k", 3, 100);
    save(&a, "a.kprof");
    save(&b, "b.kprof");
    struct kp_diff_limit limit = {KP_DIFF_DURATION, 0};
    struct compared c = compare(&plain, &(struct kp_diff_options){.limits = &limit, .n_limits = 1});
    assert_int_equal(c.rc, 0);
    assert_int_equal(c.outcome.pairs, 3);
    assert_int_equal(c.outcome.exceeded, 2);
    kp_test_golden(c.text, "tests/golden/diff_pairs.txt");
    compared_free(&c);
}

static void add_kind(struct kp_recording *r, const char *note, double ns)
{
    struct kp_launch_info *l = &add_launch(r, "k", 1, ns)->launch;
    l->note = kp_strdup(note);
    l->groups = l->groups_counted = 2;
}

/* Kinds of launches of a rotation are told by their notes, whichever was complete first. */
static void kinds_are_paired_with_their_like(void **state)
{
    static const char small[] = KP_KIND_NOTE "whose argument 1 is 1", large[] = KP_KIND_NOTE "whose argument 1 is 2";
    (void)state;
    struct kp_recording a = made(""), b = made("");
    add_kind(&a, small, 100);
    add_kind(&a, large, 200);
    add_kind(&b, large, 200);
    add_kind(&b, small, 100);
    save(&a, "a.kprof");
    save(&b, "b.kprof");
    struct kp_diff_limit limit = {KP_DIFF_DURATION, 0};
    struct compared c = compare(&plain, &(struct kp_diff_options){.limits = &limit, .n_limits = 1});
    assert_int_equal(c.rc, 0);
    assert_int_equal(c.outcome.pairs, 2);
    assert_int_equal(c.outcome.exceeded, 0);
    compared_free(&c);
}

/* Six kernels: two slower, one of them by its launches alone; one faster, one new, one gone, one as it was. */
static void save_many(void)
{
    struct kp_recording a = made(KP_DIFF_DURATION), b = made(KP_DIFF_DURATION);
    add_launch(&a, "void slower<float, (int)64>(int)", 1, 1000);
    add_launch(&a, "void slower<float, (int)128>(int)", 1, 3000);
    add_launch(&a, "faster(int)", 1, 9000);
    add_launch(&a, "gone(int)", 1, 50);
    add_launch(&a, "same(int)", 1, 4000);
    add_launch(&b, "void slower<float, (int)64>(int)", 1, 1500);
    add_launch(&b, "void slower<float, (int)128>(int)", 1, 2900)->launch.alike = 2;
    add_launch(&b, "faster(int)", 1, 6000);
    add_launch(&b, "new(int)", 1, 70);
    add_launch(&b, "same(int)", 1, 4020);
    save(&a, "a.kprof");
    save(&b, "b.kprof");
}

static struct compared compare_many(const char *name, struct kp_display d, const struct kp_diff_options *o)
{
    struct compared c = compare(&d, o);
    assert_int_equal(c.rc, 0);
    assert_int_equal(c.outcome.pairs, 4);
    if (name)
        kp_test_golden(c.text, name);
    return c;
}

/* More pairs than the bound are told by kernel: what became slower, what faster, and how to see the rest. */
static void many_pairs_are_told_by_kernel(void **state)
{
    struct kp_display d = {.brief_above = 3};
    struct kp_diff_limit limit = {KP_DIFF_DURATION, 10};
    (void)state;
    save_many();
    struct compared c = compare_many("tests/golden/diff_brief.txt", d, &by_launch);
    assert_silent(&c, "Metric Name");
    compared_free(&c);
    d.sort = KP_SORT_DURATION;
    d.top = 1;
    c = compare_many("tests/golden/diff_brief_duration.txt", d,
                     &(struct kp_diff_options){.threshold = 1, .limits = &limit, .n_limits = 1});
    assert_int_equal(c.outcome.exceeded, 1);
    compared_free(&c);
    d.sort = KP_SORT_NAME;
    d.width = 60;
    c = compare_many("tests/golden/diff_brief_narrow.txt", d, &by_launch);
    compared_free(&c);

    /* all of it up to the bound, and where all rows are asked for */
    d.brief_above = 4;
    c = compare_many(NULL, d, &by_launch);
    assert_silent(&c, "Slower in B");
    assert_says(&c, "Metric Name");
    compared_free(&c);
    d.brief_above = 3;
    c = compare_many(NULL, d, &(struct kp_diff_options){.threshold = 1, .all = true});
    assert_silent(&c, "Slower in B");
    compared_free(&c);
    const char *out, *err;
    assert_int_equal(run("diff --brief-above 3 --sort gain --top 1 a.kprof b.kprof", &out, &err), 0);
    assert_non_null(
        strstr(out, "Slower in B: 3 kernels, together +3.37 us, by change in percent; the first 1, --top 0 lists all"));
    assert_string_equal(err, "");
    assert_int_equal(run("diff --brief-above 3 --show changed --top 1 a.kprof b.kprof", &out, &err), 0);
    assert_string_equal(err, "==WARNING== --top has no effect without lists by kernel, which stand for many pairs "
                             "(--brief-above)\n");
    assert_null(strstr(out, "Slower in B"));
    assert_int_equal(run("diff --brief-above 3 --threshold 1000% a.kprof b.kprof", &out, &err), 0);
    assert_non_null(strstr(out, " 0 of them changed\n"));
}

static void without_a_pair_there_is_a_hint(void **state)
{
    (void)state;
    struct kp_recording a = made(""), b = made("");
    add_launch(&a, "k", 1, 100);
    add_launch(&b, "k", 2, 100);
    save(&a, "a.kprof");
    save(&b, "b.kprof");
    struct compared c = compare(&plain, &by_launch);
    assert_int_equal(c.outcome.pairs, 0);
    assert_says(&c, "--by kernel pairs by name alone");
    compared_free(&c);
    c = compare(&plain, &(struct kp_diff_options){.by = KP_DIFF_BY_KERNEL});
    assert_int_equal(c.outcome.pairs, 1);
    assert_silent(&c, "--by kernel");
    compared_free(&c);
}

static void kernels_are_averaged(void **state)
{
    (void)state;
    struct kp_diff_options by_kernel = {.by = KP_DIFF_BY_KERNEL, .all = true};
    struct kp_recording a = made("gpu__time_duration.sum,text.same,text.other,some.only"), b = made("");
    static const double ns[] = {100, 200, 600};
    for (int i = 0; i < 3; i++) {
        struct kp_result *l = add_launch(&a, "k", (uint32_t)i + 1, ns[i]);
        kp_result_set_text(l, "text.same", "", "x");
        kp_result_set_text(l, "text.other", "", i ? "x" : "y");
        if (i)
            kp_result_set_count(l, "some.only", "", (uint64_t)i * 10);
    }
    add_launch(&a, "long", 1, 9000);
    add_launch(&b, "long", 1, 9000);
    struct kp_result *l = add_launch(&b, "k", 1, 450);
    kp_result_set_text(l, "text.same", "", "x");
    kp_result_set_text(l, "text.other", "", "y");
    kp_result_set_count(l, "some.only", "", 15);
    free(b.session.metrics);
    b.session.metrics = kp_strdup(a.session.metrics);
    save(&a, "a.kprof");
    save(&b, "b.kprof");
    struct compared c = compare(&plain, &by_kernel);
    assert_int_equal(c.rc, 0);
    assert_int_equal(c.outcome.pairs, 2);
    kp_test_golden(c.text, "tests/golden/diff_kernels.txt");
    compared_free(&c);
}

/* A rule counts where it spoke for half of the launches. */
static void a_rule_of_a_kernel_speaks_for_most_launches(void **state)
{
    (void)state;
    struct kp_diff_options by_kernel = {.by = KP_DIFF_BY_KERNEL};
    for (size_t speaking = 1; speaking <= 2; speaking++) {
        struct kp_recording a = kp_test_recording(), b = kp_test_recording();
        for (size_t i = 0; i < 4; i++) { /* of four launches of one kernel, `speaking` are tiny */
            bool tiny = i < speaking;
            free(b.results[i].launch.demangled);
            free(a.results[i].launch.demangled);
            a.results[i].launch.demangled = kp_strdup("k");
            b.results[i].launch.demangled = kp_strdup("k");
            for (struct kp_recording *r = &a; r; r = r == &a ? &b : NULL) {
                kp_result_set_count(&r->results[i], "launch__grid_size", "", r == &b && tiny ? 1 : 1 << 20);
                kp_result_set_count(&r->results[i], "launch__waves_per_multiprocessor", "", 1000);
            }
        }
        a.session.n_devices = b.session.n_devices = 0;
        for (size_t i = 4; i < a.n; i++) {
            kp_result_free(&a.results[i]);
            kp_result_free(&b.results[i]);
        }
        a.n = b.n = 4;
        save(&a, "a.kprof");
        save(&b, "b.kprof");
        struct compared c = compare(&plain, &by_kernel);
        (speaking == 2 ? assert_says : assert_silent)(&c, "appeared OPT  LaunchConfiguration");
        compared_free(&c);
    }
}

/* ---- values ---- */

static void what_is_a_change(void **state)
{
    static const struct {
        double a, b;
        const char *change; /* NULL: none */
    } rows[] = {{100, 101, NULL},    {100, 99, NULL},      {100, 101.5, "+1.50"},  {100, 98, "-2.00"},
                {0, 0, NULL},        {0, 5, "+inf"},       {0, -5, "-inf"},        {5, 0, "-100.00"},
                {-10, -5, "+50.00"}, {-10, 10, "+200.00"}, {1000, 2000, "+100.00"}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct kp_recording a = made("m"), b = made("m");
        kp_result_set_real(add_launch(&a, "k", 1, 100), "m", "byte", rows[i].a);
        kp_result_set_real(add_launch(&b, "k", 1, 100), "m", "byte", rows[i].b);
        save(&a, "a.kprof");
        save(&b, "b.kprof");
        struct compared c = compare(&plain, &by_launch);
        char cell[64];
        snprintf(cell, sizeof cell, " %s\n", rows[i].change ? rows[i].change : "");
        if (rows[i].change)
            assert_says(&c, cell);
        else
            assert_silent(&c, "Section");
        compared_free(&c);
    }
}

static void both_values_are_in_one_unit(void **state)
{
    (void)state;
    struct kp_recording a = made("m"), b = made("m");
    kp_result_set_real(add_launch(&a, "k", 1, 100), "m", "byte", 900);
    kp_result_set_real(add_launch(&b, "k", 1, 100), "m", "byte", 1.5e6);
    save(&a, "a.kprof");
    save(&b, "b.kprof");
    struct compared c = compare(&plain, &by_launch);
    assert_says(&c, "    m                  byte 900 1,500,000 +166566.67\n");
    compared_free(&c);
    a = made(KP_DIFF_DURATION ",zero");
    b = made(KP_DIFF_DURATION ",zero");
    kp_result_set_real(add_launch(&a, "k", 1, 999000), "zero", "byte", 0);
    kp_result_set_real(add_launch(&b, "k", 1, 1003000), "zero", "byte", 1.5e6);
    save(&a, "a.kprof");
    save(&b, "b.kprof");
    struct kp_diff_limit limit = {KP_DIFF_DURATION, 0.1};
    c = compare(&plain, &(struct kp_diff_options){.threshold = 0.1, .limits = &limit, .n_limits = 1});
    assert_says(&c, " us 999 1,003 ");
    assert_says(&c, " Mbyte   0  1.50 ");
    assert_says(&c, KP_DIFF_DURATION " 999 us -> 1,003 us (+0.40%): k");
    compared_free(&c);
}

static void what_is_no_number_differs_or_not(void **state)
{
    (void)state;
    struct kp_recording a = made("t,wide,same,gone,never,unit,only"), b = made("t,wide,same,gone,never,unit,only");
    struct kp_result *x = add_launch(&a, "k", 1, 100), *y = add_launch(&b, "k", 1, 100);
    kp_result_set_text(x, "t", "", "none");
    kp_result_set_text(y, "t", "", "shared");
#define WIDE "\xe6\xa0\xb8\xe5\x87\xbd\xe6\x95\xb0"
    kp_result_set_text(x, "wide", "", WIDE); /* two columns a character; one that is too long is cut by columns */
    kp_result_set_text(y, "wide", "", "1" WIDE WIDE WIDE WIDE WIDE);
    kp_result_set_text(x, "same", "", "s");
    kp_result_set_text(y, "same", "", "s");
    kp_result_set_real(x, "gone", "byte", 1);
    kp_result_set_why(y, "gone", kp_why_of(KP_REASON_NOT_COLLECTED, (char *)"no permission"));
    kp_result_set_why(x, "never", kp_why_of(KP_REASON_NOT_COLLECTED, (char *)"no permission"));
    kp_result_set_why(y, "never", kp_why_of(KP_REASON_NOT_COLLECTED, (char *)"no permission"));
    kp_result_set_real(x, "unit", "byte", 1);
    kp_result_set_real(y, "unit", "sector", 1);
    kp_result_set_real(x, "only", "byte", 1);
    save(&a, "a.kprof");
    save(&b, "b.kprof");
    struct compared c = compare(&plain, &by_launch);
    kp_test_golden(c.text, "tests/golden/diff_texts.txt");
    compared_free(&c);
}

/* ---- sections ---- */

static void sections_that_only_one_has_are_left_out(void **state)
{
    (void)state;
    struct kp_recording a = kp_test_recording(), b = kp_test_recording();
    free(b.session.set);
    b.session.set = kp_strdup("");
    free(b.session.sections);
    b.session.sections = kp_strdup("LaunchStats");
    scale(&b.results[0], KP_DIFF_DURATION, 3);
    scale(&b.results[0], "launch__registers_per_thread", 3);
    save(&a, "a.kprof");
    save(&b, "b.kprof");
    struct compared c = compare(&plain, &by_launch);
    assert_says(&c, "Section: Launch Statistics");
    assert_silent(&c, "Section: GPU Speed Of Light Throughput");
    compared_free(&c);
    c = compare(&(struct kp_display){.choose = true, .set = "", .sections = "SpeedOfLight"}, &by_launch);
    assert_says(&c, "Section: GPU Speed Of Light Throughput");
    assert_silent(&c, "Section: Launch Statistics");
    compared_free(&c);
}

/* Sections and metrics that were chosen, but that a session lacks, are told of; nothing in common is wrong use. */
static void what_was_chosen_but_not_collected_is_told(void **state)
{
#define NOTHING                                                                                                        \
    "==ERROR== a.kprof and b.kprof do not both have any of what was chosen: choose what both have, or record both "    \
    "with it\n"
    static const struct {
        const char *arguments;
        int status;
        const char *err;
    } rows[] = {
        {"diff --section SourceCounters a.kprof b.kprof", 2,
         "==WARNING== SourceCounters was not collected in a.kprof and b.kprof\n" NOTHING},
        {"diff --csv --section SourceCounters a.kprof b.kprof", 2,
         "==WARNING== SourceCounters was not collected in a.kprof and b.kprof\n" NOTHING},
        {"diff --by kernel --section LaunchStats a.kprof b.kprof", 2,
         "==WARNING== LaunchStats was not collected in b.kprof\n" NOTHING},
        {"diff --section SourceCounters --metrics " KP_DIFF_DURATION " a.kprof b.kprof", 0,
         "==WARNING== SourceCounters was not collected in a.kprof and b.kprof\n"},
        {"diff --metrics only.a a.kprof b.kprof", 2, NOTHING},
        {"diff --section SourceCounters --fail-above 50% a.kprof b.kprof", 0,
         "==WARNING== SourceCounters was not collected in a.kprof and b.kprof\n"},
        {"diff --section LaunchStats a.kprof a.kprof", 0, NULL},
        {"diff --section LaunchStats c.kprof c.kprof", 2, NULL}, /* has a row of it by chance, as report knows */
        {"diff --set full a.kprof b.kprof", 0, ""},
    };
    struct kp_recording a = made(""), b = made(""), c = made("");
    const char *out, *err;
    (void)state;
    free(a.session.sections);
    a.session.sections = kp_strdup("LaunchStats");
    struct kp_result *l = add_launch(&a, "k", 1, 1000);
    kp_result_set_real(l, "only.a", "", 1);
    kp_result_set_count(l, "launch__registers_per_thread", "", 32);
    kp_result_set_count(add_launch(&c, "k", 1, 1000), "launch__registers_per_thread", "", 32);
    add_launch(&b, "k", 1, 1100);
    save(&a, "a.kprof");
    save(&b, "b.kprof");
    save(&c, "c.kprof");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int status = run(rows[i].arguments, &out, &err);
        if (status != rows[i].status || (rows[i].err && strcmp(err, rows[i].err) != 0))
            fail_msg("%s: %d\n%s%s", rows[i].arguments, status, out, err);
        if (status)
            assert_null(strstr(out, "compared"));
    }
}

static void launches_of_one_pass_are_compared(void **state)
{
    (void)state;
    struct kp_recording a = made(""), b = made("");
    for (int i = 0; i < 2; i++) {
        struct kp_result *l = add_launch(i ? &b : &a, "ncclDevKernel", 1, 100 * (i + 1));
        l->launch.passes = 1;
        kp_result_set_real(l, "smsp__inst_executed.sum", "inst", 1);
    }
    save(&a, "a.kprof");
    save(&b, "b.kprof");
    struct compared c = compare(&plain, &by_launch);
    assert_says(&c, "Section: Quick Look");
    assert_says(&c, "+100.00");
    compared_free(&c);
}

/* ---- limits and errors ---- */

static void limits_are_exceeded_by_more_only(void **state)
{
    static const struct {
        double percent;
        size_t exceeded;
    } rows[] = {{0, 1}, {9.99, 1}, {10, 0}, {50, 0}};
    (void)state;
    struct kp_recording a = made(""), b = made("");
    add_launch(&a, "k", 1, 1000);
    add_launch(&a, "j", 1, 1000);
    add_launch(&b, "k", 1, 1100);
    add_launch(&b, "j", 1, 10);
    save(&a, "a.kprof");
    save(&b, "b.kprof");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct kp_diff_limit limit = {KP_DIFF_DURATION, rows[i].percent};
        struct compared c = compare(&plain, &(struct kp_diff_options){.limits = &limit, .n_limits = 1});
        assert_int_equal(c.rc, 0);
        assert_int_equal(c.outcome.exceeded, rows[i].exceeded);
        (rows[i].exceeded ? assert_says : assert_silent)(&c, "gpu__time_duration.sum 1 us -> 1.10 us (+10.00%): k (1");
        compared_free(&c);
    }
}

/* Means of rotations that are no further apart than their launches let expect are the same. */
static void a_change_within_the_spread_is_none(void **state)
{
    static const struct {
        double deviation; /* half of the interval of three launches is 3.51 times that */
        bool changed;
    } rows[] = {{10, true}, {28, true}, {29, false}, {50, false}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct kp_recording a = made(KP_DIFF_DURATION), b = made(KP_DIFF_DURATION);
        kp_result_set_spread(add_launch(&a, "k", 1, 1000), KP_DIFF_DURATION, 3, rows[i].deviation);
        kp_result_set_spread(add_launch(&b, "k", 1, 1100), KP_DIFF_DURATION, 3, rows[i].deviation);
        save(&a, "a.kprof");
        save(&b, "b.kprof");
        struct kp_diff_limit limit = {KP_DIFF_DURATION, 5};
        struct compared c = compare(&plain, &(struct kp_diff_options){.limits = &limit, .n_limits = 1, .threshold = 1});
        assert_int_equal(c.rc, 0);
        assert_int_equal(c.outcome.exceeded, rows[i].changed);
        (rows[i].changed ? assert_says : assert_silent)(&c, "+10.00\n");
        compared_free(&c);
    }
}

/* An entry of a rotation stands for all launches of its kernel and shape. */
static void a_mean_weighs_as_many_launches(void **state)
{
    struct kp_diff_options by_kernel = {.by = KP_DIFF_BY_KERNEL, .all = true};
    (void)state;
    struct kp_recording a = made(KP_DIFF_DURATION), b = made(KP_DIFF_DURATION);
    add_launch(&a, "k", 1, 100)->launch.alike = 9;
    add_launch(&a, "k", 2, 1100);
    add_launch(&b, "k", 1, 200)->launch.alike = 10;
    save(&a, "a.kprof");
    save(&b, "b.kprof");
    struct compared c = compare(&plain, &by_kernel);
    assert_int_equal(c.rc, 0);
    assert_says(&c, "averages of 10 launches of A, 10 of B");
    assert_says(&c, "ns 200 200        0\n");
    assert_says(&c, "2 us in A, 2 us in B");
    compared_free(&c);
}

static void metrics_that_nobody_has_are_errors(void **state)
{
    (void)state;
    struct kp_diff_limit near = {"gpu__time_duraton.sum", 1}, far = {"zebra", 1};
    const struct kp_diff_limit *limits[] = {&near, &far};
    static const char *const says[] = {
        "--fail-above: no launch has 'gpu__time_duraton.sum'; did you mean 'gpu__time_duration.sum'?",
        "--fail-above: no launch has 'zebra'; `kprof report --page raw` shows what they have",
    };
    struct kp_recording a = made(""), b = made("");
    kp_result_set_real(add_launch(&a, "k", 1, 1000), "only.a", "", 1);
    add_launch(&b, "k", 1, 1100);
    save(&a, "a.kprof");
    save(&b, "b.kprof");
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        struct compared c = compare(&plain, &(struct kp_diff_options){.limits = limits[i], .n_limits = 1});
        assert_int_equal(c.rc, -EINVAL);
        assert_string_equal(c.err, says[i]);
        assert_string_equal(c.text, "");
        compared_free(&c);
    }
    struct kp_display d = {.choose = true, .set = "", .sections = "", .metrics = "only.a,regex:zzz,onlyy.a"};
    struct compared c = compare(&d, &by_launch);
    assert_int_equal(c.rc, -EINVAL);
    assert_string_equal(c.err, "--metrics: no launch has 'onlyy.a'; did you mean 'only.a'?");
    compared_free(&c);
}

static void assert_unchecked(const char *metric, size_t unchecked, const char *warning)
{
    struct kp_diff_limit limit = {metric, 5};
    struct compared c = compare(&plain, &(struct kp_diff_options){.limits = &limit, .n_limits = 1});
    assert_int_equal(c.rc, 0);
    assert_int_equal(c.outcome.exceeded, 0);
    assert_int_equal(c.outcome.unchecked, unchecked);
    assert_string_equal(c.outcome.warnings ? c.outcome.warnings : "", warning);
    compared_free(&c);
}

/* A launch that could not be measured must not pass for one that did not grow. */
static void what_cannot_be_compared_does_not_pass_in_silence(void **state)
{
    (void)state;
    const char *out, *err;
    struct kp_recording a = made(""), b = made("");
    struct kp_result *l = add_launch(&a, "k", 1, 1000);
    kp_result_set_real(l, "only.a", "", 1);
    kp_result_set_real(l, "both", "", 1);
    add_launch(&a, "j", 1, 1000);
    kp_result_set_real(add_launch(&b, "k", 1, 1000), "both", "", 1);
    kp_result_set_why(add_launch(&b, "j", 1, 1000), KP_DIFF_DURATION,
                      kp_why_of(KP_REASON_NOT_COLLECTED, (char *)"lost"));
    save(&a, "a.kprof");
    save(&b, "b.kprof");
    assert_unchecked(KP_DIFF_DURATION, 0,
                     "--fail-above: 1 of 2 pairs of launches could not be compared because A or B has no number for "
                     "gpu__time_duration.sum\n");
    assert_unchecked(
        "only.a", 1,
        "--fail-above: 2 of 2 pairs of launches could not be compared because A or B has no number for only.a, "
        "which counts as over the limit\n");
    assert_int_equal(run("diff a.kprof b.kprof --fail-above 5%", &out, &err), 0);
    assert_memory_equal(err, "==WARNING== --fail-above: 1 of 2 pairs ", 39);
    assert_int_equal(run("diff a.kprof b.kprof --fail-above only.a:5%", &out, &err), 1);
    assert_memory_equal(err, "==WARNING== --fail-above: 2 of 2 pairs ", 39);
    assert_int_equal(run("diff a.kprof a.kprof --fail-above 5%", &out, &err), 0);
    assert_null(strstr(err, "--fail-above"));

    b = made("");
    add_launch(&b, "other", 1, 1000);
    save(&b, "b.kprof");
    assert_unchecked(KP_DIFF_DURATION, 1,
                     "--fail-above: A and B have no launches in common to compare gpu__time_duration.sum of, which "
                     "counts as over the limit\n");
}

static int refuse(void *arg, const char *text, size_t len)
{
    (void)arg;
    (void)text;
    (void)len;
    return -ENOSPC;
}

static void what_the_sink_returns_is_returned(void **state)
{
    (void)state;
    struct kp_sink out = {refuse, NULL};
    struct kp_diff_outcome outcome;
    struct kp_diff_input input[2] = {{"a.kprof", 'A', NULL}, {"b.kprof", 'B', NULL}};
    char *err = NULL;
    save_two_builds();
    for (int i = 0; i < 2; i++)
        assert_int_equal(kp_store_open(inside(input[i].name), &input[i].store, &err), 0);
    assert_int_equal(kp_diff(&out, &plain, &by_launch, input, &outcome, &err), -ENOSPC);
    for (int i = 0; i < 2; i++)
        kp_store_close(input[i].store);
}

/* ---- the command ---- */

/* A comparison of nothing must not pass as one that found no change. */
static void without_a_pair_the_status_tells(void **state)
{
    struct kp_recording a = made(""), b = made(""), none = made(""), timeline = made("");
    const char *out, *err;
    (void)state;
    add_launch(&a, "k", 1, 100);
    add_launch(&b, "k", 2, 100);
    save(&a, "a.kprof");
    save(&b, "b.kprof");
    save(&none, "none.kprof");
    assert_int_equal(run("diff a.kprof b.kprof", &out, &err), 1);
    assert_string_equal(err, "==ERROR== a.kprof and b.kprof have no launch in common: nothing was compared\n");
    assert_non_null(strstr(out, "==KPROF== 0 launches compared\n"));
    assert_null(strstr(out, "what both have"));
    assert_int_equal(run("diff --by kernel a.kprof b.kprof", &out, &err), 0);
    assert_string_equal(err, "");
    assert_int_equal(run("diff --by kernel a.kprof none.kprof", &out, &err), 1);
    assert_string_equal(err, "==ERROR== none.kprof has no counted launch: `kprof report` says why\n");
    kp_result_free(&timeline.results[0]);
    timeline.n = 0;
    timeline.session.launches_profiled = 0;
    assert_int_equal(kp_session_add_skip(&timeline.session, kp_why_of(KP_REASON_TIMELINE, NULL), 1), 0);
    save(&timeline, "timeline.kprof");
    assert_int_equal(run("diff timeline.kprof ./timeline.kprof", &out, &err), 1);
    assert_string_equal(err, "==WARNING== ./timeline.kprof is the same file as timeline.kprof: they cannot differ; "
                             "compare files of two recordings\n==ERROR== timeline.kprof has no counted launch: it was "
                             "recorded with --page timeline alone; record it with --timeline instead\n");
}

/* Part of a run is not taken for all of it. */
/* Where the counters could not be read the facts of the launches are left, which are always the same. */
static void without_counters_the_status_tells(void **state)
{
    const char *out, *err;
    (void)state;
    struct kp_recording a = made("launch__grid_size"), b = made("launch__grid_size");
    add_launch(&a, "f", 1, 100);
    struct kp_result *l = add_launch(&b, "f", 1, 100);
    assert_int_equal(
        kp_result_set_why(l, KP_DIFF_DURATION, kp_why_of(KP_REASON_NOT_COLLECTED, (char *)"no permission")), 0);
    l->launch.passes = 0;
    kp_result_set_count(l, "launch__grid_size", "", 1);
    save(&a, "a.kprof");
    save(&b, "b.kprof");
    assert_int_equal(run("diff a.kprof b.kprof", &out, &err), 1);
    assert_non_null(strstr(out, "==KPROF== Duration of all launches: 100 ns in A, not known in B\n"));
    assert_string_equal(err, "==ERROR== b.kprof has launches but no counters: no counter could be "
                             "compared\n");
    assert_int_equal(run("diff b.kprof b.kprof", &out, &err), 1);
    assert_null(strstr(out, "0 ns"));
    assert_int_equal(run("diff --fail-above launch__grid_size:0 b.kprof b.kprof", &out, &err), 0); /* is known */
}

/* Launches of different shapes, of which each pair says how much the kernel changed: 95 % of such sums lie within +/-.
 */
static void a_kernel_changed_by_more_than_its_launches_vary(void **state)
{
    enum { LAUNCHES = 4 };
    /* The changes of "noise" are +60, -40, +60, -40 ns: their sum is 40, its interval 3.182 * 57.7 * 2 = 367 ns. Those
     * of "slower" are 90, 110, 90, 110 ns: 400 +/- 73.5. */
    static const double noise[LAUNCHES] = {60, -40, 60, -40}, slower[LAUNCHES] = {90, 110, 90, 110};
    struct kp_display d = {.brief_above = 3};
    (void)state;
    struct kp_recording a = made(""), b = made("");
    for (uint32_t i = 0; i < LAUNCHES; i++) {
        double ns = 500 * (i + 1);
        add_launch(&a, "noise", 1, ns);
        add_launch(&b, "noise", 1, ns + noise[i]);
        add_launch(&a, "slower", 1, ns);
        add_launch(&b, "slower", 1, ns + slower[i]);
    }
    for (uint32_t i = 0; i < 6; i++) {
        double ns = i % 2 ? 100 : 10000;
        add_launch(&a, "sizes", i % 2 + 1, ns);
        add_launch(&b, "sizes", i % 2 + 1, 1.2 * ns);
    }
    save(&a, "a.kprof");
    save(&b, "b.kprof");
    struct compared c = compare(&d, &(struct kp_diff_options){.threshold = 0.5});
    assert_says(&c, "==KPROF== Slower in B: 2 kernels,");
    assert_says(&c, "+6.06 us     0 ns    +20.0 30.30 us 36.36 us        6 sizes\n");
    assert_says(&c, "+400 ns 73.49 ns     +8.0     5 us  5.40 us        4 slower\n");
    assert_says(
        &c, "==KPROF== 1 kernel changed by no more than 0.5%, or than launches vary (+/-, 95 %), together +40 ns\n");
    compared_free(&c);
    d.sort = KP_SORT_DURATION;
    c = compare(&d, &(struct kp_diff_options){.threshold = 0.5});
    assert_says(&c, "+100 ns 18.37 ns ");
    compared_free(&c);
}

static size_t count_of(const char *text, const char *what)
{
    size_t n = 0;
    for (const char *at = text; (at = strstr(at, what)); at += strlen(what))
        n++;
    return n;
}

/* JSON has the rows of CSV, of all comparisons in one list, with numbers as such. */
static void rows_as_json(void **state)
{
    static const char compared[] =
        "\"Compared\": \"b.kprof\", \"Kernel Name\": \"f(int, \\\"x\\\")\", \"Grid Size\": \"(4, 1, 1)\", \"Baseline "
        "ID\": 0,"
        " \"Compared ID\": 0, \"Baseline Launches\": 1, \"Compared Launches\": 1, \"Section Name\": \"Command line "
        "profiler metrics\", \"Table\": null, \"Metric Name\": \"m\", \"Metric Unit\": \"inst\", \"Baseline Value\": 3,"
        " \"Compared Value\": 4.5, \"Change %\": 50, \"Rule Name\": null, \"Rule Type\": null, \"Rule Change\": null}";
    static const char alone[] = "\"Baseline Value\": null, \"Compared Value\": 7, \"Change %\": null, ";
    const char *out, *err;
    (void)state;
    struct kp_recording a = made("m,w"), b = made("m,w");
    struct kp_result *f = add_launch(&a, "f(int, \"x\")", 4, 1000), *g = add_launch(&b, "f(int, \"x\")", 4, 1500);
    kp_result_set_real(f, "m", "inst", 3);
    kp_result_set_real(g, "m", "inst", 4.5);
    kp_result_set_text(f, "w", "", "7 of 8");
    kp_result_set_real(g, "w", "", INFINITY);
    add_launch(&b, "only", 1, 7);
    save(&a, "a.kprof");
    save(&b, "b.kprof");
    assert_int_equal(run("diff --json a.kprof b.kprof b.kprof", &out, &err), 0);
    assert_ptr_equal(strstr(out, "[\n {\"Baseline\": \"a.kprof\", "), out);
    assert_int_equal(count_of(out, compared), 2);
    assert_int_equal(count_of(out, alone), 2);
    assert_int_equal(count_of(out, "\"Baseline Value\": \"7 of 8\", \"Compared Value\": \"inf\", \"Change %\": null"),
                     2);
    assert_int_equal(count_of(out, "},\n {"), 5);
    assert_string_equal(out + strlen(out) - 4, "}\n]\n");
    assert_int_equal(run("diff --json a.kprof a.kprof", &out, &err), 0);
    assert_string_equal(out, "[]\n");
    assert_int_equal(run("diff --json --csv a.kprof b.kprof", &out, &err), 2);
}

/* CSV has the values of all pairs and nothing else; what has no row goes to stderr. */
static void rows_for_programs(void **state)
{
    static const char pair[] = "\"a.kprof\",\"b.kprof\",\"f(int, \"\"x\"\")\",\"(4, 1, 1)\",\"0\",\"0\",\"1\",\"1\",";
    const char *out, *err;
    char *row = NULL;
    (void)state;
    struct kp_recording a = made("m"), b = made("m");
    kp_result_set_real(add_launch(&a, "f(int, \"x\")", 4, 1000), "m", "inst", 3);
    kp_result_set_real(add_launch(&b, "f(int, \"x\")", 4, 1500), "m", "inst", 4.5);
    add_launch(&b, "only", 1, 7);
    save(&a, "a.kprof");
    save(&b, "b.kprof");
    assert_int_equal(run("diff --csv --fail-above 10% a.kprof b.kprof", &out, &err), 1);
    assert_int_equal(strncmp(out, "\"Baseline\",\"Compared\",\"Kernel Name\",", 36), 0);
    assert_true(
        asprintf(&row, "%s\"Command line profiler metrics\",\"\",\"m\",\"inst\",\"3\",\"4.5\",\"50\",\"\",\"\",\"\"\n",
                 pair) > 0);
    if (!strstr(out, row))
        fail_msg("no %s in %s", row, out);
    assert_non_null(
        strstr(out, "\"only\",\"(1, 1, "
                    "1)\",\"\",\"1\",\"0\",\"1\",\"\",\"\",\"Duration\",\"ns\",\"\",\"7\",\"\",\"\",\"\",\"\"\n"));
    assert_null(strstr(out, "==KPROF=="));
    assert_int_equal(count_of(out, "\n"), 3);
    assert_non_null(strstr(err, "==KPROF== Over the limit of +10%: " KP_DIFF_DURATION
                                " 1 us -> 1.50 us (+50.00%): f(int, \"x\") (4, 1, 1)x(4, 1, 1)"));
    assert_int_equal(run("diff --csv --brief-above 1 a.kprof b.kprof b.kprof", &out, &err), 0);
    assert_int_equal(count_of(out, "\"Baseline\""), 1);
    assert_int_equal(count_of(out, "\n"), 5);
    free(row);
}

/* A launch without a duration is no launch of 0 ns: it makes no total faster. */
static void a_missing_duration_is_no_gain(void **state)
{
    const char *out, *err;
    (void)state;
    struct kp_recording a = made(""), b = made("");
    add_launch(&a, "f", 1, 100);
    add_launch(&a, "g", 1, 50);
    add_launch(&b, "f", 1, 100);
    assert_int_equal(kp_result_set_why(add_launch(&b, "g", 1, 1), KP_DIFF_DURATION,
                                       kp_why_of(KP_REASON_NOT_COLLECTED, (char *)"lost")),
                     0);
    add_launch(&b, "h", 1, -NAN); /* an edited file has these */
    add_launch(&b, "h", 1, -5);
    add_launch(&b, "h", 1, INFINITY);
    save(&a, "a.kprof");
    save(&b, "b.kprof");
    assert_int_equal(run("diff a.kprof b.kprof", &out, &err), 0);
    assert_non_null(strstr(out, "==KPROF== Duration of what both have: 100 ns in A, 100 ns in B (+0.00%)\n"));
    assert_non_null(strstr(
        out, "==KPROF== Duration of all launches: 150 ns in A, 100 ns in B; 4 launches of B have no duration\n"));
    assert_int_equal(run("diff --brief-above 1 a.kprof b.kprof", &out, &err), 0);
    assert_non_null(strstr(out, "==KPROF== Faster in B: 0 kernels"));
    assert_non_null(strstr(out, "==KPROF== 2 kernels have launches without a duration, and are not compared\n"));
}

/* On a narrow terminal a long name is broken, and the values stay below their headings. */
static void long_names_are_broken(void **state)
{
    static const char name[] = "smsp__average_warps_issue_stalled_long_scoreboard_per_issue.ratio";
    struct kp_recording a = made(name), b = made(name);
    (void)state;
    kp_result_set_real(add_launch(&a, "f", 1, 10), name, "inst", 1);
    kp_result_set_real(add_launch(&b, "f", 1, 10), name, "inst", 2);
    save(&a, "a.kprof");
    save(&b, "b.kprof");
    struct compared c = compare(&(struct kp_display){.width = 60}, &by_launch);
    assert_says(&c, "\n    Metric Name                     Metric Unit A B Change %\n");
    assert_says(&c, "\n    smsp__average_warps_issue_");
    assert_says(&c, " inst 1 2  +100.00\n");
    compared_free(&c);
}

/* A rule has not gone where the other session does not have its section. */
static void rules_of_sections_that_both_have(void **state)
{
    struct kp_recording a = kp_test_recording(), b = kp_test_recording();
    (void)state;
    free(b.session.set);
    free(b.session.sections);
    b.session.set = kp_strdup("");
    b.session.sections = kp_strdup("LaunchStats");
    save(&a, "a.kprof");
    save(&b, "b.kprof");
    struct compared c = compare(&plain, &by_launch);
    assert_silent(&c, "went");
    compared_free(&c);
}

/* Averages of both sides are of the same launches: a number that one lacks does not count on the other side. */
static void averages_are_of_pairs(void **state)
{
    const char *out, *err;
    (void)state;
    struct kp_recording a = made(""), b = made("");
    add_launch(&a, "f", 1, 1000);
    add_launch(&a, "f", 1, 100);
    assert_int_equal(kp_result_set_why(add_launch(&b, "f", 1, 1), KP_DIFF_DURATION,
                                       kp_why_of(KP_REASON_NOT_COLLECTED, (char *)"lost")),
                     0);
    add_launch(&b, "f", 1, 130);
    save(&a, "a.kprof");
    save(&b, "b.kprof");
    assert_int_equal(run("diff --by kernel --fail-above 5% a.kprof b.kprof", &out, &err), 1);
    if (!strstr(out, KP_DIFF_DURATION " 100 ns -> 130 ns (+30.00%)"))
        fail_msg("%s", out);
    assert_int_equal(run("diff --by kernel --metrics " KP_DIFF_DURATION " a.kprof b.kprof", &out, &err), 0);
    assert_non_null(strstr(out, " ns 100 130   +30.00\n"));
    assert_int_equal(run("diff --metrics " KP_DIFF_DURATION " a.kprof b.kprof", &out, &err), 0);
    assert_non_null(strstr(out, " us 1 (!) n/a  differs\n"));
}

static void a_session_that_is_not_complete_is_told_of(void **state)
{
    struct kp_recording a = made(""), b = made("");
    const char *out, *err;
    (void)state;
    add_launch(&a, "k", 1, 100);
    add_launch(&b, "k", 1, 100);
    a.session.complete = true;
    b.session.complete = false;
    save(&a, "a.kprof");
    save(&b, "b.kprof");
    assert_int_equal(run("diff a.kprof b.kprof", &out, &err), 0);
    const char *second = strstr(out, "\nB: b.kprof, ");
    assert_non_null(second);
    assert_ptr_equal(strstr(out, ", incomplete: the program had not finished"),
                     strstr(second, ", incomplete: the program had not finished"));
    assert_non_null(strstr(second, ", incomplete: "));
}

static void the_command_compares(void **state)
{
    const char *out, *err;
    (void)state;
    save_two_builds();
    struct compared c = compare(&plain, &by_launch);
    assert_int_equal(run("diff a.kprof b.kprof", &out, &err), 0);
    assert_string_equal(out, c.text);
    assert_string_equal(err, "");
    compared_free(&c);

    struct kp_display d = {.rules = 0,
                           .choose = true,
                           .set = "",
                           .sections = "Occupancy",
                           .metrics = "",
                           .base_units = true,
                           .naming = KP_NAMING_BOTH};
    c = compare(&d, &(struct kp_diff_options){.by = KP_DIFF_BY_KERNEL, .all = true, .threshold = 3});
    assert_int_equal(run("diff a.kprof --by kernel --show=all b.kprof --threshold 3 --section Occupancy "
                         "--print-units base --print-metric-name label-name --apply-rules no",
                         &out, &err),
                     0);
    assert_string_equal(out, c.text);
    compared_free(&c);
}

/* The page of three: two comparisons with A, each under a heading, in the letters of the sessions. */
static void several_are_compared_with_the_first(void **state)
{
    struct kp_recording c = kp_test_recording();
    const char *out, *err;
    char *both = NULL;
    (void)state;
    save_two_builds();
    scale(&c.results[0], KP_DIFF_DURATION, 1.2);
    c.results[5].launch.grid[0]++;
    save(&c, "c.kprof");
    struct compared b = compare(&plain, &by_launch), third = compare_with("c.kprof", 'C', &plain, &by_launch);
    assert_says(&third, "\nC: c.kprof, ");
    assert_says(&third, " launch 0 of A, 0 of C\n");
    assert_says(&third, "==KPROF== Only in C: ");
    assert_says(&third, " in A, 4.65 ms in C (");
    assert_silent(&third, "B");
    assert_true(asprintf(&both, "==KPROF== Comparison 1 of 2: A with B\n%s\n==KPROF== Comparison 2 of 2: A with C\n%s",
                         b.text, third.text) > 0);
    assert_int_equal(run("diff a.kprof b.kprof c.kprof", &out, &err), 0);
    assert_string_equal(out, both);
    assert_string_equal(err, "");
    free(both);
    compared_free(&b);
    compared_free(&third);
}

/* The worst of the comparisons makes the status, wherever it stands. */
static void the_worst_of_several_makes_the_status(void **state)
{
    static const struct {
        const char *arguments;
        int status;
        const char *err;
    } rows[] = {
        {"diff --fail-above 5% a.kprof c.kprof d.kprof", 0, ""},
        {"diff --fail-above 5% a.kprof c.kprof b.kprof", 1, ""},
        {"diff --fail-above 5% a.kprof b.kprof c.kprof", 1, ""},
        {"diff a.kprof other.kprof b.kprof", 1,
         "==ERROR== a.kprof and other.kprof have no launch in common: nothing was compared\n"},
        {"diff --fail-above only.a:5% a.kprof other.kprof c.kprof", 1,
         "==ERROR== a.kprof and other.kprof have no launch in common: nothing was compared\n"
         "==WARNING== --fail-above: A and B have no launches in common to compare only.a of, which counts as over the "
         "limit\n"},
        {"diff --fail-above only.b:5% a.kprof b.kprof c.kprof", 2,
         "==WARNING== --fail-above: 1 of 1 pairs of launches could not be compared because A or B has no number for "
         "only.b, "
         "which counts as over the limit\n==ERROR== a.kprof and c.kprof: --fail-above: no launch has 'only.b'; did you "
         "mean 'only.a'?\n"},
    };
    const char *out, *err;
    (void)state;
    struct kp_recording b = made(""), other = made("");
    for (const char *const *name = (const char *const[]){"a.kprof", "c.kprof", "d.kprof", NULL}; *name; name++) {
        struct kp_recording same = made("");
        kp_result_set_real(add_launch(&same, "k", 1, 1000), "only.a", "", 1);
        save(&same, *name);
    }
    kp_result_set_real(add_launch(&b, "k", 1, 1100), "only.b", "", 1);
    add_launch(&other, "other", 1, 1000);
    save(&b, "b.kprof");
    save(&other, "other.kprof");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int status = run(rows[i].arguments, &out, &err);
        if (status != rows[i].status)
            fail_msg("%s: %d\n%s%s", rows[i].arguments, status, out, err);
        assert_string_equal(err, rows[i].err);
    }
}

static void the_exit_status_is_for_scripts(void **state)
{
    static const struct {
        const char *arguments;
        int status;
    } rows[] = {
        {"diff a.kprof b.kprof --fail-above 5%", 1},
        {"diff a.kprof b.kprof --fail-above 5", 1},
        {"diff a.kprof b.kprof --fail-above 11%", 0},
        {"diff a.kprof b.kprof --fail-above gpc__cycles_elapsed.max:9.5%", 1},
        {"diff a.kprof b.kprof --fail-above 11% --fail-above launch__block_size:0", 0},
        {"diff a.kprof b.kprof --fail-above launch__block_size:0 --fail-above 5%", 1},
        {"diff b.kprof a.kprof --fail-above 150%", 0},
        {"diff b.kprof a.kprof --fail-above 90%", 1},
        {"diff a.kprof b.kprof >/dev/full 2>/dev/null #", 1},
    };
    const char *out, *err;
    (void)state;
    save_two_builds();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int status = run(rows[i].arguments, &out, &err);
        if (status != rows[i].status)
            fail_msg("%s: %d\n%s%s", rows[i].arguments, status, out, err);
    }
}

static void wrong_use_is_told(void **state)
{
    static const char *const rows[] = {
        "diff",
        "diff a.kprof",
        "diff --html new.html a.kprof",
        "diff --html a.kprof b.kprof a.kprof",
        "diff --html nowhere/x.html a.kprof b.kprof",
        "report -zq a.kprof",
        "diff $(yes a.kprof | head -27)",
        "diff a.kprof b.kprof x.kprof",
        "diff a.kprof x.kprof",
        "diff a.kprof b.kprof --by kernle",
        "diff a.kprof b.kprof --show change",
        "diff a.kprof b.kprof --threshold 1x",
        "diff a.kprof b.kprof --threshold -1",
        "diff a.kprof b.kprof --threshold nan",
        "diff a.kprof b.kprof --threshold ''",
        "diff a.kprof b.kprof --fail-above duration",
        "diff a.kprof b.kprof --fail-above :5%",
        "diff a.kprof b.kprof --fail-above m:",
        "diff a.kprof b.kprof --fail-above gpu__time_duration.su:5%",
        "diff a.kprof b.kprof --fail-abve 5%",
        "diff a.kprof b.kprof --fail-above",
        "diff a.kprof b.kprof --set basci",
        "diff a.kprof b.kprof --metrics launch__block_siz",
        "dif a.kprof b.kprof",
    };
    struct kp_test_text t = {0};
    struct kp_sink all = kp_test_sink(&t);
    const char *out, *err;
    (void)state;
    save_two_builds();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int status = run(rows[i], &out, &err);
        if (status != (strncmp(rows[i], "dif ", 4) ? 2 : 127))
            fail_msg("%s: %d\n%s%s", rows[i], status, out, err);
        assert_string_equal(out, "");
        all.write(all.arg, err, strlen(err));
    }
    kp_test_golden(t.text, "tests/golden/diff_errors.txt");
    free(t.text);
}

/* ---- several sessions in one report ---- */

/* The page of a file as one of several; its launches go into `summary`. */
static void add_part(struct kp_test_text *t, const char *name, struct kp_summary *summary)
{
    struct kp_sink out = kp_test_sink(t);
    struct kp_store *s = NULL;
    char *err = NULL;
    assert_int_equal(kp_store_open(inside(name), &s, &err), 0);
    assert_int_equal(kp_page_part(&out, &plain, s, summary, &err), 0);
    kp_store_close(s);
}

static void a_report_of_several_has_one_summary(void **state)
{
    struct kp_test_text t = {0};
    struct kp_sink sink = kp_test_sink(&t);
    struct kp_summary *summary = kp_summary_new();
    const char *out, *err, together[] = "==KPROF== All 2 processes together:\n",
                           counted[] = "==KPROF== 28 launches of ";
    (void)state;
    save_two_builds();
    add_part(&t, "a.kprof", summary);
    assert_null(strstr(t.text, "Fix first"));
    add_part(&t, "b.kprof", summary);
    sink.write(sink.arg, together, strlen(together));
    assert_int_equal(kp_write_run_summary(summary, &(struct kp_out){.sink = &sink}), 0);
    kp_summary_free(summary);
    assert_non_null(strstr(t.text, counted));
    assert_non_null(strstr(t.text, "[994] patterns@"));
    assert_non_null(strstr(t.text, "[1001] patterns@"));
    assert_int_equal(run("report --brief-above 0 a.kprof b.kprof", &out, &err), 0);
    assert_string_equal(out, t.text);
    assert_string_equal(err, "");
    free(t.text);
    assert_int_equal(run("report --apply-rules no a.kprof b.kprof", &out, &err), 0);
    assert_null(strstr(out, "together"));
    /* Each launch is one, whichever pages there are. */
    static const char *const pages[] = {"report --page summary a.kprof b.kprof",
                                        "report --page details,summary a.kprof b.kprof",
                                        "report --page summary --print-summary per-kernel a.kprof b.kprof"};
    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++) {
        assert_int_equal(run(pages[i], &out, &err), 0);
        const char *end = strstr(out, together);
        if (!end || !strstr(end, counted))
            fail_msg("%s ends with no summary of both: %s", pages[i], end ? end : "none");
    }
}

static void one_bad_file_does_not_lose_the_others(void **state)
{
    const char *out, *err;
    (void)state;
    save_two_builds();
    FILE *f = fopen(inside("notes"), "we");
    fputs("some text\n", f);
    fclose(f);
    assert_int_equal(run("report a.kprof notes nowhere b.kprof", &out, &err), 2);
    assert_string_equal(err, "==ERROR== 'notes' is not a kprof session; `kprof -o FILE program` makes one\n"
                             "==ERROR== cannot open 'nowhere': No such file or directory\n");
    assert_non_null(strstr(out, "[994] patterns@"));
    assert_non_null(strstr(out, "[1001] patterns@"));
    assert_non_null(strstr(out, "==KPROF== All 2 processes together:\n"));
    assert_int_equal(run("report notes a.kprof", &out, &err), 2);
    assert_null(strstr(out, "together"));
    assert_non_null(strstr(out, "==KPROF== 14 launches of "));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_page_shows_what_changed),
        cmocka_unit_test(all_rows_are_shown_when_asked_for),
        cmocka_unit_test(a_session_does_not_differ_from_itself),
        cmocka_unit_test(bodies_are_compared_where_they_are_shown),
        cmocka_unit_test(launches_of_a_key_are_paired_in_order),
        cmocka_unit_test(kinds_are_paired_with_their_like),
        cmocka_unit_test(many_pairs_are_told_by_kernel),
        cmocka_unit_test(without_a_pair_there_is_a_hint),
        cmocka_unit_test(kernels_are_averaged),
        cmocka_unit_test(a_rule_of_a_kernel_speaks_for_most_launches),
        cmocka_unit_test(what_is_a_change),
        cmocka_unit_test(both_values_are_in_one_unit),
        cmocka_unit_test(what_is_no_number_differs_or_not),
        cmocka_unit_test(sections_that_only_one_has_are_left_out),
        cmocka_unit_test(what_was_chosen_but_not_collected_is_told),
        cmocka_unit_test(launches_of_one_pass_are_compared),
        cmocka_unit_test(limits_are_exceeded_by_more_only),
        cmocka_unit_test(a_change_within_the_spread_is_none),
        cmocka_unit_test(a_mean_weighs_as_many_launches),
        cmocka_unit_test(metrics_that_nobody_has_are_errors),
        cmocka_unit_test(what_cannot_be_compared_does_not_pass_in_silence),
        cmocka_unit_test(what_the_sink_returns_is_returned),
        cmocka_unit_test(without_a_pair_the_status_tells),
        cmocka_unit_test(without_counters_the_status_tells),
        cmocka_unit_test(a_kernel_changed_by_more_than_its_launches_vary),
        cmocka_unit_test(rows_for_programs),
        cmocka_unit_test(rows_as_json),
        cmocka_unit_test(a_missing_duration_is_no_gain),
        cmocka_unit_test(long_names_are_broken),
        cmocka_unit_test(rules_of_sections_that_both_have),
        cmocka_unit_test(averages_are_of_pairs),
        cmocka_unit_test(a_session_that_is_not_complete_is_told_of),
        cmocka_unit_test(the_command_compares),
        cmocka_unit_test(several_are_compared_with_the_first),
        cmocka_unit_test(the_worst_of_several_makes_the_status),
        cmocka_unit_test(the_exit_status_is_for_scripts),
        cmocka_unit_test(wrong_use_is_told),
        cmocka_unit_test(a_report_of_several_has_one_summary),
        cmocka_unit_test(one_bad_file_does_not_lose_the_others),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
