#include "collectors/plan.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectors/launch.h"
#include "report/options.h"

enum { NOT_A_COUNTER = -1, CANNOT = -2, UNASSIGNED = -3 };

/* Suffixes that a bare base name stands for, by metric type. */
static const char *const default_suffixes[KP_METRIC_TYPES][5] = {
    [KP_METRIC_COUNTER] = {".avg", ".max", ".min", ".sum", NULL},
    [KP_METRIC_RATIO] = {".ratio", NULL},
    [KP_METRIC_THROUGHPUT] = {".avg.pct_of_peak_sustained_elapsed", NULL},
};

/* Units whose counters CUPTI schedules only apart from the SM's, the caches' and DRAM's. */
static const char *const apart[] = {"pcie__", "nvlrx__", "nvltx__", "ctc__"};

static bool starts_with_any(const char *name, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!strncmp(name, list[i], strlen(list[i])))
            return true;
    return false;
}

/* Metrics of the launch and the occupancy calculation are told from counters by their names. */
static bool is_counter(const char *name)
{
    for (const char *const *known = kp_launch_metric_names; *known; known++)
        if (!strcmp(name, *known))
            return false;
    return true;
}

static bool is_apart(const char *name)
{
    return starts_with_any(name, apart, sizeof(apart) / sizeof(*apart));
}

static struct kp_planned *find(struct kp_plan *p, const char *name)
{
    for (size_t i = 0; i < p->n_metrics; i++)
        if (!strcmp(p->metrics[i].name, name))
            return &p->metrics[i];
    return NULL;
}

static int add(struct kp_plan *p, const char *name, const char *unit, int group)
{
    if (find(p, name))
        return 0;
    struct kp_planned *grown = realloc(p->metrics, (p->n_metrics + 1) * sizeof(*grown));
    if (!grown)
        return -ENOMEM;
    p->metrics = grown;
    struct kp_planned *m = &grown[p->n_metrics];
    memset(m, 0, sizeof(*m));
    m->name = kp_strdup(name);
    if (!m->name)
        return -ENOMEM;
    snprintf(m->unit, sizeof(m->unit), "%s", unit);
    m->group = group;
    p->n_metrics++;
    return 0;
}

static int add_sections(struct kp_plan *p, struct kp_host *h, int major, int minor,
                        const struct kp_section *const *sections, size_t n)
{
    for (size_t s = 0; s < n; s++)
        for (size_t i = 0; i < sections[s]->n_rows; i++) {
            const struct kp_row *row = &sections[s]->rows[i];
            struct kp_metric_props props;
            if (row->kind == KP_ROW_BODY || !kp_cc_matches(row->cc, major, minor))
                continue;
            bool counter = row->source == KP_SRC_COUNTER;
            bool known = !counter || !kp_host_metric(h, row->metric, &props);
            int rc = add(p, row->metric, row->unit, !counter ? NOT_A_COUNTER : known ? UNASSIGNED : CANNOT);
            if (rc)
                return rc;
            struct kp_planned *m = find(p, row->metric);
            if (!known && !m->why && !(m->why = kp_strdup("this CUPTI does not offer it for this chip")))
                return -ENOMEM;
        }
    return 0;
}

static int append(char **list, const char *name)
{
    size_t have = *list ? strlen(*list) : 0;
    char *grown = realloc(*list, have + strlen(name) + 2);
    if (!grown)
        return -ENOMEM;
    *list = grown;
    sprintf(grown + have, "%s%s", have ? "," : "", name);
    return 0;
}

static int unknown_metric(struct kp_host *h, const char *chip, const char *name, char **err)
{
    const char *nearest = NULL;
    char base[256];
    snprintf(base, sizeof(base), "%.*s", (int)strcspn(name, "."), name);
    if (!strncmp(name, "launch__", strlen("launch__")))
        nearest = kp_nearest(name, kp_launch_metric_names);
    for (int t = 0; t < KP_METRIC_TYPES && !nearest; t++) {
        const char *const *names = NULL;
        size_t n = 0;
        if (kp_host_names(h, (enum kp_metric_type)t, &names, &n) || !n)
            continue;
        const char **list = calloc(n + 1, sizeof(*list));
        if (!list)
            return -ENOMEM;
        memcpy(list, names, n * sizeof(*list));
        nearest = kp_nearest(base, list);
        free(list);
    }
    bool suffix = nearest && !strcmp(nearest, base);
    if (asprintf(err, "KPROF_METRICS: %s has no metric \"%s\"%s%s%s", chip, name,
                 suffix    ? "; its suffix is not one that "
                 : nearest ? "; did you mean "
                           : "",
                 nearest ? nearest : "",
                 suffix    ? " takes"
                 : nearest ? "?"
                           : "") < 0) {
        *err = NULL;
        return -ENOMEM;
    }
    return -EINVAL;
}

