/* What pages make of the NVTX ranges around launches, and of several sessions in one table or document. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/view/chooser.h"
#include "report/judge/rules.h"
#include "report/model/launch_names.h"
#include "report/options/options.h"
#include "report/pages/details.h"
#include "report/pages/page.h"
#include "tests/support/report_support.h"

enum { A, B, SESSIONS, LAUNCHES = 7, OWN = 7, OTHER = 8 };

static const char duration[] = "gpu__time_duration.sum", long_name[] = "a range whose name takes most of the column";

static char folder[PATH_MAX / 4];
static struct kp_store *stores[SESSIONS];

static void add_range(struct kp_result *r, struct kp_nvtx_range range)
{
    range.domain = range.domain ? range.domain : "";
    range.category = range.category ? range.category : "";
    range.payload = range.payload ? range.payload : "";
    range.thread = range.thread ? range.thread : OWN;
    assert_int_equal(kp_nvtx_add(&r->launch.nvtx, &range), 0);
}

#define RANGE(...)                                                                                                     \
    (struct kp_nvtx_range)                                                                                             \
    {                                                                                                                  \
        __VA_ARGS__                                                                                                    \
    }

/* Launch 0 is in no range, 3 in one that is opened twice, 4 in another thread's only. */
static void add_ranges(struct kp_recording *rec)
{
    for (size_t i = 0; i < rec->n; i++)
        rec->results[i].launch.nvtx.thread = OWN;
    struct kp_result *r = rec->results;
    r[0].launch.nvtx.thread_name = kp_strdup("main \"thread\"");
    r[0].launch.nvtx.stream_name = kp_strdup("compute");
    add_range(&r[1], RANGE(.name = "step"));
    add_range(&r[2], RANGE(.name = "step"));
    add_range(&r[2], RANGE(.name = "forward"));
    add_range(&r[3], RANGE(.name = "step"));
    add_range(&r[3], RANGE(.name = "read", .domain = "io", .category = "disk", .payload = "-42"));
    add_range(&r[3], RANGE(.name = "step", .payload = "1.5"));
    add_range(&r[3], RANGE(.name = "else", .thread = OTHER));
    add_range(&r[3], RANGE(.name = "epoch", .kind = KP_NVTX_START_END, .thread = OTHER));
    add_range(&r[3], RANGE(.name = "io", .kind = KP_NVTX_START_END, .payload = "7"));
    add_range(&r[4], RANGE(.name = "else", .thread = OTHER));
    add_range(&r[5], RANGE(.name = "two\nlines, \"quoted\""));
    add_range(&r[6], RANGE(.name = (char *)long_name));
}

/* The launches of a recording, with few of their metrics. */
static struct kp_recording few(void)
{
    static const char *const kept[] = {duration, "launch__grid_size",
                                       "sm__warps_active.avg.pct_of_peak_sustained_active"};
    struct kp_recording rec = kp_test_recording();
    while (rec.n > LAUNCHES)
        kp_result_free(&rec.results[--rec.n]);
    for (size_t i = 0; i < rec.n; i++) {
        struct kp_result all = rec.results[i], *r = &rec.results[i];
        r->metrics = NULL;
        r->n_metrics = r->cap_metrics = 0;
        for (size_t k = 0; k < sizeof kept / sizeof *kept; k++) {
            const struct kp_metric *m = kp_result_find(&all, kept[k]);
            assert_non_null(m);
            double value = 0;
            assert_true(kp_metric_number(m, &value));
            assert_int_equal(kp_result_set_real(r, m->name, m->unit, value), 0);
        }
        all.launch = (struct kp_launch_info){.id = 0};
        kp_result_free(&all);
    }
    return rec;
}

static struct kp_store *store(const char *name, const struct kp_recording *rec)
{
    struct kp_store *s = NULL;
    char path[PATH_MAX], *err = NULL;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_int_equal(kp_store_create(path, false, &s, &err), 0);
    assert_int_equal(kp_store_put_session(s, &rec->session, &err), 0);
    for (size_t i = 0; i < rec->n; i++)
        assert_int_equal(kp_store_put_result(s, &rec->results[i], &err), 0);
    kp_store_close(s);
    assert_int_equal(kp_store_open(path, &s, &err), 0);
    return s;
}

/* A has ranges; B, of another process, has none, two launches, and a metric that A lacks. */
static int write_sessions(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "%s", kp_test_folder());
    struct kp_recording a = few(), b = few();
    add_ranges(&a);
    stores[A] = store("a.kprof", &a);
    while (b.n > 2)
        kp_result_free(&b.results[--b.n]);
    b.session.pid = 995;
    free(b.session.host);
    b.session.host = kp_strdup("other.host");
    kp_result_set_text(&b.results[1], "b__only", "", "text");
    stores[B] = store("b.kprof", &b);
    kp_test_recording_free(&a);
    kp_test_recording_free(&b);
    return 0;
}

