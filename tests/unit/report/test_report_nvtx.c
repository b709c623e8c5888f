/* NVTX ranges on the report's side: filter expressions, the ranges of a stored launch, how they are printed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/model/nvtx_expr.h"
#include "report/pages/details.h"
#include "report/store/store.h"
#include "report/write/account.h"
#include "tests/support/report_support.h"

/* Ranges, one a word: [THREAD:][DOMAIN@]NAME is a push-pop range, =[DOMAIN@]NAME a start-end range; '~' is a blank. */
static struct kp_nvtx ranges_of(const char *words)
{
    struct kp_nvtx n = {.ranges = NULL};
    char *copy = strdup(words), *save = NULL;
    for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
        struct kp_nvtx_range r = {.domain = "", .category = "", .payload = "", .thread = 1};
        for (char *c = word; *c; c++)
            *c = *c == '~' ? ' ' : *c;
        if (*word == '=') {
            r.kind = KP_NVTX_START_END;
            word++;
        } else if (word[0] >= '1' && word[0] <= '9' && word[1] == ':') {
            r.thread = (uint64_t)(word[0] - '0');
            word += 2;
        }
        r.name = word;
        char *at = strchr(word, '@');
        if (at && at > word) {
            *at = '\0';
            r.domain = word;
            r.name = at + 1;
        }
        assert_int_equal(kp_nvtx_add(&n, &r), 0);
    }
    free(copy);
    return n;
}

static const struct match {
    const char *ranges, *expression;
    bool taken;
} matches[] = {
    /* one push-pop range, wherever it is */
    {"a", "a/", true},
    {"x a y", "a/", true},
    {"x y", "a/", false},
    {"", "a/", false},
    {"ab", "a/", false},
    {"=a", "a/", false},
    {"d@a", "a/", false},
    {"A~range", "A range/", true},
    /* nested */
    {"a b", "a/b", true},
    {"x a b y", "a/b", true},
    {"b a", "a/b", false},
    {"a x b", "a/b", false},
    {"a x a b", "a/b", true},
    {"a b", "a/b/", true},
    {"a b c", "a/b/c", true},
    {"a b x c", "a/b/c", false},
    /* any number between */
    {"a b", "a/*/b", true},
    {"a x b", "a/*/b", true},
    {"a x y b z", "a/*/b", true},
    {"b x a", "a/*/b", false},
    {"a", "a/*/a", false},
    {"a a", "a/*/a", true},
    {"a x b y c", "a/*/b/*/c", true},
    {"a x c y b", "a/*/b/*/c", false},
    {"a b x b c", "a/*/b/c", true},
    /* exactly one, or so many, between */
    {"a x b", "a/+/b", true},
    {"a b", "a/+/b", false},
    {"a x y b", "a/+/b", false},
    {"a x y b", "a/+/+/b", true},
    {"a x b", "a/+/+/b", false},
    {"a x b", "a/+/*/b", true},
    {"a b", "a/+/*/b", false},
    {"a x y z b", "a/*/+/b", true},
    /* the ends of the stack */
    {"a x", "[a", true},
    {"x a", "[a", false},
    {"x a", "a]", true},
    {"a x", "a]", false},
    {"a", "[a]", true},
    {"a a", "[a]", false},
    {"a x b", "[a/+/b", true},
    {"y a x b", "[a/+/b", false},
    {"a x b", "a/*/b]", true},
    {"a x b y", "a/*/b]", false},
    {"a x b", "[a/*/b]", true},
    {"a x", "[a/", true},
    {"", "[a", false},
    {"", "a]", false},
    /* each thread has a stack of its own */
    {"1:a 2:b", "a/", true},
    {"1:a 2:b", "b/", true},
    {"1:a 2:b", "a/b", false},
    {"1:a 2:b", "a/*/b", false},
    {"1:a 2:b", "[b", true},
    {"1:a 2:x 2:b", "[b", false},
    /* and each domain */
    {"io@a", "io@a/", true},
    {"io@a", "in@a/", false},
    {"a", "io@a/", false},
    {"io@a x io@b", "io@a/b", true},
    {"io@a x b", "io@a/b", false},
    {"x io@a", "io@[a", true},
    {"io@a x", "io@a]", true},
    {"a io@x b", "a/b", true},
    {"io~in@a", "io in@a/", true},
    /* start-end ranges */
    {"=a", "a", true},
    {"a", "a", false},
    {"=x =a", "a", true},
    {"=a =b", "a,b", true},
    {"=b =a", "a,b", true},
    {"=a", "a,b", false},
    {"=io@a", "io@a", true},
    {"=io@a", "a", false},
    {"=io@a =b", "io@a,b", false},
    {"=io@a =io@b", "io@a,b", true},
    /* alternatives */
    {"b", "a/;b/", true},
    {"=c", "a/ ; b/ ; c", true},
    {"d", "a/;b/;c", false},
    {"b", "a/\nb/", true},
    {"b", ";;b/;", true},
    /* special characters of names */
    {"a/b", "a\\/b/", true},
    {"a/b", "a/b", false},
    {"a[0]", "a\\[0\\]/", true},
    {"=a[0]", "a\\[0\\]", true},
    {"[a]", "[\\[a\\]]", true},
    {"*", "\\*/", true},
    {"a", "\\*/", false},
    {"x + y", "x/\\+/y", true},
    {"x z y", "x/\\+/y", false},
    {"=a,b", "a\\,b", true},
    {"=a;b", "a\\;b", true},
    {"a\\b", "a\\\\b/", true},
    {"@a@b", "\\@a\\@b/", true},
    {"a/b@c", "a\\/b@c/", true},
    {"regex:a", "\\regex:a/", true},
    /* expressions */
    {"step~12", "regex:step [0-9]+/", true},
    {"my~step~12", "regex:step [0-9]+/", true},
    {"step~x", "regex:step [0-9]+/", false},
    {"my~step~12", "regex:^step/", false},
    {"a1 x b2", "regex:a[0-9]/*/b[0-9/]", true},
    {"a1 x b2 y", "regex:a[0-9]/*/b2]", false},
    {"a1 x b2", "regex:a./*/b.]", true},
    {"x 1a", "regex:[1a", false},
    {"1a", "regex:[1a", true},
    {"y 1a", "regex:/[0-9]a/", true},
    {"=1a =c2", "regex:/[0-9]a,c[0-9/]", true},
    {"=1a", "regex:/[0-9]a,c[0-9/]", false},
    {"io1@a", "regex:io[0-9]@a/", true},
    {"io1@a io2@b", "regex:io[0-9]@a/b", false},
    {"io@a", "regex:a/", false},
    {"=aab", "regex:^a{1\\,2}b$", true},
    {"=aaab", "regex:^a{1\\,2}b$", false},
    {"a/b", "regex:^a\\/b$/", true},
    {"a.b", "regex:^a\\.b$/", true},
    {"axb", "regex:^a\\.b$/", false},
    {"a", "regex:.*/", true},
    {"c", "regex:(a|c)/", true},
};

