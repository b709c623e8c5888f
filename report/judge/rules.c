#include "report/judge/rules.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "base/pattern.h"
#include "base/plain.h"
#include "base/room.h"
#include "base/text.h"
#include "report/define/source.h"
#include "report/define/units.h"

/* Values that a rule passes to its children; NaN if none did. Fractions of 1. */
struct passed {
    double compute; /* throughput of the SMs, of peak */
    double memory;  /* throughput of the memory, of peak */
    double busiest; /* the larger of both */
    double l1;      /* throughput of the L1, of peak while active */
    double fma;     /* use of the FMA pipe, of peak */
    double fp64;
    double slack; /* possible gain from idle issue slots */
};

static const struct passed nothing_passed = {NAN, NAN, NAN, NAN, NAN, NAN, NAN};

struct kp_rule_run {
    const struct kp_result *result;
    const struct kp_session *session;
    const struct kp_source_map *source; /* NULL = no values by instruction */
    const struct kp_rule *rule;
    const struct kp_section *section; /* of the rule */
    struct passed passed;             /* inherited, then passed on by the rule itself */
    struct kp_messages *out;
    size_t n_before; /* messages before the rule began */
    int rc;
};

/* Inside rules.def the pointer has a short name. */
typedef struct kp_rule_run run_t;

struct gain {
    double percent;
    bool global;
};

/* The highest estimate for a whole kernel, in percent: as printed, less than all of it. */
static const double GAIN_MOST = 99.9;

static const struct gain NO_GAIN = {NAN, false};

static struct gain global_gain(double percent)
{
    return (struct gain){percent, true};
}

static struct gain local_gain(double percent)
{
    return (struct gain){percent, false};
}

/* Returns a gain from a share of a unit's work: of the kernel if the unit's use is known. */
static struct gain of_unit(double share, double busy)
{
    return isnan(busy) ? local_gain(100 * share) : global_gain(100 * share * busy);
}

/* Returns a gain from a share of the waiting, at most what the issue slots leave. */
static struct gain of_slack(double share, double slack)
{
    return isnan(slack) ? local_gain(100 * share) : global_gain(100 * (share < slack ? share : slack));
}

/* Bounds an estimate. Its inputs come from several passes, so a unit may seem busy for more cycles than there were. No
 * gain can exceed the kernel's whole time, and a loss is no gain. */
static double bounded(struct gain gain)
{
    double most = gain.global ? GAIN_MOST : 100;
    return gain.percent < 0 ? NAN : gain.percent > most ? most : gain.percent;
}

/* Replaces fmax: libkprof.so does not link libm. */
static double larger(double a, double b)
{
    return a > b || isnan(b) ? a : b;
}

/* Returns the smaller value; NaN unless both are known. */
static double smaller(double a, double b)
{
    return a < b || isnan(a) ? a : b;
}

static double smallest_known(const double *values, size_t n)
{
    double least = NAN;
    for (size_t i = 0; i < n; i++)
        if (!(values[i] >= least) && !isnan(values[i]))
            least = values[i];
    return least;
}

static double distance(double a, double b)
{
    return fabs(a - b);
}

/* Truncates waves, blocks and warps, which never approach the limits of the type. */
static double whole(double value)
{
    return value >= 0 && value < 0x1p53 ? (double)(uint64_t)value : value;
}

/* Returns true if achieved occupancy is far below the launch's, both in percent of the SM's maximum. */
static bool falls_short(double theory, double achieved)
{
    return theory - achieved > 10;
}

static double up(double value)
{
    return whole(value) < value ? whole(value) + 1 : whole(value);
}

double kp_rule_value(const struct kp_result *r, const struct kp_rule *rule, const char *name, double other)
{
    double value;
    for (size_t i = 0; i < rule->n_inputs; i++) {
        const struct kp_rule_input *in = &rule->inputs[i];
        if (!strcmp(in->name, name) && kp_cc_matches(in->cc, r->launch.cc_major, r->launch.cc_minor) &&
            kp_metric_number(kp_result_find(r, in->metric), &value))
            return value;
    }
    return other;
}

static double value_of(const run_t *run, const char *name, double other)
{
    return kp_rule_value(run->result, run->rule, name, other);
}