static int drop_sessions(void **state)
{
    (void)state;
    for (int i = 0; i < SESSIONS; i++)
        kp_store_close(stores[i]);
    kp_test_remove_folder(folder);
    return 0;
}

#define PAGE(id) .n_pages = 1, .pages = {KP_PAGE_##id}
#define CSV      .format = KP_FORMAT_CSV
#define RENAMED  .range_names = true
#define BY_RANGE .grouping = KP_GROUPING_NVTX
#define CHOSEN   .choose = true, .metrics = "launch__grid_size,gpu__time_duration.sum"

/* malloc'ed. */
static char *print(struct kp_store *s, const struct kp_display *d)
{
    struct kp_test_text t = {0};
    struct kp_sink sink = kp_test_sink(&t);
    char *err = NULL;
    assert_int_equal(kp_page_print_store(&sink, d, s, &err), 0);
    assert_null(err);
    return t.text;
}

static char *print_both(const struct kp_display *d)
{
    struct kp_test_text t = {0};
    struct kp_sink sink = kp_test_sink(&t);
    char *err = NULL;
    assert_int_equal(kp_page_print_stores(&sink, d, stores, SESSIONS, &err), 0);
    assert_null(err);
    return t.text;
}

static const struct {
    const char *golden;
    struct kp_display display;
} of_one[] = {
    {"tests/golden/ranges_details.txt", {RENAMED, CHOSEN, .rules = KP_RULES_ALL}},
    {"tests/golden/ranges_trace.txt", {RENAMED, PAGE(TRACE)}},
    {"tests/golden/ranges_trace_column.txt", {PAGE(TRACE)}},
    {"tests/golden/ranges_trace_narrow.txt", {PAGE(TRACE), .width = 81}},
    {"tests/golden/ranges_trace_chosen.txt", {PAGE(TRACE), .trace_columns = "launch__grid_size"}},
    {"tests/golden/ranges_trace.csv", {PAGE(TRACE), CSV}},
    {"tests/golden/ranges_summary.txt", {PAGE(SUMMARY)}},
    {"tests/golden/ranges_per_nvtx.txt", {BY_RANGE, CHOSEN}},
    {"tests/golden/ranges_raw_per_nvtx.txt", {BY_RANGE, PAGE(RAW)}},
    {"tests/golden/ranges_per_nvtx.csv", {BY_RANGE, CHOSEN, CSV}},
    {"tests/golden/ranges_details.csv", {CHOSEN, CSV, .rules = KP_RULES_ALL}},
    {"tests/golden/ranges_raw.csv", {RENAMED, PAGE(RAW), CSV}},
    {"tests/golden/ranges_summary.csv", {PAGE(SUMMARY), CSV}},
    {"tests/golden/ranges.json", {RENAMED, CHOSEN, .format = KP_FORMAT_JSON}},
};

static void each_page_shows_ranges(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof of_one / sizeof *of_one; i++) {
        char *text = print(stores[A], &of_one[i].display);
        kp_test_golden(text, of_one[i].golden);
        free(text);
    }
}

/* Without ranges a page is what it was before there were any: no column, no table, and no name is changed. */
static void a_session_without_ranges_has_none(void **state)
{
    static const struct kp_display displays[] = {
        {RENAMED, CHOSEN},  {RENAMED, PAGE(TRACE)}, {PAGE(SUMMARY)},      {CHOSEN, CSV},        {PAGE(TRACE)},
        {PAGE(TRACE), CSV}, {PAGE(RAW), CSV},       {PAGE(SUMMARY), CSV}, {PAGE(SESSION), CSV},
    };
    (void)state;
    for (size_t i = 0; i < sizeof displays / sizeof *displays; i++) {
        struct kp_display plain = displays[i];
        plain.range_names = false;
        char *text = print(stores[B], &displays[i]), *without = print(stores[B], &plain);
        assert_null(strstr(text, "NVTX"));
        assert_null(strstr(text, "Range"));
        assert_null(strstr(text, "Process ID\",\"Process Name\",\"Host Name\",\"Time"));
        assert_string_equal(text, without);
        free(text);
        free(without);
    }
    const struct kp_display by_range = {BY_RANGE, CHOSEN};
    char *text = print(stores[B], &by_range);
    const char *line = strstr(text, "  No launch of this session has an NVTX range");
    assert_non_null(line);
    assert_null(strstr(line + 1, "  No launch of this session"));
    assert_non_null(strstr(line, "\n  In no NVTX range, Invocations 2\n"));
    free(text);
}

