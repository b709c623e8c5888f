/*
 * The roll-ups of a counter over its units: X.avg, X.max, X.min and X.sum, each perhaps with a further suffix. The
 * library computes all from what is counted for one, so the others need no schedule, and no pass.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectors/plan/plan_internal.h"

enum { NAME_MOST = 512, ROLL_UPS = 4, ROLL_UP_LEN = 4 };

static const char *const roll_ups[ROLL_UPS] = {".avg", ".max", ".min", ".sum"};

/* Returns the place of the roll-up in a full name; NULL for a metric without one. Names of some units have dots. */
static const char *roll_up_of(const char *name)
{
    const char *unit_end = strstr(name, "__"), *at = strchr(unit_end ? unit_end : name, '.');
    for (size_t i = 0; at && i < ROLL_UPS; i++)
        if (!strncmp(at, roll_ups[i], ROLL_UP_LEN) && (!at[ROLL_UP_LEN] || at[ROLL_UP_LEN] == '.'))
            return at;
    return NULL;
}

/* Plans the roll-ups of the plan's i-th metric that the chip has. */
static int plan_others(struct kp_planner *x, size_t i)
{
    struct kp_plan *p = x->plan;
    const char *name = p->metrics[i].name, *at = roll_up_of(name);
    for (size_t k = 0; at && k < ROLL_UPS; k++) {
        struct kp_metric_props props;
        char other[NAME_MOST], unit[sizeof(p->metrics->unit)];
        snprintf(other, sizeof(other), "%.*s%s%s", (int)(at - name), name, roll_ups[k], at + ROLL_UP_LEN);
        if (kp_plan_find(p, other) || kp_tables_metric(x->host, other, &props))
            continue;
        memcpy(unit, p->metrics[i].unit, sizeof(unit)); /* the list of metrics moves as it grows */
        struct kp_planned *m = kp_plan_add(p, other, unit, p->metrics[i].group);
        if (!m)
            return -ENOMEM;
        m->rolled = true;
    }
    return 0;
}

/* Adds the planned roll-ups to the names of their list. */
static int add_to_list(const struct kp_plan *p, size_t g)
{
    struct kp_config *list = &p->groups[g];
    size_t n = 0;
    for (size_t i = 0; i < p->n_metrics; i++)
        n += p->metrics[i].rolled && p->metrics[i].group == (int)g;
    const char **names = realloc(list->names, (list->n_names + n + 1) * sizeof(*names));
    if (!names)
        return -ENOMEM;
    list->names = names;
    list->n_more = 0;
    for (size_t i = 0; i < p->n_metrics; i++)
        if (p->metrics[i].rolled && p->metrics[i].group == (int)g)
            names[list->n_names + list->n_more++] = p->metrics[i].name;
    return 0;
}

int kp_plan_roll_up(struct kp_planner *x)
{
    struct kp_plan *p = x->plan;
    int rc = 0;
    for (size_t i = 0, n = p->n_metrics; !rc && i < n; i++)
        if (p->metrics[i].rolls && p->metrics[i].group >= 0)
            rc = plan_others(x, i);
    for (size_t g = 0; !rc && g < p->n_groups; g++)
        rc = add_to_list(p, g);
    return rc;
}
