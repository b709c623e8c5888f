/* The HTML file: text of a session is never markup or script, and the content security policy knows script and style
 * sheet. Numbers are those of the CSV, and what many launches share is in the file once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "report/html/data.h"
#include "report/html/html.h"
#include "report/pages/page.h"
#include "report/write/cells.h"
#include "tests/support/code_support.h"
#include "tests/support/report_support.h"

static const char hostile[] = "</script><img src=x onerror=alert(1)>&\"'\\\n\xff";

static struct kp_recording rec;

static int make_session(void **state)
{
    (void)state;
    rec = kp_test_recording();
    free(rec.results[0].launch.demangled);
    rec.results[0].launch.demangled = strdup(hostile);
    free(rec.session.cmdline);
    rec.session.cmdline = strdup(hostile);
    kp_test_add_counts(&rec.results[0], 11);
    /* two launches that are alike */
    struct kp_launch_info *like = &rec.results[2].launch, *of = &rec.results[1].launch;
    free(like->demangled);
    like->demangled = strdup(of->demangled);
    memcpy(like->grid, of->grid, sizeof of->grid);
    memcpy(like->block, of->block, sizeof of->block);
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

static int find_code(void *arg, uint64_t id, struct kp_code *out)
{
    (void)arg;
    *out = kp_test_code(id);
    return 0;
}

/* Collects the recorded session `times` times. */
static struct kp_html *collect(int times, uint64_t brief_above)
{
    struct kp_launches launches = {.each = each, .from = &rec, .lookup = {.code = find_code}};
    struct kp_display d = {.rules = KP_RULES_ALL};
    struct kp_html *h = kp_html_new();
    char *err = NULL;
    assert_non_null(h);
    kp_html_display(&d, brief_above);
    while (times--)
        assert_int_equal(kp_page_write(kp_html_writer(h), &d, &rec.session, &launches, &err), 0);
    return h;
}

static char *print(struct kp_html *h, bool compare)
{
    char *text;
    size_t size;
    FILE *to = open_memstream(&text, &size);
    assert_non_null(to);
    assert_int_equal(kp_html_print(h, compare, to), 0);
    assert_int_equal(kp_text_end(to, &text), 0);
    kp_html_free(h);
    return text;
}

/* Returns a copy of what stands between two texts, the first of which begins at or behind `from`. */
static char *between(const char *from, const char *begin, const char *end)
{
    const char *at = strstr(from, begin), *stop;
    assert_non_null(at);
    at += strlen(begin);
    stop = strstr(at, end);
    assert_non_null(stop);
    return strndup(at, (size_t)(stop - at));
}

static void text_of_a_session_is_no_markup(void **state)
{
    (void)state;
    char *text = print(collect(1, 0), false), *data = between(text, "id=\"data\">", "</script>");
    assert_null(strpbrk(data, "<>&'"));
    assert_non_null(strstr(
        data,
        "\\u003c/script\\u003e\\u003cimg src=x onerror=alert(1)\\u003e\\u0026\\u0022\\u0027\\u005c\\u000a\\ufffd"));
    /* the data stand at one place, and no other text of the session is in the file */
    assert_null(strstr(strstr(text, data) + strlen(data), "onerror"));
    char *before = strndup(text, (size_t)(strstr(text, data) - text));
    assert_null(strstr(before, "onerror"));
    free(before);
    free(data);
    free(text);
}

/* Whether the policy knows what stands between two texts by its hash. */
static void check_known(const char *text, const char *begin, const char *end, const char *directive)
{
    char *embedded = between(text, begin, end), *tool = strdup(kp_test_source("tools/content_hash.sh")), *command;
    char known[256], hash[64] = "", path[512];
    const char *folder = kp_test_folder();
    snprintf(path, sizeof path, "%s/embedded", folder);
    FILE *to = fopen(path, "w");
    assert_non_null(to);
    fputs(embedded, to);
    assert_int_equal(fclose(to), 0);
    assert_true(asprintf(&command, "'%s' '%s'", tool, path) > 0);
    FILE *from = popen(command, "r");
    assert_non_null(from);
    assert_non_null(fgets(hash, sizeof hash, from));
    assert_int_equal(pclose(from), 0);
    hash[strcspn(hash, "\n")] = '\0';
    assert_int_equal(strlen(hash), 44); /* of SHA-256, in base 64 */
    snprintf(known, sizeof known, "%s 'sha256-%s'", directive, hash);
    assert_non_null(strstr(text, known));
    kp_test_remove_folder(folder);
    free(tool);
    free(command);
    free(embedded);
}

static void the_policy_knows_script_and_style(void **state)
{
    (void)state;
    char *text = print(collect(1, 0), false);
    char *policy = between(text, "http-equiv=\"Content-Security-Policy\" content=\"", "\"");
    assert_int_equal(strncmp(policy, "default-src 'none'; ", 20), 0);
    assert_null(strstr(policy, "unsafe"));
    assert_null(strstr(policy, "http"));
    check_known(text, "\n<script>", "</script>", "script-src");
    check_known(text, "<style>", "</style>", "style-src");
    free(policy);
    free(text);
}