static struct kp_nvtx_filter *filter_of(const char *text)
{
    struct kp_nvtx_filter *f = NULL;
    char *err = NULL;
    int rc = kp_nvtx_filter_new(text, &f, &err);
    if (rc)
        fail_msg("'%s': %d, %s", text, rc, err ? err : "");
    return f;
}

static void expressions_take_what_they_say(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof matches / sizeof *matches; i++) {
        const struct match *m = &matches[i];
        struct kp_nvtx n = ranges_of(m->ranges);
        struct kp_nvtx_filter *f = filter_of(m->expression);
        if (kp_nvtx_filter_match(f, n.ranges, n.n_ranges) != m->taken)
            fail_msg("'%s' %s '%s'", m->expression, m->taken ? "does not take" : "takes", m->ranges);
        kp_nvtx_filter_free(f);
        kp_nvtx_free(&n);
    }
}

static void wrong_expressions_are_explained(void **state)
{
    static const struct {
        const char *text, *why;
    } wrong[] = {
        {"/", "a name is missing"},
        {"a//b", "a name is missing"},
        {"[", "a name is missing"},
        {"a,", "a name is missing"},
        {"io@", "a name is missing"},
        {"@a", "a name is missing"},
        {"a/*", "'*' stands between two ranges"},
        {"*/a", "'*' stands between two ranges"},
        {"a/+/", "'+' stands between two ranges"},
        {"a*/", "is written '\\*'"},
        {"a[0]/", "is written '\\['"},
        {"a[0]", "is written '\\['"},
        {"i[o@a/", "is written '\\['"},
        {"a/,b", "cannot be combined in one expression"},
        {"[a,b", "cannot be combined in one expression"},
        {"io@a,in@b", "several domains"},
        {"a/io@b", "the domain comes first"},
        {"regex:(/", "bad expression"},
        {"regex:a[0-9]", "bad expression"}, /* the bracket is the end of the stack */
        {"a/;b/*", "'b/*'"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct kp_nvtx_filter *f = (struct kp_nvtx_filter *)&wrong;
        char *err = NULL;
        int rc = kp_nvtx_filter_new(wrong[i].text, &f, &err);
        if (rc != -EINVAL || f || !err || !strstr(err, wrong[i].why) || strchr(err, '\n'))
            fail_msg("'%s': %d, %s", wrong[i].text, rc, err ? err : "");
        free(err);
    }
}

static void nothing_takes_nothing(void **state)
{
    static const char *const empty[] = {"", " ", ";", " ; \n "};
    (void)state;
    struct kp_nvtx n = ranges_of("a =b");
    for (size_t i = 0; i < sizeof empty / sizeof *empty; i++) {
        struct kp_nvtx_filter *f = filter_of(empty[i]);
        assert_true(kp_nvtx_filter_empty(f));
        assert_false(kp_nvtx_filter_match(f, n.ranges, n.n_ranges));
        kp_nvtx_filter_free(f);
    }
    kp_nvtx_free(&n);
}

/* More ranges than a stack that is looked at has. */
static void deep_stacks_are_looked_at_from_outside(void **state)
{
    (void)state;
    struct kp_nvtx n = {.ranges = NULL};
    struct kp_nvtx_range r = {.domain = "", .name = "a", .category = "", .payload = ""};
    for (int i = 0; i < 3 * KP_NVTX_DEPTH; i++)
        assert_int_equal(kp_nvtx_add(&n, &r), 0);
    r.name = "last";
    assert_int_equal(kp_nvtx_add(&n, &r), 0);
    struct kp_nvtx_filter *f = filter_of("[a/*/a]"), *last = filter_of("last/");
    assert_true(kp_nvtx_filter_match(f, n.ranges, n.n_ranges));
    assert_false(kp_nvtx_filter_match(last, n.ranges, n.n_ranges));
    kp_nvtx_filter_free(f);
    kp_nvtx_filter_free(last);
    kp_nvtx_free(&n);
}

/* What a range is listed as selects it, and no range of other names. */
static void a_written_range_is_read_back(void **state)
{
    static const char *const names[] = {"a",       "a/b", "[a]",  "*", "+",  "a,b;c", "x@y", "\\",
                                        "regex:a", "a b", "a\\*", "]", " a", "a  ",   " ",   "a\\ "};
    enum { NAMES = sizeof names / sizeof *names };
    (void)state;
    for (size_t i = 0; i < 4 * NAMES; i++) {
        struct kp_nvtx_range r = {.kind = i % 2 ? KP_NVTX_PUSH_POP : KP_NVTX_START_END,
                                  .domain = (char *)(i % 4 < 2 ? "" : names[(i / 4 + 1) % NAMES]),
                                  .name = (char *)names[i / 4]};
        struct kp_nvtx_range other = r, elsewhere = r;
        other.name = "a other";
        elsewhere.domain = "elsewhere";
        char *text = kp_nvtx_expression(&r);
        struct kp_nvtx_filter *f = filter_of(text);
        if (!kp_nvtx_filter_match(f, &r, 1) || kp_nvtx_filter_match(f, &other, 1) ||
            kp_nvtx_filter_match(f, &elsewhere, 1))
            fail_msg("'%s' for the range '%s' of domain '%s'", text, r.name, r.domain);
        kp_nvtx_filter_free(f);
        free(text);
    }
}

/* ---- stored and printed ---- */

static struct kp_result launch(void)
{
    struct kp_result r = {.launch = {.id = 1, .mangled = kp_strdup("k"), .demangled = kp_strdup("k()")}};
    struct kp_nvtx_range full = {
        .domain = "io", .name = "read\nfile", .category = "disk", .payload = "-42", .thread = 7};
    r.launch.nvtx = ranges_of("7:step 8:other =epoch =io@x");
    r.launch.nvtx.thread = 7;
    r.launch.nvtx.thread_name = kp_strdup("main thread");
    r.launch.nvtx.stream_name = kp_strdup("compute");
    assert_int_equal(kp_nvtx_add(&r.launch.nvtx, &full), 0);
    /* in the order that preload gives them: the last one to the second place */
    struct kp_nvtx_range last = r.launch.nvtx.ranges[4];
    memmove(&r.launch.nvtx.ranges[2], &r.launch.nvtx.ranges[1], 3 * sizeof last);
    r.launch.nvtx.ranges[1] = last;
    return r;
}

static const char printed[] = "    NVTX Push/Pop: step / io@read file (category disk, payload -42)\n"
                              "    NVTX Push/Pop of Thread 8: other\n"
                              "    NVTX Start/End: epoch, io@x\n"
                              "    NVTX Thread: main thread (7)\n"
                              "    NVTX Stream: compute\n";

/* The lines of a launch that begin as NVTX's do. */
static char *nvtx_lines(const struct kp_result *r)
{
    struct kp_session s = {.set = "", .sections = "", .metrics = ""};
    struct kp_display d = {.rules = 0};
    struct kp_test_text t = {0};
    struct kp_sink out = kp_test_sink(&t);
    assert_int_equal(kp_test_launch(&out, &d, &s, r), 0);
    char *lines = calloc(1, t.len + 1), *save = NULL;
    for (char *line = strtok_r(t.text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
        if (strstr(line, "NVTX"))
            strcat(strcat(lines, line), "\n");
    free(t.text);
    return lines;
}

static void ranges_stand_below_the_header(void **state)
{
    (void)state;
    struct kp_result r = launch(), none = {.launch = {.mangled = kp_strdup("k"), .demangled = kp_strdup("k()")}};
    char *lines = nvtx_lines(&r);
    assert_string_equal(lines, printed);
    free(lines);
    lines = nvtx_lines(&none);
    assert_string_equal(lines, "");
    free(lines);
    kp_result_free(&r);
    kp_result_free(&none);
}

static int take_lines(struct kp_result *r, void *arg)
{
    *(char **)arg = nvtx_lines(r);
    return 0;
}

/* What the file has of the only launch, and of the first range that was seen. */
static char *read_back(const char *path, char **seen, uint64_t *times)
{
    struct kp_store *s = NULL;
    struct kp_session session;
    char *err = NULL, *lines = NULL;
    assert_int_equal(kp_store_open(path, &s, &err), 0);
    assert_int_equal(kp_store_get_session(s, &session, &err), 0);
    *seen = session.n_ranges ? strdup(session.ranges[0].name) : NULL;
    *times = session.n_ranges ? session.ranges[0].count : 0;
    assert_int_equal(kp_store_each_result(s, take_lines, &lines, &err), 0);
    kp_session_free(&session);
    kp_store_close(s);
    return lines;
}

static void a_session_keeps_the_ranges(void **state)
{
    (void)state;
    const char *folder = kp_test_folder();
    char path[4096], *err = NULL, *seen;
    struct kp_session session = {.set = kp_strdup("")};
    struct kp_result r = launch();
    struct kp_store *s = NULL;
    uint64_t times;
    snprintf(path, sizeof path, "%s/s.kprof", folder);
    kp_session_add_range(&session, "io@x", 2);
    kp_session_add_range(&session, "io@x", 3);
    kp_session_add_range(&session, "step/", 1);
    assert_int_equal(kp_store_create(path, false, &s, &err), 0);
    assert_int_equal(kp_store_put_session(s, &session, &err), 0);
    assert_int_equal(kp_store_put_session(s, &session, &err), 0);
    assert_int_equal(kp_store_put_result(s, &r, &err), 0);
    kp_store_close(s);

    char *lines = read_back(path, &seen, &times);
    assert_string_equal(lines, printed);
    assert_string_equal(seen, "io@x");
    assert_int_equal(times, 5);
    free(lines);
    free(seen);

    kp_result_free(&r);
    kp_session_free(&session);
    kp_test_remove_folder(folder);
}

static void an_account_lists_the_ranges(void **state)
{
    (void)state;
    struct kp_session s = {.launches_seen = 3, .complete = true};
    struct kp_test_text t = {0};
    struct kp_sink out = kp_test_sink(&t);
    kp_session_add_skip(&s, kp_why_of(KP_REASON_NVTX, NULL), 3);
    assert_int_equal(kp_render_account(&out, &s, NULL), 0);
    assert_non_null(strstr(t.text, "KPROF_NVTX_INCLUDE"));
    assert_non_null(strstr(t.text, "==KPROF==   no NVTX range was opened\n"));
    free(t.text);
    t = (struct kp_test_text){0};
    kp_session_add_range(&s, "io@x\\/y/", 1234);
    assert_int_equal(kp_render_account(&out, &s, NULL), 0);
    assert_non_null(strstr(t.text, "==KPROF==   range seen: io@x\\/y/ (1,234)\n"));
    assert_null(strstr(t.text, "no NVTX range"));
    free(t.text);
    kp_session_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(expressions_take_what_they_say), cmocka_unit_test(wrong_expressions_are_explained),
        cmocka_unit_test(nothing_takes_nothing),          cmocka_unit_test(deep_stacks_are_looked_at_from_outside),
        cmocka_unit_test(a_written_range_is_read_back),   cmocka_unit_test(ranges_stand_below_the_header),
        cmocka_unit_test(a_session_keeps_the_ranges),     cmocka_unit_test(an_account_lists_the_ranges),
    };
    return cmocka_run_group_tests_name("nvtx", tests, NULL, NULL);
}
