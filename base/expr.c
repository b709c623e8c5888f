#include "base/expr.h"

#include <errno.h>
#include <locale.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/digit.h"
#include "base/room.h"
#include "base/text.h"

enum {
    MAX_NESTING = 64, /* parentheses, signs and calls inside each other */
    /* Pending values: at each level the left sides of a sum and of a product, and the result of a call so far. */
    MAX_STACK = 3 * (MAX_NESTING + 1) + 1,
};

enum op {
    OP_NONE,
    OP_NUMBER,
    OP_NAME,
    OP_NEGATE,
    OP_ADD,
    OP_SUBTRACT,
    OP_MULTIPLY,
    OP_DIVIDE,
    OP_MIN,
    OP_MAX,
    OP_NO_NAN
};

/* One step of the expression in postfix order. */
struct step {
    enum op op;
    double number; /* OP_NUMBER */
    size_t name;   /* OP_NAME */
};

struct kp_expr {
    struct step *steps;
    size_t n_steps;
    const char **names;
    size_t n_names;
    struct kp_arena arena; /* of the names */
};

struct parser {
    const char *text, *p;
    struct kp_expr *e;
    size_t nesting;
    int rc;
    char **err;
};

static const struct function {
    const char *name;
    enum op op;
    bool several; /* folds its arguments pairwise; else has one argument */
} functions[] = {
    {"min", OP_MIN, true},        {"max", OP_MAX, true},  {"nan_as_zero", OP_NO_NAN, false},
    {"simplify", OP_NONE, false}, {NULL, OP_NONE, false},
};

