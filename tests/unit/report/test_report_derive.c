#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/expr.h"
#include "report/define/derive.h"

static void add(const char *name, const char *unit, const char *expression)
{
    char *err = NULL;
    assert_int_equal(kp_derived_add(&(struct kp_derived){name, unit, expression}, &err), 0);
    assert_null(err);
}

static int join(const char *metric, void *arg)
{
    char *text = arg;
    strcat(text, *text ? " " : "");
    strcat(text, metric);
    return strcmp(metric, "stop") ? 0 : 42;
}

/* The inputs joined by blanks. */
static void assert_inputs(const char *name, int rc, const char *expected)
{
    char text[512] = "";
    assert_int_equal(kp_derived_inputs(kp_derived_find(name), join, text), rc);
    assert_string_equal(text, expected);
}

/* Every row can be read, is found by its name and has inputs that no circle hides. */
static void the_table_is_sound(void **state)
{
    size_t n;
    const struct kp_derived **all = kp_derived_all(&n);
    (void)state;
    assert_true(n > 0);
    for (size_t i = 0; i < n; i++) {
        struct kp_expr *e = NULL;
        char text[65536] = "", *err = NULL;
        if (kp_expr_compile(all[i]->expression, &e, &err))
            fail_msg("%s: %s", all[i]->name, err);
        kp_expr_free(e);
        assert_ptr_equal(kp_derived_find(all[i]->name), all[i]);
        assert_int_equal(kp_derived_inputs(all[i], join, text), 0);
    }
    free(all);
    assert_null(kp_derived_find("derived__unheard_of"));
}

static void values(void **state)
{
    struct kp_result r = {0};
    (void)state;
    add("ratio", "%", "100 * part.sum / whole.sum");
    kp_result_set_count(&r, "part.sum", "inst", 1);
    kp_result_set_real(&r, "whole.sum", "inst", 8);
    assert_int_equal(kp_derive(&r, "ratio"), 0);
    const struct kp_metric *m = kp_result_find(&r, "ratio");
    assert_int_equal(m->kind, KP_VALUE_REAL);
    assert_true(m->real == 12.5);
    assert_string_equal(m->unit, "%");
    kp_result_set_real(&r, "ratio", "", 7); /* what is there stays */
    assert_int_equal(kp_derive(&r, "ratio"), 0);
    assert_true(kp_result_find(&r, "ratio")->real == 7);
    assert_int_equal(kp_derive(&r, "part.sum"), -ENOENT);
    assert_int_equal(kp_derive(&r, "unheard"), -ENOENT);
    assert_null(kp_result_find(&r, "unheard"));
    kp_result_free(&r);
}

static void assert_na(const struct kp_result *r, const char *name, const char *why)
{
    const struct kp_metric *m = kp_result_find(r, name);
    assert_non_null(m);
    assert_int_equal(m->kind, KP_VALUE_NA);
    assert_string_equal(m->text, why);
}

static void what_is_missing_is_said(void **state)
{
    struct kp_result r = {0};
    (void)state;
    add("needs_absent", "", "1 + absent.sum");
    add("needs_na", "", "lost.sum * 2");
    add("needs_text", "", "2 * word");
    add("outer", "", "needs_na + 1");
    kp_result_set_why(&r, "lost.sum", kp_why_of(KP_REASON_NOT_COLLECTED, (char *)"no counters were free"));
    kp_result_set_text(&r, "word", "", "PREFER_L1");
    assert_int_equal(kp_derive(&r, "needs_absent"), 0);
    assert_na(&r, "needs_absent", "absent.sum was not collected");
    assert_int_equal(kp_derive(&r, "needs_text"), 0);
    assert_na(&r, "needs_text", "word is not a number");
    assert_int_equal(kp_derive(&r, "outer"), 0);
    assert_na(&r, "outer", "no counters were free"); /* the reason comes from the innermost */
    kp_result_free(&r);
}

/* The table's own are of what did not happen then. */
static void a_division_by_zero_is_told_of_the_users(void **state)
{
    static const char own[] = "derived__l1tex__t_sectors_per_request_pipe_lsu_mem_global_op_ld";
    struct kp_result r = {0};
    double value = -1;
    (void)state;
    add("by_zero", "", "1 / nothing.sum");
    kp_result_set_count(&r, "nothing.sum", "", 0);
    kp_result_set_count(&r, "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", "", 0);
    kp_result_set_count(&r, "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum", "", 0);
    assert_int_equal(kp_derive(&r, "by_zero"), 0);
    assert_na(&r, "by_zero", kp_reason_text(KP_REASON_DIVIDES_BY_ZERO));
    assert_int_equal(kp_derive(&r, own), 0);
    assert_true(kp_metric_number(kp_result_find(&r, own), &value) && value == 0);
    kp_result_free(&r);
}

