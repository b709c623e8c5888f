#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/expr.h"

/* Names have fixed values: a.sum 6, b 3, zero 0, nan not a number; anything else is unknown. */
static int look_up(const char *name, void *arg, double *value)
{
    static const struct {
        const char *name;
        double value;
    } rows[] = {{"a.sum", 6}, {"b", 3}, {"zero", 0}, {"group:c__d.avg.pct", 0.5}, {"_x9", 1e3}, {"min", 7}};
    ++*(size_t *)arg;
    if (!strcmp(name, "nan")) {
        *value = NAN;
        return 0;
    }
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!strcmp(rows[i].name, name)) {
            *value = rows[i].value;
            return 0;
        }
    return -ENOENT;
}

static int evaluate(const char *text, double *out, size_t *asked)
{
    struct kp_expr *e = NULL;
    char *err = NULL;
    int rc = kp_expr_compile(text, &e, &err);
    if (rc)
        fail_msg("%s: %s", text, err ? err : "(no message)");
    assert_null(err);
    rc = kp_expr_eval(e, look_up, asked, out);
    kp_expr_free(e);
    return rc;
}

static void assert_value(const char *text, double expected)
{
    double value = -1;
    size_t asked = 0;
    assert_int_equal(evaluate(text, &value, &asked), 0);
    if (value != expected)
        fail_msg("%s is %.17g, not %.17g", text, value, expected);
}

static void values(void **state)
{
    (void)state;
    assert_value("2029", 2029);
    assert_value(" 5. ", 5);
    assert_value("0.3109", 0.3109);
    assert_value(".5", 0.5);
    assert_value("1e3+2.5E-1", 1000.25);
    assert_value("a.sum", 6);
    assert_value("group:c__d.avg.pct*2", 1);
    assert_value("_x9", 1000);
    assert_value("1 + 2 * 3", 7);
    assert_value("(1 + 2) * 3", 9);
    assert_value("10 - 4 - 3", 3);
    assert_value("24 / 4 / 3", 2);
    assert_value("24 / (4 / 2)", 12);
    assert_value("2 * 3 + 4 * 5 - 6 / 2", 23);
    assert_value("-b", -3);
    assert_value("- -b", 3);
    assert_value("2 - -b * -2", -4);
    assert_value("-(a.sum + b)", -9);
    assert_value("( a.sum\t* 100 )\n/ b ", 200);
    assert_value("32 - a.sum", 26);
}

static void functions(void **state)
{
    (void)state;
    assert_value("min(4, a.sum, b, 5)", 3);
    assert_value("max(4, a.sum, b, 5)", 6);
    assert_value("max(b)", 3);
    assert_value("min(max(1, 2), max(4, 3)) * 10", 20);
    assert_value("max(1 + 1, 2 * 3, -9)", 6);
    assert_value("min + 1", 8); /* without parentheses a name like any other */
    assert_value("simplify(a.sum) / simplify(b)", 2);
    assert_value("100.0 * nan_as_zero(simplify(nan) / b)", 0);
    assert_value("nan_as_zero(a.sum)", 6);
}

static void assert_by_zero(const char *text, double expected)
{
    double value = -1;
    size_t asked = 0;
    assert_int_equal(evaluate(text, &value, &asked), -EDOM);
    assert_true(value == expected);
}

static void a_division_by_zero_is_zero_and_is_told(void **state)
{
    (void)state;
    assert_by_zero("a.sum / zero", 0);
    assert_by_zero("zero / zero", 0);
    assert_by_zero("a.sum / (b - 3) + 1", 1);
    assert_by_zero("-1 / -zero", 0);
    assert_value("zero / a.sum", 0);
}

static void names_are_asked_for_once(void **state)
{
    struct kp_expr *e = NULL;
    char *err = NULL;
    size_t n, asked = 0;
    double value;
    (void)state;
    assert_int_equal(kp_expr_compile("b * a.sum + b / max(a.sum, b, zero) - 1", &e, &err), 0);
    const char *const *names = kp_expr_names(e, &n);
    assert_int_equal(n, 3);
    assert_string_equal(names[0], "b");
    assert_string_equal(names[1], "a.sum");
    assert_string_equal(names[2], "zero");
    assert_int_equal(kp_expr_eval(e, look_up, &asked, &value), 0);
    assert_int_equal(asked, 3);
    assert_true(value == 17.5);
    kp_expr_free(e);
    asked = 0;
    assert_int_equal(evaluate("a.sum + unheard + b", &value, &asked), -ENOENT);
    assert_int_equal(asked, 2); /* what the look-up says ends it */
    assert_int_equal(kp_expr_compile("12", &e, &err), 0);
    kp_expr_names(e, &n);
    assert_int_equal(n, 0);
    kp_expr_free(e);
    kp_expr_free(NULL);
}

