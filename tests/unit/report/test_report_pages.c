/* Every page in every format, from launches of an H200 and one that has all that is odd. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <float.h>
#include <limits.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/csv.h"
#include "base/json.h"
#include "base/plain.h"
#include "base/stream.h"
#include "base/text.h"
#include "report/judge/rules.h"
#include "report/model/launch_names.h"
#include "report/options/options.h"
#include "report/pages/page.h"
#include "report/write/account.h"
#include "report/write/columns.h"
#include "tests/support/code_support.h"
#include "tests/support/report_support.h"

enum { LAUNCHES = 5, ODD = 3, GRAPH = 4, STACK = 2, CODE = 11 };

static struct kp_recording rec;

static void rename_to(struct kp_result *r, const char *name)
{
    free(r->launch.demangled);
    r->launch.demangled = kp_strdup(name);
}

static void fill_odd(struct kp_result *r)
{
    static const char *const keys[] = {"plain", "quoted \"key\"", "none"};
    static const double values[] = {1.5, -1e300, NAN};
    rename_to(r, "void ns::<unnamed>::odd<Pair<\"a,b\">, (int)1>(char, T1 *)");
    r->launch.device = 1;
    r->launch.note = kp_strdup("a note, with a comma");
    kp_result_set_count(r, "odd__huge.sum", "byte", UINT64_MAX);
    kp_result_set_real(r, "odd__huge.avg", "inst", 1e30);
    kp_result_set_real(r, "odd__inf.avg", "", -INFINITY);
    kp_result_set_real(r, "odd__nan.avg", "", NAN);
    kp_result_set_real(r, "odd__small.avg", "%", 4.9406564584124654e-324);
    kp_result_set_real(r, "odd__tenth.avg", "ns", 0.1);
    kp_result_set_text(r, "odd__text", "", "a \"quoted\", b\nnew\tline \\ \xc3\xa9.");
    kp_result_set_text(r, "odd__empty", "", "");
    kp_result_set_why(r, "odd__na.sum", kp_why_of(KP_REASON_NOT_COLLECTED, (char *)"there is no \"such\" counter"));
    kp_result_set_real(r, "odd__with_instances", "inst", 3);
    assert_int_equal(kp_result_set_instances(r, "odd__with_instances", keys, values, 3), 0);
}

static void fill_graph(struct kp_result *r)
{
    uint64_t id = r->launch.id;
    kp_result_free(r);
    *r = (struct kp_result){.launch = {.id = id,
                                       .ordinal = 9,
                                       .kind = KP_WORKLOAD_GRAPH,
                                       .mangled = kp_strdup("graph of 3 nodes"),
                                       .demangled = kp_strdup("graph of 3 nodes"),
                                       .context_id = 1,
                                       .stream_id = 13,
                                       .cc_major = 9,
                                       .chip = kp_strdup("GH100"),
                                       .note = kp_strdup("not profiled")}};
}

static void add_device(struct kp_session *s, int ordinal, const char *name)
{
    s->devices = realloc(s->devices, (s->n_devices + 1) * sizeof *s->devices);
    assert_non_null(s->devices);
    s->devices[s->n_devices++] = (struct kp_device_info){
        .ordinal = ordinal,
        .name = kp_strdup(name),
        .chip = kp_strdup("GH100"),
        .pci_bus_id = kp_strdup("0000:00:06.0"),
        .cc_major = 9,
        .sm_count = 132,
        .breakdowns = kp_strdup("a.avg\tb.avg,c.avg\nd.avg\t\n"),
    };
}

static int make_session(void **state)
{
    (void)state;
    rec = kp_test_recording();
    while (rec.n > LAUNCHES)
        kp_result_free(&rec.results[--rec.n]);
    /* the same kernel again, slower */
    rename_to(&rec.results[2], rec.results[1].launch.demangled);
    kp_result_set_real(&rec.results[0], "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active", "%", 18);
    kp_result_set_real(&rec.results[0], "sm__cycles_elapsed.avg.per_second", "hz", 1.9e9);
    fill_odd(&rec.results[ODD]);
    fill_graph(&rec.results[GRAPH]);
    struct kp_session *s = &rec.session;
    add_device(s, 0, "NVIDIA H200");
    add_device(s, 1, "Another");
    free(s->metrics);
    s->metrics = kp_strdup("regex:^odd__,not_collected.sum");
    s->launches_seen = 1234;
    kp_session_add_skip(s, kp_why_of(KP_REASON_CAPTURE, (char *)"for a reason"), 3);
    kp_session_add_kernel(s, "not_selected", 2);
    rec.results[0].launch.stack = rec.results[1].launch.stack = STACK;
    kp_test_add_counts(&rec.results[0], CODE);
    return 0;
}

static int drop_session(void **state)
{
    (void)state;
    kp_test_recording_free(&rec);
    return 0;
}

static bool sink_failed;

