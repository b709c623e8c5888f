/* The page raw: every metric of each launch, under its own name, in its base unit. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/pages/page_body.h"
#include "report/write/drawings.h"
#include "report/write/launch.h"

/* --- text --- */

static int print_launch(struct kp_result *r, void *arg)
{
    const struct kp_page *p = arg;
    struct kp_display base = *p->display;
    base.base_units = true;
    struct kp_out o = {.sink = p->out, .display = &base};
    struct kp_lines lines = {.note = r->launch.note};
    int rc = 0;
    for (size_t i = 0; !rc && i < r->n_metrics; i++)
        rc = kp_lines_add(&lines, &(struct kp_line){.kind = KP_ROW_HEADER,
                                                    .group = "",
                                                    .label = r->metrics[i].name,
                                                    .name = r->metrics[i].name,
                                                    .metric = &r->metrics[i]});
    if (!rc) {
        kp_launch_head(&o, &r->launch, false);
        if (lines.n)
            kp_table_print(&o, &lines);
        kp_table_print_missing(&o, &lines);
        kp_out_print(&o, "\n");
    }
    kp_lines_free(&lines);
    return rc ? rc : o.rc;
}

int kp_raw_text(const struct kp_page *p)
{
    return kp_page_each(p, print_launch, (void *)p);
}

/* --- CSV: a column a metric, so all of them have to be known before the first launch is written --- */

struct names {
    struct name {
        char *name, *unit;
    } * at; /* by name */
    size_t n, capacity;
    const struct kp_page *page; /* whose launches are written */
    struct kp_csv *to;
};

static int insert(struct names *n, size_t at, const struct kp_metric *m)
{
    if (n->n == n->capacity) {
        size_t capacity = n->capacity ? 2 * n->capacity : 256;
        struct name *grown = realloc(n->at, capacity * sizeof *grown);
        if (!grown)
            return -ENOMEM;
        n->at = grown;
        n->capacity = capacity;
    }
    struct name added = {kp_strdup(m->name), kp_strdup(m->unit)};
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

/* What has no value has no unit either: that of another launch is taken. */
static int note_unit(struct name *known, const struct kp_metric *m)
{
    if (*known->unit || !*m->unit)
        return 0;
    char *unit = kp_strdup(m->unit);
    if (!unit)
        return -ENOMEM;
    free(known->unit);
    known->unit = unit;
    return 0;
}

/* Both lists are sorted, and mostly the same. */
static int note_names(struct kp_result *r, void *arg)
{
    struct names *n = arg;
    int rc = 0;
    for (size_t i = 0, at = 0; !rc && i < r->n_metrics; i++) {
        while (at < n->n && strcmp(n->at[at].name, r->metrics[i].name) < 0)
            at++;
        if (at < n->n && !strcmp(n->at[at].name, r->metrics[i].name))
            rc = note_unit(&n->at[at], &r->metrics[i]);
        else
            rc = insert(n, at, &r->metrics[i]);
    }
    return rc;
}

static int write_values(struct kp_result *r, void *arg)
{
    struct names *n = arg;
    char number[KP_NUMBER_MAX];
    int rc = kp_csv_launch(n->to, n->page->session, &r->launch, n->page->nvtx);
    for (size_t at = 0, i = 0; at < n->n; at++) {
        bool has = i < r->n_metrics && !strcmp(n->at[at].name, r->metrics[i].name);
        kp_csv_field(n->to, has ? kp_plain_value(&r->metrics[i], number) : "");
        i += has;
    }
    kp_csv_end_row(n->to);
    return rc ? rc : ferror(n->to->to) ? -EIO : 0;
}

static void write_heads(const struct names *n)
{
    kp_csv_launch_headings(n->to, n->page->nvtx);
    size_t others = n->to->fields;
    for (size_t i = 0; i < n->n; i++)
        kp_csv_field(n->to, n->at[i].name);
    kp_csv_end_row(n->to);
    for (size_t i = 0; i < others; i++)
        kp_csv_field(n->to, "");
    for (size_t i = 0; i < n->n; i++)
        kp_csv_field(n->to, n->at[i].unit);
    kp_csv_end_row(n->to);
}

int kp_raw_csv(const struct kp_page *pages, size_t n, struct kp_csv *to)
{
    struct names names = {.page = pages, .to = to};
    int rc = 0;
    for (size_t i = 0; !rc && i < n; i++)
        rc = kp_page_each(&pages[i], note_names, &names);
    if (!rc)
        write_heads(&names);
    for (size_t i = 0; !rc && i < n; i++) {
        names.page = &pages[i];
        rc = kp_page_each(&pages[i], write_values, &names);
    }
    for (size_t i = 0; i < names.n; i++) {
        free(names.at[i].name);
        free(names.at[i].unit);
    }
    free(names.at);
    return rc;
}
