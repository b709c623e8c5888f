/* Plans the user's list in KPROF_METRICS: names, regular expressions, groups, breakdowns. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/nearest.h"
#include "base/pattern.h"
#include "base/room.h"
#include "base/text.h"
#include "collectors/facts/launch.h"
#include "collectors/plan/plan_internal.h"
#include "collectors/providers/providers.h"
#include "report/define/derive.h"
#include "report/options/options.h"

enum { NAME_MAX_LEN = 512 };

/* ---- near names ---- */

/* A growing list of words to choose from. */
struct words {
    const char **list; /* NULL-terminated */
    size_t n;
};

static int add_word(struct words *w, const char *word)
{
    if (!KP_ROOM(w->list, w->n + 1))
        return -ENOMEM;
    w->list[w->n++] = word;
    w->list[w->n] = NULL;
    return 0;
}

/* Adds the chip's base names of one type. */
static int add_base_names(struct words *w, struct kp_host *h, enum kp_metric_type type)
{
    const char *const *names = NULL;
    size_t n = 0;
    int rc = 0;
    if (kp_tables_names(h, type, &names, &n))
        return 0;
    for (size_t i = 0; !rc && i < n; i++)
        rc = add_word(w, names[i]);
    return rc;
}

static int take_word(const char *name, const char *unit, void *arg)
{
    (void)unit;
    return add_word(arg, name);
}

/* Adds the names that do not come from the chip. */
static int add_other_names(const struct kp_planner *x, struct words *w)
{
    size_t n;
    int rc = 0;
    for (const char *const *const *list = kp_plan_uncounted; *list; list++)
        for (const char *const *name = *list; *name && !rc; name++)
            rc = add_word(w, *name);
    const struct kp_derived **derived = kp_derived_all(&n);
    if (!derived)
        return -ENOMEM;
    for (size_t i = 0; !rc && i < n; i++)
        rc = add_word(w, derived[i]->name);
    free(derived);
    return rc ? rc : kp_providers_metrics(x->major, x->minor, take_word, w);
}

static int refuse(struct kp_planner *x, const char *what, const char *name, const char *nearest, const char *prefix)
{
    if (nearest)
        return kp_error(x->err, "%s: %s has no %s \"%s\"; did you mean %s%s?", x->option, x->owner, what, name, prefix,
                        nearest);
    return kp_error(x->err, "%s: %s has no %s \"%s\"; `kprof query-metrics` lists them all", x->option, x->owner, what,
                    name);
}

/* Writes the near name with the requested suffix, if such a metric exists; else the near name alone. Both names have
 * equally many dots before the suffix. */
static void add_suffix(struct kp_host *host, const char *nearest, const char *name, char full[NAME_MAX_LEN])
{
    struct kp_metric_props props;
    const char *suffix = name + strcspn(name, ".");
    for (const char *dot = nearest; *suffix && (dot = strchr(dot, '.')); dot++)
        suffix += 1 + strcspn(suffix + 1, ".");
    snprintf(full, NAME_MAX_LEN, "%s%s", nearest, suffix);
    if (kp_tables_metric(host, full, &props))
        snprintf(full, NAME_MAX_LEN, "%s", nearest);
}

static size_t common_start(const char *a, const char *b)
{
    size_t n = 0;
    while (a[n] && a[n] == b[n])
        n++;
    return n;
}

/* Returns the nearest suffix of the list, else the first of those with the longest common start: ".average" is far from
 * ".avg". NULL if none is similar. */
static const char *near_suffix(const char *suffix, const char *const *list)
{
    enum { LEAST_COMMON = 3 }; /* the dot and two letters */
    const char *nearest = kp_nearest(suffix, list);
    size_t most = LEAST_COMMON - 1;
    for (size_t i = 0; !nearest && list[i]; i++)
        most = common_start(suffix, list[i]) > most ? common_start(suffix, list[i]) : most;
    for (size_t i = 0; !nearest && list[i] && most >= LEAST_COMMON; i++)
        if (common_start(suffix, list[i]) == most)
            nearest = list[i];
    return nearest;
}

/* Writes the base name with the nearest of its suffixes; "" if none is near. 0 or -ENOMEM. */
static int near_full_name(struct kp_host *host, const char *base, const char *suffix, char full[NAME_MAX_LEN])
{
    struct kp_metric_props props;
    struct words w = {.list = NULL};
    const char *const *suffixes;
    size_t n = 0;
    int rc = 0;
    *full = '\0';
    if (kp_tables_metric(host, base, &props) || kp_tables_suffixes(host, props.type, base, &suffixes, &n))
        return 0;
    for (size_t i = 0; !rc && i < n; i++)
        rc = add_word(&w, suffixes[i]);
    const char *nearest = !rc && w.n ? near_suffix(suffix, w.list) : NULL;
    if (nearest)
        snprintf(full, NAME_MAX_LEN, "%s%s", base, nearest);
    free(w.list);
    return rc;
}

