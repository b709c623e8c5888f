#include "collectors/plan/plan.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "collectors/facts/launch.h"
#include "collectors/facts/topology.h"
#include "collectors/plan/plan_internal.h"
#include "collectors/providers/library.h"
#include "collectors/providers/providers.h"
#include "report/define/derive.h"
#include "report/judge/rules.h"

/* ---- the metrics of a plan, by name ---- */

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

void kp_plan_note_listed(struct kp_planner *x, const char *mark, const char *name)
{
    fprintf(x->listed, "%s%s%s", ftell(x->listed) > 0 ? "," : "", mark, name);
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

/* ---- wanted metrics ---- */

const char *const *const kp_plan_uncounted[] = {kp_launch_metric_names, kp_device_metric_names, NULL};

static int want_absent(struct kp_planner *x, const char *metric, const char *unit, const char *why)
{
    struct kp_planned *m;
    int rc = add(x, metric, strcmp(unit, KP_UNIT_OF_CHIP) ? unit : "", KP_CANNOT_COLLECT, &m);
    if (!rc && m->group == KP_CANNOT_COLLECT && !m->why && !(m->why = kp_strdup(why)))
        rc = -ENOMEM;
    return rc;
}

static int want_counter(struct kp_planner *x, const char *metric, const char *unit, bool required, bool *had)
{
    struct kp_planned *m = kp_plan_find(x->plan, metric);
    struct kp_metric_props props = {.unit = ""};
    *had = m ? m->group == KP_NOT_SCHEDULED : !kp_tables_metric(x->host, metric, &props);
    if (*had)
        return add(x, metric, strcmp(unit, KP_UNIT_OF_CHIP) ? unit : props.unit, KP_NOT_SCHEDULED, &m);
    return required ? want_absent(x, metric, unit, "this CUPTI does not offer it for this chip") : 0;
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
        return required ? want_absent(x, metric, unit, "it has no definition that can be computed") : 0;
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

/* Whether kp_plan.breakdowns has a line for the metric. */
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
        *had = true; /* other collectors have them: a plan only knows those that the user listed */
        return x->listing ? want_of_launch(x, row->metric, kp_row_unit(row), had) : 0;
    }
    return kp_plan_want(x, row->metric, kp_row_unit(row), required, had);
}

/* Plans the row for the place of row `first`, among rows[first..to). */
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

static int want_section(struct kp_planner *x, const struct kp_section *s)
{
    int rc = 0;
    bool any = false;
    if (!kp_cc_matches(s->cc, x->major, x->minor))
        return 0;
    for (size_t from = 0, to; !rc && from < s->n_rows; from = to + 1) {
        to = kp_section_body_end(s, from);
        if (!from || applies(x, &s->rows[from - 1])) /* the preceding row opens the body */
            rc = kp_plan_want_rows(x, s, from, to, &any);
    }
    return rc;
}

static int want_input(const struct kp_rule_input *input, void *arg)
{
    bool had;
    return kp_plan_want(arg, input->metric, KP_UNIT_OF_CHIP, false, &had);
}

static int want_rules(struct kp_planner *x, const struct kp_section *s)
{
    return kp_cc_matches(s->cc, x->major, x->minor) ? kp_rule_inputs(s->id, x->major, x->minor, want_input, x) : 0;
}

/* ---- the plan ---- */

/* Bounds the counters: the library takes minutes for more, while the program waits. */
static int bound(struct kp_planner *x)
{
    size_t n = 0;
    for (size_t i = 0; i < x->plan->n_metrics; i++)
        n += x->plan->metrics[i].group == KP_NOT_SCHEDULED;
    if (n <= KP_PLAN_MOST_COUNTERS)
        return 0;
    if (asprintf(x->err, "%s: those are %zu counters of %s, and the most that can be scheduled is %d; name fewer",
                 x->option, n, x->chip, KP_PLAN_MOST_COUNTERS) < 0) {
        *x->err = NULL;
        return -ENOMEM;
    }
    return -EINVAL;
}

/* Whether there is something to collect. */
static int check_known(struct kp_planner *x, size_t n_sections)
{
    if (n_sections || x->n_known || !x->n_unknown)
        return 0;
    size_t size;
    FILE *f = fflush(x->unknown) ? NULL : open_memstream(x->err, &size);
    if (!f)
        return -ENOMEM;
    for (const char *line = x->plan->unknown, *end; *line; line = end + 1) {
        const char *text = strchr(line, '\t') + 1;
        end = strchr(line, '\n');
        fprintf(f, "%s%.*s", line == x->plan->unknown ? "" : "\n", (int)(end - text), text);
    }
    return kp_text_end(f, x->err) ? -ENOMEM : -EINVAL;
}