static void the_script_writes_no_markup(void **state)
{
    static const char *const ways[] = {"innerHTML",      "outerHTML", "insertAdjacentHTML",
                                       "document.write", "eval(",     "Function(",
                                       "fetch(",         "XMLHttp",   "import(",
                                       "http:",          "https:"};
    (void)state;
    char *text = print(collect(1, 0), false), *script = between(text, "\n<script>", "</script>");
    assert_non_null(strstr(script, "textContent"));
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        const char *at = strstr(script, ways[i]);
        if (at && strncmp(at, "http://www.w3.org/2000/svg\"", 27) != 0)
            fail_msg("the script has %s", ways[i]);
    }
    free(script);
    free(text);
}

/* Each number of a launch in full is in the file as CSV has it. */
static void numbers_are_those_of_csv(void **state)
{
    char number[KP_NUMBER_MAX], one[KP_NUMBER_MAX + 2];
    size_t checked = 0;
    (void)state;
    char *text = print(collect(1, 0), false), *values = between(text, "\"values\":", "\"sections\"");
    const struct kp_result *r = &rec.results[0];
    for (size_t i = 0; i < r->n_metrics; i++) {
        const struct kp_metric *m = &r->metrics[i];
        if (m->kind != KP_VALUE_REAL && m->kind != KP_VALUE_COUNT)
            continue;
        snprintf(one, sizeof one, ",%s,", kp_write_plain_value(m, number));
        checked += strstr(values, one) != NULL;
    }
    assert_true(checked > 30); /* what the set basic shows */
    free(values);
    free(text);
}

static size_t count(const char *text, const char *what)
{
    size_t n = 0;
    for (; (text = strstr(text, what)); text += strlen(what))
        n++;
    return n;
}

static void launches_share_what_they_have_in_common(void **state)
{
    (void)state;
    char *one = print(collect(1, 0), false), *two = print(collect(2, 0), true);
    assert_non_null(strstr(one, "data-mode=\"report\""));
    assert_non_null(strstr(two, "data-mode=\"compare\""));
    assert_int_equal(count(one, "{\"launch\":"), rec.n);
    assert_int_equal(count(two, "{\"launch\":"), 2 * rec.n);
    char *sections = between(one, "\"sections\":[", "\"sets\":"), *again = between(two, "\"sections\":[", "\"sets\":");
    assert_string_equal(sections, again);
    free(sections);
    free(again);
    free(one);
    free(two);
}

static void of_many_launches_some_are_in_full(void **state)
{
    (void)state;
    char *text = print(collect(1, 1), false), *listed = between(text, "\"launches\":[", "\"full\":");
    assert_int_equal(count(listed, "\n["), rec.n);
    assert_int_equal(count(text, "{\"launch\":"), rec.n - 1);
    free(listed);
    free(text);
}

/* Returns the last field of a launch of the list, which is the number of launches that it stands for. */
static unsigned long weight_of(const char *listed, size_t launch)
{
    for (const char *line = listed; (line = strstr(line, "\n[")); line++)
        if (!launch--) {
            char *row = strndup(line + 1, strcspn(line + 1, "\n")), *last = strrchr(row, ',');
            if (last && !last[1])
                *last = '\0', last = strrchr(row, ',');
            assert_non_null(last);
            unsigned long n = strtoul(last + 1, NULL, 10);
            free(row);
            return n;
        }
    fail();
    return 0;
}

static void a_launch_tells_how_many_it_stands_for(void **state)
{
    (void)state;
    rec.results[1].launch.alike = 1234;
    char *text = print(collect(1, 0), false), *listed = between(text, "\"launches\":[", "\"full\":");
    for (size_t i = 0; i < rec.n; i++)
        assert_int_equal(weight_of(listed, i), i == 1 ? 1234 : 1);
    rec.results[1].launch.alike = 0;
    free(listed);
    free(text);
}

static void a_full_disk_is_told(void **state)
{
    (void)state;
    struct kp_html *h = collect(1, 0);
    FILE *full = fopen("/dev/full", "w");
    assert_non_null(full);
    assert_true(kp_html_print(h, false, full) < 0);
    fclose(full);
    kp_html_free(h);
}

static void a_text_is_kept_once(void **state)
{
    struct kp_data d = {.rc = 0};
    char name[32];
    (void)state;
    for (int i = 0; i < 1000; i++) {
        snprintf(name, sizeof name, "text %d", i % 500);
        assert_int_equal(kp_data_string(&d, name), i % 500);
    }
    assert_int_equal(kp_data_string(&d, NULL), kp_data_string(&d, ""));
    assert_int_equal(d.parts[KP_DATA_STRINGS].n, 501);
    kp_data_free(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_of_a_session_is_no_markup),
        cmocka_unit_test(the_policy_knows_script_and_style),
        cmocka_unit_test(the_script_writes_no_markup),
        cmocka_unit_test(numbers_are_those_of_csv),
        cmocka_unit_test(launches_share_what_they_have_in_common),
        cmocka_unit_test(of_many_launches_some_are_in_full),
        cmocka_unit_test(a_launch_tells_how_many_it_stands_for),
        cmocka_unit_test(a_full_disk_is_told),
        cmocka_unit_test(a_text_is_kept_once),
    };
    return cmocka_run_group_tests(tests, make_session, drop_session);
}
