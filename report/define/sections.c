#include "base/nearest.h"
#include "report/define/sections.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/pattern.h"
#include "base/text.h"

#define KP_SET(name)
#define KP_SECTION(id, display, order, sets, cc, passes) static const struct kp_row rows_##id[] = {
#define KP_ROW(label, metric, unit, cc, source)                                                                        \
    {label, metric, unit, cc, KP_SRC_##source, KP_ROW_HEADER, KP_BODY_NONE, ""},
#define KP_EXTRA(label, metric, unit, cc, source)                                                                      \
    {label, metric, unit, cc, KP_SRC_##source, KP_ROW_EXTRA, KP_BODY_NONE, ""},
#define KP_BODY(kind, title, above) {title, "", "", "", KP_SRC_LAUNCH, KP_ROW_BODY, KP_BODY_##kind, above},
#define KP_ITEM(group, label, metric, unit, cc, source)                                                                \
    {label, metric, unit, cc, KP_SRC_##source, KP_ROW_ITEM, KP_BODY_NONE, group},
#define KP_RATE(kind, group, label, metric, unit, cc, source)                                                          \
    {label, metric, unit, cc, KP_SRC_##source, KP_ROW_##kind, KP_BODY_NONE, group},
#define KP_SECTION_END(id)                                                                                             \
    }                                                                                                                  \
    ;
#include "report/define/sections.def"

static const struct kp_section sections[] = {
#define KP_SET(name)
#define KP_SECTION(id, display, order, sets, cc, passes)                                                               \
    {#id, display, order, sets, cc, rows_##id, sizeof rows_##id / sizeof *rows_##id, KP_PASSES_##passes},
#define KP_ROW(label, metric, unit, cc, source)
#define KP_EXTRA(label, metric, unit, cc, source)
#define KP_BODY(kind, title, above)
#define KP_ITEM(group, label, metric, unit, cc, source)
#define KP_RATE(kind, group, label, metric, unit, cc, source)
#define KP_SECTION_END(id)
#include "report/define/sections.def"
};

enum { N_SECTIONS = sizeof sections / sizeof *sections };

static const char *const set_names[] = {
#define KP_SET(name) #name,
#define KP_SECTION(id, display, order, sets, cc, passes)
#define KP_ROW(label, metric, unit, cc, source)
#define KP_EXTRA(label, metric, unit, cc, source)
#define KP_BODY(kind, title, above)
#define KP_ITEM(group, label, metric, unit, cc, source)
#define KP_RATE(kind, group, label, metric, unit, cc, source)
#define KP_SECTION_END(id)
#include "report/define/sections.def"
    NULL};

/* The present sections: the table, until section files add to it. Replaced arrays stay: a reader may hold them. */
static struct {
    struct kp_arena arena;
    const struct kp_section *sections;
    size_t n;
    const char *const *sets;
} all = {.sections = sections, .n = N_SECTIONS, .sets = set_names};

bool kp_row_required(const struct kp_row *row)
{
    return row->kind == KP_ROW_HEADER;
}

const char *kp_row_unit(const struct kp_row *row)
{
    return strncmp(row->unit, KP_UNIT_DRAWN, strlen(KP_UNIT_DRAWN)) ? row->unit : "";
}

size_t kp_section_body_end(const struct kp_section *s, size_t from)
{
    while (from < s->n_rows && s->rows[from].kind != KP_ROW_BODY)
        from++;
    return from;
}

const struct kp_section *kp_sections(size_t *n)
{
    *n = all.n;
    return all.sections;
}

const struct kp_section *kp_sections_builtin(size_t *n)
{
    *n = N_SECTIONS;
    return sections;
}

static const struct kp_section *find_in(const struct kp_section *list, size_t n, const char *id)
{
    for (size_t i = 0; i < n; i++)
        if (!strcmp(list[i].id, id))
            return &list[i];
    return NULL;
}

const struct kp_section *kp_section_find(const char *id)
{
    return find_in(all.sections, all.n, id);
}

const char *const *kp_set_names(void)
{
    return all.sets;
}

const char *kp_set_find(const char *name)
{
    const char *const *set = all.sets;
    while (*set && strcmp(*set, name))
        set++;
    return *set;
}

/* Inserts `s` into the list of *n by its order, after removing one of its identifier. */
static void insert(struct kp_section *list, size_t *n, const struct kp_section *s)
{
    const struct kp_section *same = find_in(list, *n, s->id);
    size_t at = same ? (size_t)(same - list) : *n;
    if (!same)
        ++*n;
    for (; at && list[at - 1].order > s->order; at--)
        list[at] = list[at - 1];
    for (; at + 1 < *n && list[at + 1].order < s->order; at++)
        list[at] = list[at + 1];
    list[at] = *s;
}

static bool is_name(const char *const *list, const char *name, size_t len)
{
    while (*list && (strncmp(*list, name, len) || (*list)[len]))
        list++;
    return *list;
}

/* Joins the names of the sets with those of the added sections; NULL without memory. */
static const char *const *extended_sets(const struct kp_section *added, size_t n)
{
    size_t most = 1, used = 0, len;
    const char *cursor, *item;
    for (size_t i = 0; all.sets[i]; i++)
        most++;
    for (size_t i = 0; i < n; i++)
        for (cursor = added[i].sets; kp_list_next(&cursor, &item, &len);)
            most++;
    const char **names = kp_arena_alloc(&all.arena, most * sizeof *names);
    if (!names)
        return NULL;
    for (; all.sets[used]; used++)
        names[used] = all.sets[used];
    for (size_t i = 0; i < n; i++)
        for (cursor = added[i].sets; kp_list_next(&cursor, &item, &len);)
            if (!is_name(names, item, len) && !(names[used++] = kp_arena_text(&all.arena, item, len)))
                return NULL;
    return names;
}

int kp_sections_add(const struct kp_section *added, size_t n)
{
    struct kp_section *list = kp_arena_alloc(&all.arena, (all.n + n) * sizeof *list);
    const char *const *sets = extended_sets(added, n);
    size_t used = all.n;
    if (!list || !sets)
        return -ENOMEM;
    memcpy(list, all.sections, all.n * sizeof *list);
    for (size_t i = 0; i < n; i++)
        insert(list, &used, &added[i]);
    all.sections = list;
    all.n = used;
    all.sets = sets;
    return 0;
}

bool kp_section_in_set(const struct kp_section *s, const char *set)
{
    const char *cursor = s->sets, *item;
    size_t len;
    while (kp_list_next(&cursor, &item, &len))
        if (strlen(set) == len && !strncmp(item, set, len))
            return true;
    return false;
}

bool kp_sections_one_pass(const struct kp_section *const *selected, size_t n, const char *metrics)
{
    const char *item;
    size_t len;
    if (!n || kp_list_next(&metrics, &item, &len))
        return false;
    for (size_t i = 0; i < n; i++)
        if (selected[i]->passes != KP_PASSES_ONE)
            return false;
    return true;
}

const struct kp_section *kp_section_quick(void)
{
    const struct kp_section *s = all.sections;
    while (s->passes != KP_PASSES_ONE) /* ends: the table has one (tested), and a file keeps it */
        s++;
    return s;
}

bool kp_cc_matches(const char *cc, int major, int minor)
{
    long have = 10L * major + minor;
    const char *item;
    size_t len;
    if (!*cc)
        return true;
    while (kp_list_next(&cc, &item, &len)) {
        char *end;
        long low = strtol(item, &end, 10), high = low;
        if (*end == '-')
            high = end + 1 < item + len ? strtol(end + 1, NULL, 10) : have;
        if (low <= have && have <= high)
            return true;
    }
    return false;
}

static int select_set(const char *set, bool *wanted, char **err)
{
    if (!is_name(all.sets, set, strlen(set)))
        return kp_error_choice(err, "unknown set", set, all.sets);
    for (size_t i = 0; i < all.n; i++)
        wanted[i] |= kp_section_in_set(&all.sections[i], set);
    return 0;
}

/* Reports that `expr` matches nothing. Names the identifiers that it matches a part of, else the nearest one. */
static int refuse_regex(const char *expr, char **err)
{
    const char **ids = calloc(all.n + 1, sizeof *ids), *text = expr + strlen(KP_REGEX);
    struct kp_pattern *pattern = NULL;
    char *parts = NULL;
    size_t size;
    FILE *f = ids ? open_memstream(&parts, &size) : NULL;
    int rc = f ? kp_pattern_new(expr, &pattern, err) : -ENOMEM;
    for (size_t i = 0; !rc && i < all.n; i++) {
        ids[i] = all.sections[i].id;
        if (kp_pattern_match(pattern, ids[i]))
            fprintf(f, "%s%s", ftell(f) > 0 ? ", " : "", ids[i]);
    }
    if (f && kp_text_end(f, &parts))
        rc = rc ? rc : -ENOMEM;
    const char *near = rc ? NULL : kp_nearest(text, ids);
    if (!rc && *parts)
        rc =
            kp_error(err, "no section's whole identifier matches '%s'; 'regex:.*(%s).*' matches %s", expr, text, parts);
    else if (!rc)
        rc = kp_error(err, "no section matches '%s'%s%s%s", expr, near ? "; did you mean '" : "", near ? near : "",
                      near ? "'?" : "");
    kp_pattern_free(pattern);
    free(parts);
    free(ids);
    return rc;
}

/* Selects sections by `expr`, which must match an identifier in full. */
static int select_regex(const char *expr, bool *wanted, char **err)
{
    struct kp_pattern *pattern = NULL;
    bool any = false;
    int rc = kp_pattern_whole(expr + strlen(KP_REGEX), &pattern, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < all.n; i++) {
        if (kp_pattern_match(pattern, all.sections[i].id))
            any = wanted[i] = true;
    }
    kp_pattern_free(pattern);
    return any ? 0 : refuse_regex(expr, err);
}

static int select_item(const char *word, bool *wanted, char **err)
{
    if (!strncmp(word, KP_REGEX, strlen(KP_REGEX)))
        return select_regex(word, wanted, err);
    const struct kp_section *s = kp_section_find(word);
    if (s) {
        wanted[s - all.sections] = true;
        return 0;
    }
    const char **ids = calloc(all.n + 1, sizeof *ids);
    if (!ids)
        return -ENOMEM;
    for (size_t i = 0; i < all.n; i++)
        ids[i] = all.sections[i].id;
    int rc = kp_error_choice(err, "unknown section", word, ids);
    free(ids);
    return rc;
}

static int select_list(const char *list, bool *wanted, char **err)
{
    const char *item;
    size_t len;
    int rc = 0;
    while (!rc && kp_list_next(&list, &item, &len)) {
        char *word = strndup(item, len);
        rc = word ? select_item(word, wanted, err) : -ENOMEM;
        free(word);
    }
    return rc;
}

int kp_sections_select(const char *set, const char *section_list, const struct kp_section ***out, size_t *n, char **err)
{
    *out = NULL;
    *n = 0;
    *err = NULL;
    bool *wanted = calloc(all.n, sizeof *wanted);
    const struct kp_section **chosen = malloc(all.n * sizeof *chosen);
    int rc = wanted && chosen ? 0 : -ENOMEM;
    if (!rc && *set)
        rc = select_set(set, wanted, err);
    if (!rc)
        rc = select_list(section_list, wanted, err);
    for (size_t i = 0; !rc && i < all.n; i++)
        if (wanted[i])
            chosen[(*n)++] = &all.sections[i];
    if (rc)
        free(chosen);
    else
        *out = chosen;
    free(wanted);
    return rc;
}
