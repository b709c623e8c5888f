/* Finds the metrics of a stored launch that the user's own list names. */
#include <errno.h>
#include "base/nearest.h"

#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pattern.h"
#include "base/text.h"
#include "report/define/derive.h"
#include "report/define/groups.h"
#include "report/options/options.h"
#include "report/view/lines.h"
#include "report/view/listed.h"
#include "report/view/series.h"

static int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* Adds a metric of the launch under its own name; without a metric `name` is copied. */
static int add_metric(struct kp_lines *l, const char *name, const struct kp_result *r)
{
    const struct kp_metric *m = kp_result_find(r, name);
    char *own = NULL;
    if (tfind(name, &l->names, by_text))
        return 0;
    if (!m && !(own = strdup(name)))
        return -ENOMEM;
    name = m ? m->name : own;
    int rc = kp_lines_add(l, &(struct kp_line){KP_ROW_HEADER, "", name, name, m, own, NULL});
    return rc || tsearch(name, &l->names, by_text) ? rc : -ENOMEM;
}

static int add_matching(struct kp_lines *l, const char *expression, const struct kp_view *v)
{
    const struct kp_result *r = v->result;
    struct kp_pattern *pattern = NULL;
    char *err = NULL;
    int rc = kp_pattern_new(expression, &pattern, &err);
    for (size_t i = 0; !rc && i < r->n_metrics; i++)
        if (kp_pattern_match(pattern, r->metrics[i].name))
            rc = add_metric(l, r->metrics[i].name, r);
    kp_pattern_free(pattern);
    free(err);
    return rc == -EINVAL ? 0 : rc; /* already reported, when it was collected or by kp_listed_check */
}

/* Adds the metrics of `from` under their names, not their labels. */
static int add_lines(struct kp_lines *l, const struct kp_lines *from, const struct kp_view *v)
{
    int rc = 0;
    for (size_t i = 0; !rc && i < from->n; i++)
        rc = add_metric(l, from->at[i].name, v->result);
    return rc;
}

static size_t base_length(const char *name)
{
    const char *words = strstr(name, "__"); /* names of some units have dots in them */
    words = words ? words : name;
    return (size_t)(words - name) + strcspn(words, ".");
}

static int add_breakdown(struct kp_lines *l, const char *item, const struct kp_view *v)
{
    struct kp_lines constituents = {0};
    const char *metric = item + strlen(KP_BREAKDOWN);
    char *full = NULL;
    int rc = kp_lines_of_breakdown(metric, v, &constituents);
    if (!rc && !constituents.n && !metric[base_length(metric)]) {
        rc = asprintf(&full, "%s" KP_THROUGHPUT_SUFFIX, metric) < 0 ? -ENOMEM : 0;
        if (!rc)
            rc = kp_lines_of_breakdown(full, v, &constituents);
        free(full);
    }
    if (!rc)
        rc = add_lines(l, &constituents, v);
    kp_lines_free(&constituents);
    return rc;
}

struct group_lines {
    struct kp_lines *lines;
    const struct kp_view *view;
    const char *wanted;
};

static int add_rows(const struct kp_group *group, void *arg)
{
    const struct group_lines *g = arg;
    struct kp_lines rows = {0};
    if (strcmp(group->name, g->wanted))
        return 0;
    int rc = kp_lines_of_rows(group->section, group->first, group->end, g->view, false, &rows);
    if (!rc)
        rc = add_lines(g->lines, &rows, g->view);
    kp_lines_free(&rows);
    return rc;
}

static int add_group(struct kp_lines *l, const char *item, const struct kp_view *v)
{
    const struct kp_launch_info *info = &v->result->launch;
    struct group_lines g = {l, v, item + strlen(KP_GROUP)};
    return kp_groups_each(info->cc_major, info->cc_minor, add_rows, &g);
}

static int add_named(struct kp_lines *l, const char *name, const struct kp_view *v)
{
    const struct kp_result *r = v->result;
    size_t n = strlen(name);
    bool any = false, there = kp_result_find(r, name);
    int rc = 0;
    for (size_t i = 0; !rc && !there && i < r->n_metrics; i++)
        if (!strncmp(r->metrics[i].name, name, n) && r->metrics[i].name[n] && base_length(r->metrics[i].name) == n) {
            rc = add_metric(l, r->metrics[i].name, r);
            any = true;
        }
    return rc || any ? rc : add_metric(l, name, r);
}

