#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/pattern.h"
#include "base/regex.h"

static bool matches(const char *text, const char *name)
{
    struct kp_pattern *p = NULL;
    char *err = NULL;
    int rc = kp_pattern_new(text, &p, &err);
    if (rc)
        fail_msg("%s: %d %s", text, rc, err ? err : "");
    assert_null(err);
    bool is = kp_pattern_match(p, name);
    kp_pattern_free(p);
    return is;
}

static void names(void **state)
{
    (void)state;
    assert_true(matches("", "anything"));
    assert_true(matches("gemm", "gemm"));
    assert_false(matches("gemm", "gemm2"));
    assert_false(matches("g.mm", "gemm"));
    assert_true(matches("regex:mm", "gemm2"));
    assert_false(matches("regex:^mm", "gemm"));
    assert_true(matches("regex:^(gemm|conv)_[0-9]+$", "conv_17"));
    assert_true(matches("regex:", "anything"));
}

static void assert_refused(const char *text, const char *why)
{
    struct kp_pattern *p = (struct kp_pattern *)&p;
    char *err = NULL, expected[256];
    snprintf(expected, sizeof expected, "bad expression '%.60s%s': %s", text, strlen(text) > 60 ? "..." : "", why);
    char *whole = NULL;
    assert_true(asprintf(&whole, "regex:%s", text) > 0);
    assert_int_equal(kp_pattern_new(whole, &p, &err), -EINVAL);
    assert_null(p);
    assert_string_equal(err, expected);
    free(err);
    free(whole);
}

static void bad_expressions(void **state)
{
    (void)state;
    assert_refused("a(b", "a '(' is not closed");
    /* of a long one the begin is enough */
    char long_one[200];
    memset(long_one, 'a', sizeof long_one);
    long_one[sizeof long_one - 2] = '(';
    long_one[sizeof long_one - 1] = '\0';
    assert_refused(long_one, "a '(' is not closed");
    assert_refused("x[a", "a '[' is not closed");
    assert_refused("[[:alpha:", "a '[' is not closed");
    assert_refused("[[:letter:]]", "it names an unknown class; classes are written like [[:alpha:]]");
    assert_refused("[z-a]", "the end of a range comes before its start");
    assert_refused("[a-[:digit:]]", "the end of a range comes before its start");
    assert_refused("[[.space.]]", "it names a collating element of more than one byte");
    assert_refused("a\\", "it ends in a backslash");
    assert_refused("a|*", "it repeats nothing");
    assert_refused("(+)", "it repeats nothing");
    assert_refused("^*", "it repeats nothing");
    const char *const counts[] = {"a{", "a{}", "a{,}", "a{3,2}", "a{2", "a{x}", "a{2,x}"};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        assert_refused(counts[i], "a '{' does not begin a count such as {2}, {2,} or {2,5}");
    assert_refused("(.*)*\\1Q", "back-references such as \\1 are not supported because they can run forever");
    kp_pattern_free(NULL);
}

/* Each of these takes the C library's stack, gigabytes or for ever when it is compiled. */
static void expressions_that_are_too_large(void **state)
{
    (void)state;
    static const char too_large[] = "it is too large";
    static char nested[60001];
    memset(nested, '(', sizeof nested - 1);
    assert_refused(nested, "its parentheses are nested too deeply");
    assert_refused(
        "(((((((((((((((((((((((((((((((a+)+)+)+)+)+)+)+)+)+)+)+)+)+)+)+)+)+)+)+)+)+)+)+)+)+)+)+)+)+)+{2000}",
        too_large);
    assert_refused("(((a{1,255}){1,255}){1,255})", too_large);
    assert_refused("((((){255}[x]){255}){255})", too_large);
    assert_refused("[]a{1}]{30000}{30000}", too_large);
    assert_refused("a{32768}", too_large);
    assert_refused("a{99999999999999999999}", too_large);
    assert_refused("(((\\({200,}){200}){200})", too_large);
    assert_true(matches("regex:^([[:alpha:]]{2,40}|[]x{9}]+){1,20}$", "gemm"));
    assert_true(matches("regex:^a\\{[^]{9}{9}]$", "a{b"));
    assert_true(matches("regex:^(((){30000}){30000}){30000}$", ""));
}