/* Reports that the chip's `host` has the metric, but not with the suffix of `name`. */
static int refuse_suffix(struct kp_planner *x, struct kp_host *host, const char *what, const char *name,
                         const char *base, const char *prefix)
{
    char full[NAME_MAX_LEN];
    int rc = near_full_name(host, base, name + strlen(base), full);
    if (rc || *full)
        return rc ? rc : refuse(x, what, name, full, prefix);
    return kp_error(x->err, "%s: %s has no %s \"%s\"; %s does not have that suffix", x->option, x->owner, what, name,
                    base);
}

/* Reports that the chip's `host` lacks `name`; `w` has the valid names without their suffixes. */
static int refuse_name(struct kp_planner *x, struct kp_host *host, const char *what, const char *name,
                       const struct words *w, const char *prefix)
{
    char full[NAME_MAX_LEN], *base = strndup(name, strcspn(name, "."));
    if (!base)
        return -ENOMEM;
    const char *nearest = w->n ? kp_nearest(base, w->list) : NULL;
    if (!nearest && w->n)
        nearest = kp_nearest(name, w->list);
    if (nearest)
        add_suffix(host, nearest, name, full);
    int rc = nearest && !strcmp(nearest, base) && strcmp(base, name)
                 ? refuse_suffix(x, host, what, name, base, prefix)
                 : refuse(x, what, name, nearest ? full : NULL, prefix);
    free(base);
    return rc;
}

static int add_all_base_names(struct words *w, struct kp_host *h)
{
    int rc = 0;
    for (int type = 0; !rc && type < KP_METRIC_TYPES; type++)
        rc = add_base_names(w, h, (enum kp_metric_type)type);
    return rc;
}

static int unknown_metric(struct kp_planner *x, const char *name)
{
    struct words w = {.list = NULL};
    bool told = x->n_unknown < KP_PLAN_TELLS; /* a long list does not search all names of the chip for each item */
    int rc = told ? add_other_names(x, &w) : 0;
    if (!rc && told)
        rc = add_all_base_names(&w, x->host);
    if (!rc)
        rc = refuse_name(x, x->host, "metric", name, &w, "");
    free(w.list);
    return rc;
}

/* ---- the kinds of items ---- */

/* Lists a base name with its usual suffixes. */
static int list_base(struct kp_planner *x, const char *base, enum kp_metric_type type)
{
    char full[NAME_MAX_LEN];
    int rc = 0;
    for (const char *const *suffix = kp_plan_default_suffixes(type); *suffix && !rc; suffix++) {
        bool had;
        snprintf(full, sizeof(full), "%s%s", base, *suffix);
        rc = kp_plan_want(x, full, KP_UNIT_OF_CHIP, false, &had);
    }
    return rc;
}

/* Recognises a base name by its possible suffixes: names of some units contain dots. */
static bool is_base(struct kp_host *host, const char *name, enum kp_metric_type type)
{
    struct kp_metric_props props;
    char full[NAME_MAX_LEN];
    snprintf(full, sizeof(full), "%s%s", name, *kp_plan_default_suffixes(type));
    return !kp_tables_metric(host, full, &props);
}

static bool is_other(const char *name)
{
    return kp_launch_is_metric(name) || kp_derived_find(name) || kp_providers_is_metric(name);
}

static int list_name(struct kp_planner *x, const char *name)
{
    struct kp_metric_props props;
    bool had;
    if (is_other(name))
        return kp_plan_want(x, name, KP_UNIT_OF_CHIP, true, &had);
    if (kp_tables_metric(x->host, name, &props))
        return unknown_metric(x, name);
    if (is_base(x->host, name, props.type))
        return list_base(x, name, props.type);
    return kp_plan_want(x, name, KP_UNIT_OF_CHIP, false, &had);
}

/* Adds the suffixes of a type: all its base names have the same. Their texts are in `a`. */
static int add_suffixes(struct words *w, struct kp_arena *a, struct kp_host *h, enum kp_metric_type type,
                        const char *base)
{
    const char *const *suffixes;
    size_t n;
    int rc = 0;
    if (kp_tables_suffixes(h, type, base, &suffixes, &n))
        return 0;
    for (size_t i = 0; !rc && i < n; i++) {
        const char *copy = kp_arena_text(a, suffixes[i], strlen(suffixes[i]));
        rc = copy ? add_word(w, copy) : -ENOMEM;
    }
    return rc;
}