static int add_listed(struct kp_plan *p, struct kp_host *h, const char *chip, const char *name, char **err)
{
    static const char *const itself[] = {"", NULL};
    struct kp_metric_props props = {.unit = ""};
    const char *const *suffixes = itself;
    char full[512];
    bool counter = is_counter(name);
    if (counter && kp_host_metric(h, name, &props))
        return unknown_metric(h, chip, name, err);
    if (counter && !strchr(name, '.'))
        suffixes = default_suffixes[props.type];
    for (; *suffixes; suffixes++) {
        snprintf(full, sizeof(full), "%s%s", name, *suffixes);
        if (counter && kp_host_metric(h, full, &props))
            return unknown_metric(h, chip, full, err);
        int rc = add(p, full, props.unit, counter ? UNASSIGNED : NOT_A_COUNTER);
        if (!rc)
            rc = append(&p->listed, full);
        if (rc)
            return rc;
    }
    return 0;
}

static int add_list(struct kp_plan *p, struct kp_host *h, const char *chip, const char *metrics, char **err)
{
    char *copy = kp_strdup(metrics), *save = NULL;
    int rc = copy ? 0 : -ENOMEM;
    for (char *name = copy ? strtok_r(copy, ", \t", &save) : NULL; name && !rc; name = strtok_r(NULL, ", \t", &save))
        rc = add_listed(p, h, chip, name, err);
    free(copy);
    return rc;
}

/* Puts names[0..n) as one more group, if the library takes them together: 0, a CUPTI code, or -ENOMEM. */
static int add_group(struct kp_plan *p, const struct kp_cupti *c, const char *chip, const uint8_t *availability,
                     const char *const *names, size_t n)
{
    struct kp_config *grown = realloc(p->groups, (p->n_groups + 1) * sizeof(*grown));
    if (!grown)
        return -ENOMEM;
    p->groups = grown;
    int rc = kp_host_schedule(c, chip, availability, names, n, &grown[p->n_groups]);
    if (rc)
        return rc;
    for (size_t i = 0; i < n; i++)
        find(p, names[i])->group = (int)p->n_groups;
    p->passes += grown[p->n_groups].passes;
    p->n_groups++;
    return 0;
}

/* The most of names[0..*n) that the library takes together becomes a group; the rest is left in names, *n of them. A
 * metric that it refuses even alone is marked. */
static int add_what_fits(struct kp_plan *p, const struct kp_cupti *c, const char *chip, const uint8_t *availability,
                         const char **names, size_t *n)
{
    size_t kept = 0, left = 0;
    const char **trial = calloc(*n + 1, sizeof(*trial));
    if (!trial)
        return -ENOMEM;
    for (size_t i = 0; i < *n; i++) {
        struct kp_config config;
        trial[kept] = names[i];
        int rc = kp_host_schedule(c, chip, availability, trial, kept + 1, &config);
        if (!rc) {
            kept++;
            kp_config_free(&config);
        } else if (kept) {
            names[left++] = names[i];
        } else {
            find(p, names[i])->group = CANNOT;
            find(p, names[i])->why = kp_cupti_explain(c, "CUPTI refuses it", rc);
        }
    }
    int rc = kept ? add_group(p, c, chip, availability, trial, kept) : 0;
    free(trial);
    *n = left;
    return rc;
}

/* Schedules the metrics that want to be apart, or the others: as one group where the library allows it. */
static int schedule(struct kp_plan *p, const struct kp_cupti *c, const char *chip, const uint8_t *availability,
                    bool want_apart)
{
    size_t n = 0;
    const char **names = calloc(p->n_metrics + 1, sizeof(*names));
    if (!names)
        return -ENOMEM;
    for (size_t i = 0; i < p->n_metrics; i++)
        if (p->metrics[i].group == UNASSIGNED && is_apart(p->metrics[i].name) == want_apart)
            names[n++] = p->metrics[i].name;
    int rc = n ? add_group(p, c, chip, availability, names, n) : 0;
    if (rc > 0)
        for (rc = 0; n && !rc;)
            rc = add_what_fits(p, c, chip, availability, names, &n);
    free(names);
    return rc;
}

/* A list of one pass in the making. */
struct one_pass {
    const struct kp_cupti *c;
    const char *chip;
    const uint8_t *availability;
    struct kp_plan *plan;
    const char **names; /* names[0..kept) are in, room for all */
    size_t kept;
    struct kp_config config; /* of names[0..kept), when kept > 0 */
};

/* Puts names[0..n) into the pass, all or none: 0, or why not: -E2BIG for more than one pass, a CUPTI code, -ENOMEM. */
static int extend(struct one_pass *o, const char *const *names, size_t n)
{
    struct kp_config config;
    memcpy(o->names + o->kept, names, n * sizeof(*names));
    int rc = kp_host_schedule(o->c, o->chip, o->availability, o->names, o->kept + n, &config);
    if (rc)
        return rc;
    if (config.passes > 1) {
        kp_config_free(&config);
        return -E2BIG;
    }
    kp_config_free(&o->config);
    o->config = config;
    o->kept += n;
    return 0;
}

