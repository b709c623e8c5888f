#include "report/judge/verdict.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Percent of peak from which a unit counts as the bound: that of rule SOLBottleneck. */
static const double busy_from = 60;
/* If a unit misses that by fewer points, and leads the other as in rule SOLBottleneck, the gains decide. */
static const double misses_by = 5, ahead_by = 10;
/* A part that is nearly as busy as the whole explains it. */
static const double nearly = 0.9;

/* Parts of an SM, the most helpful names first; they are inputs of rule HighPipeUtilization. "Shared" is named only if
 * none of the pipes that share it is full by itself. */
static const char *const parts[] = {"pipe/", "inst/", "pipe/Shared"};

static bool is_part(const char *name, const char *kind)
{
    return !strncmp(name, kind, strlen(kind)) && (!strcmp(name, kind) || strcmp(name, "pipe/Shared") != 0);
}

/* Returns the busiest part of a kind; its label in *label. */
static double busiest_part(const struct kp_result *r, const char *kind, const char **label)
{
    const struct kp_rule *rule = kp_rule_find("HighPipeUtilization");
    double most = NAN;
    for (size_t i = 0; i < rule->n_inputs; i++) {
        const char *name = rule->inputs[i].name;
        double use = is_part(name, kind) ? kp_rule_value(r, rule, name, NAN) : NAN;
        if (!isnan(use) && !(use <= most)) {
            most = use;
            *label = strchr(name, '/') + 1;
        }
    }
    return most;
}

static void name_compute(const struct kp_result *r, struct kp_verdict *v)
{
    const char *label = "";
    snprintf(v->what, sizeof v->what, "compute");
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (busiest_part(r, parts[i], &label) >= nearly * v->compute) {
            snprintf(v->what, sizeof v->what, "%s pipe", label);
            return;
        }
    if (kp_rule_value(r, kp_rule_find("SlowPipeLimiter"), "mean", NAN) >= nearly * v->compute)
        snprintf(v->what, sizeof v->what, "issue slots");
}

/* Names the state without "Stall", which the chart of warp states prefixes: "Stall Long Scoreboard". */
static const char *stall_label(const struct kp_rule *rule, const struct kp_rule_input *in)
{
    static const char known[] = "Stall ";
    const struct kp_section *s = kp_section_find(rule->section);
    for (size_t i = 0; s && i < s->n_rows; i++)
        if (!strcmp(s->rows[i].metric, in->metric) && !strncmp(s->rows[i].label, known, strlen(known)))
            return s->rows[i].label + strlen(known);
    return in->name;
}

/* Returns true if a state is a wait: a ready warp that was not selected waits for nothing. */
static bool is_wait(const struct kp_rule_input *in)
{
    return !in->required && strcmp(in->name, "not_selected") != 0;
}

static void name_stall(const struct kp_result *r, struct kp_verdict *v)
{
    const struct kp_rule *rule = kp_rule_find("CPIStall");
    double latency = kp_rule_value(r, rule, "latency", NAN);
    for (size_t i = 0; i < rule->n_inputs; i++) {
        const struct kp_rule_input *in = &rule->inputs[i];
        double share = is_wait(in) ? 100 * kp_rule_value(r, rule, in->name, NAN) / latency : NAN;
        if (share > v->stall_share) {
            v->stall_share = share;
            snprintf(v->stall, sizeof v->stall, "%s", stall_label(rule, in));
        }
    }
}

static void name_bound(const struct kp_result *r, const struct kp_session *s, struct kp_verdict *v)
{
    const char *unit = kp_rules_memory_unit(r, s);
    switch (v->bound) {
    case KP_BOUND_MEMORY:
        snprintf(v->what, sizeof v->what, "%s", *unit ? unit : "memory");
        break;
    case KP_BOUND_COMPUTE:
        name_compute(r, v);
        break;
    case KP_BOUND_LATENCY:
        snprintf(v->what, sizeof v->what, "latency");
        name_stall(r, v);
        break;
    case KP_BOUND_LAUNCH:
        snprintf(v->what, sizeof v->what, "launch size");
        break;
    case KP_BOUND_UNKNOWN:
        break;
    }
}

