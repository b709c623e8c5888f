/*
 * The plan: from the sections and metrics asked for to scheduled lists of counters. Made once a context.
 *
 * All counters go into one list, which packs them into the fewest passes; what the library refuses to combine with the
 * rest goes into a list of its own. A plan of one pass leaves out what would open a second one.
 */
#ifndef KP_COLLECTORS_PLAN_H
#define KP_COLLECTORS_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cupti/host.h"
#include "report/model.h"
#include "report/sections.h"

/* One metric to report. */
struct kp_planned {
    char *name;
    char unit[48];
    int group; /* index of the list that collects it; -1: not a counter; -2: cannot be collected, see why */
    char *why; /* for group -2 */
};

struct kp_plan {
    struct kp_planned *metrics;
    size_t n_metrics;
    struct kp_config *groups;
    size_t n_groups;
    size_t passes; /* over all groups */
    char *listed;  /* KPROF_METRICS resolved to exact names, comma-separated; "" */
};

/* Plans for `chip` with compute capability major.minor. `metrics` is the user's comma list ("" = none): exact names, or
 * base names that stand for their usual suffixes (a counter's avg, max, min, sum; a ratio's ratio; a throughput's
 * percentage of the sustained peak). With `one_pass` there is one list, or none, and it takes one pass: a counter is
 * taken when it still fits beside those before it, by the order of the sections' rows, and is else of group -2. Returns
 * 0; -EINVAL with *err (malloc'ed line) for a metric that the chip does not have, naming the nearest; -EIO with *err
 * when the library cannot schedule; -ENOMEM. */
int kp_plan_make(const struct kp_cupti *c, const char *chip, const uint8_t *availability, int major, int minor,
                 const struct kp_section *const *sections, size_t n_sections, const char *metrics, bool one_pass,
                 struct kp_plan **out, char **err);
void kp_plan_free(struct kp_plan *p);

/* Whether any counter is wanted. */
bool kp_plan_counts(const struct kp_plan *p);

/* Puts the values of group `g` (values[i] belongs to its i-th name) into `r`. 0 or -ENOMEM. */
int kp_plan_store(const struct kp_plan *p, size_t g, const double *values, struct kp_result *r);

/* Marks every counter of the plan that `r` does not have yet as missing for `why`. 0 or -ENOMEM. */
int kp_plan_store_missing(const struct kp_plan *p, const char *why, struct kp_result *r);

#endif
