/* Adds what sections, rules and lists need to a plan: metrics of any kind, with their inputs. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectors/facts/launch.h"
#include "collectors/facts/topology.h"
#include "collectors/plan/plan_internal.h"
#include "collectors/providers/providers.h"
#include "report/define/derive.h"
#include "report/judge/rules.h"

static const char *const default_suffixes[KP_METRIC_TYPES][5] = {
    [KP_METRIC_COUNTER] = {".avg", ".max", ".min", ".sum", NULL},
    [KP_METRIC_RATIO] = {".ratio", NULL},
    [KP_METRIC_THROUGHPUT] = {KP_THROUGHPUT_SUFFIX, NULL},
};

const char *const *kp_plan_default_suffixes(enum kp_metric_type type)
{
    return default_suffixes[type];
}

void kp_plan_note_listed(struct kp_planner *x, const char *mark, const char *name)
{
    fprintf(x->listed, "%s%s%s", ftell(x->listed) > 0 ? "," : "", mark, name);
}

/* Adds a metric unless the plan has it, and lists it if the user lists it. */
static int add(struct kp_planner *x, const char *name, const char *unit, int group, struct kp_planned **out)
{
    struct kp_planned *m = kp_plan_add(x->plan, name, unit, group);
    if (!m)
        return -ENOMEM;
    if (x->listing && !m->listed) {
        kp_plan_note_listed(x, "", name);
        m->listed = true;
    }
    *out = m;
    return 0;
}

const char *const *const kp_plan_uncounted[] = {kp_launch_metric_names, kp_device_metric_names, NULL};

static int want_absent(struct kp_planner *x, const char *metric, const char *unit, enum kp_reason why)
{
    struct kp_planned *m;
    int rc = add(x, metric, strcmp(unit, KP_UNIT_OF_CHIP) ? unit : "", KP_CANNOT_COLLECT, &m);
    if (!rc && m->group == KP_CANNOT_COLLECT && !m->why.reason)
        m->why.reason = why;
    return rc;
}

static int want_counter(struct kp_planner *x, const char *metric, const char *unit, bool required, bool *had)
{
    struct kp_planned *m = kp_plan_find(x->plan, metric);
    struct kp_metric_props props = {.unit = ""};
    *had = m ? m->group == KP_NOT_SCHEDULED : !kp_tables_metric(x->host, metric, &props);
    if (*had)
        return add(x, metric, strcmp(unit, KP_UNIT_OF_CHIP) ? unit : props.unit, KP_NOT_SCHEDULED, &m);
    return required ? want_absent(x, metric, unit, KP_REASON_NOT_OFFERED) : 0;
}

/* Notes that the metric of a section's row gets its other roll-ups. */
static void roll(struct kp_planner *x, const char *metric)
{
    struct kp_planned *m = x->rolls ? kp_plan_find(x->plan, metric) : NULL;
    if (m)
        m->rolls = true;
}

/* The inputs of a derived metric: being looked up, or planned. */
struct inputs {
    struct kp_planner *x;
    bool planning, all_had;
};

static int take_input(const char *metric, void *arg)
{
    struct inputs *in = arg;
    struct kp_metric_props props;
    bool had = true;
    if (in->planning)
        return kp_plan_want(in->x, metric, KP_UNIT_OF_CHIP, true, &had);
    had = kp_launch_is_metric(metric) || !kp_tables_metric(in->x->host, metric, &props);
    in->all_had &= had;
    return 0;
}

static int want_derived(struct kp_planner *x, const char *metric, const char *unit, bool required, bool *had)
{
    const struct kp_derived *d = kp_derived_find(metric);
    struct inputs in = {.x = x, .all_had = true};
    struct kp_planned *m;
    int rc = d ? kp_derived_inputs(d, take_input, &in) : 0;
    *had = d && !rc && in.all_had;
    if (!d || rc == -ELOOP)
        return required ? want_absent(x, metric, unit, KP_REASON_NO_DEFINITION) : 0;
    if (rc || (!*had && !required))
        return rc;
    rc = add(x, metric, strcmp(unit, KP_UNIT_OF_CHIP) ? unit : d->unit, KP_NOT_A_COUNTER, &m);
    if (rc)
        return rc;
    m->derived = true;
    bool listing = x->listing;
    in.planning = true;
    x->listing = false;
    rc = kp_derived_inputs(d, take_input, &in);
    x->listing = listing;
    return rc;
}

static int want_of_launch(struct kp_planner *x, const char *metric, const char *unit, bool *had)
{
    struct kp_planned *m;
    *had = true;
    return add(x, metric, strcmp(unit, KP_UNIT_OF_CHIP) ? unit : "", KP_NOT_A_COUNTER, &m);
}

int kp_plan_want(struct kp_planner *x, const char *metric, const char *unit, bool required, bool *had)
{
    if (!strncmp(metric, KP_BREAKDOWN, strlen(KP_BREAKDOWN)))
        return kp_plan_want_breakdown(x, metric + strlen(KP_BREAKDOWN), had);
    if (kp_derived_find(metric))
        return want_derived(x, metric, unit, required, had);
    if (kp_launch_is_metric(metric) || kp_providers_is_metric(metric))
        return want_of_launch(x, metric, unit, had);
    return want_counter(x, metric, unit, required, had);
}

