#include "report/pages/ncu_columns.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "report/view/lines.h"
#include "report/view/shown.h"

enum what { ABSENT, UNIT, NUMBER, EMPTY, KINDS, TOTAL, LINKS, EXTRA };

static const struct column {
    enum what what;
    const char *name, *unit, *of, *cc;
} columns[] = {
#define KP_NCU_COLUMN(what, name, unit, of, cc) {what, name, unit, of, cc},
#include "report/pages/ncu_columns.def"
#undef KP_NCU_COLUMN
};

enum { COLUMNS = sizeof columns / sizeof *columns };

/* What the session was asked for. */
struct asked {
    struct kp_wanted wanted;
    struct kp_lines lines; /* of the user's list */
};

static bool has_section(const struct asked *a, const char *section)
{
    bool has = !strcmp(section, "*") && a->wanted.n;
    for (size_t i = 0; !has && i < a->wanted.n; i++)
        has = !strcmp(a->wanted.sections[i]->id, section);
    return has;
}

static bool is_listed(const struct asked *a, const char *name)
{
    for (size_t i = 0; i < a->lines.n; i++)
        if (!strcmp(a->lines.at[i].name, name))
            return true;
    return false;
}

static bool is_extra(const struct asked *a, const char *name)
{
    for (size_t i = 0; i < COLUMNS; i++)
        if (columns[i].what == EXTRA && !fnmatch(columns[i].name, name, 0))
            return !has_section(a, columns[i].of) && !is_listed(a, name);
    return false;
}

static void drop_extras(const struct asked *a, struct kp_result *r)
{
    size_t kept = 0;
    for (size_t i = 0; i < r->n_metrics; i++)
        if (!is_extra(a, r->metrics[i].name))
            r->metrics[kept++] = r->metrics[i];
    r->n_metrics = kept;
}

static void *metric_of(const struct kp_result *r, const char *name)
{
    return (void *)kp_result_find(r, name);
}

/* Makes the value what ncu has. */
static void reword(const struct kp_result *r, struct kp_metric *m, const struct column *c)
{
    const struct kp_metric *of = metric_of(r, c->of);
    m->unit = (char *)c->unit;
    if (c->what == NUMBER && m->kind == KP_VALUE_TEXT) {
        m->kind = KP_VALUE_COUNT;
        m->count = strtoull(m->text, NULL, 10);
        m->text = NULL;
    } else if (c->what == EMPTY && m->kind == KP_VALUE_TEXT) {
        m->text = "";
    } else if (c->what == KINDS && m->kind == KP_VALUE_COUNT) {
        m->count = 0;
    } else if (m->kind == KP_VALUE_NA && of && of->kind == KP_VALUE_COUNT &&
               (c->what == TOTAL || (c->what == LINKS && !of->count))) {
        m->kind = KP_VALUE_COUNT;
        m->count = of->count;
        m->text = NULL;
    }
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct kp_metric *)a)->name, ((const struct kp_metric *)b)->name);
}

static int add_absent(const struct asked *a, struct kp_result *r)
{
    struct kp_metric *all = realloc(r->metrics, (r->n_metrics + COLUMNS) * sizeof *all);
    size_t n = r->n_metrics;
    if (!all)
        return -ENOMEM;
    r->metrics = all;
    for (size_t i = 0; i < COLUMNS; i++) {
        const struct column *c = &columns[i];
        bool applies =
            (!*c->of || has_section(a, c->of)) && kp_cc_matches(c->cc, r->launch.cc_major, r->launch.cc_minor);
        if (c->what == ABSENT && applies && !metric_of(r, c->name))
            all[n++] = (struct kp_metric){.name = (char *)c->name,
                                          .unit = (char *)c->unit,
                                          .reason = KP_REASON_NOT_COLLECTED,
                                          .kind = KP_VALUE_NA};
    }
    r->n_metrics = n;
    qsort(all, n, sizeof *all, by_name);
    return 0;
}

int kp_page_ncu_columns(const struct kp_session *s, struct kp_result *r)
{
    struct asked a = {.lines = {0}};
    struct kp_metric *m;
    int rc = kp_find_wanted(kp_or_empty(s->set), kp_or_empty(s->sections), kp_or_empty(s->metrics), &a.wanted);
    if (!rc)
        rc = kp_lines_of_list(kp_or_empty(s->metrics), &(struct kp_view){.session = s, .result = r}, &a.lines);
    if (!rc) {
        drop_extras(&a, r);
        for (size_t i = 0; i < COLUMNS; i++)
            if (columns[i].what != ABSENT && columns[i].what != EXTRA && (m = metric_of(r, columns[i].name)))
                reword(r, m, &columns[i]);
        rc = add_absent(&a, r);
    }
    kp_lines_free(&a.lines);
    free(a.wanted.sections);
    return rc;
}
