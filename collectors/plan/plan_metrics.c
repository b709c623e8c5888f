/* The metrics of a plan by name, and their values in a result. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "collectors/plan/plan_internal.h"
#include "report/define/derive.h"

/* Returns the slot of `name`, or a free one for it. */
static uint32_t *slot_of(const struct kp_plan *p, const char *name)
{
    for (size_t i = kp_hash(name, strlen(name), 0);; i++) {
        uint32_t *slot = &p->slots[i & (p->n_slots - 1)];
        if (!*slot || !strcmp(p->metrics[*slot - 1].name, name))
            return slot;
    }
}

struct kp_planned *kp_plan_find(const struct kp_plan *p, const char *name)
{
    uint32_t *slot = p->n_slots ? slot_of(p, name) : NULL;
    return slot && *slot ? &p->metrics[*slot - 1] : NULL;
}

/* Makes room for one more: at most half of the slots are in use, so that a search is short. */
static int grow(struct kp_plan *p)
{
    if (p->n_metrics < p->cap_metrics)
        return 0;
    size_t cap = p->cap_metrics ? 2 * p->cap_metrics : 64;
    struct kp_planned *grown = realloc(p->metrics, cap * sizeof(*grown));
    if (!grown)
        return -ENOMEM;
    p->metrics = grown;
    uint32_t *slots = calloc(2 * cap, sizeof(*slots));
    if (!slots)
        return -ENOMEM;
    free(p->slots);
    p->slots = slots;
    p->n_slots = 2 * cap;
    p->cap_metrics = cap;
    for (size_t i = 0; i < p->n_metrics; i++)
        *slot_of(p, p->metrics[i].name) = (uint32_t)i + 1;
    return 0;
}

struct kp_planned *kp_plan_add(struct kp_plan *p, const char *name, const char *unit, int group)
{
    struct kp_planned *m = kp_plan_find(p, name);
    if (m)
        return m;
    if (grow(p))
        return NULL;
    m = &p->metrics[p->n_metrics];
    *m = (struct kp_planned){.name = kp_strdup(name), .group = group};
    if (!m->name)
        return NULL;
    snprintf(m->unit, sizeof(m->unit), "%s", unit);
    *slot_of(p, name) = (uint32_t)++p->n_metrics;
    return m;
}

void kp_plan_free(struct kp_plan *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < p->n_groups; i++)
        kp_config_free(&p->groups[i]);
    for (size_t i = 0; i < p->n_metrics; i++) {
        free(p->metrics[i].name);
        kp_why_free(&p->metrics[i].why);
        free(p->metrics[i].composed);
        free(p->metrics[i].parts);
    }
    free(p->metrics);
    free(p->slots);
    free(p->groups);
    free(p->listed);
    free(p->breakdowns);
    free(p->unknown);
    free(p);
}

bool kp_plan_counts(const struct kp_plan *p)
{
    return p->n_groups > 0;
}

bool kp_plan_is_counter(const struct kp_plan *p, const char *metric)
{
    const struct kp_planned *m = kp_plan_find(p, metric);
    return m && m->group >= 0;
}

int kp_plan_store(const struct kp_plan *p, size_t g, const double *values, struct kp_result *r)
{
    const struct kp_config *group = &p->groups[g];
    for (size_t i = 0; i < group->n_names + group->n_more; i++) {
        const struct kp_planned *m = kp_plan_find(p, group->names[i]);
        int rc = isfinite(values[i]) ? kp_result_set_real(r, m->name, m->unit, values[i])
                                     : kp_result_set_na(r, m->name, KP_REASON_NO_NUMBER);
        if (rc)
            return rc;
    }
    return 0;
}

int kp_plan_store_missing(const struct kp_plan *p, struct kp_why why, struct kp_result *r)
{
    for (size_t i = 0; i < p->n_metrics; i++) {
        const struct kp_planned *m = &p->metrics[i];
        if (m->group == KP_NOT_A_COUNTER || m->group == KP_OTHER_RUN || m->composed || m->watch ||
            kp_result_find(r, m->name))
            continue;
        int rc = kp_result_set_why(r, m->name, m->group == KP_CANNOT_COLLECT && m->why.reason ? m->why : why);
        if (rc)
            return rc;
    }
    return 0;
}

int kp_plan_derive(const struct kp_plan *p, struct kp_result *r)
{
    int rc = 0;
    for (size_t i = 0; !rc && i < p->n_metrics; i++)
        if (p->metrics[i].derived)
            rc = kp_derive(r, p->metrics[i].name);
    return rc;
}