/* Returns true if kp_plan.breakdowns has a line for the metric. */
static bool is_recorded(const struct kp_planner *x, const char *metric)
{
    size_t len = strlen(metric);
    fflush(x->breakdowns);
    for (const char *line = x->plan->breakdowns; line && *line; line = strchr(line, '\n') + 1)
        if (!strncmp(line, metric, len) && line[len] == '\t')
            return true;
    return false;
}

int kp_plan_want_breakdown(struct kp_planner *x, const char *metric, bool *had)
{
    const char **parts, *unit_end = strstr(metric, "__"); /* names of some units have dots in them */
    const char *suffix = strchr(unit_end ? unit_end : metric, '.');
    char name[512];
    size_t n, taken = 0;
    bool recording = !is_recorded(x, metric);
    struct kp_metric_props props;
    *had = false;
    if (kp_tables_metric(x->host, metric, &props)) /* its suffix may not be one of throughputs */
        return 0;
    int rc = kp_tables_constituents(x->host, metric, &parts, &n);
    if (rc)
        return rc == -ENOMEM ? rc : 0;
    for (size_t i = 0; !rc && i < n; i++) {
        bool one;
        snprintf(name, sizeof(name), "%s%s", parts[i],
                 suffix ? suffix : *kp_plan_default_suffixes(KP_METRIC_THROUGHPUT));
        rc = want_counter(x, name, KP_UNIT_OF_CHIP, false, &one);
        if (rc || !one)
            continue;
        roll(x, name);
        if (recording)
            fprintf(x->breakdowns, "%s%s%s", taken ? "" : metric, taken ? "," : "\t", name);
        taken++;
    }
    if (taken && recording)
        fputc('\n', x->breakdowns);
    *had = taken > 0;
    free(parts);
    return rc;
}

/* ---- sections ---- */

static bool same_place(const struct kp_row *a, const struct kp_row *b)
{
    return a->kind == b->kind && !strcmp(a->label, b->label) && !strcmp(a->group, b->group);
}

static bool applies(const struct kp_planner *x, const struct kp_row *row)
{
    return kp_cc_matches(row->cc, x->major, x->minor);
}

/* Plans a row's metric. Users' sections do not name sources, so the row's source is trusted only for metrics known
 * to be uncounted. */
static int want_row(struct kp_planner *x, const struct kp_row *row, bool required, bool *had)
{
    if (row->source == KP_SRC_LAUNCH || row->source == KP_SRC_OCCUPANCY)
        return want_of_launch(x, row->metric, kp_row_unit(row), had);
    if (row->source == KP_SRC_PCSAMP || row->source == KP_SRC_SASS || row->source == KP_SRC_PM) {
        *had = true; /* other collectors have them: a plan only knows the ones that the user listed */
        return x->listing ? want_of_launch(x, row->metric, kp_row_unit(row), had) : 0;
    }
    int rc = kp_plan_want(x, row->metric, kp_row_unit(row), required, had);
    if (!rc)
        roll(x, row->metric);
    return rc;
}

/* Plans one of rows[first..to) for the place of row `first`. */
static int want_place(struct kp_planner *x, const struct kp_row *rows, size_t first, size_t to, bool *any)
{
    bool had = false;
    int rc = 0;
    for (size_t i = first; !rc && !had && i < to; i++)
        if (applies(x, &rows[i]) && same_place(&rows[i], &rows[first]))
            rc = want_row(x, &rows[i], false, &had);
    *any |= had;
    if (!rc && !had && kp_row_required(&rows[first]))
        rc = want_row(x, &rows[first], true, &had);
    return rc;
}

int kp_plan_want_rows(struct kp_planner *x, const struct kp_section *s, size_t from, size_t to, bool *any)
{
    int rc = 0;
    for (size_t i = from; !rc && i < to; i++) {
        size_t before = from;
        if (!applies(x, &s->rows[i]))
            continue;
        while (before < i && !(applies(x, &s->rows[before]) && same_place(&s->rows[before], &s->rows[i])))
            before++;
        if (before == i)
            rc = want_place(x, s->rows, i, to, any);
    }
    return rc;
}

/* As in ncu, the counters of a section have all roll-ups, except that tables and charts of memory and links have what
 * they show. */
static bool has_roll_ups(const struct kp_section *s, size_t from)
{
    switch (from ? s->rows[from - 1].body : KP_BODY_NONE) {
    case KP_BODY_TABLE:
    case KP_BODY_CHART:
    case KP_BODY_SERIES:
        return false;
    case KP_BODY_GRID:
        return strncmp(s->id, "Memory", strlen("Memory")) != 0;
    default:
        return true;
    }
}

int kp_plan_want_section(struct kp_planner *x, const struct kp_section *s)
{
    int rc = 0;
    bool any = false;
    if (!kp_cc_matches(s->cc, x->major, x->minor))
        return 0;
    for (size_t from = 0, to; !rc && from < s->n_rows; from = to + 1) {
        to = kp_section_body_end(s, from);
        x->rolls = has_roll_ups(s, from);
        if (!from || applies(x, &s->rows[from - 1])) /* the preceding row opens the body */
            rc = kp_plan_want_rows(x, s, from, to, &any);
    }
    x->rolls = false;
    return rc;
}

static int want_input(const struct kp_rule_input *input, void *arg)
{
    bool had;
    return kp_plan_want(arg, input->metric, KP_UNIT_OF_CHIP, false, &had);
}

int kp_plan_want_rules(struct kp_planner *x, const struct kp_section *s)
{
    return kp_cc_matches(s->cc, x->major, x->minor) ? kp_rule_inputs(s->id, x->major, x->minor, want_input, x) : 0;
}