/* Returns the metric's value if the row applies to the chip. */
static double value_here(const run_t *run, const char *cc, const char *metric)
{
    const struct kp_launch_info *l = &run->result->launch;
    double value;
    return kp_cc_matches(cc, l->cc_major, l->cc_minor) && kp_metric_number(kp_result_find(run->result, metric), &value)
               ? value
               : NAN;
}

static struct kp_message *new_message(run_t *run)
{
    struct kp_messages *m = run->out;
    if (!KP_ROOM(m->list, m->n))
        return NULL;
    return &m->list[m->n];
}

static void add(run_t *run, double rank, enum kp_severity severity, struct gain gain, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
static void add(run_t *run, double rank, enum kp_severity severity, struct gain gain, const char *format, ...)
{
    struct kp_message *m = run->rc ? NULL : new_message(run);
    char *raw = NULL, *text = NULL;
    va_list args;
    va_start(args, format);
    if (!m || vasprintf(&raw, format, args) < 0 || !(text = kp_message_text(run->result, raw)))
        run->rc = -ENOMEM;
    else {
        *m = (struct kp_message){run->rule, run->section, severity, text, bounded(gain), gain.global, rank};
        run->out->n++;
    }
    free(raw);
    va_end(args);
}

static bool spoke(const run_t *run)
{
    return run->out->n > run->n_before;
}

/* --- helpers of single rules --- */

/* Units by the prefixes of their metrics; other prefixes have no name. */
static const struct memory_unit {
    const char *prefix, *name;
    const char *whole; /* the unit's whole throughput; some of its parts may not belong to the memory throughput */
} memory_units[] = {
    {"dram", "DRAM", "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"},
    {"fbp", "DRAM", ""},
    {"l1tex", "L1", "l1tex__throughput.avg.pct_of_peak_sustained_elapsed"},
    {"l1tex", "L1", "l1tex__throughput.avg.pct_of_peak_sustained_active"},
    {"lts", "L2", "lts__throughput.avg.pct_of_peak_sustained_elapsed"},
    {"ltc", "L2", ""},
};
/* Percentage points by which two values of one counter may differ, from pass to pass. */
static const double same_within = 0.05;
static const char memory_throughput[] = "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed";

static const char *unit_name(const char *metric)
{
    for (size_t i = 0; i < sizeof memory_units / sizeof *memory_units; i++)
        if (!strncmp(metric, memory_units[i].prefix, strlen(memory_units[i].prefix)))
            return memory_units[i].name;
    return "";
}

/* Returns the constituents of memory throughput on the launch's device: a comma list, or NULL. */
static const char *constituents(const struct kp_result *r, const struct kp_session *s)
{
    const size_t n = strlen(memory_throughput);
    for (size_t i = 0; s && i < s->n_devices; i++) {
        const char *at = s->devices[i].breakdowns;
        if (s->devices[i].ordinal != r->launch.device || !at)
            continue;
        for (; (at = strstr(at, memory_throughput)); at++)
            if (at[n] == '\t' && (at == s->devices[i].breakdowns || at[-1] == '\n'))
                return at + n + 1;
    }
    return NULL;
}

static const char *largest_constituent(const struct kp_result *r, const char *list)
{
    size_t left = strcspn(list, "\n"), len;
    double most = NAN, value;
    const char *end = list + left, *cursor = list, *item, *unit = "";
    char name[256];
    while (cursor < end && kp_list_next(&cursor, &item, &len) && item < end) {
        size_t n = strcspn(item, "\n,");
        snprintf(name, sizeof name, "%.*s", (int)(n < len ? n : len), item);
        if (kp_metric_number(kp_result_find(r, name), &value) && !(value <= most)) {
            most = value;
            unit = unit_name(name);
        }
    }
    return unit;
}

/* Finds the unit whose value equals the throughput, which is its largest constituent. */
static const char *unit_of_same_use(const struct kp_result *r)
{
    double memory, value;
    if (!kp_metric_number(kp_result_find(r, memory_throughput), &memory))
        return "";
    for (size_t i = 0; i < sizeof memory_units / sizeof *memory_units; i++)
        if (kp_metric_number(kp_result_find(r, memory_units[i].whole), &value) && distance(value, memory) < same_within)
            return memory_units[i].name;
    return "";
}

const char *kp_rules_memory_unit(const struct kp_result *r, const struct kp_session *s)
{
    const char *list = constituents(r, s), *unit = list ? largest_constituent(r, list) : "";
    return *unit ? unit : unit_of_same_use(r);
}

static const char *memory_unit(const run_t *run)
{
    return kp_rules_memory_unit(run->result, run->session);
}

/* A sentence of a message. */
struct aside {
    char text[160];
};

/* Rows of SpeedOfLight that may be above the memory throughput, which their units are a part of. */
static const struct {
    const char *row, *unit, *metric, *why;
} wider[] = {
    {"L2 Cache Throughput", "L2", "lts__throughput.avg.pct_of_peak_sustained_elapsed",
     "includes parts of the L2 that memory throughput leaves out"},
    {"L1/TEX Cache Throughput", "L1", "l1tex__throughput.avg.pct_of_peak_sustained_active",
     "is relative to the cycles in which the L1 had work"},
};

/* Explains a row of another unit than the busiest that exceeds the memory throughput `mem`; "" if none does. */
static const char *higher_row(const run_t *run, double mem, struct aside *to)
{
    const char *busiest = memory_unit(run);
    double value;
    for (size_t i = 0; *busiest && i < sizeof wider / sizeof *wider; i++)
        if (strcmp(wider[i].unit, busiest) && kp_metric_number(kp_result_find(run->result, wider[i].metric), &value) &&
            value > mem + same_within) {
            snprintf(to->text, sizeof to->text, " %s is higher (%.1f%%) because it %s.", wider[i].row, value,
                     wider[i].why);
            return to->text;
        }
    return "";
}

/* A part of a message. */
struct phrase {
    char text[KP_NUMBER_MAX + KP_UNIT_MAX];
};

static const char *bytes(double n, struct phrase *to)
{
    kp_format_quantity(n, "byte", false, to->text);
    return to->text;
}

/* Metrics of a group; only the largest counts. */
struct top {
    const char *label, *what;
    double value;
    size_t n; /* number of them that the launch has */
};

static void rank(struct top *t, const char *label, double value, const char *what)
{
    if (isnan(value))
        return;
    t->n++;
    if (value > t->value) {
        t->value = value;
        t->label = label;
        t->what = what;
    }
}

/* Names the part that causes a pipe's use. Only "Shared" and "Tensor" are sums of others; FP64, marked in its row, is
 * part of "Shared" only. */
static const char *dominant_name(const struct top *pipe, const struct top *part)
{
    if (!strcmp(pipe->label, "Shared") || (!strcmp(pipe->label, "Tensor") && !*part->what))
        return part->label;
    return "";
}

static const char *dominant(const struct top *pipe, const struct top *part)
{
    return *dominant_name(pipe, part) ? ", mostly from its part " : "";
}

/* Names the instructions that fill the pipes: a few slow ones can keep them busy. */
static const char *by_instructions(const struct top *inst, double busy, struct phrase *to)
{
    double ratio = inst->value / busy;
    *to->text = '\0';
    if (*inst->label)
        snprintf(to->text, sizeof to->text, " By instructions the busiest is %s (%.1f%%: %s)%s.", inst->label,
                 inst->value, inst->what,
                 ratio < 0.3   ? "; far fewer, so they are slow ones"
                 : ratio > 0.7 ? "; nearly as much, so their number is what counts"
                               : "");
    return to->text;
}

/* Marks small shares, which print as 0% or 1% although they are neither. */
static const char *near(double share)
{
    return share > 0 && share < 0.01 ? "close to " : "";
}

static const char *has_persistence(const run_t *run)
{
    return run->result->launch.cc_major >= 8 ? ", or keep what is reused in the L2 (persisting access policy)" : "";
}

static double product(const uint32_t n[3])
{
    return (double)n[0] * n[1] * n[2];
}

static double block_threads(const run_t *run)
{
    const struct kp_launch_info *l = &run->result->launch;
    return l->kind == KP_WORKLOAD_KERNEL ? product(l->block) : NAN;
}

static double grid_blocks(const run_t *run)
{
    const struct kp_launch_info *l = &run->result->launch;
    return l->kind == KP_WORKLOAD_KERNEL ? product(l->grid) : NAN;
}

/* Returns the SMs of the device, even if the launch may use only some of them. */
static double device_sms(const run_t *run)
{
    const struct kp_session *s = run->session;
    double sms = NAN;
    for (size_t i = 0; s && i < s->n_devices; i++)
        if (s->devices[i].ordinal == run->result->launch.device && s->devices[i].sm_count)
            return s->devices[i].sm_count;
    return kp_metric_number(kp_result_find(run->result, "launch__sm_count"), &sms) ? sms : NAN;
}

/* The end of a message: the place in the code. */
struct spot {
    char text[320];
};

static const char *name_spot(const run_t *run, const struct kp_source_line *line, double share, const char *what,
                             struct spot *to)
{
    char *place = line ? kp_source_place(run->source, line) : NULL;
    *to->text = '\0';
    if (place)
        snprintf(to->text, sizeof to->text, " Hottest %s: " KP_VERBATIM "%.200s" KP_VERBATIM ", %.1f%% of %s.",
                 run->source->has_lines ? "line" : "instruction", place, 100 * share, what);
    free(place);
    return to->text;
}

/* Names the place, or nothing if unknown. */
static const char *where(const run_t *run, enum kp_hot hot, struct spot *to)
{
    double share = 0;
    const char *what = "";
    const struct kp_source_line *line = run->source ? kp_source_hottest(run->source, hot, &share, &what) : NULL;
    return name_spot(run, line, share, what, to);
}

/* Names the place, or refers to the section if unknown. */
static const char *where_or_look(const run_t *run, enum kp_hot hot, struct spot *to)
{
    const char *text = where(run, hot, to);
    return *text ? text : "{ Look at @SourceCounters for the lines.}";
}

static const char *where_stalled(const run_t *run, const char *state, struct spot *to)
{
    double share = 0;
    const char *what = "";
    const struct kp_source_line *line = run->source ? kp_source_hottest_stall(run->source, state, &share, &what) : NULL;
    return name_spot(run, line, share, what, to);
}

static void stall(run_t *run, const char *reason, double issued, double latency, const char *waits, const char *todo)
{
    double cycles = value_of(run, reason, NAN), share = latency > 0 ? cycles / latency : NAN;
    if (issued < 0.8 && share > 0.3)
        add(run, cycles, KP_SEVERITY_OPT, of_slack(share, run->passed.slack),
            "A warp waits %.1f cycles for %s (%s): %.1f%% of the %.1f cycles between two of its instructions. First "
            "%s%s",
            cycles, waits, reason, 100 * share, latency, todo, where_stalled(run, reason, &(struct spot){""}));
}

/* Turns an unknown factor, or 0, into one without effect. */
static double factor(double value)
{
    return value > 0 || value < 0 ? value : 1;
}

struct levels {
    double throughput[3]; /* L1, L2, DRAM, in percent of peak; 0 when not known */
    double l2_hits;       /* of the operation, in percent */
    bool beyond_l1;
};

/* Finds the place and the cost of the most expensive pattern that uses only part of each sector. */
static void access_pattern(run_t *run, const char *key, const char *what, struct levels at, enum kp_hot hot)
{
    static const char *const names[] = {"the L1", "the L2", "the DRAM"};
    char name[64];
    snprintf(name, sizeof name, "%s.used", key);
    double used = value_of(run, name, NAN);
    snprintf(name, sizeof name, "%s.moved", key);
    double moved = value_of(run, name, 32);
    snprintf(name, sizeof name, "%s.hits", key);
    double l1_misses = 1 - value_of(run, name, NAN) / 100, l2_misses = 1 - at.l2_hits / 100;
    double misses[] = {1, factor(l1_misses), factor(l1_misses) * factor(l2_misses)}, most = 0;
    size_t level = 0;
    if (!(used > 0 && used < moved))
        return;
    for (size_t i = 0; i < (at.beyond_l1 ? 3 : 1); i++) {
        double saved = (1 - used / moved) * misses[i] * factor(at.throughput[i] / 100) * 100;
        if (saved > most) {
            most = saved;
            level = i;
        }
    }
    if (!(most > 0))
        return;
    char missed[64] = "";
    double share = level == 1 ? l1_misses : l2_misses;
    if (level && !isnan(share))
        snprintf(missed, sizeof missed, " (%s misses %.1f%% of them)", names[level - 1], 100 * share);
    add(run, 0, KP_SEVERITY_OPT, at.throughput[level] > 0 ? global_gain(most) : local_gain(most),
        "Of the %.0f bytes of a sector, %s use %.1f on average; it costs most at %s%s. Probably threads of a warp "
        "access "
        "addresses with a stride between them: first let neighbouring threads access neighbouring elements.%s",
        moved, what, used, names[level], missed, where_or_look(run, hot, &(struct spot){""}));
}

static void bank_conflicts(run_t *run, const char *key, const char *what, double requests, enum kp_hot hot)
{
    char name[64];
    snprintf(name, sizeof name, "%s.wavefronts", key);
    double wavefronts = value_of(run, name, 0);
    snprintf(name, sizeof name, "%s.conflicts", key);
    double conflicts = value_of(run, name, 0), share = wavefronts > 0 ? conflicts / wavefronts : 0;
    if (requests > 0 && share >= 0.10)
        add(run, 0, KP_SEVERITY_OPT, of_unit(share, run->passed.l1),
            "The %.0f requests of %s have %.1f-way bank conflicts on average: %.0f of their %.0f wavefronts, %.2f%%, "
            "only repeat a request, over 10%%. First let the threads of a warp use different banks: pad the rows of "
            "arrays by one element, or permute the columns.%s",
            requests, what, wavefronts / requests, conflicts, wavefronts, 100 * share,
            where_or_look(run, hot, &(struct spot){""}));
}

/* Compares the active cycles of a unit's instances. */
static void imbalance(run_t *run, const char *prefix, const char *what, const char *todo)
{
    enum { MEAN, MOST, LEAST, ACTIVE, ELAPSED, N };
    static const char *const of[N] = {"avg", "max", "min", "sum", "elapsed"};
    double v[N];
    char name[32];
    for (int i = 0; i < N; i++) {
        snprintf(name, sizeof name, "%s.%s", prefix, of[i]);
        v[i] = value_of(run, name, NAN);
    }
    if (!(v[MEAN] > 0 && v[MOST] > 0 && v[ELAPSED] > 0))
        return;
    double above = (1 - v[MEAN] / v[MOST]) * 100, below = (1 - v[LEAST] / v[MEAN]) * 100;
    double gain = above * v[ACTIVE] / v[ELAPSED];
    bool both = above >= 5 && below >= 5 && fabs(above - below) < 2;
    bool high = above >= 5 && above > below, low = below >= 5 && below > above;
    if (!(gain >= 5) || !(both || high || low))
        return;
    add(run, 0, KP_SEVERITY_OPT, global_gain(gain),
        "Some %s are active for much %s than the average: the most active one is %.2f%% above it, the least active one "
        "%.2f%% "
        "below. Try %s. Look at the active cycles above, and at Launch Statistics for the waves.",
        what,
        both   ? "longer, others for much shorter"
        : high ? "longer"
               : "shorter",
        above, below, todo);
}

static const struct kp_metric *metric_of(const run_t *run, const char *name)
{
    const struct kp_rule *rule = run->rule;
    for (size_t i = 0; i < rule->n_inputs; i++)
        if (!strcmp(rule->inputs[i].name, name))
            return kp_result_find(run->result, rule->inputs[i].metric);
    return NULL;
}

static bool has_opcodes(const run_t *run)
{
    const struct kp_metric *m = metric_of(run, "opcodes");
    return m && m->n_instances;
}

/* Counts instructions of an opcode with any modifiers: FADD and FADD.FTZ. */
static double opcode_count(const run_t *run, const char *opcode)
{
    const struct kp_metric *m = metric_of(run, "opcodes");
    double sum = 0;
    size_t n = strlen(opcode);
    for (size_t i = 0; m && i < m->n_instances; i++) {
        const char *key = m->instances[i].key;
        if (!strncmp(key, opcode, n) && (!key[n] || key[n] == '.'))
            sum += m->instances[i].value;
    }
    return sum;
}

/* --- the table: the inputs of each rule, then its code, then the rules --- */

#define INPUT(name, source, cc, metric, required) {name, metric, cc, KP_SRC_##source, required, true},
#define STALLED(reason)                           "smsp__average_warps_issue_stalled_" reason "_per_issue_active.ratio"
#define BYTES(key)                                "smsp__sass_average_data_bytes_per_sector_mem_" key
#define HITS(key)                                 "l1tex__t_sector_pipe_lsu_mem_" key "_hit_rate.pct"
#define WAVEFRONTS(op)                            "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_" op ".sum"
#define CONFLICTS(op)                             "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_" op ".sum"

/* Each list ends with an empty row because some rules have no inputs. */
#define KP_ABOUT(id, text)                            static const char about_##id[] = text;
#define KP_RULE(id, section, parent, kind)            static const struct kp_rule_input inputs_##id[] = {
#define KP_NEED(name, source, cc, metric)             INPUT(#name, source, cc, metric, true)
#define KP_MAY(name, source, cc, metric, other)       INPUT(#name, source, cc, metric, false)
#define KP_OR(name, source, cc, metric)               INPUT(#name, source, cc, metric, false)
#define KP_GIVEN(name, cc, metric, other)             {#name, metric, cc, KP_SRC_LAUNCH, false, false},
#define KP_OF(group, label, source, cc, metric, what) INPUT(#group "/" label, source, cc, metric, false)
#define KP_STALL(reason, cc, waits, todo)             INPUT(#reason, COUNTER, cc, STALLED(#reason), false)
#define KP_ACCESS(space, op, what, l2)                                                                                 \
    INPUT(#space "_op_" #op ".used", COUNTER, "", BYTES(#space "_op_" #op ".ratio"), false)                            \
    INPUT(#space "_op_" #op ".moved", COUNTER, "", BYTES(#space "_op_" #op ".max_rate"), false)                        \
    INPUT(#space "_op_" #op ".hits", COUNTER, "", HITS(#space "_op_" #op), false)
#define KP_BANKS(op, what, requests)                                                                                   \
    INPUT(#op ".wavefronts", COUNTER, "", WAVEFRONTS(#op), true)                                                       \
    INPUT(#op ".conflicts", COUNTER, "", CONFLICTS(#op), true)
#define KP_UNIT(prefix, what, cc, todo)                                                                                \
    INPUT(#prefix ".avg", COUNTER, cc, #prefix "__cycles_active.avg", false)                                           \
    INPUT(#prefix ".max", COUNTER, cc, #prefix "__cycles_active.max", false)                                           \
    INPUT(#prefix ".min", COUNTER, cc, #prefix "__cycles_active.min", false)                                           \
    INPUT(#prefix ".sum", COUNTER, cc, #prefix "__cycles_active.sum", false)                                           \
    INPUT(#prefix ".elapsed", COUNTER, cc, #prefix "__cycles_elapsed.sum", false)
#define KP_RANK(group)
#define KP_LET(name, expression)
#define KP_PASS(name, expression)
#define KP_WHEN(condition, severity, gain, ...)
#define KP_ELSE(condition, severity, gain, ...)
#define KP_RULE_END(id)                                                                                                \
    {                                                                                                                  \
    }                                                                                                                  \
    }                                                                                                                  \
    ;
#include "report/judge/rules.def"

#define KP_ABOUT(id, text)
#define KP_RULE(id, section, parent, kind)                                                                             \
    static void apply_##id(run_t *run)                                                                                 \
    {                                                                                                                  \
        (void)run;
#define KP_NEED(name, source, cc, metric)       const double name = value_of(run, #name, NAN);
#define KP_MAY(name, source, cc, metric, other) const double name = value_of(run, #name, other);
#define KP_OR(name, source, cc, metric)
#define KP_GIVEN(name, cc, metric, other)             const double name __attribute__((unused)) = value_of(run, #name, other);
#define KP_RANK(group)                                struct top group = {"", "", 0, 0};
#define KP_OF(group, label, source, cc, metric, what) rank(&group, label, value_here(run, cc, metric), what);
#define KP_LET(name, expression)                      const double name = (expression);
#define KP_PASS(name, expression)                     run->passed.name = (expression);
#define KP_WHEN(condition, severity, gain, ...)                                                                        \
    if (condition) {                                                                                                   \
        add(run, 0, KP_SEVERITY_##severity, gain, __VA_ARGS__);                                                        \
    }
#define KP_ELSE(condition, severity, gain, ...) else KP_WHEN(condition, severity, gain, __VA_ARGS__)
#define KP_STALL(reason, cc, waits, todo)       stall(run, #reason, issued, latency, waits, todo);
#define KP_ACCESS(space, op, what, l2_hits)                                                                            \
    access_pattern(run, #space "_op_" #op, what,                                                                       \
                   (struct levels){{l1, l2, dram}, l2_hits, !isnan(read) && !isnan(write)}, KP_HOT_##space##_##op);
#define KP_BANKS(op, what, requests)    bank_conflicts(run, #op, what, requests, KP_HOT_shared_##op);
#define KP_UNIT(prefix, what, cc, todo) imbalance(run, #prefix, what, todo);
#define KP_RULE_END(id)                 }
#include "report/judge/rules.def"

enum { FIRM, CEILING };

static const struct kp_rule rules[] = {
#define KP_RULE(id, section, parent, kind)                                                                             \
    {#id,        #section,  parent, kind == CEILING, inputs_##id, sizeof inputs_##id / sizeof *inputs_##id - 1,        \
     apply_##id, about_##id},
#define KP_ABOUT(id, text)
#define KP_NEED(name, source, cc, metric)
#define KP_MAY(name, source, cc, metric, other)
#define KP_OR(name, source, cc, metric)
#define KP_GIVEN(name, cc, metric, other)
#define KP_RANK(group)
#define KP_OF(group, label, source, cc, metric, what)
#define KP_LET(name, expression)
#define KP_PASS(name, expression)
#define KP_WHEN(condition, severity, gain, ...)
#define KP_ELSE(condition, severity, gain, ...)
#define KP_STALL(reason, cc, waits, todo)
#define KP_ACCESS(space, op, what, l2)
#define KP_BANKS(op, what, requests)
#define KP_UNIT(prefix, what, cc, todo)
#define KP_RULE_END(id)
#include "report/judge/rules.def"
};

enum { N_RULES = sizeof rules / sizeof *rules };
_Static_assert(N_RULES < 64, "a rule is a bit of kp_rule_choice");

const struct kp_rule *kp_rules(size_t *n)
{
    *n = N_RULES;
    return rules;
}

const struct kp_rule *kp_rule_find(const char *id)
{
    for (size_t i = 0; i < N_RULES; i++)
        if (!strcmp(rules[i].id, id))
            return &rules[i];
    return NULL;
}

/* --- choosing --- */

/* Selects rules by `expr`, which must match an identifier in full. */
static int select_regex(const char *expr, kp_rule_choice *chosen, char **err)
{
    struct kp_pattern *pattern = NULL;
    kp_rule_choice matched = 0;
    int rc = kp_pattern_whole(expr + strlen(KP_REGEX), &pattern, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < N_RULES; i++)
        if (kp_pattern_match(pattern, rules[i].id))
            matched |= (kp_rule_choice)1 << i;
    kp_pattern_free(pattern);
    *chosen |= matched;
    return matched ? 0 : kp_error(err, "no rule matches '%s'", expr);
}

static int select_item(const char *word, kp_rule_choice *chosen, char **err)
{
    const char *ids[N_RULES + 1] = {0};
    if (!strncmp(word, KP_REGEX, strlen(KP_REGEX)))
        return select_regex(word, chosen, err);
    for (size_t i = 0; i < N_RULES; i++) {
        ids[i] = rules[i].id;
        if (!strcmp(word, ids[i])) {
            *chosen |= (kp_rule_choice)1 << i;
            return 0;
        }
    }
    const char *near = kp_nearest(word, ids);
    return near ? kp_error(err, "unknown rule '%s'; did you mean '%s'?", word, near)
                : kp_error(err, "unknown rule '%s'; `kprof --list-rules` lists them", word);
}

int kp_rules_select(const char *list, kp_rule_choice *out, char **err)
{
    const char *item;
    size_t len;
    bool any = false;
    int rc = 0;
    *out = 0;
    *err = NULL;
    while (!rc && kp_list_next(&list, &item, &len)) {
        char *word = strndup(item, len);
        any = true;
        rc = word ? select_item(word, out, err) : -ENOMEM;
        free(word);
    }
    if (!any)
        *out = KP_RULES_ALL;
    return rc;
}

int kp_rule_inputs(const char *section_id, int major, int minor, int (*fn)(const struct kp_rule_input *, void *),
                   void *arg)
{
    int rc = 0;
    for (size_t i = 0; i < N_RULES; i++)
        for (size_t j = 0; !rc && !strcmp(rules[i].section, section_id) && j < rules[i].n_inputs; j++)
            if (rules[i].inputs[j].collected && kp_cc_matches(rules[i].inputs[j].cc, major, minor))
                rc = fn(&rules[i].inputs[j], arg);
    return rc;
}

/* --- applying --- */

static bool has_inputs(const run_t *run)
{
    for (size_t i = 0; i < run->rule->n_inputs; i++)
        if (run->rule->inputs[i].required && isnan(value_of(run, run->rule->inputs[i].name, NAN)))
            return false;
    return true;
}

/* Returns the section's index among the selected ones, or -1. */
static int section_place(const struct kp_section *const *sections, size_t n, const char *id)
{
    for (size_t i = 0; i < n; i++)
        if (!strcmp(sections[i]->id, id))
            return (int)i;
    return -1;
}

/* Returns the parent's values, if the parent ran: parents precede their children. */
static struct passed inherit(const struct kp_rule *rule, const struct passed passed[N_RULES])
{
    const struct kp_rule *parent = kp_rule_find(rule->parent);
    return parent ? passed[parent - rules] : nothing_passed;
}

static void truncate_to(struct kp_messages *m, size_t n)
{
    while (m->n > n)
        free(m->list[--m->n].text);
}

/* Applies all rules. A rule that was not chosen, or whose section is missing, runs silently for its children: a
 * launch's possible gains do not depend on the display. */
static int apply_all(run_t *run, const struct kp_section *const *sections, size_t n, kp_rule_choice chosen)
{
    struct passed passed[N_RULES];
    for (size_t i = 0; i < N_RULES && !run->rc; i++) {
        run->rule = &rules[i];
        run->n_before = run->out->n;
        run->passed = passed[i] = nothing_passed;
        int at = section_place(sections, n, rules[i].section);
        if (!has_inputs(run))
            continue;
        run->section = at < 0 ? NULL : sections[at];
        run->passed = inherit(&rules[i], passed);
        rules[i].apply(run);
        passed[i] = run->passed;
        if (at < 0 || !(chosen >> i & 1))
            truncate_to(run->out, run->n_before);
    }
    return run->rc;
}

static bool comes_before(const struct kp_message *a, const struct kp_message *b,
                         const struct kp_section *const *sections, size_t n)
{
    int by_section = section_place(sections, n, a->rule->section) - section_place(sections, n, b->rule->section);
    int by_rule = strcmp(a->rule->id, b->rule->id);
    return by_section ? by_section < 0 : by_rule ? by_rule < 0 : a->rank > b->rank;
}

/* Sorts by insertion, which is stable: messages are few, and mostly in order. */
static void sort(struct kp_messages *m, const struct kp_section *const *sections, size_t n)
{
    for (size_t i = 1; i < m->n; i++) {
        struct kp_message moved = m->list[i];
        size_t j = i;
        for (; j && comes_before(&moved, &m->list[j - 1], sections, n); j--)
            m->list[j] = m->list[j - 1];
        m->list[j] = moved;
    }
}

int kp_rules_apply(const struct kp_result *r, const struct kp_session *s, const struct kp_section *const *sections,
                   size_t n_sections, kp_rule_choice chosen, struct kp_messages *out)
{
    return kp_rules_apply_at(r, s, NULL, sections, n_sections, chosen, out);
}

int kp_rules_apply_at(const struct kp_result *r, const struct kp_session *s, const struct kp_source_map *source,
                      const struct kp_section *const *sections, size_t n_sections, kp_rule_choice chosen,
                      struct kp_messages *out)
{
    run_t run = {.result = r, .session = s, .source = source, .out = out};
    *out = (struct kp_messages){0};
    locale_t before = kp_plain_begin();
    int rc = apply_all(&run, sections, n_sections, chosen);
    kp_plain_end(before);
    if (rc)
        kp_messages_free(out);
    else
        sort(out, sections, n_sections);
    return rc;
}

void kp_messages_free(struct kp_messages *m)
{
    truncate_to(m, 0);
    free(m->list);
    *m = (struct kp_messages){0};
}

size_t kp_messages_count(const struct kp_messages *m, const char *section_id)
{
    size_t n = 0;
    for (size_t i = 0; i < m->n; i++)
        n += !strcmp(m->list[i].rule->section, section_id);
    return n;
}