static int each(void *from, int (*fn)(struct kp_result *, void *), void *arg, char **err)
{
    struct kp_recording *r = from;
    int rc = 0;
    (void)err;
    for (size_t i = 0; !rc && i < r->n; i++)
        if (!(rc = fn(&r->results[i], arg)))
            assert_false(sink_failed); /* nothing is begun that has no place to go */
    return rc;
}

/* Of the two functions that have counts, the session has lost one. */
static int find_code(void *arg, uint64_t id, struct kp_code *out)
{
    (void)arg;
    if (id == CODE)
        *out = kp_test_code(id);
    return id == CODE ? 0 : -ENOENT;
}

static int find_stack(void *arg, uint64_t id, struct kp_stack *out)
{
    (void)arg;
    assert_int_equal(id, STACK);
    *out = kp_test_stack(id);
    return 0;
}

static int print_to(const struct kp_sink *sink, const struct kp_display *d)
{
    struct kp_launches launches = {.each = each, .from = &rec, .lookup = {.code = find_code, .stack = find_stack}};
    char *err = NULL;
    int rc = kp_page_print(sink, d, &rec.session, &launches, &err);
    assert_null(err);
    return rc;
}

/* malloc'ed. */
static char *print(const struct kp_display *d)
{
    struct kp_test_text t = {0};
    struct kp_sink sink = kp_test_sink(&t);
    assert_int_equal(print_to(&sink, d), 0);
    assert_non_null(t.text);
    return t.text;
}

#define PAGE(id) .n_pages = 1, .pages = {KP_PAGE_##id}
#define CSV      .format = KP_FORMAT_CSV
#define NCU      .face = KP_FACE_NCU
#define OCCUPANCY                                                                                                      \
    .rules = KP_RULES_ALL, .choose = true, .sections = "Occupancy", .metrics = "regex:^odd__,not_collected.sum"

static const struct {
    const char *golden;
    struct kp_display display;
} cases[] = {
    {"tests/golden/pages_raw.txt", {PAGE(RAW), .instances = KP_INSTANCES_DETAILS}},
    {"tests/golden/pages_session.txt", {PAGE(SESSION)}},
    {"tests/golden/pages_summary.txt", {PAGE(SUMMARY)}},
    {"tests/golden/pages_summary_base.txt", {PAGE(SUMMARY), .rules = KP_RULES_ALL, .base_units = true}},
    {"tests/golden/pages_trace.txt", {PAGE(TRACE)}},
    {"tests/golden/pages_trace_columns.txt",
     {PAGE(TRACE),
      .trace_columns = "launch__grid_size launch__func_cache_config,odd__huge.sum,odd__nan.avg,odd__na.sum,other"}},
    {"tests/golden/pages_several.txt",
     {.n_pages = 3, .pages = {KP_PAGE_DETAILS, KP_PAGE_TRACE, KP_PAGE_SUMMARY}, OCCUPANCY}},
    {"tests/golden/pages_per_gpu.txt", {.grouping = KP_GROUPING_GPU}},
    {"tests/golden/pages_per_kernel.txt", {.grouping = KP_GROUPING_KERNEL, .naming = KP_NAMING_NAME, OCCUPANCY}},
    {"tests/golden/pages_per_gpu_all.txt",
     {.grouping = KP_GROUPING_GPU, .details = KP_DETAILS_ALL, .choose = true, .sections = "SpeedOfLight"}},
    {"tests/golden/pages_details_all.csv",
     {CSV, .details = KP_DETAILS_ALL, .naming = KP_NAMING_BOTH, .choose = true,
      .sections = "SpeedOfLight,SpeedOfLight_RooflineChart,WorkloadDistribution"}},
    {"tests/golden/pages_raw_per_gpu.txt", {.grouping = KP_GROUPING_GPU, PAGE(RAW)}},
    {"tests/golden/pages_details.csv", {CSV, OCCUPANCY}},
    {"tests/golden/pages_raw.csv", {CSV, PAGE(RAW)}},
    {"tests/golden/pages_session.csv", {CSV, PAGE(SESSION)}},
    {"tests/golden/pages_summary.csv", {CSV, PAGE(SUMMARY)}},
    {"tests/golden/pages_trace.csv", {CSV, PAGE(TRACE)}},
    {"tests/golden/pages_trace_columns.csv", {CSV, PAGE(TRACE), .trace_columns = "odd__text other"}},
    {"tests/golden/pages_per_kernel.csv", {CSV, .grouping = KP_GROUPING_KERNEL, OCCUPANCY}},
    {"tests/golden/pages_raw_per_gpu.csv", {CSV, .grouping = KP_GROUPING_GPU, PAGE(RAW)}},
    {"tests/golden/ncu_session.csv", {CSV, NCU, PAGE(SESSION)}},
    {"tests/golden/ncu_source_sass.csv", {CSV, NCU, PAGE(SOURCE), .source_sass = true}},
    {"tests/golden/ncu_source_cuda.csv", {CSV, NCU, PAGE(SOURCE), .source_lines = true}},
    {"tests/golden/ncu_source_both.csv", {CSV, NCU, PAGE(SOURCE), .source_lines = true, .source_sass = true}},
    {"tests/golden/ncu_per_kernel.txt", {NCU, .grouping = KP_GROUPING_KERNEL, OCCUPANCY}},
    {"tests/golden/ncu_per_kernel.csv", {CSV, NCU, .grouping = KP_GROUPING_KERNEL, OCCUPANCY}},
    {"tests/golden/ncu_per_gpu.csv", {CSV, NCU, .grouping = KP_GROUPING_GPU, OCCUPANCY}},
    {"tests/golden/ncu_metrics.csv", {CSV, NCU, .rules = KP_RULES_ALL, .choose = true, .metrics = "regex:^odd__"}},
    {"tests/golden/pages.json", {.format = KP_FORMAT_JSON, .rules = KP_RULES_ALL}},
};