static const struct {
    const char *golden;
    struct kp_display display;
} of_both[] = {
    {"tests/golden/several_details.csv", {CHOSEN, CSV}},
    {"tests/golden/several_raw.csv", {PAGE(RAW), CSV}},
    {"tests/golden/several_session.csv", {PAGE(SESSION), CSV}},
    {"tests/golden/several_summary.csv", {PAGE(SUMMARY), CSV}},
    {"tests/golden/several_trace.csv", {PAGE(TRACE), CSV}},
    {"tests/golden/several_per_kernel.csv", {.grouping = KP_GROUPING_KERNEL, PAGE(RAW), CSV}},
    {"tests/golden/several_per_nvtx.csv", {BY_RANGE, PAGE(RAW), CSV}},
    {"tests/golden/several.json", {CHOSEN, .format = KP_FORMAT_JSON}},
};

enum { OF_BOTH = sizeof of_both / sizeof *of_both };

static void several_sessions_are_one_table(void **state)
{
    (void)state;
    for (size_t i = 0; i < OF_BOTH; i++) {
        char *text = print_both(&of_both[i].display);
        kp_test_golden(text, of_both[i].golden);
        free(text);
    }
}

/* Of each session the launches that are chosen. */
static void launches_are_chosen_of_each_session(void **state)
{
    static const struct kp_options one = {.kernel_name = "",
                                          .kernel_id = "",
                                          .nvtx_include = "",
                                          .nvtx_exclude = "",
                                          .launch_skip = 1,
                                          .launch_count = 1};
    struct kp_display second = {PAGE(TRACE), CSV};
    char *err;
    (void)state;
    assert_int_equal(kp_chooser_new(&one, &second.chooser, &err), 0);
    char *text = print_both(&second);
    kp_chooser_free(second.chooser);
    size_t lines = 0;
    for (const char *at = text; (at = strchr(at, '\n')); at++)
        lines++;
    assert_int_equal(lines, 1 + SESSIONS);
    assert_non_null(strstr(text, "\"1\",\"994\",\"patterns\",\"127.0.0.1\","));
    assert_non_null(strstr(text, "\"1\",\"995\",\"patterns\",\"other.host\","));
    free(text);
}

static void other_readers_agree(void **state)
{
    char command[4 * PATH_MAX];
    (void)state;
    if (system("command -v python3 >/dev/null"))
        skip();
    size_t n =
        (size_t)snprintf(command, sizeof command, "python3 '%s' ", kp_test_source("tests/support/check_formats.py"));
    n += (size_t)snprintf(command + n, sizeof command - n, "'%s' --several", kp_test_source("docs/kprof.schema.json"));
    for (size_t i = OF_BOTH; i--;) { /* the document comes first */
        char *text = print_both(&of_both[i].display), path[PATH_MAX];
        snprintf(path, sizeof path, "%s/%zu", folder, i);
        FILE *f = fopen(path, "we");
        assert_non_null(f);
        fputs(text, f);
        assert_int_equal(fclose(f), 0);
        n += (size_t)snprintf(command + n, sizeof command - n, " '%s'", path);
        free(text);
    }
    assert_int_equal(system(command), 0);
}

/* --- the pieces --- */

/* The innermost range of the launching thread stands before the name, and can be told from it again. */
static void a_kernel_is_named_after_its_range(void **state)
{
    (void)state;
    struct kp_recording rec = few();
    add_ranges(&rec);
    static const char *const ranges[LAUNCHES] = {NULL,
                                                 "step/",
                                                 "forward/",
                                                 "step/",
                                                 NULL,
                                                 "two lines, \"quoted\"/",
                                                 "a range whose name takes most of the column/"};
    for (size_t i = 0; i < LAUNCHES; i++) {
        struct kp_launch_info *l = &rec.results[i].launch;
        char *name = NULL;
        assert_int_equal(kp_launch_range_length(l), 0);
        assert_int_equal(kp_launch_range_name(l, &name), 0);
        if (!ranges[i]) {
            assert_null(name);
            continue;
        }
        size_t len = strlen(ranges[i]);
        assert_memory_equal(name, ranges[i], len);
        assert_string_equal(name + len, kp_launch_name(l));
        free(l->demangled);
        l->demangled = name;
        assert_int_equal(kp_launch_range_length(l), len);
    }
    kp_test_recording_free(&rec);
}

