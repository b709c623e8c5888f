/*
 * The plan turns the selected sections and metrics into scheduled lists of counters. Made once per context. All
 * counters go into one list, packed into the fewest passes, except that counters that the library refuses to combine
 * with the rest go into a separate list. A plan of one pass leaves out each counter that would open a second pass.
 */
#ifndef KP_COLLECTORS_PLAN_PLAN_H
#define KP_COLLECTORS_PLAN_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collectors/model/metrics.h"
#include "report/define/sections.h"
#include "report/model/model.h"

struct kp_cupti;

/* Values of `group` of a planned metric other than the index of the list that collects it. KP_OTHER_RUN: another run of
 * the program collects it, see runs.h. */
enum { KP_NOT_A_COUNTER = -1, KP_CANNOT_COLLECT = -2, KP_OTHER_RUN = -4 };

/* One metric to report. */
struct kp_planned {
    char *name;
    char unit[48];
    int group;
    struct kp_why why; /* of KP_CANNOT_COLLECT */
    bool derived;      /* computed from other metrics of the plan, see kp_plan_derive */
    char *composed; /* of a rotation, for a metric that fits no single pass: an expression over others of the plan; NULL
                       = none */
    bool listed;    /* among kp_plan.listed */
    bool fits;      /* of a rotation: known to fit one pass */
    char *parts;    /* the metrics whose maximum it is, a comma list; NULL = it is counted; see runs.h */
    bool part;      /* planned only for `parts` of another metric */
    size_t passes;  /* of its list, one per run from that list on; 0 = one */
    bool watch;     /* counted only for kp_plan_host_writes: no result has it */
    bool rolls;     /* a counter of a section, beside which results have its other roll-ups */
    bool rolled;    /* such a roll-up: not scheduled, as the counter's list gives it */
};

struct kp_plan {
    struct kp_planned *metrics;
    size_t n_metrics, cap_metrics;
    uint32_t *slots; /* hash of the metrics by name: index plus one, 0 = free */
    size_t n_slots;  /* a power of two */
    struct kp_config *groups;
    size_t n_groups;
    size_t passes;        /* over all groups */
    size_t runs;          /* of the program, one per pass of a list; 0 = one run counts everything; see runs.h */
    size_t several, pass; /* passes of the list that kp_plan_runs_keep has left, if it needs several; and the one of
                             this run, from 0 */
    char *listed;         /* KPROF_METRICS as exact names, comma-separated, sampled ones prefixed with KP_SAMPLED; "" */
    char *breakdowns;     /* as kp_device_info.breakdowns */
    char *unknown;        /* "ITEM\tTEXT" for each item that the chip lacks, a line each; "" */
};

/* The most counters of a plan (the largest set has 900), and the most lines on unknown metrics (one more counts the
 * rest). */
enum { KP_PLAN_MOST_COUNTERS = 4096, KP_PLAN_TELLS = 8 };

/* How to plan: bits, see kp_plan_make. */
enum {
    KP_PLAN_ONE_PASS = 1,
    KP_PLAN_RULES = 2,
    KP_PLAN_COLUMNS = 4,
    KP_PLAN_QUERY = 8,
    KP_PLAN_ANY_CHIP = 16,
    KP_PLAN_RUNS = 32,
    KP_PLAN_UNSHARED = 64,
    KP_PLAN_ROTATE = 128,
    KP_PLAN_WATCH = 256,
    KP_PLAN_BESIDE = 512,
    KP_PLAN_DURATION = 1024,
};