enum { CASES = sizeof cases / sizeof *cases };

static void each_page_in_each_format(void **state)
{
    (void)state;
    for (size_t i = 0; i < CASES; i++) {
        char *text = print(&cases[i].display);
        kp_test_golden(text, cases[i].golden);
        free(text);
    }
}

/* A locale with a decimal comma: one of the machine's, or one made for the test. */
static bool set_decimal_comma(const char *folder)
{
    static const char *const locales[] = {"de_DE.UTF-8", "de_DE.utf8", "de_DE", "fr_FR.UTF-8", "fr_FR.utf8"};
    char command[PATH_MAX];
    for (size_t i = 0; i < sizeof locales / sizeof *locales; i++)
        if (setlocale(LC_ALL, locales[i]))
            return true;
    snprintf(command, sizeof command, "localedef -i de_DE -f UTF-8 %s/%s 2>/dev/null", folder, locales[0]);
    return !system(command) && !setenv("LOCPATH", folder, 1) && setlocale(LC_ALL, locales[0]);
}

static void no_page_depends_on_the_locale(void **state)
{
    char command[PATH_MAX], folder[PATH_MAX / 2];
    (void)state;
    snprintf(folder, sizeof folder, "%s", kp_test_folder());
    bool has_comma = set_decimal_comma(folder);
    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
    if (!has_comma)
        skip();
    assert_int_equal(localeconv()->decimal_point[0], ',');
    for (size_t i = 0; i < CASES; i++) {
        char *text = print(&cases[i].display);
        kp_test_reference(text, cases[i].golden);
        free(text);
    }
    assert_int_equal(localeconv()->decimal_point[0], ','); /* the program's own is as it was */
    setlocale(LC_ALL, "C");
}

/* The same command with another page is the same page, and what is chosen is read as it is written. */
static void options_name_pages(void **state)
{
    (void)state;
    char *env[] = {"KPROF_PAGE=trace, session", "KPROF_JSON=on", "KPROF_PRINT_SUMMARY=per-kernel",
                   "KPROF_TRACE_COLUMNS=a", NULL},
         *err = NULL;
    struct kp_options o;
    assert_int_equal(kp_options_from_env(&o, env, &err), 0);
    struct kp_display d = kp_display_of(&o);
    assert_int_equal(d.n_pages, 2);
    assert_int_equal(d.pages[0], KP_PAGE_TRACE);
    assert_int_equal(d.pages[1], KP_PAGE_SESSION);
    assert_int_equal(d.format, KP_FORMAT_JSON);
    assert_int_equal(d.grouping, KP_GROUPING_KERNEL);
    assert_string_equal(d.trace_columns, "a");
    kp_options_free(&o);
    env[0] = "KPROF_CSV=on";
    env[1] = "KPROF_PRINT_SUMMARY=per-gpu";
    env[2] = NULL;
    assert_int_equal(kp_options_from_env(&o, env, &err), 0);
    d = kp_display_of(&o);
    assert_int_equal(d.n_pages, 1);
    assert_int_equal(d.pages[0], KP_PAGE_DETAILS);
    assert_int_equal(d.format, KP_FORMAT_CSV);
    assert_int_equal(d.grouping, KP_GROUPING_GPU);
    kp_options_free(&o);
    assert_false(d.range_names);
    env[1] = "KPROF_PRINT_SUMMARY=per-nvtx";
    env[2] = "KPROF_PRINT_NVTX_RENAME=kernel";
    env[3] = NULL;
    assert_int_equal(kp_options_from_env(&o, env, &err), 0);
    d = kp_display_of(&o);
    assert_int_equal(d.grouping, KP_GROUPING_NVTX);
    assert_true(d.range_names);
    kp_options_free(&o);
    env[0] = "KPROF_PAGE=raw,raw,raw,raw,raw,raw,raw,raw,raw,raw,raw,raw,raw,raw,raw,raw,raw";
    env[1] = NULL;
    assert_int_equal(kp_options_from_env(&o, env, &err), 0);
    d = kp_display_of(&o);
    assert_int_equal(d.n_pages, KP_PAGES_MAX);
    kp_options_free(&o);
}

