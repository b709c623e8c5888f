#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/pattern.h"

static bool matches(const char *text, const char *name)
{
    struct kp_pattern *p = NULL;
    char *err = NULL;
    assert_int_equal(kp_pattern_new(text, &p, &err), 0);
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

static void bad_expressions(void **state)
{
    (void)state;
    struct kp_pattern *p = (struct kp_pattern *)&p;
    char *err = NULL;
    assert_int_equal(kp_pattern_new("regex:a(b", &p, &err), -EINVAL);
    assert_null(p);
    assert_string_equal(err, "bad expression 'a(b': Unmatched ( or \\(");
    free(err);
    /* of a long one the begin is enough */
    char long_one[200] = "regex:";
    memset(long_one + 6, 'a', sizeof long_one - 8);
    long_one[sizeof long_one - 2] = '(';
    long_one[sizeof long_one - 1] = '\0';
    assert_int_equal(kp_pattern_new(long_one, &p, &err), -EINVAL);
    assert_string_equal(err, "bad expression 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa...': "
                             "Unmatched ( or \\(");
    free(err);
    kp_pattern_free(NULL);
}

/* Each of these takes the stack or gigabytes when it is compiled. */
static void expressions_that_are_too_large(void **state)
{
    (void)state;
    char nested[50001], pluses[] = "regex:(((((((((((((((((((((((((((((((a"
                                   "+)+)+)+)+)+)+)+)+)+)+)+)+)+)+)+)+)+)+)+)+)+)+)+)+)+)+)+)+)+)+)+)";
    memset(nested, '(', sizeof nested - 1);
    memcpy(nested, "regex:", 6);
    nested[sizeof nested - 1] = '\0';
    const char *const too_large[] = {nested,
                                     pluses,
                                     "regex:(((a{1,255}){1,255}){1,255})",
                                     "regex:((((){255}){255}){255})",
                                     "regex:[]a{1}]{30000}{30000}",
                                     "regex:(((\\({200,}){200}){200})"};
    for (size_t i = 0; i < sizeof too_large / sizeof *too_large; i++) {
        struct kp_pattern *p = NULL;
        char *err = NULL;
        assert_int_equal(kp_pattern_new(too_large[i], &p, &err), -EINVAL);
        assert_null(p);
        assert_non_null(strstr(err, "': it is too large"));
        assert_true(strlen(err) < 120);
        free(err);
    }
    assert_true(matches("regex:^([[:alpha:]]{2,40}|[]x{9}]+){1,20}$", "gemm"));
    assert_true(matches("regex:^a\\{[^]{9}{9}]$", "a{b"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(names), cmocka_unit_test(bad_expressions),
                                       cmocka_unit_test(expressions_that_are_too_large)};
    return cmocka_run_group_tests_name("report/pattern", tests, NULL, NULL);
}