/* Plans for `chip` with compute capability major.minor.
 *
 * Several rows of a section may share a place (kind, group and label in one body). The first row whose condition holds
 * on the chip and whose metric the chip has counts. Without such a row a header row is planned as KP_CANNOT_COLLECT;
 * other rows are left out.
 *
 * `metrics` is the user's list, separated by commas or blanks ("" = none):
 * - a name: exact, or a base name with its usual suffixes: a counter's avg, max, min, sum; a ratio's ratio; a
 *   throughput's percentage of the sustained peak. Names of launch metrics, derived ones and those of
 *   kp_providers_metrics are valid, too
 * - regex:EXPR: every name that contains a match: of the chip's the base name, which stands for its usual suffixes, or
 *   else those with suffixes that match; and every other name
 * - group:NAME: the metrics of a section's body, and more, see kp_groups_each
 * - breakdown:NAME: the constituents of a throughput
 * - pmsampling:NAME: a full name that is sampled over time
 * An item that the chip lacks is left out, with a line in `unknown` that suggests the nearest. Without sections or
 * another item, that is an error.
 *
 * `how` is a sum of the bits above. KP_PLAN_RULES also plans the inputs of the sections' rules. KP_PLAN_ONE_PASS makes
 * at most one list, of one pass: by the order of the sections' rows, a counter is taken if it still fits, else it is
 * KP_CANNOT_COLLECT. KP_PLAN_ROTATE makes lists of one pass each, with the duration and the cycles in each that has
 * room for them; metrics that fit no single pass are composed of others. KP_PLAN_BESIDE, with it: the lists are counted
 * alongside a replay, by its profiler, so they share images; with KP_PLAN_ONE_PASS a session has the list.
 * KP_PLAN_RUNS and KP_PLAN_UNSHARED: for runs.h; the plan has no groups yet. KP_PLAN_COLUMNS: `metrics` are
 * KPROF_TRACE_COLUMNS, which errors then name. KP_PLAN_QUERY: the command asks, and errors name its flag.
 * KP_PLAN_ANY_CHIP: the same, but texts are about all chips of CUPTI. KP_PLAN_WATCH: what kernels write to host memory
 * is counted, too, if that needs no further pass. KP_PLAN_DURATION: if there are counters, gpu__time_duration.sum is
 * one of them, as in ncu.
 *
 * Returns 0; -ENOMEM; -EIO with *err if the library cannot schedule. Returns -EINVAL with *err (malloc'ed; lines, the
 * last without its end) if the chip has no item of the list, or for more than KP_PLAN_MOST_COUNTERS. */
int kp_plan_make(const struct kp_cupti *c, const char *chip, const uint8_t *availability, int major, int minor,
                 const struct kp_section *const *sections, size_t n_sections, const char *metrics, unsigned how,
                 struct kp_plan **out, char **err);
void kp_plan_free(struct kp_plan *p);

/* Turns a plan for that chip, made without KP_PLAN_WATCH, into one made with it. 0; otherwise, with -ENOMEM or a code
 * of the library, the plan can only be freed. */
int kp_plan_watch_more(const struct kp_cupti *c, const char *chip, const uint8_t *availability, struct kp_plan *p);

/* Returns true if the plan has any counter. */
bool kp_plan_counts(const struct kp_plan *p);

/* Stores the values of group `g` (values[i] belongs to its i-th name; n_more included) in `r`. 0 or -ENOMEM. */
int kp_plan_store(const struct kp_plan *p, size_t g, const double *values, struct kp_result *r);

/* Marks every counter of the plan that `r` lacks as missing for `why`. 0 or -ENOMEM. */
int kp_plan_store_missing(const struct kp_plan *p, struct kp_why why, struct kp_result *r);

/* Returns true if the plan counts anything that kernels write to host memory. */
bool kp_plan_watches(const struct kp_plan *p);

/* Returns how many sectors of host memory the kernel of a result has written, as far as the plan counts that, and
 * removes counters that results do not show. Call it once the counters are in `r`. */
double kp_plan_host_writes(const struct kp_plan *p, struct kp_result *r);

/* Returns true if a list of the plan counts the metric. */
bool kp_plan_is_counter(const struct kp_plan *p, const char *metric);

/* Computes the plan's derived metrics, once all other metrics of the launch are in `r`. 0 or -ENOMEM. */
int kp_plan_derive(const struct kp_plan *p, struct kp_result *r);

/* Computes the composed metrics of a rotation, once all counted ones are in `r`, before the derived ones. Each gets the
 * spread that follows from its inputs. 0 or -ENOMEM. */
int kp_plan_compose(const struct kp_plan *p, struct kp_result *r);
/* Gives the derived metrics of a rotation, which are in `r`, the spread that follows from their inputs. 0 or -ENOMEM.
 */
int kp_plan_spread(const struct kp_plan *p, struct kp_result *r);

/* Metrics that show in each group of a rotation if its launches are like the others: every group with room counts them;
 * NULL at the end. */
extern const char *const kp_plan_canaries[];
bool kp_plan_is_canary(const char *metric);
/* Marks the composed and derived metrics in `r` that mix groups of counters as missing for `why`: the kernel's launches
 * were too different for that. Call it last. 0 or -ENOMEM. */
int kp_plan_refuse(const struct kp_plan *p, struct kp_why why, struct kp_result *r);

/* Lists of metrics of the launch and the device, which are not counted; NULL at the end of each, and of the whole. */
extern const char *const *const kp_plan_uncounted[];

/* Returns the suffixes that a bare base name of the type expands to; NULL-terminated static array. */
const char *const *kp_plan_default_suffixes(enum kp_metric_type type);

#endif