/* --- what other readers make of it --- */

static void write_file(const char *path, const struct kp_display *d)
{
    char *text = print(d);
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
    free(text);
}

static void other_readers_agree(void **state)
{
    static const struct kp_display json = {.format = KP_FORMAT_JSON, .rules = KP_RULES_ALL}, raw = {CSV, PAGE(RAW)},
                                   details = {CSV, .rules = KP_RULES_ALL, .naming = KP_NAMING_NAME};
    char paths[3][PATH_MAX / 4], command[2 * PATH_MAX];
    (void)state;
    if (system("command -v python3 >/dev/null"))
        skip();
    const char *folder = kp_test_folder();
    const char *names[] = {"json", "raw", "details"};
    for (int i = 0; i < 3; i++)
        snprintf(paths[i], sizeof paths[i], "%s/%s", folder, names[i]);
    write_file(paths[0], &json);
    write_file(paths[1], &raw);
    write_file(paths[2], &details);
    int n = snprintf(command, sizeof command, "python3 '%s' ", kp_test_source("tests/support/check_formats.py"));
    snprintf(command + n, sizeof command - (size_t)n, "'%s' %s %s %s", kp_test_source("docs/kprof.schema.json"),
             paths[0], paths[1], paths[2]);
    int status = system(command);
    kp_test_remove_folder(folder);
    assert_int_equal(status, 0);
}

/* --- the pieces --- */

static void csv_fields(void **state)
{
    char *text = NULL;
    size_t size;
    (void)state;
    struct kp_csv c = {.to = open_memstream(&text, &size)};
    kp_csv_field(&c, "plain");
    kp_csv_field(&c, "\"a\",\r\n\"\"");
    kp_csv_field(&c, NULL);
    kp_csv_formatted(&c, "%d", -7);
    kp_csv_end_row(&c);
    kp_csv_fields(&c, (const char *const[]){"", "x"}, 2);
    kp_csv_end_row(&c);
    fclose(c.to);
    assert_string_equal(text, "\"plain\",\"\"\"a\"\",\r\n\"\"\"\"\",\"\",\"-7\"\n\"\",\"x\"\n");
    free(text);
}

static void json_texts(void **state)
{
    static const struct {
        const char *text, *json;
    } rows[] = {
        {"", "\"\""},
        {"a\"\\/\x01\x1f\x7f", "\"a\\\"\\\\/\\u0001\\u001f\\u007f\""},
        {"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80 \xef\xbf\xbf",
         "\"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80 \xef\xbf\xbf\""},
        {"\xc0\xaf", "\"\\ufffd\\ufffd\""},                                      /* overlong */
        {"\xed\xa0\x80", "\"\\ufffd\\ufffd\\ufffd\""},                           /* half of a surrogate pair */
        {"\xf4\x90\x80\x80", "\"\\ufffd\\ufffd\\ufffd\\ufffd\""},                /* beyond the last character */
        {"\xe2\x82", "\"\\ufffd\\ufffd\""},                                      /* cut short */
        {"\xc2\x9b[2J\xe2\x80\xae\xe2\x81\xa6", "\"\\u009b[2J\\u202e\\u2066\""}, /* what steers a terminal */
        {"\xe2\x82z", "\"\\ufffd\\ufffdz\""},
        {NULL, "null"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *text = NULL;
        size_t size;
        struct kp_json j = {.to = open_memstream(&text, &size)};
        kp_json_text(&j, NULL, rows[i].text);
        fclose(j.to);
        assert_string_equal(text, rows[i].json);
        free(text);
    }
}

static void plain_numbers(void **state)
{
    static const struct {
        double value;
        const char *text;
    } rows[] = {
        {0, "0"},
        {-0.5, "-0.5"},
        {0.1, "0.1"},
        {1.0 / 3, "0.3333333333333333"},
        {65536, "65536"},
        {9007199254740993.0, "9007199254740992"},
        {999999999999999872.0, "999999999999999872"},
        {1e18, "1e+18"},
        {1e300, "1e+300"},
        {5e-324, "4.94065645841247e-324"},
        {DBL_MAX, "1.7976931348623157e+308"},
        {NAN, "nan"},
        {INFINITY, "inf"},
        {-INFINITY, "-inf"},
    };
    char text[KP_PLAIN_MAX];
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kp_plain_real(rows[i].value, text);
        assert_string_equal(text, rows[i].text);
    }
}

