/* Packs the counters of a plan into lists of one pass, one per run of the program: see runs.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/room.h"
#include "base/text.h"
#include "collectors/plan/plan_internal.h"
#include "collectors/providers/library.h"

/* After so many counters of a hardware unit that did not fit a list, the rest of the unit is not tried. A larger number
 * makes planning longer, but does not save lists. */
enum { MOST_REFUSALS = 4, MOST_UNITS = 64, MOST_PAIRS = 32 };

/* A list of one pass. */
struct list {
    const char **names;
    size_t n;
    unsigned char refused[MOST_UNITS]; /* by unit */
};

/* Two metrics, and whether the library combines them. */
struct pair {
    const char *a, *b;
    bool together;
};

struct packing {
    struct kp_planner *x;
    struct pair pairs[MOST_PAIRS];
    size_t n_pairs;
    struct list *lists;
    size_t n;
    const char *units[MOST_UNITS]; /* one metric of each */
    size_t n_units, most;          /* most: the most names in a list */
};

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Returns the counters without a list, sorted, so that values of one counter follow each other; malloc'ed. */
static const char **unscheduled(const struct kp_plan *p, size_t *n)
{
    const char **names = calloc(p->n_metrics + 1, sizeof(*names));
    *n = 0;
    for (size_t i = 0; names && i < p->n_metrics; i++)
        if (p->metrics[i].group == KP_NOT_SCHEDULED)
            names[(*n)++] = p->metrics[i].name;
    if (names)
        qsort(names, *n, sizeof(*names), by_name);
    return names;
}

/* Returns how many names from names[0] on belong to the same counter. */
static size_t cluster(const char *const *names, size_t n)
{
    size_t len = strcspn(names[0], "."), k = 1;
    while (k < n && !strncmp(names[k], names[0], len) && (names[k][len] == '.' || !names[k][len]))
        k++;
    return k;
}

/* ---- metrics that need several passes alone ---- */

enum { TAKES_SEVERAL = -5 }; /* of kp_planned.group, until its list is known */

static int cannot(struct kp_planner *x, const char *name, int rc)
{
    struct kp_planned *m = kp_plan_find(x->plan, name);
    m->group = KP_CANNOT_COLLECT;
    m->why = kp_library_explain(x->cupti, KP_REASON_CUPTI_REFUSES, rc);
    return 0;
}

/* Plans one constituent, and adds it to the list of parts. -EINVAL: it is the throughput itself. */
static int want_part(struct kp_planner *x, const char *throughput, const char *part, const char *suffix, FILE *to)
{
    char name[512];
    bool had;
    snprintf(name, sizeof(name), "%s%s", part, suffix);
    if (!strcmp(name, throughput)) /* some are their own constituent */
        return -EINVAL;
    bool known = kp_plan_find(x->plan, name) != NULL;
    int rc = kp_plan_want(x, name, KP_UNIT_OF_CHIP, false, &had);
    struct kp_planned *m = rc ? NULL : kp_plan_find(x->plan, name);
    if (!m)
        return rc; /* the chip lacks it: kernel replay would find that, too */
    m->part |= !known;
    fprintf(to, "%s%s", ftell(to) > 0 ? "," : "", name);
    return 0;
}

/* Replaces a throughput by its constituents. -EINVAL: it has none but itself. */
static int take_apart(struct kp_planner *x, const char *name)
{
    const char **parts = NULL, *unit_end = strstr(name, "__");
    const char *suffix = strchr(unit_end ? unit_end : name, '.');
    char *list = NULL;
    size_t n = 0, size;
    int rc = suffix ? kp_tables_constituents(x->host, name, &parts, &n) : -EINVAL;
    if (rc)
        return rc;
    FILE *f = open_memstream(&list, &size);
    rc = f ? 0 : -ENOMEM;
    for (size_t i = 0; !rc && i < n; i++)
        rc = want_part(x, name, parts[i], suffix, f);
    if (f && kp_text_end(f, &list))
        rc = -ENOMEM;
    if (!rc && list && *list) {
        struct kp_planned *m = kp_plan_find(x->plan, name);
        m->group = KP_NOT_A_COUNTER;
        m->parts = list;
        list = NULL;
    } else if (!rc) {
        rc = -EINVAL;
    }
    free(list);
    free(parts);
    return rc;
}