/* Classifies like isalpha and isdigit, but the same in every locale. */
static bool is_name_start(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_name(char c)
{
    return is_name_start(c) || kp_is_digit(c) || c == '.' || c == ':';
}

/* Keeps the first error. */
static void say_wrong(struct parser *s, const char *what)
{
    if (s->rc)
        return;
    size_t column = (size_t)(s->p - s->text) + 1;
    if (*s->p)
        s->rc = kp_error(s->err, "%s at column %zu of '%s', before '%.16s'", what, column, s->text, s->p);
    else
        s->rc = kp_error(s->err, "%s at the end of '%s'", what, s->text);
}

static void skip_blanks(struct parser *s)
{
    while (*s->p == ' ' || *s->p == '\t' || *s->p == '\n' || *s->p == '\r')
        s->p++;
}

static bool take_char(struct parser *s, char c)
{
    skip_blanks(s);
    if (s->rc || *s->p != c)
        return false;
    s->p++;
    return true;
}

static void push_step(struct parser *s, struct step step)
{
    if (s->rc)
        return;
    if (KP_ROOM(s->e->steps, s->e->n_steps))
        s->e->steps[s->e->n_steps++] = step;
    else
        s->rc = -ENOMEM;
}

static void emit_name(struct parser *s, const char *name, size_t len)
{
    struct kp_expr *e = s->e;
    size_t i = 0;
    while (i < e->n_names && (strncmp(e->names[i], name, len) || e->names[i][len]))
        i++;
    if (i == e->n_names) {
        char *copy = KP_ROOM(e->names, e->n_names) ? kp_arena_text(&e->arena, name, len) : NULL;
        if (!copy) {
            s->rc = -ENOMEM;
            return;
        }
        e->names[e->n_names++] = copy;
    }
    push_step(s, (struct step){.op = OP_NAME, .name = i});
}

static void sum(struct parser *s);

static void close_paren(struct parser *s)
{
    if (!take_char(s, ')'))
        say_wrong(s, "')' expected");
}

static void call(struct parser *s, const struct function *f)
{
    sum(s);
    while (f->several && take_char(s, ',')) {
        sum(s);
        push_step(s, (struct step){.op = f->op});
    }
    if (!f->several && f->op != OP_NONE)
        push_step(s, (struct step){.op = f->op});
    close_paren(s);
}

static void name(struct parser *s)
{
    const char *start = s->p;
    while (is_name(*s->p))
        s->p++;
    size_t len = (size_t)(s->p - start);
    if (!take_char(s, '(')) {
        emit_name(s, start, len);
        return;
    }
    const struct function *f = functions;
    while (f->name && (strncmp(f->name, start, len) || f->name[len]))
        f++;
    if (f->name) {
        call(s, f);
        return;
    }
    s->p = start;
    say_wrong(s, "unknown function (there are min, max, simplify and nan_as_zero)");
}

static const char *skip_digits(const char *p)
{
    while (kp_is_digit(*p))
        p++;
    return p;
}

static void number(struct parser *s)
{
    const char *end = skip_digits(s->p);
    if (*end == '.')
        end = skip_digits(end + 1);
    if (*end == 'e' || *end == 'E') {
        const char *power = end + 1 + (end[1] == '+' || end[1] == '-');
        if (kp_is_digit(*power))
            end = skip_digits(power);
    }
    if (is_name(*end)) {
        s->p = end;
        say_wrong(s, "number that ends in letters");
        return;
    }
    /* glibc's object for this locale is static: nothing to free. */
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    push_step(s, (struct step){.op = OP_NUMBER, .number = strtod_l(s->p, NULL, plain)});
    s->p = end;
}

static void factor(struct parser *s)
{
    skip_blanks(s);
    if (s->nesting == MAX_NESTING)
        say_wrong(s, "too many parentheses");
    if (s->rc)
        return;
    s->nesting++;
    if (take_char(s, '-')) {
        factor(s);
        push_step(s, (struct step){.op = OP_NEGATE});
    } else if (take_char(s, '(')) {
        sum(s);
        close_paren(s);
    } else if (kp_is_digit(*s->p) || (*s->p == '.' && kp_is_digit(s->p[1]))) {
        number(s);
    } else if (is_name_start(*s->p)) {
        name(s);
    } else {
        say_wrong(s, "metric, number or '(' expected");
    }
    s->nesting--;
}

static void product(struct parser *s)
{
    factor(s);
    while (!s->rc) {
        enum op op;
        if (take_char(s, '*'))
            op = OP_MULTIPLY;
        else if (take_char(s, '/'))
            op = OP_DIVIDE;
        else
            return;
        factor(s);
        push_step(s, (struct step){.op = op});
    }
}

static void sum(struct parser *s)
{
    product(s);
    while (!s->rc) {
        enum op op;
        if (take_char(s, '+'))
            op = OP_ADD;
        else if (take_char(s, '-'))
            op = OP_SUBTRACT;
        else
            return;
        product(s);
        push_step(s, (struct step){.op = op});
    }
}

int kp_expr_compile(const char *text, struct kp_expr **out, char **err)
{
    *out = NULL;
    *err = NULL;
    struct parser s = {.text = text, .p = text, .err = err, .e = calloc(1, sizeof *s.e)};
    if (!s.e)
        return -ENOMEM;
    sum(&s);
    skip_blanks(&s);
    if (*s.p)
        say_wrong(&s, "operator expected");
    if (s.rc)
        kp_expr_free(s.e);
    else
        *out = s.e;
    return s.rc;
}

static double apply(enum op op, double a, double b)
{
    switch (op) {
    case OP_ADD:
        return a + b;
    case OP_SUBTRACT:
        return a - b;
    case OP_MULTIPLY:
        return a * b;
    case OP_DIVIDE:
        return b == 0 ? 0 : a / b;
    case OP_MIN:
        return b < a ? b : a;
    default:
        return b > a ? b : a;
    }
}

static double compute(const struct kp_expr *e, const double *values, bool *by_zero)
{
    double stack[MAX_STACK] = {0};
    size_t top = 0;
    for (size_t i = 0; i < e->n_steps; i++) {
        const struct step *step = &e->steps[i];
        switch (step->op) {
        case OP_NUMBER:
            stack[top++] = step->number;
            break;
        case OP_NAME:
            stack[top++] = values[step->name];
            break;
        case OP_NEGATE:
            stack[top - 1] = -stack[top - 1];
            break;
        case OP_NO_NAN:
            stack[top - 1] = stack[top - 1] == stack[top - 1] ? stack[top - 1] : 0;
            break;
        default:
            top--;
            *by_zero |= step->op == OP_DIVIDE && stack[top] == 0;
            stack[top - 1] = apply(step->op, stack[top - 1], stack[top]);
        }
    }
    return stack[0];
}

int kp_expr_eval(const struct kp_expr *e, kp_expr_look_up *look_up, void *arg, double *out)
{
    double *values = calloc(e->n_names + 1, sizeof *values);
    int rc = values ? 0 : -ENOMEM;
    bool by_zero = false;
    for (size_t i = 0; !rc && i < e->n_names; i++)
        rc = look_up(e->names[i], arg, &values[i]);
    if (!rc)
        *out = compute(e, values, &by_zero);
    free(values);
    return rc ? rc : by_zero ? -EDOM : 0;
}

const char *const *kp_expr_names(const struct kp_expr *e, size_t *n)
{
    *n = e->n_names;
    return e->names;
}

void kp_expr_free(struct kp_expr *e)
{
    if (!e)
        return;
    free(e->steps);
    free(e->names);
    kp_arena_free(&e->arena);
    free(e);
}