static int schedule(struct kp_planner *x, unsigned how)
{
    if (how & KP_PLAN_UNSHARED)
        return 0;
    if (how & KP_PLAN_RUNS)
        return kp_plan_schedule_runs(x);
    if (how & KP_PLAN_ONE_PASS)
        return kp_plan_schedule_one_pass(x);
    if (how & KP_PLAN_ROTATE)
        return kp_plan_schedule_rotation(x);
    int rc = kp_plan_schedule(x);
    return !rc && how & KP_PLAN_WATCH ? kp_plan_watch(x) : rc;
}

static int fill(struct kp_planner *x, const struct kp_section *const *sections, size_t n_sections, const char *metrics,
                unsigned how)
{
    int rc = kp_tables_open(x->cupti, KP_TABLES_COUNTED, x->chip, x->availability, &x->host);
    for (size_t i = 0; !rc && i < n_sections; i++)
        rc = want_section(x, sections[i]);
    for (size_t i = 0; !rc && how & KP_PLAN_RULES && i < n_sections; i++)
        rc = want_rules(x, sections[i]);
    if (!rc)
        rc = kp_plan_list(x, metrics);
    if (!rc)
        rc = check_known(x, n_sections);
    if (!rc)
        rc = bound(x);
    if (!rc)
        rc = schedule(x, how);
    kp_tables_close(x->host);
    return rc;
}

/* Indexed by whether the items are columns, and whether the command asks, which calls them flags. */
static const char *const option_names[2][2] = {{"KPROF_METRICS", "--metrics"},
                                               {"KPROF_TRACE_COLUMNS", "--trace-columns"}};

int kp_plan_make(const struct kp_cupti *c, const char *chip, const uint8_t *availability, int major, int minor,
                 const struct kp_section *const *sections, size_t n_sections, const char *metrics, unsigned how,
                 struct kp_plan **out, char **err)
{
    struct kp_plan *p = calloc(1, sizeof(*p));
    size_t size;
    *out = NULL;
    *err = NULL;
    if (!p)
        return -ENOMEM;
    struct kp_planner x = {
        .plan = p,
        .cupti = c,
        .chip = chip,
        .owner = how & KP_PLAN_ANY_CHIP ? "CUPTI" : chip,
        .availability = availability,
        .major = major,
        .minor = minor,
        .option = option_names[(how & KP_PLAN_COLUMNS) != 0][(how & (KP_PLAN_QUERY | KP_PLAN_ANY_CHIP)) != 0],
        .listed = open_memstream(&p->listed, &size),
        .breakdowns = open_memstream(&p->breakdowns, &size),
        .unknown = open_memstream(&p->unknown, &size),
        .err = err};
    int rc = x.listed && x.breakdowns && x.unknown ? fill(&x, sections, n_sections, metrics, how) : -ENOMEM;
    const struct {
        FILE *to;
        char **text;
    } lists[] = {{x.listed, &p->listed}, {x.breakdowns, &p->breakdowns}, {x.unknown, &p->unknown}};
    for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++)
        if (lists[i].to && kp_text_end(lists[i].to, lists[i].text) && !rc)
            rc = -ENOMEM;
    if (rc > 0) {
        *err = kp_library_explain(c, "cannot plan the collection", rc);
        rc = -EIO;
    }
    if (rc)
        kp_plan_free(p);
    else
        *out = p;
    return rc;
}

void kp_plan_free(struct kp_plan *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < p->n_groups; i++)
        kp_config_free(&p->groups[i]);
    for (size_t i = 0; i < p->n_metrics; i++) {
        free(p->metrics[i].name);
        free(p->metrics[i].why);
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
    for (size_t i = 0; i < group->n_names; i++) {
        const struct kp_planned *m = kp_plan_find(p, group->names[i]);
        int rc = isfinite(values[i]) ? kp_result_set_real(r, m->name, m->unit, values[i])
                                     : kp_result_set_na(r, m->name, "the counters gave no number");
        if (rc)
            return rc;
    }
    return 0;
}

int kp_plan_store_missing(const struct kp_plan *p, const char *why, struct kp_result *r)
{
    for (size_t i = 0; i < p->n_metrics; i++) {
        const struct kp_planned *m = &p->metrics[i];
        if (m->group == KP_NOT_A_COUNTER || m->group == KP_OTHER_RUN || m->composed || m->watch ||
            kp_result_find(r, m->name))
            continue;
        int rc = kp_result_set_na(r, m->name, m->group == KP_CANNOT_COLLECT && m->why ? m->why : why);
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
