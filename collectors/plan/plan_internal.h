/* A plan being made; shared by the files of this room. */
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
    const char *owner; /* owner of metrics in texts: the chip */
    const uint8_t *availability;
    int major, minor;
    FILE *listed, *breakdowns; /* become kp_plan.listed and .breakdowns */
    const char *option;        /* the user's option for metrics */
    bool listing;              /* the current metric is listed by the user */
    size_t n_known, n_unknown; /* items of the list so far */
    FILE *unknown;             /* becomes kp_plan.unknown */
    bool own;                  /* the user names metrics, with or without sections */
    bool rolls;                /* the current row's metric gets its other roll-ups */
    struct kp_host *first;     /* the plan's first list alone, so that others can be added to it; NULL = none */
    bool slow;                 /* schedule instead of asking what fits: the quick answers were wrong */
    char **err;
};

/* Returns the metric of that name, NULL if the plan lacks it. Valid until the next one is added. */
struct kp_planned *kp_plan_find(const struct kp_plan *p, const char *name);

/* Adds a metric unless the plan has it, and returns it; NULL without memory. */
struct kp_planned *kp_plan_add(struct kp_plan *p, const char *name, const char *unit, int group);

/* Plans a metric of any kind with its inputs, and lists it if the user lists it; *had: the chip has it. A missing
 * metric is left out, or with `required` planned as KP_CANNOT_COLLECT. Errors like kp_plan_make. */
int kp_plan_want(struct kp_planner *x, const char *metric, const char *unit, bool required, bool *had);
/* The same for all constituents of throughput `metric`. */
int kp_plan_want_breakdown(struct kp_planner *x, const char *metric, bool *had);
/* Plans rows[from..to) of a section, which are in one body or before the first. *any is set if the chip has one. */
int kp_plan_want_rows(struct kp_planner *x, const struct kp_section *s, size_t from, size_t to, bool *any);

/* The same for a section, and for the inputs of its rules, on chips that have it. */
int kp_plan_want_section(struct kp_planner *x, const struct kp_section *s);
int kp_plan_want_rules(struct kp_planner *x, const struct kp_section *s);

/* Adds `mark` and `name` to kp_plan.listed. */
void kp_plan_note_listed(struct kp_planner *x, const char *mark, const char *name);

/* Plans the user's list; notes items that the chip lacks. */
int kp_plan_list(struct kp_planner *x, const char *metrics);

/* Adds the other roll-ups of the counters that have them in results, once all is scheduled. They cost no pass. */
int kp_plan_roll_up(struct kp_planner *x);

/* Names of counters of what kernels write to host memory; NULL at the end. A chip has some of them, or none. */
extern const char *const kp_plan_watched[];

/* Adds those counters to a list of the plan if that needs no further pass. */
int kp_plan_watch(struct kp_planner *x);

/* Schedules the unscheduled counters: all, or those that fit into one pass. */
int kp_plan_schedule(struct kp_planner *x);
int kp_plan_schedule_one_pass(struct kp_planner *x);
/* Schedules them into lists of one pass each, and composes metrics that fit none. `beside`: see KP_PLAN_BESIDE. */
int kp_plan_schedule_rotation(struct kp_planner *x, bool beside);

enum { KP_CANARIES = 2 };
/* Writes the names of kp_plan_canaries that the plan has, and returns how many. */
size_t kp_plan_canaries_of(const struct kp_plan *p, const char **names);

int kp_plan_leave_refused(struct kp_planner *x, const char *name);

/* Makes the plan's lists the passes of one image, as far as the library combines them: changing from one to the next
 * then costs 10 to 50 ms, instead of 0.2 to 1 s when the profiler must be enabled again. A list that it refuses starts
 * another image; a list that combines with none keeps its own. 0, -ENOMEM or -ECANCELED. */
int kp_plan_share_images(struct kp_planner *x);
/* Lays out counter data for the lists of each image, in its first list. The range profiler counts lists without a
 * layout. 0 or -ENOMEM. */
int kp_plan_lay_out(struct kp_planner *x);
/* Forgets kp_planner.first, because its list has changed or nobody needs it any more. */
void kp_plan_forget_first(struct kp_planner *x);

/* Schedules names[0..n) in one list: 0 and *config, a CUPTI code if they do not combine, or -ENOMEM. */
int kp_plan_try(const struct kp_planner *x, const char *const *names, size_t n, struct kp_config *config);
/* The same, but only counts the passes; *passes is 0 after an error. */
int kp_plan_passes(const struct kp_planner *x, const char *const *names, size_t n, size_t *passes);
/* Finds out if names[0..n) fit one pass. After a quick answer, the library may still refuse to combine them in
 * kp_plan_try. 0 or -ENOMEM. */
int kp_plan_fits(const struct kp_planner *x, const char *const *names, size_t n, bool *fit);
/* Returns the length of the hardware unit in a metric's name. */
size_t kp_plan_unit_len(const char *name);
/* Returns true if the metric is of a unit that is scheduled apart from the SM, the caches and DRAM. */
bool kp_plan_is_apart(const char *name);
/* Returns true if two metrics are of one hardware unit. */
bool kp_plan_same_unit(const char *a, const char *b);
/* Adds the list as a group of the plan, which then owns it. 0 or -ENOMEM. */
int kp_plan_commit(struct kp_plan *p, struct kp_config *config);
/* Adds names[0..n) as a group, if the library fits them in one pass: *good. 0, or negative like kp_plan_try. */
int kp_plan_commit_one_pass(struct kp_planner *x, const char *const *names, size_t n, bool *good);
/* Shares the unscheduled counters among runs: `group` becomes the index of the run's list. */
int kp_plan_schedule_runs(struct kp_planner *x);

#endif
