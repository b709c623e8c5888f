#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/pages/page_body.h"
#include "base/text.h"
#include "report/model/launch_names.h"

enum { NAME_WIDTH = 50, CHOSEN_WIDTH = 15 };

/* The columns that the page has of itself: rows of the section of one pass. Facts: a trace of a training step in this
 * form, with utilisations as fractions. */
static const struct own_column {
    const char *heading, *label;
    double divisor;
    int width, decimals;
} own_columns[] = {
    {"Duration (ns)", "Duration", 1, 13, 0},
    {"Tensor", "Tensor Pipe Utilization", 100, 6, 2},
    {"DRAM", "DRAM Throughput", 100, 6, 2},
};

enum { OWN_COLUMNS = sizeof own_columns / sizeof *own_columns };

/* --- values --- */

static const struct kp_metric *own_metric(const struct kp_result *r, const char *label)
{
    const struct kp_section *quick = kp_section_quick();
    const struct kp_metric *m = NULL;
    for (size_t i = 0; !m && i < quick->n_rows; i++)
        if (!strcmp(quick->rows[i].label, label))
            m = kp_result_find(r, quick->rows[i].metric);
    return m;
}

struct trace {
    const struct kp_page *page;
    struct kp_out out;
    struct kp_csv *to;  /* NULL: text */
    const char *chosen; /* metrics; "" when the columns are the page's own */
};

static void cell(struct trace *t, int width, const char *text)
{
    if (t->to)
        kp_csv_field(t->to, text);
    else
        kp_out_print(&t->out, " %*s", width, text);
}

static void own_cells(struct trace *t, const struct kp_result *r)
{
    char text[KP_NUMBER_MAX];
    double value;
    for (size_t i = 0; i < OWN_COLUMNS; i++) {
        const struct own_column *c = &own_columns[i];
        if (!kp_metric_number(own_metric(r, c->label), &value))
            snprintf(text, sizeof text, KP_NO_VALUE);
        else if (t->to)
            kp_number_cell(value / c->divisor, true, text);
        else
            snprintf(text, sizeof text, "%.*f", c->decimals, value / c->divisor);
        cell(t, c->width, text);
    }
}

static int chosen_cells(struct trace *t, const struct kp_result *r)
{
    char number[KP_NUMBER_MAX], unit[KP_UNIT_MAX];
    const char *cursor = t->chosen, *item;
    size_t len;
    while (kp_word_next(&cursor, &item, &len)) {
        char *name = strndup(item, len);
        if (!name)
            return -ENOMEM;
        const struct kp_metric *m = kp_result_find(r, name);
        bool as_data = t->to || !m || m->kind == KP_VALUE_NA;
        cell(t, CHOSEN_WIDTH, as_data ? kp_plain_value(m, number) : kp_format_metric(m, true, number, unit));
        free(name);
    }
    return 0;
}

/* What stands for a graph is no signature. A range that the kernel is named after has half of the column at most. */
static char *short_name(const struct kp_launch_info *l)
{
    const char *name = kp_launch_name(l);
    size_t range = kp_launch_range_length(l);
    char head[NAME_WIDTH / 2], *both = NULL;
    size_t used = kp_range_cut(name, range, sizeof head, head), rest = NAME_WIDTH - used;
    char *kernel = l->kind == KP_WORKLOAD_GRAPH ? strndup(name + range, rest) : kp_trace_name(name + range, rest);
    if (kernel && asprintf(&both, "%.*s%s", (int)used, head, kernel) < 0)
        both = NULL;
    free(kernel);
    return both;
}

static int write_launch(struct kp_result *r, void *arg)
{
    struct trace *t = arg;
    char *name = t->to ? NULL : short_name(&r->launch);
    if (t->to) {
        if (t->page->shared)
            kp_csv_process(t->to, t->page->session);
        kp_csv_formatted(t->to, "%" PRIu64, r->launch.id);
        kp_csv_field(t->to, kp_launch_name(&r->launch));
    } else if (kp_out_has(&t->out, name)) {
        kp_blank_controls(name, strlen(name)); /* a launch is one line */
        kp_out_print(&t->out, "%-*s|", NAME_WIDTH, name);
    }
    free(name);
    int rc = 0;
    if (*t->chosen)
        rc = chosen_cells(t, r);
    else
        own_cells(t, r);
    if (t->to)
        kp_csv_end_row(t->to);
    else
        kp_out_print(&t->out, "\n");
    return rc ? rc : t->to && ferror(t->to->to) ? -EIO : t->out.rc;
}

/* Names of metrics are too long to stand above columns: there they have numbers, and a line each before. */
static void chosen_headings(struct trace *t)
{
    const char *cursor = t->chosen, *item;
    char mark[16];
    size_t len;
    for (int i = 1; kp_word_next(&cursor, &item, &len); i++)
        kp_out_print(&t->out, "[%d] %.*s\n", i, (int)len, item);
    kp_out_print(&t->out, "%-*s ", NAME_WIDTH, "Kernel");
    cursor = t->chosen;
    for (int i = 1; kp_word_next(&cursor, &item, &len); i++) {
        snprintf(mark, sizeof mark, "[%d]", i);
        cell(t, CHOSEN_WIDTH, mark);
    }
}

static void own_headings(struct trace *t)
{
    kp_out_print(&t->out, "%-*s ", NAME_WIDTH, "Kernel");
    for (size_t i = 0; i < OWN_COLUMNS; i++)
        cell(t, own_columns[i].width, own_columns[i].heading);
}

static const char *chosen_columns(const struct kp_page *p)
{
    const char *list = p->display->trace_columns, *cursor = list, *item;
    size_t len;
    return list && kp_word_next(&cursor, &item, &len) ? list : "";
}

int kp_trace_text(const struct kp_page *p)
{
    struct trace t = {.page = p, .out = {.sink = p->out, .display = p->display}, .chosen = chosen_columns(p)};
    if (*t.chosen)
        chosen_headings(&t);
    else
        own_headings(&t);
    kp_out_print(&t.out, "\n");
    int rc = kp_page_each(p, write_launch, &t);
    kp_out_print(&t.out, "\n");
    return rc ? rc : t.out.rc;
}

int kp_trace_csv(const struct kp_page *pages, size_t n, struct kp_csv *to)
{
    struct trace t = {.to = to, .chosen = chosen_columns(pages)};
    const char *cursor = t.chosen, *item;
    size_t len;
    int rc = 0;
    if (pages->shared)
        kp_csv_process_headings(to);
    kp_csv_fields(to, (const char *const[]){"ID", "Kernel Name"}, 2);
    for (size_t i = 0; !*t.chosen && i < OWN_COLUMNS; i++)
        kp_csv_field(to, own_columns[i].heading);
    while (kp_word_next(&cursor, &item, &len)) {
        char *name = strndup(item, len);
        if (!name)
            return -ENOMEM;
        kp_csv_field(to, name);
        free(name);
    }
    kp_csv_end_row(to);
    for (size_t i = 0; !rc && i < n; i++) {
        t.page = &pages[i];
        rc = kp_page_each(t.page, write_launch, &t);
    }
    return rc;
}