static void a_range_without_a_name_has_a_title(void **state)
{
    static const struct {
        struct kp_nvtx_range range;
        const char *title;
    } rows[] = {
        {{.name = "a/b\tc", .domain = ""}, "a\\/b c/"},
        {{.name = "", .domain = "d"}, "d@(no name)/"},
        {{.name = "e", .domain = "", .kind = KP_NVTX_START_END}, "e"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *title = kp_range_title(&rows[i].range);
        assert_string_equal(title, rows[i].title);
        free(title);
    }
    struct kp_result r = {.launch = {.nvtx = {.thread = OWN}}};
    char *name = NULL;
    add_range(&r, RANGE(.name = "")); /* nothing to name a kernel after */
    assert_int_equal(kp_launch_range_name(&r.launch, &name), 0);
    assert_null(name);
    kp_result_free(&r);
}

/* Digits of a step's number do not count; all others do. */
static void numbers_of_steps_do_not_count(void **state)
{
    static const char *const rows[][2] = {
        {"", ""},
        {"step 3", "step #"},
        {"Step3", "Step#"},
        {"iteration12", "iteration#"},
        {"iter_12", "iter_#"},
        {"EPOCH: 3, batch[7] forward", "EPOCH: #, batch[#] forward"},
        {"i=3", "i=#"},
        {"step 3/100", "step #/100"},
        {"step 3b", "step 3b"},
        {"train_5", "train_#"},
        {"conv2d (3)", "conv2d (#)"},
        {"12", "#"},
        {" 12 ", " # "},
        {"layer1", "layer1"},
        {"layer2", "layer2"},
        {"wait3", "wait3"},
        {"fp16 conv1x1", "fp16 conv1x1"},
        {"layers.0.mlp", "layers.0.mlp"},
        {"lr=0.5", "lr=0.5"},
        {"aten::conv2d, seq = 40, sizes = [[64, 3]]", "aten::conv2d, seq = #, sizes = [[64, 3]]"},
        {"64x32 tile", "64x32 tile"},
        {"\xd1\x88\xd0\xb0\xd0\xb3"
         "3",
         "\xd1\x88\xd0\xb0\xd0\xb3"
         "3"},
        {"3\xc3\xbc", "3\xc3\xbc"},
        {"#", "\\#"},
        {"\\12", "\\\\#"},
        {"a#7", "a\\##"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *name = kp_range_without_numbers(rows[i][0]);
        assert_string_equal(name, rows[i][1]);
        free(name);
    }
    assert_true(kp_range_has_number("step #"));
    assert_true(kp_range_has_number("\\\\#"));
    assert_false(kp_range_has_number("\\# forward"));
    assert_false(kp_range_has_number("\\"));
}

/* What tells an entry of a rotation from others of its kernel and shape stands alone in a table. */
static void notes_say_which_launches(void **state)
{
    static const char *const rows[][2] = {
        {"the launches in the NVTX range s # (#: any number)", "in the NVTX range s #"},
        {"shares memory", ""},
        {NULL, ""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *which = kp_launch_which(&(struct kp_launch_info){.note = (char *)rows[i][0], .groups = 2});
        assert_string_equal(which, rows[i][1]);
        free(which);
    }
}

static void a_range_is_cut_between_characters(void **state)
{
    static const struct {
        const char *name, *cut;
    } rows[] = {
        {"", ""},
        {"12345678/", "12345678/"},
        {"123456789/", "12345.../"},
        {"1234\xc3\xbc"
         "789/",
         "1234\xc3\xbc"
         "789/"},
        {"12345\xc3\xbc"
         "789/",
         "12345.../"},
        {"123\xe6\xa0\xb8\xe6\xa0\xb8\xe6\xa0\xb8/", "123\xe6\xa0\xb8.../"}, /* wide ones */
        {"1234\xe6\xa0\xb8\xe6\xa0\xb8\xe6\xa0\xb8/", "1234.../"},
    };
    char out[32];
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t n = kp_range_cut(rows[i].name, strlen(rows[i].name), 9, out);
        assert_int_equal(n, strlen(rows[i].cut));
        assert_memory_equal(out, rows[i].cut, n);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_page_shows_ranges),
        cmocka_unit_test(a_session_without_ranges_has_none),
        cmocka_unit_test(several_sessions_are_one_table),
        cmocka_unit_test(launches_are_chosen_of_each_session),
        cmocka_unit_test(other_readers_agree),
        cmocka_unit_test(a_kernel_is_named_after_its_range),
        cmocka_unit_test(a_range_without_a_name_has_a_title),
        cmocka_unit_test(numbers_of_steps_do_not_count),
        cmocka_unit_test(notes_say_which_launches),
        cmocka_unit_test(a_range_is_cut_between_characters),
    };
    return cmocka_run_group_tests_name("report/ranges", tests, write_sessions, drop_sessions);
}
