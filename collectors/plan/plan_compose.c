/* Values of a rotation that follow from other values, and their spread. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/expr.h"
#include "base/sqrt.h"
#include "collectors/plan/plan.h"
#include "report/define/derive.h"

/* A value as a function of metrics of `r`, one of which may be shifted. */
struct function {
    const struct kp_result *r;
    const struct kp_planned *metric;
    const struct kp_expr *expression; /* of a composed metric; NULL of a derived one */
    const char *moved;                /* the name of a metric, or NULL */
    struct kp_why missing;            /* why there is no value; it refers to `r` */
};

static double value_of(const struct function *f, const struct kp_metric *m)
{
    double value = NAN;
    kp_metric_number(m, &value);
    return f->moved && !strcmp(m->name, f->moved) ? value + m->deviation : value;
}

static int look_up(const char *name, void *arg, double *value)
{
    struct function *f = arg;
    const struct kp_metric *m = kp_result_find(f->r, name);
    if (m && kp_metric_number(m, value)) {
        *value = value_of(f, m);
        return 0;
    }
    f->missing = m && m->kind == KP_VALUE_NA ? kp_metric_why(m) : kp_why_of(KP_REASON_NOT_COLLECTED, NULL);
    return -ENOENT;
}

static int copy_input(const char *name, void *arg)
{
    void *const *to = arg;
    const struct function *f = to[0];
    const struct kp_metric *m = kp_result_find(f->r, name);
    return m && (m->kind == KP_VALUE_REAL || m->kind == KP_VALUE_COUNT)
               ? kp_result_set_real(to[1], name, m->unit, value_of(f, m))
               : 0;
}

/* Computes the value; *out is NAN if there is none. 0 or -ENOMEM. */
static int compute(struct function *f, double *out)
{
    *out = NAN;
    if (f->expression) {
        int rc = kp_expr_eval(f->expression, look_up, f, out);
        return rc == -ENOMEM ? rc : 0;
    }
    struct kp_result inputs = {.n_metrics = 0};
    void *to[] = {f, &inputs};
    int rc = kp_derived_inputs(kp_derived_find(f->metric->name), copy_input, to);
    if (!rc)
        rc = kp_derive(&inputs, f->metric->name);
    kp_metric_number(kp_result_find(&inputs, f->metric->name), out);
    kp_result_free(&inputs);
    return rc == -ENOMEM ? rc : 0;
}

/* The spread so far. */
struct spread {
    struct function *f;
    double value, squares;
    uint32_t counted; /* the fewest launches of any input; 0 = none was counted */
    int rc;
};

/* Adds an input's contribution: how much the value moves with the input's deviation, to first order, and as if the
 * inputs were independent. */
static int add_input(const char *name, void *arg)
{
    struct spread *s = arg;
    const struct kp_metric *m = kp_result_find(s->f->r, name);
    double moved;
    if (!m || !m->counted)
        return 0;
    if (!s->counted || m->counted < s->counted)
        s->counted = m->counted;
    if (!(m->deviation > 0))
        return 0;
    s->f->moved = name;
    s->rc = compute(s->f, &moved);
    s->f->moved = NULL;
    if (isfinite(moved))
        s->squares += (moved - s->value) * (moved - s->value);
    return s->rc;
}

static int set_spread(struct kp_result *r, struct function *f, double value)
{
    struct spread s = {.f = f, .value = value};
    size_t n = 0;
    const char *const *names = f->expression ? kp_expr_names(f->expression, &n) : NULL;
    for (size_t i = 0; !s.rc && i < n; i++)
        add_input(names[i], &s);
    if (!f->expression)
        kp_derived_inputs(kp_derived_find(f->metric->name), add_input, &s);
    return s.rc ? s.rc : kp_result_set_spread(r, f->metric->name, s.counted, kp_sqrt(s.squares));
}

static int compose(struct kp_result *r, const struct kp_planned *m)
{
    struct kp_expr *e = NULL;
    char *err = NULL;
    double value;
    int rc = kp_expr_compile(m->composed, &e, &err);
    free(err);
    if (rc)
        return rc;
    struct function f = {.r = r, .metric = m, .expression = e};
    rc = compute(&f, &value);
    if (!rc && isfinite(value)) {
        rc = kp_result_set_real(r, m->name, m->unit, value);
        rc = rc ? rc : set_spread(r, &f, value);
    } else if (!rc) {
        rc = kp_result_set_why(r, m->name, f.missing.reason ? f.missing : kp_why_of(KP_REASON_NO_NUMBER, NULL));
    }
    kp_expr_free(e);
    return rc;
}

int kp_plan_compose(const struct kp_plan *p, struct kp_result *r)
{
    int rc = 0;
    for (size_t i = 0; !rc && i < p->n_metrics; i++)
        if (p->metrics[i].composed)
            rc = compose(r, &p->metrics[i]);
    return rc;
}

int kp_plan_spread(const struct kp_plan *p, struct kp_result *r)
{
    int rc = 0;
    for (size_t i = 0; !rc && i < p->n_metrics; i++) {
        const struct kp_metric *m = p->metrics[i].derived ? kp_result_find(r, p->metrics[i].name) : NULL;
        struct function f = {.r = r, .metric = &p->metrics[i]};
        if (m && m->kind == KP_VALUE_REAL)
            rc = set_spread(r, &f, m->real);
    }
    return rc;
}
