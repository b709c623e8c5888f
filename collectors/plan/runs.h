/*
 * Shares the counters of a plan among several runs of the program, each counting one list of one pass. Needed if
 * launches cannot be repeated: KPROF_REPLAY_MODE=application.
 *
 * Almost all metrics fit into lists of one pass, whose values do not depend on other runs. A throughput that needs
 * several passes is the maximum of its constituents, which are counted instead. All other metrics that need several
 * passes alone are in one last list. It needs one run per pass, and the counter data of each launch is passed from run
 * to run.
 *
 * How to use it: kp_plan_make with KP_PLAN_RUNS in the first run, kp_plan_runs_text to record how it was shared. Later
 * runs make their plan with KP_PLAN_UNSHARED, and kp_plan_runs_read. Each run then calls kp_plan_runs_keep.
 */
#ifndef KP_COLLECTORS_PLAN_RUNS_H
#define KP_COLLECTORS_PLAN_RUNS_H

#include "collectors/plan/plan.h"

enum { KP_NO_LIST = -1 };

/* A line of the text. */
enum kp_runs_kind {
    KP_RUNS_COUNTED, /* a counter of list `list` */
    KP_RUNS_PART,    /* the same, but counted only for a throughput: reports do not show it */
    KP_RUNS_SEVERAL, /* a counter of the list whose first pass is run `list`; `text`: the number of passes, and "part"
                        or "" */
    KP_RUNS_LARGEST, /* the maximum of the metrics in the comma list `text`; `list` is 1 for a part, else 0 */
    KP_RUNS_DERIVED, /* computed when everything about the launch is known */
    KP_RUNS_CANNOT,  /* cannot be collected, see kp_plan_runs_why; `list` is 1 for a part */
    KP_RUNS_KINDS
};

struct kp_runs_line {
    enum kp_runs_kind kind;
    const char *name, *unit, *text; /* the unit is the base unit */
    int list;
};

/* Returns how the plan's metrics are shared, one per line; malloc'ed, NULL without memory. */
char *kp_plan_runs_text(const struct kp_plan *p);
/* Calls `fn` for each line of a text, which this changes. Returns 0, -EINVAL for another text, or a result of `fn`
 * other than 0. */
int kp_plan_runs_each(char *text, int (*fn)(const struct kp_runs_line *line, void *arg), void *arg);
/* Return true if reports do not show the metric; how many runs from `list` on count it. */
bool kp_plan_runs_is_part(const struct kp_runs_line *line);
size_t kp_plan_runs_passes(const struct kp_runs_line *line);
/* Returns why the metric of a KP_RUNS_CANNOT line cannot be collected; it refers to the line. */
struct kp_why kp_plan_runs_why(const struct kp_runs_line *line);
/* Shares a KP_PLAN_UNSHARED plan in the way that the text describes; changes the text. 0, -EINVAL or -ENOMEM. */
int kp_plan_runs_read(struct kp_plan *p, char *text);

/* Leaves list `list` (KP_NO_LIST: none) in the plan, as its only group; metrics of other lists become KP_OTHER_RUN, and
 * derived ones are left to whoever joins the runs. 0, -ENOMEM, or a code of the library. */
int kp_plan_runs_keep(struct kp_plan *p, const struct kp_cupti *c, const char *chip, const uint8_t *availability,
                      int list);

#endif