static int judge(struct kp_planner *x, const char *name)
{
    size_t passes = 1;
    bool fit;
    int rc = kp_plan_fits(x, &name, 1, &fit);
    if (!rc && !fit)
        rc = kp_plan_passes(x, &name, 1, &passes);
    if (rc < 0 || passes == 1)
        return rc < 0 ? rc : 0;
    if (rc)
        return cannot(x, name, rc);
    int apart = take_apart(x, name);
    if (apart && apart != -ENOMEM)
        kp_plan_find(x->plan, name)->group = TAKES_SEVERAL;
    return apart == -ENOMEM ? apart : 0;
}

/* Settles all counters that need several passes. Parts of throughputs are new counters: they come in a second round. */
static int settle(struct kp_planner *x)
{
    size_t before = 0;
    int rc = 0;
    while (!rc && before != x->plan->n_metrics) {
        size_t n, k;
        bool fit;
        const char **names = unscheduled(x->plan, &n);
        before = x->plan->n_metrics;
        rc = names ? 0 : -ENOMEM;
        for (size_t i = 0; !rc && i < n; i += k) {
            k = cluster(names + i, n - i);
            rc = kp_plan_fits(x, names + i, k, &fit);
            for (size_t one = i; !rc && !fit && one < i + k; one++)
                rc = judge(x, names[one]);
        }
        free(names);
    }
    return rc;
}

/* ---- packing ---- */

static size_t unit_of(struct packing *p, const char *name)
{
    size_t u = 0;
    while (u < p->n_units && !kp_plan_same_unit(p->units[u], name))
        u++;
    if (u == p->n_units && u < MOST_UNITS)
        p->units[p->n_units++] = name;
    return u < MOST_UNITS ? u : MOST_UNITS - 1;
}

/* Returns true if the library treats two metrics alike when it combines units. */
static bool same_kind(const char *a, const char *b)
{
    bool ordinary = !kp_plan_is_apart(a) && !kp_config_is_patched_metric(a);
    if (ordinary || (!kp_plan_is_apart(b) && !kp_config_is_patched_metric(b)))
        return ordinary && !kp_plan_is_apart(b) && !kp_config_is_patched_metric(b);
    return kp_plan_same_unit(a, b) && kp_config_is_patched_metric(a) == kp_config_is_patched_metric(b);
}

/* Finds out if the library combines the kinds of two metrics. Tries each pair once, because quick answers do not cover
 * that. */
static int combines(struct packing *p, const char *a, const char *b, bool *together)
{
    const char *const both[] = {a, b};
    size_t passes;
    *together = same_kind(a, b);
    for (size_t i = 0; i < p->n_pairs; i++)
        if (same_kind(p->pairs[i].a, a) && same_kind(p->pairs[i].b, b)) {
            *together = p->pairs[i].together;
            return 0;
        }
    if (*together)
        return 0;
    int rc = kp_plan_passes(p->x, both, 2, &passes);
    *together = !rc;
    if (p->n_pairs < MOST_PAIRS)
        p->pairs[p->n_pairs++] = (struct pair){a, b, *together};
    return rc < 0 ? rc : 0;
}

/* Finds out if the names fit into the list. */
static int fits_into(struct packing *p, struct list *l, const char *const *names, size_t n, bool *fit)
{
    int rc = 0;
    *fit = true;
    if (l->n && !p->x->slow)
        rc = combines(p, l->names[0], names[0], fit);
    if (rc || !*fit)
        return rc;
    memcpy(l->names + l->n, names, n * sizeof(*names));
    return kp_plan_fits(p->x, l->names, l->n + n, fit);
}