static enum kp_bound find_bound(const struct kp_verdict *v)
{
    if (isnan(v->compute) || isnan(v->memory))
        return KP_BOUND_UNKNOWN;
    if (v->compute < busy_from && v->memory < busy_from)
        return v->waves < 1 ? KP_BOUND_LAUNCH : KP_BOUND_LATENCY;
    return v->memory > v->compute ? KP_BOUND_MEMORY : KP_BOUND_COMPUTE;
}

/* Returns the unit that a rule is about. Units that are busy at different times are not one unit's fault. */
static enum kp_bound unit_of(const struct kp_rule *rule)
{
    static const struct {
        const char *parent;
        enum kp_bound unit;
    } units[] = {{"Memory", KP_BOUND_MEMORY}, {"Compute", KP_BOUND_COMPUTE}, {"HighPipeUtilization", KP_BOUND_COMPUTE}};
    for (size_t i = 0; strcmp(rule->id, "WorkloadImbalance") && i < sizeof units / sizeof *units; i++)
        if (!strcmp(rule->parent, units[i].parent))
            return units[i].unit;
    return KP_BOUND_UNKNOWN;
}

/* Makes a unit just below the threshold the bound if the most helpful rule is about it. */
static enum kp_bound refine_bound(const struct kp_verdict *v)
{
    const struct kp_message *top = v->gains[0];
    double distance = v->memory - v->compute, most = distance > 0 ? v->memory : v->compute;
    enum kp_bound busiest = distance > 0 ? KP_BOUND_MEMORY : KP_BOUND_COMPUTE;
    if (v->bound != KP_BOUND_LATENCY || most < busy_from - misses_by || fabs(distance) < ahead_by)
        return v->bound;
    return top && unit_of(top->rule) == busiest ? busiest : v->bound;
}

bool kp_verdict_is_gain(const struct kp_message *m)
{
    return m->global && !m->rule->ceiling && m->speedup >= KP_GAIN_FROM;
}

static void take_out(struct kp_verdict *v, size_t at)
{
    for (; at + 1 < KP_VERDICT_GAINS; at++)
        v->gains[at] = v->gains[at + 1];
    v->gains[at] = NULL;
}

/* Adds `m` to the best gains, replacing a worse one of the same rule. */
static void rank_gain(struct kp_verdict *v, const struct kp_message *m)
{
    size_t at = 0;
    for (size_t i = 0; i < KP_VERDICT_GAINS && v->gains[i]; i++) {
        if (v->gains[i]->rule != m->rule)
            continue;
        if (m->speedup <= v->gains[i]->speedup)
            return;
        take_out(v, i);
        break;
    }
    while (at < KP_VERDICT_GAINS && v->gains[at] && m->speedup <= v->gains[at]->speedup)
        at++;
    if (at == KP_VERDICT_GAINS)
        return;
    for (size_t i = KP_VERDICT_GAINS - 1; i > at; i--)
        v->gains[i] = v->gains[i - 1];
    v->gains[at] = m;
}

void kp_verdict(const struct kp_result *r, const struct kp_session *s, const struct kp_messages *m,
                struct kp_verdict *out)
{
    const struct kp_rule *rule = kp_rule_find("SOLBottleneck");
    *out = (struct kp_verdict){
        .compute = kp_rule_value(r, rule, "sm", NAN),
        .memory = kp_rule_value(r, rule, "mem", NAN),
        .waves = kp_rule_value(r, rule, "waves", NAN),
    };
    for (size_t i = 0; i < m->n; i++)
        if (kp_verdict_is_gain(&m->list[i]))
            rank_gain(out, &m->list[i]);
    out->bound = find_bound(out);
    out->bound = refine_bound(out);
    name_bound(r, s, out);
}