/* A repetition of a repetition takes no more time than one. */
static void repetitions_of_repetitions(void **state)
{
    (void)state;
    static char name[60001], stars[2001];
    memset(name, 'a', sizeof name - 1);
    memset(stars, '*', sizeof stars - 1);
    stars[0] = 'a';
    clock_t begun = clock();
    assert_false(matches("regex:^(a*)*(a|a)*(((a+)+)+)+b$", name));
    assert_true(matches("regex:^2++++++++++++++++++++$", "22222"));
    assert_true(matches("regex:^a{2,}{3,}$", "aaaaaa"));
    assert_false(matches("regex:^a{2,}{3,}$", "aaaaa"));
    assert_refused(stars, "it is too large");
    stars[500] = '\0';
    assert_true(matches("regex:^(a|:***0********1***E**`****0****)$", "a"));
    double seconds = (double)(clock() - begun) / CLOCKS_PER_SEC;
    assert_true(seconds < 20); /* it takes 0.01; where each repetition doubled it, no end would be seen */
}

/* ---- the same answers as the C library's ---- */

static unsigned random_state = 1;

static unsigned below(unsigned n)
{
    random_state = random_state * 1103515245 + 12345;
    return (random_state >> 16) % n;
}

/* An expression of few letters. No repetition stands in another, and none repeats an anchor: in the first the C library
 * takes for ever, in the second it errs. */
static void make_expression(char *to, int depth, bool repeated)
{
    static const char *const atoms[] = {"a",           "b",   ".",   "[ab]",    "[^a]", "[a-c_]", "\\.",
                                        "[[:alpha:]]", "\\w", "\\W", "[^]b-c]", "_",    "\\s",    "[]a]",
                                        "()",          "^",   "$",   "\\b",     "\\B",  "\\<",    "\\>"};
    static const char *const repetitions[] = {"*", "+", "?", "{2}", "{1,3}", "{0,2}", "{2,}", "{,2}"};
    for (unsigned n = 1 + below(3); n; n--) {
        bool repeats = !repeated && below(3) == 0;
        if (depth && below(3) == 0) {
            strcat(to, "(");
            make_expression(to, depth - 1, repeated || repeats);
            strcat(to, ")");
        } else {
            strcat(to, atoms[below(repeated || repeats ? 15 : sizeof atoms / sizeof *atoms)]);
        }
        if (repeats)
            strcat(to, repetitions[below(sizeof repetitions / sizeof *repetitions)]);
        if (n > 1 && below(4) == 0)
            strcat(to, "|");
    }
}

static void answers(void **state)
{
    (void)state;
    static const char letters[] = "aabbc_. ]";
    int matched = 0;
    for (int i = 0; i < 20000; i++) {
        char expr[1024] = "", name[12] = "", *err = NULL;
        struct kp_regex *ours = NULL;
        regex_t theirs;
        make_expression(expr, 2, false);
        for (unsigned n = below(sizeof name - 1); n; n--)
            strncat(name, &letters[below(sizeof letters - 1)], 1);
        int rc = kp_regex_new(expr, false, &ours, &err);
        assert_int_equal(!rc, !regcomp(&theirs, expr, REG_EXTENDED | REG_NOSUB));
        if (!rc) {
            bool matches_here = kp_regex_match(ours, name), there = !regexec(&theirs, name, 0, NULL, 0);
            if (matches_here != there)
                fail_msg("'%s' in '%s': %d, and %d of the C library's", expr, name, matches_here, there);
            matched += matches_here;
            regfree(&theirs);
        }
        kp_regex_free(ours);
        free(err);
    }
    assert_in_range(matched, 4000, 16000);
}

static void whole_texts(void **state)
{
    (void)state;
    struct kp_regex *r = NULL;
    char *err = NULL;
    assert_int_equal(kp_regex_new("1|2.", true, &r, &err), 0);
    assert_true(kp_regex_match(r, "1") && kp_regex_match(r, "23"));
    assert_false(kp_regex_match(r, "12") || kp_regex_match(r, "023") || kp_regex_match(r, ""));
    kp_regex_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(names),
                                       cmocka_unit_test(bad_expressions),
                                       cmocka_unit_test(expressions_that_are_too_large),
                                       cmocka_unit_test(repetitions_of_repetitions),
                                       cmocka_unit_test(answers),
                                       cmocka_unit_test(whole_texts)};
    return cmocka_run_group_tests_name("report/pattern", tests, NULL, NULL);
}