static int leave_out(struct one_pass *o, const char *name, int why)
{
    struct kp_planned *m = find(o->plan, name);
    m->group = CANNOT;
    m->why = why == -E2BIG ? kp_strdup("it does not fit into one pass beside the others on this chip")
                           : kp_cupti_explain(o->c, "CUPTI refuses it beside the others", why);
    return m->why ? 0 : -ENOMEM;
}

/* Puts those of names[0..n) into the pass that fit, each before the ones after it. Scheduling is what takes the time,
 * so all are tried at once and halved only where they do not fit. `why` is what extend() would say of them, where that
 * is known, else 0. */
static int extend_by_what_fits(struct one_pass *o, const char *const *names, size_t n, int why)
{
    if (!why && (!n || !(why = extend(o, names, n))))
        return 0;
    if (why == -ENOMEM)
        return why;
    if (n == 1)
        return leave_out(o, *names, why);
    size_t half = n / 2, before = o->kept;
    int rc = extend_by_what_fits(o, names, half, 0);
    if (rc)
        return rc;
    /* With the first half in, the second one is what was too much. */
    return extend_by_what_fits(o, names + half, n - half, o->kept == before + half ? why : 0);
}

/* Schedules what fits into one pass, by the order of p->metrics. */
static int schedule_one_pass(struct kp_plan *p, const struct kp_cupti *c, const char *chip, const uint8_t *availability)
{
    struct one_pass o = {.c = c, .chip = chip, .availability = availability, .plan = p};
    size_t n = 0;
    const char **names = calloc(p->n_metrics + 1, sizeof(*names));
    int rc = -ENOMEM;
    o.names = calloc(p->n_metrics + 1, sizeof(*o.names));
    p->groups = calloc(1, sizeof(*p->groups));
    if (!names || !o.names || !p->groups)
        goto out;
    for (size_t i = 0; i < p->n_metrics; i++)
        if (p->metrics[i].group == UNASSIGNED)
            names[n++] = p->metrics[i].name;
    rc = extend_by_what_fits(&o, names, n, 0);
    if (rc || !o.kept)
        goto out;
    for (size_t i = 0; i < o.kept; i++)
        find(p, o.names[i])->group = 0;
    p->groups[p->n_groups++] = o.config;
    p->passes = o.config.passes;
    memset(&o.config, 0, sizeof(o.config));
out:
    kp_config_free(&o.config);
    free(o.names);
    free(names);
    return rc;
}

int kp_plan_make(const struct kp_cupti *c, const char *chip, const uint8_t *availability, int major, int minor,
                 const struct kp_section *const *sections, size_t n_sections, const char *metrics, bool one_pass,
                 struct kp_plan **out, char **err)
{
    struct kp_host *h = NULL;
    struct kp_plan *p = calloc(1, sizeof(*p));
    *out = NULL;
    *err = NULL;
    if (!p)
        return -ENOMEM;
    int rc = kp_host_open(c, chip, availability, &h);
    if (!rc)
        rc = add_sections(p, h, major, minor, sections, n_sections);
    if (!rc)
        rc = add_list(p, h, chip, metrics, err);
    if (!rc && one_pass)
        rc = schedule_one_pass(p, c, chip, availability);
    if (!rc && !one_pass)
        rc = schedule(p, c, chip, availability, false);
    if (!rc && !one_pass)
        rc = schedule(p, c, chip, availability, true);
    if (!rc && !p->listed && !(p->listed = kp_strdup("")))
        rc = -ENOMEM;
    kp_host_close(h);
    if (rc > 0) {
        *err = kp_cupti_explain(c, "cannot plan the collection", rc);
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
    }
    free(p->metrics);
    free(p->groups);
    free(p->listed);
    free(p);
}

bool kp_plan_counts(const struct kp_plan *p)
{
    return p->n_groups > 0;
}

int kp_plan_store(const struct kp_plan *p, size_t g, const double *values, struct kp_result *r)
{
    const struct kp_config *group = &p->groups[g];
    size_t next = 0;
    for (size_t i = 0; i < p->n_metrics && next < group->n_names; i++) {
        const struct kp_planned *m = &p->metrics[i];
        if (m->group != (int)g)
            continue;
        double v = values[next++];
        int rc = isfinite(v) ? kp_result_set_real(r, m->name, m->unit, v)
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
        if (m->group == NOT_A_COUNTER || kp_result_find(r, m->name))
            continue;
        int rc = kp_result_set_na(r, m->name, m->group == CANNOT && m->why ? m->why : why);
        if (rc)
            return rc;
    }
    return 0;
}