static void errors(void **state)
{
    static const struct {
        const char *text, *message;
    } rows[] = {
        {"", "metric, number or '(' expected at the end of ''"},
        {"a +", "metric, number or '(' expected at the end of 'a +'"},
        {"a + * b", "metric, number or '(' expected at column 5 of 'a + * b', before '* b'"},
        {"a b", "operator expected at column 3 of 'a b', before 'b'"},
        {"(a + b", "')' expected at the end of '(a + b'"},
        {"a)", "operator expected at column 2 of 'a)', before ')'"},
        {"min(a, )", "metric, number or '(' expected at column 8 of 'min(a, )', before ')'"},
        {"min()", "metric, number or '(' expected at column 5 of 'min()', before ')'"},
        {"simplify(a, b)", "')' expected at column 11 of 'simplify(a, b)', before ', b)'"},
        {"sqrt(a)",
         "unknown function (there are min, max, simplify and nan_as_zero) at column 1 of 'sqrt(a)', before 'sqrt(a)'"},
        {"3x", "number that ends in letters at column 2 of '3x', before 'x'"},
        {"1.2.3", "number that ends in letters at column 4 of '1.2.3', before '.3'"},
        {"1e", "number that ends in letters at column 2 of '1e', before 'e'"},
        {"a $ b", "operator expected at column 3 of 'a $ b', before '$ b'"},
        {"\xc3\xa4", "metric, number or '(' expected at column 1 of '\xc3\xa4', before '\xc3\xa4'"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct kp_expr *e = (struct kp_expr *)1;
        char *err = NULL;
        assert_int_equal(kp_expr_compile(rows[i].text, &e, &err), -EINVAL);
        assert_null(e);
        assert_string_equal(err, rows[i].message);
        free(err);
    }
}

/* `depth` times `open`, then 1, then as many `close`. */
static int nested(const char *open, const char *close, size_t depth, double *value)
{
    char *text = calloc(depth * (strlen(open) + strlen(close)) + 2, 1), *end = text;
    struct kp_expr *e = NULL;
    char *err = NULL;
    size_t asked = 0;
    for (size_t i = 0; i < depth; i++)
        end = stpcpy(end, open);
    *end++ = '1';
    for (size_t i = 0; i < depth; i++)
        end = stpcpy(end, close);
    int rc = kp_expr_compile(text, &e, &err);
    if (rc)
        assert_non_null(strstr(err, "too many parentheses"));
    else
        assert_int_equal(kp_expr_eval(e, look_up, &asked, value), 0);
    kp_expr_free(e);
    free(err);
    free(text);
    return rc;
}

static void nesting_is_bounded(void **state)
{
    double value = 0;
    (void)state;
    assert_int_equal(nested("(", ")", 60, &value), 0);
    assert_true(value == 1);
    /* as many values wait as can: a sum, a product and what a call has joined at each level */
    assert_int_equal(nested("1+1*max(1,", ")", 63, &value), 0);
    assert_true(value == 64);
    assert_int_equal(nested("1+1*max(1,", ")", 64, &value), -EINVAL);
    assert_int_equal(nested("(", ")", 1000000, &value), -EINVAL);
    assert_int_equal(nested("-", "", 1000000, &value), -EINVAL);
    assert_int_equal(nested("", "+1", 100000, &value), 0); /* long is not deep */
    assert_true(value == 100001);
}

/* The program may have set a locale with another decimal point. */
static void numbers_in_another_locale(void **state)
{
    static const char *const locales[] = {"de_DE.UTF-8", "de_DE.utf8", "de_DE", "fr_FR.UTF-8", "fr_FR.utf8"};
    size_t i = 0;
    (void)state;
    while (i < sizeof locales / sizeof *locales && !setlocale(LC_ALL, locales[i]))
        i++;
    if (i == sizeof locales / sizeof *locales)
        skip();
    assert_true(strtod("1.5", NULL) == 1);
    assert_value("1.5 * 2", 3);
    setlocale(LC_ALL, "C");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values),
        cmocka_unit_test(functions),
        cmocka_unit_test(a_division_by_zero_is_zero_and_is_told),
        cmocka_unit_test(names_are_asked_for_once),
        cmocka_unit_test(errors),
        cmocka_unit_test(nesting_is_bounded),
        cmocka_unit_test(numbers_in_another_locale),
    };
    return cmocka_run_group_tests_name("report/expr", tests, NULL, NULL);
}
