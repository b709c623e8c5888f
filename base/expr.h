/*
 * Arithmetic over metric names, in the syntax of section files and derived.def.
 *
 *   sum     = product { ("+" | "-") product }
 *   product = factor { ("*" | "/") factor }
 *   factor  = "-" factor | "(" sum ")" | number | name | function "(" sum { "," sum } ")"
 * A number is 2029, 5., 0.3109 or 1e9 in every locale; a name is made of letters, digits, '_', '.' and ':' and does not
 * start with a digit. A division by zero gives 0. Functions: min and max of one or more values; simplify; nan_as_zero.
 * In Nsight Compute, simplify is a metric's value without its instances; here it is the value itself.
 * Fact: the syntax of Nsight Compute's customization guide, and further functions of its section files.
 *
 * Threads: a compiled expression is read-only.
 */
#ifndef KP_BASE_EXPR_H
#define KP_BASE_EXPR_H

#include <stddef.h>

struct kp_expr;

/* Returns the value of a name in *value; a result other than 0 ends the evaluation, which returns it. */
typedef int kp_expr_look_up(const char *name, void *arg, double *value);

/* Returns 0 with *out to kp_expr_free(); -ENOMEM; -EINVAL with *err for an unreadable or too deeply nested
 * expression. *err is a malloc'ed line that names the column, from 1 on. */
int kp_expr_compile(const char *text, struct kp_expr **out, char **err);
/* Calls `look_up` once for every name, in the order of kp_expr_names, then computes. Returns 0, -EDOM with *out
 * computed after a division by zero, -ENOMEM, or an error of `look_up`. */
int kp_expr_eval(const struct kp_expr *e, kp_expr_look_up *look_up, void *arg, double *out);
/* Returns the names in the expression, once each, in order of first appearance; *n receives their number. Valid as
 * long as `e`. */
const char *const *kp_expr_names(const struct kp_expr *e, size_t *n);
void kp_expr_free(struct kp_expr *e); /* NULL is allowed */

#endif