/* Adds a line for an item that was not sampled, with the reason if known; sampled ones are drawn
 * (kp_view_series_of_list). A counter of the same name does not count. */
static int add_sampled(struct kp_lines *l, const char *item, const struct kp_view *v)
{
    const char *name = item + strlen(KP_SAMPLED);
    if (kp_result_find_series(v->result, name))
        return 0;
    const struct kp_metric *m = kp_result_find(v->result, name);
    return add_metric(l, m && m->kind == KP_VALUE_NA ? name : item, v->result);
}

static int add_listed(struct kp_lines *l, const char *item, const struct kp_view *v)
{
    static const struct {
        const char *mark;
        int (*add)(struct kp_lines *l, const char *item, const struct kp_view *v);
    } kinds[] = {
        {"regex:", add_matching}, {KP_BREAKDOWN, add_breakdown}, {KP_GROUP, add_group}, {KP_SAMPLED, add_sampled}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (!strncmp(item, kinds[i].mark, strlen(kinds[i].mark)))
            return kinds[i].add(l, item, v);
    return add_named(l, item, v);
}

int kp_lines_of_list(const char *list, const struct kp_view *v, struct kp_lines *out)
{
    char *names = kp_strdup(list), *save = NULL;
    int rc = names ? 0 : -ENOMEM;
    char *name = names ? strtok_r(names, KP_BETWEEN_NAMES, &save) : NULL;
    for (; !rc && name; name = strtok_r(NULL, KP_BETWEEN_NAMES, &save))
        rc = add_listed(out, name, v);
    free(names);
    return rc;
}

/* Returns the series of a list's item, or NULL. */
static const struct kp_series *sampled(const char *item, size_t len, const struct kp_result *r)
{
    size_t mark = strlen(KP_SAMPLED);
    for (size_t i = 0; len > mark && !strncmp(item, KP_SAMPLED, mark) && i < r->n_series; i++)
        if (strlen(r->series[i].name) == len - mark && !strncmp(r->series[i].name, item + mark, len - mark))
            return &r->series[i];
    return NULL;
}

static bool has_row(const struct kp_series_row *rows, size_t n, const struct kp_series *series)
{
    for (size_t i = 0; i < n; i++)
        if (rows[i].series == series)
            return true;
    return false;
}

int kp_view_series_of_list(const char *list, const struct kp_result *r, struct kp_series_row **out, size_t *n)
{
    const char *item;
    size_t len;
    *n = 0;
    *out = calloc(strlen(list) + 1, sizeof **out); /* an upper bound of the items */
    if (!*out)
        return -ENOMEM;
    while (kp_word_next(&list, &item, &len)) {
        const struct kp_series *series = sampled(item, len, r);
        if (series && !has_row(*out, *n, series)) /* draws a series named twice only once */
            (*out)[(*n)++] = (struct kp_series_row){series->name, series};
    }
    return 0;
}

/* --- items without metrics --- */

/* An item of the list. */
struct item {
    const char *text;
    bool found;
    char *near; /* the nearest name of the first launch; NULL = none */
};

struct check {
    const char *option;
    bool columns; /* of the page trace: full names only */
    const struct kp_session *session;
    struct item *items;
    size_t n;
    bool looked; /* near names were searched */
    const struct kp_section *const *sections;
    size_t n_sections;
    bool *had; /* by section of all: some launch has it */
    enum kp_missing missing;
};

/* The seen word that is nearest to a given word. */
struct nearest {
    const char *word;
    char *near;
};

static int see(struct nearest *n, const char *word, size_t len)
{
    char *copy = strndup(word, len);
    if (!copy)
        return -ENOMEM;
    const char *const both[] = {copy, n->near, NULL};
    if (kp_nearest(n->word, both) == copy) {
        free(n->near);
        n->near = copy;
    } else {
        free(copy);
    }
    return 0;
}

static int see_group(const struct kp_group *group, void *arg)
{
    return see(arg, group->name, strlen(group->name));
}

static int see_breakdowns(struct nearest *n, const struct kp_view *v)
{
    int rc = 0;
    bool whole = n->word[base_length(n->word)];
    for (size_t i = 0; !rc && i < v->session->n_devices; i++)
        for (const char *line = v->session->devices[i].breakdowns; !rc && line && *line;) {
            if (kp_is_device_attribute(line))
                break;
            rc = see(n, line, whole ? strcspn(line, "\t") : base_length(line));
            line += strcspn(line, "\n");
            line += *line == '\n';
        }
    return rc;
}

static int see_metrics(struct nearest *n, const struct kp_result *r, bool whole)
{
    int rc = 0;
    for (size_t i = 0; !rc && i < r->n_metrics; i++) {
        const char *name = r->metrics[i].name;
        rc = see(n, name, whole ? strlen(name) : base_length(name));
    }
    return rc;
}

static int see_series(struct nearest *n, const struct kp_result *r)
{
    int rc = 0;
    for (size_t i = 0; !rc && i < r->n_series; i++)
        rc = see(n, r->series[i].name, strlen(r->series[i].name));
    return rc;
}

static int look_near(struct item *item, const struct kp_view *v, bool column)
{
    const struct kp_launch_info *info = &v->result->launch;
    const char *mark = strchr(item->text, ':');
    struct nearest n = {mark ? mark + 1 : item->text, NULL};
    int rc = 0;
    if (column)
        rc = see_metrics(&n, v->result, true);
    else if (!strncmp(item->text, KP_GROUP, strlen(KP_GROUP)))
        rc = kp_groups_each(info->cc_major, info->cc_minor, see_group, &n);
    else if (!strncmp(item->text, KP_BREAKDOWN, strlen(KP_BREAKDOWN)))
        rc = see_breakdowns(&n, v);
    else if (!strncmp(item->text, KP_SAMPLED, strlen(KP_SAMPLED)))
        rc = see_series(&n, v->result);
    else if (!mark)
        rc = see_metrics(&n, v->result, n.word[base_length(n.word)]);
    item->near = n.near;
    return rc;
}

/* Looks for the item in the launch. 0 or -ENOMEM. */
static int look_for(struct item *item, const struct kp_view *v, bool column)
{
    struct kp_lines lines = {0};
    if (column) {
        item->found = kp_result_find(v->result, item->text);
        return 0;
    }
    int rc = add_listed(&lines, item->text, v);
    item->found = !rc && ((lines.n && lines.at[0].metric) || sampled(item->text, strlen(item->text), v->result));
    kp_lines_free(&lines);
    return rc;
}

/* Returns the note that the session has a chosen section, which is one of all. */
static bool *noted(const struct check *c, size_t chosen)
{
    size_t n;
    return &c->had[c->sections[chosen] - kp_sections(&n)];
}

static int check_launch(struct kp_result *r, void *arg)
{
    struct check *c = arg;
    struct kp_view v = {.session = c->session, .result = r};
    int rc = kp_derive_users(r);
    for (size_t i = 0; !rc && i < c->n; i++) {
        struct item *item = &c->items[i];
        if (item->found)
            continue;
        rc = look_for(item, &v, c->columns);
        if (!rc && !item->found && !c->looked)
            rc = look_near(item, &v, c->columns);
    }
    for (size_t i = 0; !rc && i < c->n_sections; i++)
        *noted(c, i) = *noted(c, i) || kp_shown_section_is_collected(c->sections[i], c->session, r);
    c->looked |= r->n_metrics > 0;
    return rc;
}

static bool lacks_section(const struct check *c)
{
    size_t i = 0;
    while (i < c->n_sections && *noted(c, i))
        i++;
    return i < c->n_sections;
}

/* Notes which of all sections the launch has. */
static int note_all(struct kp_result *r, void *arg)
{
    size_t n;
    const struct check *c = arg;
    const struct kp_section *all = kp_sections(&n);
    int rc = kp_derive_users(r);
    for (size_t i = 0; !rc && i < n; i++)
        c->had[i] = c->had[i] || kp_shown_section_is_collected(&all[i], c->session, r);
    return rc;
}

/* Writes which sections the session has instead. */
static void name_had(const struct check *c, FILE *f)
{
    size_t n, named = 0;
    const struct kp_section *all = kp_sections(&n);
    for (size_t i = 0; i < n; i++)
        if (c->had[i])
            fprintf(f, "%s%s", named++ ? ", " : "; it has ", all[i].id);
    fputs(named ? "\n" : "; the page raw shows what it has\n", f);
}

static void describe_sections(const struct check *c, FILE *f)
{
    size_t n = 0;
    for (size_t i = 0; i < c->n_sections; i++)
        if (!*noted(c, i))
            fprintf(f, "%s%s", n++ ? ", " : "", c->sections[i]->id);
    if (!n)
        return;
    fprintf(f, " %s not collected in this session", n > 1 ? "were" : "was");
    name_had(c, f);
}

static int describe(const struct check *c, FILE *f)
{
    for (size_t i = 0; i < c->n; i++) {
        const struct item *item = &c->items[i];
        struct kp_pattern *pattern = NULL;
        char *why = NULL;
        if (item->found)
            continue;
        int rc = kp_pattern_new(item->text, &pattern, &why);
        if (rc == -ENOMEM)
            return rc;
        const char *mark = item->near && !c->columns ? strchr(item->text, ':') : NULL;
        if (rc)
            fprintf(f, "%s: %s\n", c->option, why);
        else
            fprintf(f, "%s: the session has nothing of '%s'%s%.*s%s%s\n", c->option, item->text,
                    item->near ? "; did you mean '" : "", mark ? (int)(mark + 1 - item->text) : 0, item->text,
                    item->near ? item->near : "",
                    item->near                ? "'?"
                    : strchr(item->text, ':') ? ""
                                              : "; the page raw shows what it has");
        kp_pattern_free(pattern);
        free(why);
    }
    describe_sections(c, f);
    return 0;
}

static enum kp_missing count_missing(const struct check *c)
{
    bool item = false, section = false;
    for (size_t i = 0; i < c->n; i++)
        item |= c->items[i].found;
    for (size_t i = 0; i < c->n_sections; i++)
        section |= *noted(c, i);
    if (item || (!c->n && (section || !c->n_sections)))
        return KP_MISSING_NOT_ALL;
    return section || !c->sections ? KP_MISSING_LIST : KP_MISSING_ALL;
}

static int check_items(struct check *c, struct kp_store *store, char **out, char **err)
{
    size_t size;
    int rc = c->n || c->n_sections ? kp_store_each_result(store, check_launch, c, err) : 0;
    if (!rc && lacks_section(c)) /* only then others are searched, which needs seconds for thousands of launches */
        rc = kp_store_each_result(store, note_all, c, err);
    FILE *f = rc ? NULL : open_memstream(out, &size);
    if (!f)
        return rc ? rc : -ENOMEM;
    rc = c->looked ? describe(c, f) : 0; /* a session without launches lacks all of them */
    if (c->looked)
        c->missing = count_missing(c);
    return kp_text_end(f, out) && !rc ? -ENOMEM : rc;
}

static int check_list(struct check c, struct kp_store *store, const char *list, char **out, enum kp_missing *missing,
                      char **err)
{
    struct kp_session session;
    char *names = kp_strdup(list), *save = NULL;
    size_t n_all;
    kp_sections(&n_all);
    *out = NULL;
    int rc = kp_store_get_session(store, &session, err);
    if (rc) {
        free(names);
        return rc;
    }
    c.session = &session;
    c.items = calloc(strlen(list) + 1, sizeof *c.items);
    c.had = calloc(n_all + 1, sizeof *c.had);
    rc = names && c.items && c.had ? 0 : -ENOMEM;
    for (char *name = rc ? NULL : strtok_r(names, KP_BETWEEN_NAMES, &save); name;
         name = strtok_r(NULL, KP_BETWEEN_NAMES, &save))
        c.items[c.n++].text = name;
    if (!rc)
        rc = check_items(&c, store, out, err);
    *missing = c.missing;
    for (size_t i = 0; i < c.n; i++)
        free(c.items[i].near);
    free(c.items);
    free(c.had);
    free(names);
    kp_session_free(&session);
    return rc;
}

int kp_listed_check(struct kp_store *store, const char *list, const struct kp_section *const *sections, size_t n,
                    char **out, enum kp_missing *missing, char **err)
{
    struct check c = {.option = "--metrics", .sections = sections, .n_sections = n};
    return check_list(c, store, list, out, missing, err);
}

int kp_listed_check_columns(struct kp_store *store, const char *columns, char **out, char **err)
{
    struct check c = {.option = "--trace-columns", .columns = true};
    enum kp_missing missing; /* unused: a page without these columns is still printed */
    return check_list(c, store, columns, out, &missing, err);
}
