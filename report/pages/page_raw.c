/* The page raw: every metric of each launch, under its own name, in its base unit; or the chosen ones. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/room.h"
#include "base/text.h"
#include "report/pages/ncu_columns.h"
#include "report/pages/page_body.h"
#include "report/view/narrow.h"

/* What is done with the chosen metrics of each launch. */
struct narrowed {
    const struct kp_page *page;
    struct kp_result *devices; /* the attributes of the session's devices, where all metrics are shown */
    bool as_ncu;               /* all metrics are shown, as ncu does */
    int (*fn)(struct kp_result *r, void *arg);
    void *arg;
};

/* Puts the attributes of the launch's device among its metrics. Both lists are sorted, and own no text of theirs here.
 */
static int add_attributes(const struct narrowed *n, struct kp_result *to)
{
    const struct kp_session *s = n->page->session;
    size_t d = 0, from = 0, at = 0, had = 0;
    while (d < s->n_devices && s->devices[d].ordinal != to->launch.device)
        d++;
    if (!n->devices || d == s->n_devices)
        return 0;
    const struct kp_result *more = &n->devices[d];
    struct kp_metric *all = calloc(to->n_metrics + more->n_metrics + 1, sizeof *all);
    if (!all)
        return -ENOMEM;
    while (had < to->n_metrics || from < more->n_metrics) {
        int order = had == to->n_metrics      ? 1
                    : from == more->n_metrics ? -1
                                              : strcmp(to->metrics[had].name, more->metrics[from].name);
        all[at++] = order <= 0 ? to->metrics[had] : more->metrics[from];
        had += order <= 0;
        from += order >= 0;
    }
    free(to->metrics);
    to->metrics = all;
    to->n_metrics = at;
    return 0;
}

static int narrow_launch(struct kp_result *r, void *arg)
{
    const struct narrowed *n = arg;
    struct kp_result chosen;
    int rc = kp_narrow(n->page->display, n->page->session, r, &chosen);
    if (rc)
        return rc;
    rc = add_attributes(n, &chosen);
    if (!rc && n->as_ncu)
        rc = kp_page_ncu_columns(n->page->session, &chosen);
    rc = rc ? rc : n->fn(&chosen, n->arg);
    free(chosen.metrics);
    return rc;
}

static int each_narrowed(const struct kp_page *p, int (*fn)(struct kp_result *r, void *arg), void *arg)
{
    const struct kp_session *s = p->session;
    bool whole = !p->display->choose, as_ncu = whole && p->display->face == KP_FACE_NCU;
    bool all = as_ncu || (whole && (*kp_or_empty(s->set) || *kp_or_empty(s->sections)));
    struct narrowed n = {p, NULL, as_ncu, fn, arg};
    int rc = 0;
    if (all && !(n.devices = calloc(s->n_devices + 1, sizeof *n.devices)))
        return -ENOMEM;
    for (size_t i = 0; !rc && all && i < s->n_devices; i++)
        rc = kp_session_read_attributes(&s->devices[i], &n.devices[i]);
    rc = rc ? rc : kp_page_each(p, narrow_launch, &n);
    for (size_t i = 0; all && i < s->n_devices; i++)
        kp_result_free(&n.devices[i]);
    free(n.devices);
    return rc;
}

static int write_raw(struct kp_result *r, void *arg)
{
    struct kp_writer *w = arg;
    struct kp_lines lines = {.note = r->launch.note};
    int rc = 0;
    for (size_t i = 0; !rc && i < r->n_metrics; i++)
        rc = kp_lines_add(&lines, &(struct kp_line){.kind = KP_ROW_HEADER,
                                                    .group = "",
                                                    .label = r->metrics[i].name,
                                                    .name = r->metrics[i].name,
                                                    .metric = &r->metrics[i]});
    if (!rc) {
        w->launch = &r->launch;
        kp_write_launch(w, false);
        kp_write_metrics(w, &lines);
        if (w->out.display->face != KP_FACE_NCU)
            kp_write_missing(w, &lines);
        kp_write_gap(w);
    }
    kp_lines_free(&lines);
    return rc ? rc : w->out.rc;
}

/* --- in rows, a field a metric: all metrics have to be known before the first launch is written --- */

struct names {
    struct name {
        char *name, *unit;
        bool mean; /* of a rotation, in some launch */
    } * at;        /* by name */
    size_t n;
};

static int insert_metric(struct names *n, size_t at, const struct kp_metric *m)
{
    if (!KP_ROOM(n->at, n->n))
        return -ENOMEM;
    struct name added = {kp_strdup(m->name), kp_strdup(m->unit), m->counted};
    if (!added.name || !added.unit) {
        free(added.name);
        free(added.unit);
        return -ENOMEM;
    }
    memmove(&n->at[at + 1], &n->at[at], (n->n - at) * sizeof *n->at);
    n->at[at] = added;
    n->n++;
    return 0;
}

/* Uses the unit of another launch if the metric has no value, and so no unit. */
static int note_known(struct name *known, const struct kp_metric *m)
{
    known->mean |= m->counted;
    if (*known->unit || !*m->unit)
        return 0;
    char *unit = kp_strdup(m->unit);
    if (!unit)
        return -ENOMEM;
    free(known->unit);
    known->unit = unit;
    return 0;
}

/* Merges two sorted lists, which are mostly the same. */
static int note_names(struct kp_result *r, void *arg)
{
    struct names *n = arg;
    int rc = 0;
    for (size_t i = 0, at = 0; !rc && i < r->n_metrics; i++) {
        while (at < n->n && strcmp(n->at[at].name, r->metrics[i].name) < 0)
            at++;
        if (at < n->n && !strcmp(n->at[at].name, r->metrics[i].name))
            rc = note_known(&n->at[at], &r->metrics[i]);
        else
            rc = insert_metric(n, at, &r->metrics[i]);
    }
    return rc;
}

static void free_names(struct names *names)
{
    for (size_t i = 0; i < names->n; i++) {
        free(names->at[i].name);
        free(names->at[i].unit);
    }
    free(names->at);
}

static int write_raw_session(const struct kp_page *p, struct kp_writer *w)
{
    struct kp_display base = *p->display;
    kp_page_enter(p, w);
    base.base_units = true;
    w->out.display = &base;
    int rc = each_narrowed(p, write_raw, w);
    w->out.display = p->display;
    return rc;
}

static int write_sessions(const struct kp_page *pages, size_t n, struct kp_writer *w, const struct names *names)
{
    const char **fields = calloc(2 * names->n + 1, sizeof *fields), **units = fields + names->n;
    bool *means = calloc(names->n + 1, sizeof *means);
    const struct kp_layout layout = {KP_START_LAUNCH, fields, names->n, units, .by_metric = true, .means = means};
    int rc = fields && means ? 0 : -ENOMEM;
    for (size_t i = 0; !rc && i < names->n; i++) {
        fields[i] = names->at[i].name;
        units[i] = names->at[i].unit;
        means[i] = names->at[i].mean;
    }
    if (!rc)
        kp_write_begin(w, &layout);
    for (size_t i = 0; !rc && i < n; i++)
        rc = write_raw_session(&pages[i], w);
    free(fields);
    free(means);
    return rc;
}

int kp_page_raw(const struct kp_page *pages, size_t n, struct kp_writer *w)
{
    struct names names = {.n = 0};
    int rc = 0;
    for (size_t i = 0; w->kind->rows && !rc && i < n; i++)
        rc = each_narrowed(&pages[i], note_names, &names);
    if (!rc)
        rc = write_sessions(pages, n, w, &names);
    free_names(&names);
    return rc;
}
