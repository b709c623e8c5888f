/* Shared by plan.c, plan_list.c and plan_schedule.c: a plan in the making. */
#ifndef KP_COLLECTORS_PLAN_PLAN_INTERNAL_H
#define KP_COLLECTORS_PLAN_PLAN_INTERNAL_H

#include <stdio.h>

#include "collectors/plan/plan.h"
#include "collectors/providers/tables.h"
#include "report/define/groups.h"

enum { KP_NOT_SCHEDULED = -3 };

struct kp_planner {
    struct kp_plan *plan;
    const struct kp_cupti *cupti;
    struct kp_host *host;
    const char *chip;
    const char *owner; /* who has metrics or not, as texts call it: the chip */
    const uint8_t *availability;
    int major, minor;
    FILE *listed, *breakdowns; /* what becomes kp_plan.listed and .breakdowns */
    const char *option;        /* where the user lists metrics */
    bool listing;              /* what is wanted now is listed by the user */
    size_t n_known, n_unknown; /* items of the list so far */
    FILE *unknown;             /* what becomes kp_plan.unknown */
    char **err;
};

/* The metric of that name, NULL when the plan has none. Valid until the next one is added. */
struct kp_planned *kp_plan_find(const struct kp_plan *p, const char *name);

/* Plans a metric of any kind, whatever it needs, and lists it where the user is listing; *had says whether the chip has
 * it. What the chip does not have is left out, or with `required` planned as one that cannot be collected. Errors as
 * kp_plan_make. */
int kp_plan_want(struct kp_planner *x, const char *metric, const char *unit, bool required, bool *had);
/* The same for all that throughput `metric` is made of. */
int kp_plan_want_breakdown(struct kp_planner *x, const char *metric, bool *had);
/* Plans rows[from..to) of a section, which lie in one body or before the first. *any is set when the chip has one. */
int kp_plan_want_rows(struct kp_planner *x, const struct kp_section *s, size_t from, size_t to, bool *any);

/* Adds `mark` and `name` to kp_plan.listed. */
void kp_plan_note_listed(struct kp_planner *x, const char *mark, const char *name);

/* Plans what the user lists; what the chip does not have is noted. */
int kp_plan_list(struct kp_planner *x, const char *metrics);

/* Schedules the counters that are not yet: all, or those that fit into one pass. */
int kp_plan_schedule(struct kp_planner *x);
int kp_plan_schedule_one_pass(struct kp_planner *x);

#endif