static struct list *new_list(struct packing *p)
{
    if (!KP_ROOM(p->lists, p->n))
        return NULL;
    p->lists[p->n] = (struct list){.names = calloc(p->most + 1, sizeof(*p->lists->names))};
    return p->lists[p->n].names ? &p->lists[p->n++] : NULL;
}

/* Puts names of one counter into the first list with room for them. Halves them if they do not combine. */
static int place(struct packing *p, const char *const *names, size_t n)
{
    size_t unit = unit_of(p, names[0]), i = 0;
    bool fit = false;
    int rc = 0;
    for (; !rc && i < p->n; i++) {
        if (p->lists[i].refused[unit] >= MOST_REFUSALS)
            continue;
        rc = fits_into(p, &p->lists[i], names, n, &fit);
        if (fit)
            break;
        p->lists[i].refused[unit]++;
    }
    if (!rc && !fit) {
        struct list *l = new_list(p);
        rc = l ? fits_into(p, l, names, n, &fit) : -ENOMEM;
        i = p->n - 1;
        if (!rc && !fit && n > 1) {
            free(p->lists[--p->n].names);
            rc = place(p, names, n / 2);
            return rc ? rc : place(p, names + n / 2, n - n / 2);
        }
    }
    if (rc)
        return rc;
    p->lists[i].n += n;
    for (size_t k = 0; k < n; k++)
        kp_plan_find(p->x->plan, names[k])->group = (int)i;
    return 0;
}

/* Puts all counters that need several passes into one list; those that do not combine with the rest cannot be
 * collected. */
static int place_several(struct kp_planner *x)
{
    struct kp_plan *p = x->plan;
    const char **names = calloc(p->n_metrics + 1, sizeof(*names));
    size_t n = 0, passes = 0, all = 0;
    int rc = names ? 0 : -ENOMEM;
    for (size_t i = 0; !rc && i < p->n_metrics; i++) {
        if (p->metrics[i].group != TAKES_SEVERAL)
            continue;
        names[n] = p->metrics[i].name;
        int why = kp_plan_passes(x, names, n + 1, &passes);
        rc = why < 0 ? why : why ? cannot(x, names[n], why) : 0;
        n += !rc && !why;
        all = !rc && !why ? passes : all;
    }
    for (size_t i = 0; !rc && i < n; i++) {
        struct kp_planned *m = kp_plan_find(p, names[i]);
        m->group = (int)p->runs;
        m->passes = all;
    }
    p->runs += n ? all : 0;
    free(names);
    return rc;
}

/* Packs all counters that need one pass. *proved: the library accepts each list. */
static int pack_lists(struct packing *p, bool *proved)
{
    size_t n = 0, k;
    const char **names = unscheduled(p->x->plan, &n);
    int rc = names ? 0 : -ENOMEM;
    p->most = n;
    for (size_t i = 0; !rc && i < n; i += k) {
        k = cluster(names + i, n - i);
        rc = place(p, names + i, k);
    }
    *proved = true;
    for (size_t i = 0; !rc && *proved && !p->x->slow && i < p->n; i++) {
        size_t passes;
        rc = kp_plan_passes(p->x, p->lists[i].names, p->lists[i].n, &passes);
        *proved = passes == 1;
        rc = rc < 0 ? rc : 0;
    }
    p->x->plan->runs = p->n;
    for (size_t i = 0; i < p->n; i++)
        free(p->lists[i].names);
    free(p->lists);
    free(names);
    return rc;
}

int kp_plan_schedule_runs(struct kp_planner *x)
{
    bool proved = false;
    int rc = 0;
    while (!rc && !proved) {
        struct packing p = {.x = x};
        rc = settle(x);
        if (!rc)
            rc = pack_lists(&p, &proved);
        if (rc || proved)
            break;
        x->slow = true; /* quick answers are wrong */
        for (size_t i = 0; i < x->plan->n_metrics; i++)
            if (x->plan->metrics[i].group >= 0)
                x->plan->metrics[i].group = KP_NOT_SCHEDULED;
    }
    return rc ? rc : place_several(x);
}