/* Lists the full names of a base name that match. */
static int list_full_names(struct kp_planner *x, const char *base, const struct words *suffixes,
                           const struct kp_pattern *pattern, size_t *matches)
{
    int rc = 0;
    for (size_t i = 0; !rc && i < suffixes->n; i++) {
        char full[NAME_MAX_LEN];
        bool had = false;
        snprintf(full, sizeof(full), "%s%s", base, suffixes->list[i]);
        if (kp_pattern_match(pattern, full))
            rc = kp_plan_want(x, full, KP_UNIT_OF_CHIP, false, &had);
        *matches += had;
    }
    return rc;
}

/* Lists what matches of the chip's metrics of a type. A base name that does stands for its usual suffixes. */
static int list_type(struct kp_planner *x, enum kp_metric_type type, const struct kp_pattern *pattern, size_t *matches)
{
    struct words w = {.list = NULL}, suffixes = {.list = NULL};
    struct kp_arena texts = {.blocks = NULL};
    int rc = add_base_names(&w, x->host, type);
    if (!rc && w.n)
        rc = add_suffixes(&suffixes, &texts, x->host, type, w.list[0]);
    for (size_t i = 0; !rc && i < w.n; i++)
        rc = kp_pattern_match(pattern, w.list[i]) && ++*matches
                 ? list_base(x, w.list[i], type)
                 : list_full_names(x, w.list[i], &suffixes, pattern, matches);
    kp_arena_free(&texts);
    free(suffixes.list);
    free(w.list);
    return rc;
}

static int list_matches(struct kp_planner *x, const struct kp_pattern *pattern, size_t *matches)
{
    struct words w = {.list = NULL};
    int rc = 0;
    for (int type = 0; !rc && type < KP_METRIC_TYPES; type++)
        rc = list_type(x, (enum kp_metric_type)type, pattern, matches);
    if (!rc)
        rc = add_other_names(x, &w);
    for (size_t i = 0; !rc && i < w.n; i++) {
        bool had = false;
        if (kp_pattern_match(pattern, w.list[i]))
            rc = kp_plan_want(x, w.list[i], KP_UNIT_OF_CHIP, false, &had);
        *matches += had;
    }
    free(w.list);
    return rc;
}

static int list_regex(struct kp_planner *x, const char *expression)
{
    struct kp_pattern *pattern = NULL;
    char *why = NULL, *text = NULL;
    size_t matches = 0;
    int rc = asprintf(&text, KP_REGEX "%s", expression) < 0 ? -ENOMEM : kp_pattern_new(text, &pattern, &why);
    if (rc == -EINVAL)
        rc = kp_error(x->err, "%s: %s", x->option, why);
    if (!rc)
        rc = list_matches(x, pattern, &matches);
    if (!rc && kp_pattern_gave_up(pattern))
        rc =
            kp_error(x->err, "%s: it takes too long to match \"%s\" with the metrics of %s", x->option, text, x->owner);
    if (!rc && !matches)
        rc = kp_error(x->err, "%s: no metric of %s matches \"%s\"", x->option, x->owner, text);
    kp_pattern_free(pattern);
    free(text);
    free(why);
    return rc;
}

static int list_breakdown(struct kp_planner *x, const char *name)
{
    bool had = false;
    struct words w = {.list = NULL};
    int rc = kp_plan_want_breakdown(x, name, &had);
    if (rc || had)
        return rc;
    char *base = strndup(name, strcspn(name, "."));
    rc = base ? add_base_names(&w, x->host, KP_METRIC_THROUGHPUT) : -ENOMEM;
    const char *nearest = !rc && w.n ? kp_nearest(base, w.list) : NULL;
    if (nearest && !strcmp(nearest, base))
        rc = kp_error(
            x->err,
            "%s: %s cannot break down \"%s\": either its suffix is not a throughput's, or libnvperf_host.so is "
            "not next to libcupti",
            x->option, x->owner, name);
    else if (!rc)
        rc = refuse(x, "throughput", name, nearest, KP_BREAKDOWN);
    free(w.list);
    free(base);
    return rc;
}

struct group_search {
    struct kp_planner *x;
    const char *wanted;
    bool found, any; /* such a group exists; the chip has one of its metrics */
};

static int list_rows(const struct kp_group *group, void *arg)
{
    struct group_search *g = arg;
    if (strcmp(group->name, g->wanted))
        return 0;
    g->found = true;
    return kp_plan_want_rows(g->x, group->section, group->first, group->end, &g->any);
}

/* The group name nearest to the requested one. */
struct nearest_group {
    const char *wanted;
    char nearest[NAME_MAX_LEN];
};

