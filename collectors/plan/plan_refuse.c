/* Finds the metrics of a rotation that mix groups of counters, which different launches have counted. */
#include <stdlib.h>

#include "base/expr.h"
#include "collectors/plan/plan.h"
#include "collectors/plan/plan_internal.h"
#include "report/define/derive.h"

/* The groups that a metric depends on. */
struct sources {
    const struct kp_plan *plan;
    int group;    /* the group of its inputs, */
    bool any;     /* if it has one, */
    bool several; /* or several */
    bool canary;  /* it has an input that all groups count */
    int depth;
};

enum { MOST_DEPTH = 8 };

static int add_source(const char *name, void *arg);

static int add_composed(const struct kp_planned *m, struct sources *s)
{
    struct kp_expr *e = NULL;
    char *err = NULL;
    size_t n = 0;
    int rc = kp_expr_compile(m->composed, &e, &err);
    const char *const *names = rc ? NULL : kp_expr_names(e, &n);
    free(err);
    s->depth++;
    for (size_t i = 0; i < n; i++)
        add_source(names[i], s);
    s->depth--;
    kp_expr_free(e);
    return rc;
}

static int add_source(const char *name, void *arg)
{
    struct sources *s = arg;
    const struct kp_planned *m = kp_plan_find(s->plan, name);
    if (!m || s->depth > MOST_DEPTH)
        return 0;
    if (m->composed)
        return add_composed(m, s);
    if (m->group < 0)
        return 0;
    if (kp_plan_is_canary(name)) {
        s->canary = true;
        return 0;
    }
    s->several |= s->any && s->group != m->group;
    s->group = m->group;
    s->any = true;
    return 0;
}

static bool mixes(const struct kp_plan *p, const struct kp_planned *m, int *rc)
{
    struct sources s = {.plan = p};
    *rc = m->composed ? add_composed(m, &s) : kp_derived_inputs(kp_derived_find(m->name), add_source, &s);
    return s.several || (s.any && s.canary);
}

int kp_plan_refuse(const struct kp_plan *p, struct kp_why why, struct kp_result *r)
{
    int rc = 0;
    for (size_t i = 0; !rc && i < p->n_metrics; i++) {
        const struct kp_planned *m = &p->metrics[i];
        const struct kp_metric *value = m->composed || m->derived ? kp_result_find(r, m->name) : NULL;
        if (value && value->kind == KP_VALUE_REAL && mixes(p, m, &rc) && !rc)
            rc = kp_result_set_why(r, m->name, why);
    }
    return rc;
}