/* Names as ncu's CSV has them. */
static void plain_names(void **state)
{
    static const char *const names[][2] = {
        {"scale(float *, int)", "scale(float *, int)"},
        {"void at::native::vectorized_elementwise_kernel<(int)4, at::native::AUnaryFunctor<float, "
         "at::native::binary_internal::MulFunctor<float>>, std::array<char *, (unsigned long)2>>(int, T2, T3)",
         "void vectorized_elementwise_kernel<4, AUnaryFunctor<float, MulFunctor<float>>, array<char *, 2>>(int, T2, "
         "T3)"},
        {"void cutlass::Kernel<cutlass::gemm::Shape<(int)128, (bool)1, (int)-1>>(T1::Params)",
         "void Kernel<Shape<128, 1, -1>>(Params)"},
        {"a::b::<unnamed>::saxpy(float, const float *)", "unnamed>::saxpy(float, const float *)"},
        {"graph of 3 nodes", "graph of 3 nodes"},
        {"f(int (*)(int), x1::y)", "f(int (*)(int), y)"},
        {"", ""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char *name = kp_launch_plain_name(names[i][0]);
        assert_string_equal(name, names[i][1]);
        free(name);
    }
}

static void names_of_kernels(void **state)
{
    static const struct {
        const char *demangled, *shown;
    } rows[] = {
        {"f(int)", "f"},
        {"f", "f"},
        {"void f<(int)128, (bool)1>(const float *, T1 *)", "f"},
        {"void ns::C<int>::f<float>(T1)", "ns::C::f"},
        {"void ns::(anonymous namespace)::f(int)", "ns::f"},
        {"void <unnamed>::f<int>(T1)", "f"},
        {"std::enable_if<(a > b), void>::type ns::f<decltype(x->y)>(T1)", "ns::f"},
        {"a_long_namespace::of_a_library::kernel(int)", "kernel"},
        {"sm80_xmma_fprop_implicit_gemm_f16f16", "sm80_xmma_fprop_i..."},
        {"ns::sm80_xmma_fprop_implicit_gemm_f16f16(int)", "sm80_xmma_fprop_i..."},
        {"exactly_21_characters(int)", "exactly_21_charac..."},
        {"exactly_20_charactrs(int)", "exactly_20_charactrs"},
        {"(odd)", "(odd)"},
        {"", ""},
        {"f<", "f"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *name = kp_trace_name(rows[i].demangled, 20);
        assert_string_equal(name, rows[i].shown);
        free(name);
    }
}

/* `python -c` is given whole programs. */
static void a_command_line_of_several_lines_is_one_row(void **state)
{
    static const struct kp_display text = {PAGE(SESSION)}, csv = {CSV, PAGE(SESSION)};
    char *was = rec.session.cmdline;
    (void)state;
    rec.session.cmdline = (char[]){"python -c 'a\n\tb\x1b[1m'"};
    char *shown = print(&text), *table = print(&csv);
    rec.session.cmdline = was;
    assert_non_null(strstr(shown, "\n    Command Line python -c 'a  b [1m'\n"));
    assert_non_null(strstr(table, "\"Command Line\",\"python -c 'a\n\tb\x1b[1m'\"\n"));
    free(table);
    free(shown);
}

static size_t controls_in(const char *text)
{
    size_t n = 0;
    for (; *text; text++)
        n += kp_text_is_control(*text);
    return n;
}

/* A name is one line of a page, and cannot steer the terminal; as data it is what it is. */
static void controls_in_names_are_blanks_but_in_data(void **state)
{
    static const struct kp_display texts[] = {
        {.rules = KP_RULES_ALL},          {PAGE(RAW)}, {PAGE(SUMMARY)}, {PAGE(TRACE)}, {PAGE(SOURCE)}, {PAGE(PM)},
        {.grouping = KP_GROUPING_KERNEL},
    };
    static const struct kp_display csv = {CSV, PAGE(TRACE)}, json = {.format = KP_FORMAT_JSON};
    static char odd[] = "k\n\tb\x1b[1m\x7f(int)", plain[] = "k__b_[1m_(int)";
    char *was = rec.results[0].launch.demangled;
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        rec.results[0].launch.demangled = plain;
        char *expected = print(&texts[i]);
        rec.results[0].launch.demangled = odd;
        char *text = print(&texts[i]);
        assert_int_equal(controls_in(text), controls_in(expected));
        free(text);
        free(expected);
    }
    char *table = print(&csv), *document = print(&json);
    rec.results[0].launch.demangled = was;
    assert_non_null(strstr(table, "\"k\n\tb\x1b[1m\x7f(int)\""));
    assert_non_null(strstr(document, "k\\u000a\\u0009b\\u001b[1m"));
    free(document);
    free(table);
}

/* --- columns of a rotation --- */

/* Returns the line of `table` that begins with `start`, of which `n` have been passed; its end is "\n". */
static const char *row_of(const char *table, const char *start)
{
    const char *at = strstr(table, start);
    assert_non_null(at);
    while (at > table && at[-1] != '\n')
        at--;
    return at;
}

/* Whether the row that begins at or holds `start` ends with `end`. */
static void check_row(const char *table, const char *start, const char *end)
{
    const char *row = row_of(table, start), *stop = strstr(row, "\n");
    size_t len = strlen(end);
    assert_non_null(stop);
    if ((size_t)(stop - row) < len || strncmp(stop - len, end, len))
        fail_msg("%.*s\ndoes not end with %s", (int)(stop - row), row, end);
}

/* Each row of a rotated session's table is one of `before`, with more columns. */
static void check_more_columns(const char *before, const char *after)
{
    static const char end[] = "\"\n"; /* fields may hold line ends, too */
    for (const char *stop; (stop = strstr(before, end)); before = stop + 1, after = strstr(after, end) + 2) {
        stop++;
        if (strncmp(before, after, (size_t)(stop - before)))
            fail_msg("not as before: %.*s\nbut %.300s", (int)(stop - before), before, after);
        assert_int_equal(after[stop - before], ',');
    }
    assert_true(!*before && !*after);
}

static void rotate(bool on)
{
    struct kp_result *r = &rec.results[0];
    const uint32_t counted = on ? 8 : 0;
    rec.session.rotated = on;
    r->launch.alike = on ? 240 : 0;
    r->launch.counted = on ? 24 : 0;
    r->launch.groups = on ? 4 : 0;
    r->launch.groups_counted = on ? 4 : 0;
    assert_int_equal(kp_result_set_real(r, "gpu__time_duration.sum", "ns", 181920), 0);
    assert_int_equal(kp_result_set_spread(r, "gpu__time_duration.sum", counted, on ? 20 : 0), 0);
    assert_int_equal(kp_result_set_spread(r, "gpc__cycles_elapsed.max", on ? 2 : 0, on ? 3 : 0), 0);
}

static void csv_of_a_rotation_has_columns_for_it(void **state)
{
    static const struct kp_display pages[] = {{CSV}, {CSV, PAGE(RAW)}, {CSV, PAGE(TRACE)}};
    enum { PAGES = sizeof pages / sizeof *pages };
    char *before[PAGES], *after[PAGES];
    struct kp_result *r = &rec.results[0];
    (void)state;
    assert_int_equal(kp_result_set_why(r, "gpc__cycles_elapsed.avg.per_second",
                                       kp_why_of(KP_REASON_NOT_COLLECTED, (char *)"3 of 4 \"groups\"")),
                     0);
    for (size_t i = 0; i < PAGES; i++)
        before[i] = print(&pages[i]);
    rotate(true);
    for (size_t i = 0; i < PAGES; i++) {
        after[i] = print(&pages[i]);
        check_more_columns(before[i], after[i]);
        r->launch.groups_counted = 3; /* the page details would have another section on top */
        free(before[i]);
    }
    rotate(false);
    assert_int_equal(kp_result_set_real(r, "gpc__cycles_elapsed.avg.per_second", "hz", 1967054000), 0);
    /* t(7, 97.5 %) is 2.3646, times 20 and the root of 2/8 */
    check_row(after[0], "\"ID\"",
              ",\"Estimated Speedup\",\"Value Launches\",\"Value Deviation\",\"Value Interval\",\"Value Missing\","
              "\"Value Missing Reason\",\"Launches\",\"Launches Counted\",\"Groups\",\"Groups Counted\"");
    assert_non_null(strstr(after[0], "\"Duration\",\"ns\",\"181920\",\"\",\"\",\"\",\"\",\"\",\"8\",\"20\",\"23.6"));
    assert_non_null(
        strstr(after[0], "\"Elapsed Cycles\",\"cycle\",\"358712\",\"\",\"\",\"\",\"\",\"\",\"2\",\"3\",\"\",\"\",\"\","
                         "\"240\",\"24\",\"4\",\"4\"\n"));
    assert_non_null(strstr(
        after[0], "\"SM Frequency\",\"\",\"n/"
                  "a\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"3 of 4 \"\"groups\"\"\",\"not-collected\",\"240\""));
    check_row(after[0], "\"1\",\"994\"", "\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\"");
    check_row(after[1], "\"ID\"",
              "\"gpc__cycles_elapsed.max Value Launches\",\"gpc__cycles_elapsed.max Value Deviation\","
              "\"gpc__cycles_elapsed.max Value Interval\",\"gpu__time_duration.sum Value Launches\","
              "\"gpu__time_duration.sum Value Deviation\",\"gpu__time_duration.sum Value Interval\","
              "\"Launches\",\"Launches Counted\",\"Groups\",\"Groups Counted\"");
    check_row(after[1], "\"\",\"\",\"\"", ",\"\",\"cycle\",\"cycle\",\"\",\"ns\",\"ns\",\"\",\"\",\"\",\"\"");
    assert_non_null(strstr(after[1], ",\"2\",\"3\",\"\",\"8\",\"20\",\"23.6"));
    check_row(after[1], "\"0\",\"994\"", ",\"240\",\"24\",\"4\",\"3\"");
    check_row(after[2], "\"0\",\"994\"", ",\"240\",\"24\",\"4\",\"3\"");
    check_row(after[2], "\"1\",\"994\"", ",\"\",\"\",\"\",\"\"");
    for (size_t i = 0; i < PAGES; i++)
        free(after[i]);
}

/* --- what cannot be written --- */

struct failing {
    size_t left; /* writes that succeed */
};

/* For the reader; for a program they are one value. */
static void long_lists_of_the_session_are_wrapped(void **state)
{
    static const struct kp_display text = {PAGE(SESSION)}, csv = {PAGE(SESSION), CSV};
    char list[40 * 25 + 1] = "", *before = rec.session.sections;
    (void)state;
    for (int i = 0; i < 40; i++)
        sprintf(list + strlen(list), "%s%s_%d", i ? "," : "", "ASectionOfAFolder", i);
    rec.session.sections = list;
    char *page = print(&text), *table = print(&csv);
    rec.session.sections = before;
    assert_non_null(strstr(page, "\n    Sections      ASectionOfAFolder_0,"));
    assert_non_null(strstr(page, ",\n                  ASectionOfAFolder_"));
    for (const char *line = strstr(page, "Sections"); strncmp(line, "Cache", 5); line += strspn(line, " ")) {
        assert_true(strcspn(line, "\n") <= KP_LINE_WIDTH);
        line = strchr(line, '\n') + 1;
    }
    assert_non_null(strstr(table, list));
    free(page);
    free(table);
}

static int fail_later(void *arg, const char *text, size_t len)
{
    struct failing *f = arg;
    (void)text;
    (void)len;
    assert_false(sink_failed); /* and nothing is written behind a gap */
    sink_failed = !f->left;
    return f->left ? (int)(f->left--, 0) : -ENOSPC;
}

static void a_sink_that_fails_ends_each_page(void **state)
{
    (void)state;
    for (size_t i = 0; i < CASES; i++)
        for (size_t left = 0; left < 8; left++) {
            struct failing f = {left};
            struct kp_sink sink = {fail_later, &f};
            int rc = print_to(&sink, &cases[i].display);
            if (rc != (sink_failed ? -ENOSPC : 0))
                fail_msg("%s with %zu writes: %d", cases[i].golden, left, rc);
            assert_true(left || sink_failed);
            sink_failed = false;
        }
}

struct counted {
    size_t writes, bytes;
};

static int count(void *arg, const char *text, size_t len)
{
    struct counted *c = arg;
    (void)text;
    c->writes++;
    c->bytes += len;
    return 0;
}

static void each_page_is_written_in_large_pieces(void **state)
{
    (void)state;
    for (size_t i = 0; i < CASES; i++) {
        struct counted c = {0};
        struct kp_sink sink = {count, &c};
        assert_int_equal(print_to(&sink, &cases[i].display), 0);
        assert_in_range(c.writes, 1, 1 + c.bytes / 1024);
    }
}

/* Entries of a rotation weigh by all launches of theirs: three of 10 ns with a deviation of 1, and one of 20 ns. They
 * take 50 ns, 12.5 on average; the squares are 2 + 3 * 2.5^2 + 7.5^2 = 77, and the deviation sqrt(77 / 3) = 5.07. */
static void entries_weigh_by_their_launches(void **state)
{
    struct kp_display d = {.format = KP_FORMAT_CSV, .n_pages = 1, .pages = {KP_PAGE_SUMMARY}};
    struct kp_result results[2] = {{.launch = {.id = 0, .demangled = "k", .alike = 3}},
                                   {.launch = {.id = 1, .demangled = "k", .alike = 1}}};
    struct kp_recording of = {.results = results, .n = 2};
    struct kp_launches launches = {.each = each, .from = &of};
    struct kp_test_text t = {NULL, 0};
    struct kp_sink sink = kp_test_sink(&t);
    char *err = NULL;
    (void)state;
    assert_int_equal(kp_result_add_mean(&results[0], "gpu__time_duration.sum", "ns", &(struct kp_mean){2, 10, 1}), 0);
    assert_int_equal(kp_result_add_mean(&results[1], "gpu__time_duration.sum", "ns", &(struct kp_mean){1, 20, 0}), 0);
    assert_int_equal(kp_page_print(&sink, &d, &rec.session, &launches, &err), 0);
    assert_non_null(strstr(t.text, "\"100.0\",\"50\",\"4\",\"12.5\",\"10\",\"10\",\"20\",\"5.066228051190"));
    free(t.text);
    for (int i = 0; i < 2; i++) {
        results[i].launch.demangled = NULL;
        kp_result_free(&results[i]);
    }
}

/* Writes the page summary as CSV of launches of `names`, which have these durations; 0 is none. malloc'ed. */
static char *summary_of(size_t n, const char *const *names, const double *ns, enum kp_sort sort)
{
    struct kp_display d = {.format = KP_FORMAT_CSV, .n_pages = 1, .pages = {KP_PAGE_SUMMARY}, .sort = sort};
    struct kp_result results[4] = {0};
    struct kp_recording of = {.results = results, .n = n};
    struct kp_launches launches = {.each = each, .from = &of};
    struct kp_test_text t = {NULL, 0};
    struct kp_sink sink = kp_test_sink(&t);
    char *err = NULL;
    for (size_t i = 0; i < n; i++) {
        static char none[] = "", timed[] = "timed", other[] = "not timed";
        static struct kp_nvtx_range inside[] = {
            {.domain = none, .name = timed, .category = none, .payload = none},
            {.domain = none, .name = other, .category = none, .payload = none},
        };
        results[i].launch = (struct kp_launch_info){.id = i, .demangled = (char *)names[i]};
        results[i].launch.nvtx = (struct kp_nvtx){.ranges = &inside[!ns[i]], .n_ranges = 1};
        if (ns[i] > 0)
            assert_int_equal(kp_result_set_real(&results[i], "gpu__time_duration.sum", "ns", ns[i]), 0);
        else
            assert_int_equal(kp_result_set_why(&results[i], "gpu__time_duration.sum",
                                               kp_why_of(KP_REASON_NOT_COLLECTED, (char *)"why")),
                             0);
    }
    assert_int_equal(kp_page_print(&sink, &d, &rec.session, &launches, &err), 0);
    for (size_t i = 0; i < n; i++) {
        results[i].launch.demangled = NULL;
        results[i].launch.nvtx = (struct kp_nvtx){0};
        kp_result_free(&results[i]);
    }
    return t.text;
}

/* All kernels and ranges are listed with all their launches; those without a duration take no part in times. */
static void what_has_no_duration_is_listed(void **state)
{
    static const char *const names[] = {"b", "a", "b", "c"};
    (void)state;
    char *text = summary_of(4, names, (const double[]){20, 0, 0, 10}, KP_SORT_TIME);
    assert_non_null(strstr(text, "\n\"66.7\",\"20\",\"2\",\"20\",\"20\",\"20\",\"20\",\"0\",\"b\",\"\"\n"
                                 "\"33.3\",\"10\",\"1\",\"10\",\"10\",\"10\",\"10\",\"0\",\"c\",\"\"\n"
                                 "\"n/a\",\"n/a\",\"1\",\"n/a\",\"n/a\",\"n/a\",\"n/a\",\"n/a\",\"a\",\"\"\n"
                                 "\"100.0\",\"30\",\"2\",\"15\",\"15\",\"10\",\"20\",\"7.0"));
    assert_non_null(
        strstr(text, "\n\"n/a\",\"n/a\",\"2\",\"n/a\",\"n/a\",\"n/a\",\"n/a\",\"n/a\",\"\",\"not timed/\"\n"));
    free(text);
    /* the mean of one launch is longer than that of the other kernel's two */
    text = summary_of(4, names, (const double[]){20, 0, 0, 15}, KP_SORT_DURATION);
    assert_true(strstr(text, "\"b\"") < strstr(text, "\"c\""));
    free(text);
    text = summary_of(2, names, (const double[]){0, 0}, KP_SORT_TIME);
    assert_non_null(strstr(text, "\n\"n/a\",\"n/a\",\"1\",\"n/a\",\"n/a\",\"n/a\",\"n/a\",\"n/a\",\"a\",\"\"\n"
                                 "\"n/a\",\"n/a\",\"1\",\"n/a\",\"n/a\",\"n/a\",\"n/a\",\"n/a\",\"b\",\"\"\n"));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_weigh_by_their_launches),
        cmocka_unit_test(what_has_no_duration_is_listed),
        cmocka_unit_test(each_page_in_each_format),
        cmocka_unit_test(no_page_depends_on_the_locale),
        cmocka_unit_test(options_name_pages),
        cmocka_unit_test(plain_names),
        cmocka_unit_test(other_readers_agree),
        cmocka_unit_test(csv_fields),
        cmocka_unit_test(csv_of_a_rotation_has_columns_for_it),
        cmocka_unit_test(json_texts),
        cmocka_unit_test(plain_numbers),
        cmocka_unit_test(names_of_kernels),
        cmocka_unit_test(a_command_line_of_several_lines_is_one_row),
        cmocka_unit_test(controls_in_names_are_blanks_but_in_data),
        cmocka_unit_test(long_lists_of_the_session_are_wrapped),
        cmocka_unit_test(a_sink_that_fails_ends_each_page),
        cmocka_unit_test(each_page_is_written_in_large_pieces),
    };
    return cmocka_run_group_tests_name("report/pages", tests, make_session, drop_session);
}