static int take_nearer(const struct kp_group *group, void *arg)
{
    struct nearest_group *g = arg;
    const char *const both[] = {group->name, *g->nearest ? g->nearest : NULL, NULL};
    const char *nearer = kp_nearest(g->wanted, both);
    if (nearer && nearer != g->nearest)
        snprintf(g->nearest, sizeof(g->nearest), "%s", nearer);
    return 0;
}

static int write_group(const struct kp_group *group, void *arg)
{
    FILE *f = arg;
    fprintf(f, "%s%s", ftell(f) > 0 ? ", " : "", group->name);
    return 0;
}

static int refuse_group(struct kp_planner *x, const char *name)
{
    struct nearest_group near = {.wanted = name};
    char *valid = NULL;
    size_t size;
    kp_groups_each(x->major, x->minor, take_nearer, &near);
    if (*near.nearest)
        return refuse(x, "group", name, near.nearest, KP_GROUP);
    FILE *f = open_memstream(&valid, &size);
    if (!f)
        return -ENOMEM;
    kp_groups_each_name(x->major, x->minor, write_group, f);
    int rc = kp_text_end(f, &valid)
                 ? -ENOMEM
                 : kp_error(x->err, "%s: %s has no group \"%s\"; valid: %s", x->option, x->owner, name, valid);
    free(valid);
    return rc;
}

static int list_group(struct kp_planner *x, const char *name)
{
    struct group_search g = {.x = x, .wanted = name};
    int rc = kp_groups_each(x->major, x->minor, list_rows, &g);
    if (rc || g.any)
        return rc;
    return g.found ? refuse(x, "metric of group", name, NULL, KP_GROUP) : refuse_group(x, name);
}

static int unknown_sampled(struct kp_planner *x, struct kp_host *host, const char *name)
{
    struct words w = {.list = NULL};
    int rc = add_all_base_names(&w, host);
    if (!rc)
        rc = refuse_name(x, host, "metric to sample", name, &w, KP_SAMPLED);
    free(w.list);
    return rc;
}

/* Lists a metric that is sampled in addition to the plan (see pm_list.h); here it only has to exist. The range
 * profiler's availability does not apply. */
static int list_sampled(struct kp_planner *x, const char *name)
{
    struct kp_metric_props props;
    struct kp_host *host;
    int rc = kp_tables_open(x->cupti, KP_TABLES_SAMPLED, x->chip, NULL, &host);
    if (rc)
        return rc;
    if (kp_tables_metric(host, name, &props))
        rc = unknown_sampled(x, host, name);
    else if (is_base(host, name, props.type))
        rc = kp_error(x->err, "%s: %s needs metrics with a suffix, \"%s%s\" has none; write %s%s%s", x->option,
                      x->owner, KP_SAMPLED, name, KP_SAMPLED, name, *kp_plan_default_suffixes(props.type));
    else
        kp_plan_note_listed(x, KP_SAMPLED, name);
    kp_tables_close(host);
    return rc;
}

/* Prefixes of items, and the functions for the rest. */
static const struct {
    const char *mark;
    int (*list)(struct kp_planner *x, const char *rest);
} kinds[] = {
    {"regex:", list_regex}, {KP_GROUP, list_group}, {KP_BREAKDOWN, list_breakdown}, {KP_SAMPLED, list_sampled}};

static int list_item(struct kp_planner *x, const char *item)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
        if (!strncmp(item, kinds[i].mark, strlen(kinds[i].mark)))
            return kinds[i].list(x, item + strlen(kinds[i].mark));
    return list_name(x, item);
}

/* Notes an item that the chip lacks, with the text in *err. */
static void leave_out_item(struct kp_planner *x, const char *item)
{
    if (x->n_unknown++ < KP_PLAN_TELLS)
        fprintf(x->unknown, "%s\t%s\n", item, *x->err ? *x->err : "");
    free(*x->err);
    *x->err = NULL;
}

int kp_plan_list(struct kp_planner *x, const char *metrics)
{
    char *copy = kp_strdup(metrics), *save = NULL;
    int rc = copy ? 0 : -ENOMEM;
    x->listing = true;
    char *item = copy ? strtok_r(copy, KP_BETWEEN_NAMES, &save) : NULL;
    for (; item && !rc; item = strtok_r(NULL, KP_BETWEEN_NAMES, &save)) {
        rc = list_item(x, item);
        if (rc == -EINVAL) {
            leave_out_item(x, item);
            rc = 0;
        } else {
            x->n_known++;
        }
    }
    x->listing = false;
    if (x->n_unknown > KP_PLAN_TELLS)
        fprintf(x->unknown, "\t%s: and %zu more that %s does not have\n", x->option, x->n_unknown - KP_PLAN_TELLS,
                x->owner);
    free(copy);
    return rc;
}