static void all_of_the_users_can_be_derived(void **state)
{
    struct kp_result r = {0};
    double value = 0;
    (void)state;
    add("users_first", "", "seen.sum + 1");
    add("users_second", "", "unseen.sum + 1");
    kp_result_set_count(&r, "seen.sum", "", 41);
    assert_int_equal(kp_derive_users(&r), 0);
    assert_true(kp_metric_number(kp_result_find(&r, "users_first"), &value) && value == 42);
    assert_na(&r, "users_second", "unseen.sum was not collected");
    kp_result_free(&r);
}

static void definitions_of_definitions(void **state)
{
    struct kp_result r = {0};
    (void)state;
    add("twice", "", "base.sum * 2");
    add("four_times", "", "twice + twice");
    add("more", "", "four_times + other.sum + twice + base.sum");
    assert_inputs("more", 0, "base.sum other.sum");
    add("stops", "", "first + stop + last");
    assert_inputs("stops", 42, "first stop");
    kp_result_set_count(&r, "base.sum", "", 5);
    kp_result_set_count(&r, "other.sum", "", 1);
    assert_int_equal(kp_derive(&r, "more"), 0);
    assert_true(kp_result_find(&r, "more")->real == 36);
    kp_result_free(&r);
}

static void circles(void **state)
{
    struct kp_result r = {0};
    char name[16], expression[64];
    (void)state;
    add("self", "", "self + 1");
    add("ring_a", "", "input.sum + ring_b");
    add("ring_b", "", "ring_c * 2");
    add("ring_c", "", "ring_a / 2");
    assert_inputs("self", -ELOOP, "");
    assert_inputs("ring_a", -ELOOP, "input.sum");
    kp_result_set_count(&r, "input.sum", "", 1);
    assert_int_equal(kp_derive(&r, "self"), 0);
    assert_na(&r, "self", kp_reason_text(KP_REASON_NEEDS_ITSELF));
    assert_int_equal(kp_derive(&r, "ring_a"), 0);
    assert_na(&r, "ring_a", kp_reason_text(KP_REASON_NEEDS_ITSELF));
    kp_result_free(&r);
    /* a chain without a circle whose paths double at each link is walked once */
    add("link0", "", "input.sum");
    for (int i = 1; i < 40; i++) {
        snprintf(name, sizeof name, "link%d", i);
        snprintf(expression, sizeof expression, "link%d + (link%d - input.sum)", i - 1, i > 1 ? i - 2 : 0);
        add(name, "", expression);
    }
    assert_inputs("link29", 0, "input.sum");
    kp_result_set_count(&r, "input.sum", "", 0);
    assert_int_equal(kp_derive(&r, "link29"), 0);
    assert_true(kp_result_find(&r, "link29")->real == 0);
    assert_inputs("link39", -ELOOP, ""); /* too long is no better */
    kp_result_free(&r);
    kp_result_set_count(&r, "input.sum", "", 0);
    assert_int_equal(kp_derive(&r, "link39"), 0);
    assert_na(&r, "link39", kp_reason_text(KP_REASON_NEEDS_ITSELF));
    kp_result_free(&r);
}

static void one_of_the_same_name_gives_way(void **state)
{
    size_t n, before;
    char *err = NULL, name[] = "gone";
    (void)state;
    const char *builtin = "derived__smsp__inst_executed_op_branch_pct";
    free(kp_derived_all(&before));
    add(builtin, "", "1");
    add(name, "a", "2");
    add("gone", "b", "3");
    memset(name, 'x', sizeof name - 1); /* it was copied */
    assert_string_equal(kp_derived_find(builtin)->expression, "1");
    assert_string_equal(kp_derived_find("gone")->unit, "b");
    const struct kp_derived **all = kp_derived_all(&n);
    assert_int_equal(n, before + 1);
    assert_string_equal(all[0]->name, "ratio"); /* the user's come first */
    free(all);
    assert_int_equal(kp_derived_add(&(struct kp_derived){"bad", "", "1 +"}, &err), -EINVAL);
    assert_string_equal(err, "metric, number or '(' expected at the end of '1 +'");
    free(err);
    assert_null(kp_derived_find("bad"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_is_sound),
        cmocka_unit_test(values),
        cmocka_unit_test(what_is_missing_is_said),
        cmocka_unit_test(a_division_by_zero_is_told_of_the_users),
        cmocka_unit_test(all_of_the_users_can_be_derived),
        cmocka_unit_test(definitions_of_definitions),
        cmocka_unit_test(circles),
        cmocka_unit_test(one_of_the_same_name_gives_way),
    };
    return cmocka_run_group_tests_name("report/derive", tests, NULL, NULL);
}
