#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/pattern.h"

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

/* `why` is a part of the message; versions of PCRE2 word the rest differently. */
static void assert_refused(const char *text, const char *why)
{
    struct kp_pattern *p = (struct kp_pattern *)&p;
    char *err = NULL, begin[256];
    snprintf(begin, sizeof begin, "bad expression '%.60s%s': ", text, strlen(text) > 60 ? "..." : "");
    char *whole = NULL;
    assert_true(asprintf(&whole, "regex:%s", text) > 0);
    assert_int_equal(kp_pattern_new(whole, &p, &err), -EINVAL);
    assert_null(p);
    if (strncmp(err, begin, strlen(begin)) || !strstr(err, why))
        fail_msg("'%s' is not '%s' with '%s'", err, begin, why);
    free(err);
    free(whole);
}

static void bad_expressions(void **state)
{
    (void)state;
    assert_refused("a(b", "parenthesis (character 3)");
    /* of a long one the begin is enough */
    char long_one[200];
    memset(long_one, 'a', sizeof long_one);
    long_one[sizeof long_one - 2] = '(';
    long_one[sizeof long_one - 1] = '\0';
    assert_refused(long_one, "(character 199)");
    assert_refused("x[a", "terminating ]");
    assert_refused("[[:letter:]]", "class name");
    assert_refused("[z-a]", "out of order");
    assert_refused("a\\", "at end of pattern");
    assert_refused("a|*", "repeatable item");
    assert_refused("a{3,2}", "out of order");
    assert_refused("(*UTF)a", "UTF");
    kp_pattern_free(NULL);
}

/* A letter that means nothing after a '\' is no letter that the user asked for. */
static void unknown_escapes(void **state)
{
    (void)state;
    for (const char *letter = "IJMTYijmqy"; *letter; letter++) {
        const char text[] = {'\\', *letter, '\0'};
        assert_refused(text, "unrecognized character follows \\");
    }
    assert_refused("\\C", "disabled");
    assert_refused("\\L", "does not support");
}

/* What users bring from other tools means what it means there. */
static void perl_expressions(void **state)
{
    (void)state;
    assert_true(matches("regex:^gemm_\\d+$", "gemm_17"));
    assert_false(matches("regex:\\d", "gemm"));
    assert_false(matches("regex:^d$", "1"));
    assert_true(matches("regex:^(?!incr)", "decrement"));
    assert_false(matches("regex:^(?!incr)", "increment"));
    assert_true(matches("regex:(?i)GEMM", "sgemm_nt"));
    assert_true(matches("regex:^(\\w)\\w*?\\1$", "abca"));
    assert_true(matches("regex:\\bfloat\\b", "f<float>"));
    assert_false(matches("regex:\\bfloat\\b", "f<float4>"));
    assert_true(matches("regex:[[:alpha:]]{2,}", "ab"));
    /* bytes, whatever the locale and the text */
    assert_true(matches("regex:^a..b$", "a\xc3\xa9"
                                        "b"));
    assert_true(matches("regex:^.$", "\xff"));
    assert_true(matches("regex:^a.b$", "a\nb"));
    assert_false(matches("regex:^a$", "a\n"));
}

static void expressions_that_are_too_large(void **state)
{
    (void)state;
    static char nested[203], longest[17000];
    memset(nested, '(', 101);
    memset(nested + 101, ')', 101);
    assert_refused(nested, "too deeply nested");
    memset(longest, 'a', sizeof longest - 1);
    assert_refused(longest, "longer than the limit");
    assert_refused("(((a{1,255}){1,255}){1,255})", "too large");
    assert_refused("a{65536}", "too big");
}

/* Without limits the first takes longer than the universe, and the second 40 GB. */
static void expressions_without_end(void **state)
{
    (void)state;
    static char name[60001];
    char *err = NULL;
    struct kp_pattern *p = NULL;
    memset(name, 'a', sizeof name - 1);
    clock_t begun = clock();
    assert_int_equal(kp_pattern_new("regex:^(a|a)*(a|a)*[bc]", &p, &err), 0);
    assert_true(kp_pattern_match(p, "aab"));
    assert_false(kp_pattern_gave_up(p));
    name[40] = '\0';
    assert_false(kp_pattern_match(p, name));
    assert_true(kp_pattern_gave_up(p));
    name[40] = 'a';
    assert_true(kp_pattern_match(p, "aac")); /* the others still get their answer, */
    for (int i = 0; i < 1000; i++)
        assert_false(kp_pattern_match(p, name)); /* and it is an answer in time */
    kp_pattern_free(p);
    double seconds = (double)(clock() - begun) / CLOCKS_PER_SEC;
    assert_true(seconds < 20); /* it takes 0.4 */
}

/* Each thread has memory of its own. */
static void *match_often(void *arg)
{
    size_t right = 0;
    for (int i = 0; i < 3000; i++) {
        right += kp_pattern_match(arg, "void ns::f<(int)12, float>(a)");
        right += !kp_pattern_match(arg, "void ns::f<(int)12, double>(a)");
    }
    return (void *)right;
}

static void threads(void **state)
{
    (void)state;
    pthread_t t[4];
    struct kp_pattern *p = NULL;
    char *err = NULL;
    assert_int_equal(kp_pattern_new("regex:^void (\\w+::)*f<.*, (?=flo)(\\w+)>\\(.\\)$", &p, &err), 0);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&t[i], NULL, match_often, p), 0);
    for (size_t i = 0; i < 4; i++) {
        void *right = NULL;
        pthread_join(t[i], &right);
        assert_int_equal((size_t)right, 6000);
    }
    kp_pattern_free(p);
}

static void whole_texts(void **state)
{
    (void)state;
    struct kp_pattern *p = NULL;
    char *err = NULL;
    assert_int_equal(kp_pattern_whole("1|2.", &p, &err), 0);
    assert_true(kp_pattern_match(p, "1") && kp_pattern_match(p, "23"));
    assert_false(kp_pattern_match(p, "12") || kp_pattern_match(p, "023") || kp_pattern_match(p, ""));
    kp_pattern_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(names),
                                       cmocka_unit_test(bad_expressions),
                                       cmocka_unit_test(unknown_escapes),
                                       cmocka_unit_test(perl_expressions),
                                       cmocka_unit_test(expressions_that_are_too_large),
                                       cmocka_unit_test(expressions_without_end),
                                       cmocka_unit_test(threads),
                                       cmocka_unit_test(whole_texts)};
    return cmocka_run_group_tests_name("report/pattern", tests, NULL, NULL);
}
