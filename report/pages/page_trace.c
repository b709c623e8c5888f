/* The page trace: a row for each launch, in launch order. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/room.h"
#include "base/text.h"
#include "base/width.h"
#include "report/define/units.h"
#include "report/model/launch_names.h"
#include "report/model/short_names.h"
#include "report/pages/page_body.h"

enum {
    CHOSEN_WIDTH = 15,
    NAME_LEAST = 20,
    NAME_BESIDE_RANGES = 24, /* minimum for names if there is a column of ranges */
    RANGE_WIDTH = 20,        /* minimum for that column; it gets what names leave */
};

/* The page's own columns: rows of the section of one pass. Facts: a trace of a training step in this form; its
 * utilisations are fractions, ours have the unit of all other pages. */
static const struct own_column {
    const char *heading, *label;
    int width, decimals;
} own_columns[] = {
    {"Duration (ns)", "Duration", 13, 0},
    {"Tensor (%)", "Tensor Pipe Utilization", 10, 1},
    {"DRAM (%)", "DRAM Throughput", 8, 1},
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
    struct kp_writer *to;
    const char *chosen;             /* metrics; "" when the columns are the page's own */
    char **names;                   /* of them; owned */
    struct kp_column *columns;      /* after the kernel's column; owned, like those below */
    size_t n;                       /* including the kernel's, without that of ranges, which comes last */
    bool ranged;                    /* the session has a column of ranges */
    const char **cells;             /* of a row */
    char (*numbers)[KP_NUMBER_MAX]; /* the text of cells that are numbers */
    struct kp_long_name *kernels;   /* of the session, by name; owned with their names */
    char **short_names;             /* of them; NULL: names are written in full */
    size_t n_kernels;
};

static void own_cells(struct trace *t, const struct kp_result *r)
{
    double value;
    for (size_t i = 0; i < OWN_COLUMNS; i++) {
        const struct own_column *c = &own_columns[i];
        char *text = t->numbers[i + 1];
        if (!kp_metric_number(own_metric(r, c->label), &value))
            snprintf(text, KP_NUMBER_MAX, KP_NO_VALUE);
        else if (t->to->kind->plain)
            kp_write_number_cell(value, true, text);
        else if (c->decimals)
            snprintf(text, KP_NUMBER_MAX, "%.*f", c->decimals, value);
        else
            kp_format_real(kp_whole(value), text); /* with separators, like columns that the user chooses */
        t->cells[i + 1] = text;
    }
}

static void chosen_cells(struct trace *t, const struct kp_result *r)
{
    char unit[KP_UNIT_MAX];
    for (size_t i = 1; i < t->n; i++) {
        const struct kp_metric *m = kp_result_find(r, t->names[i]);
        bool as_data = t->to->kind->plain || !m || m->kind == KP_VALUE_NA;
        t->cells[i] = as_data ? kp_write_plain_value(m, t->numbers[i]) : kp_format_metric(m, true, t->numbers[i], unit);
    }
}

/* --- names --- */

/* Looks a name up; *at is its place, or the place to insert it. */
static bool find_name(const struct trace *t, const char *name, size_t *at)
{
    size_t low = 0, high = t->n_kernels;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(t->kernels[middle].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *at = low;
    return low < t->n_kernels && !strcmp(t->kernels[low].name, name);
}

/* Notes what the columns depend on. */
static int note_launch(struct kp_result *r, void *arg)
{
    struct trace *t = arg;
    const struct kp_launch_info *l = &r->launch;
    size_t at;
    t->ranged |= l->nvtx.n_ranges > 0;
    if (find_name(t, kp_launch_name(l), &at))
        return 0;
    char *name = KP_ROOM(t->kernels, t->n_kernels) ? kp_strdup(kp_launch_name(l)) : NULL;
    if (!name)
        return -ENOMEM;
    memmove(&t->kernels[at + 1], &t->kernels[at], (t->n_kernels++ - at) * sizeof *t->kernels);
    t->kernels[at] = (struct kp_long_name){name, kp_launch_range_length(l), l->kind != KP_WORKLOAD_KERNEL};
    return 0;
}

static void drop_names(struct trace *t)
{
    kp_short_names_free(t->short_names, t->n_kernels);
    for (size_t i = 0; i < t->n_kernels; i++)
        free((char *)t->kernels[i].name);
    free(t->kernels);
    t->short_names = NULL;
    t->kernels = NULL;
    t->n_kernels = 0;
}

/* Returns the launch's range, in at most as many columns as its cell has; malloc'ed, NULL without memory. */
static char *range_cell(const struct trace *t, const struct kp_launch_info *l)
{
    static const char cut[] = "...";
    size_t room = (size_t)t->columns[t->n].width;
    const struct kp_nvtx_range *range = kp_nvtx_innermost(&l->nvtx);
    char *title = range ? kp_range_title(range) : kp_strdup("");
    if (title && kp_width(title) > room) {
        size_t n = kp_width_fit(title, strlen(title), room - strlen(cut));
        char *shorter = NULL;
        shorter = kp_asprintf("%.*s%s", (int)n, title, cut);
        free(title);
        return shorter;
    }
    return title;
}

static int write_trace_row(struct kp_result *r, void *arg)
{
    struct trace *t = arg;
    size_t at;
    bool is_short = t->short_names && find_name(t, kp_launch_name(&r->launch), &at);
    char *range = t->ranged ? range_cell(t, &r->launch) : NULL;
    if (t->ranged && !range)
        return -ENOMEM;
    t->to->launch = &r->launch;
    t->cells[0] = is_short ? t->short_names[at] : kp_launch_name(&r->launch);
    if (*t->chosen)
        chosen_cells(t, r);
    else
        own_cells(t, r);
    t->cells[t->n] = range;
    kp_write_row(t->to, t->cells);
    free(range);
    return t->to->out.rc;
}

/* --- columns --- */

static const char *chosen_columns(const struct kp_page *p)
{
    const char *list = p->display->trace_columns, *cursor = list, *item;
    size_t len;
    return list && kp_word_next(&cursor, &item, &len) ? list : "";
}

static size_t count_columns(const struct trace *t)
{
    const char *cursor = t->chosen, *item;
    size_t len, n = 1;
    while (kp_word_next(&cursor, &item, &len))
        n++;
    return *t->chosen ? n : 1 + OWN_COLUMNS;
}

static int fill_columns(struct trace *t)
{
    const char *cursor = t->chosen, *item;
    size_t len;
    for (size_t i = 1; i < t->n; i++) {
        t->columns[i].field = i - 1;
        if (!*t->chosen) {
            t->columns[i].heading = own_columns[i - 1].heading;
            t->columns[i].width = own_columns[i - 1].width;
            continue;
        }
        if (!kp_word_next(&cursor, &item, &len) || !(t->names[i] = strndup(item, len)))
            return -ENOMEM;
        t->columns[i].heading = t->names[i];
        t->columns[i].width = CHOSEN_WIDTH;
    }
    return 0;
}

/* Gives the names and the ranges what the numbers leave: names give way, and ranges before them. */
static void share_room(struct trace *t)
{
    int line = (int)kp_out_wide(&t->to->out), most = (int)t->to->kind->name_room, used = 1;
    for (size_t i = 1; i < t->n; i++)
        used += 1 + t->columns[i].width;
    t->ranged = t->ranged && line >= used + NAME_BESIDE_RANGES + 2 + RANGE_WIDTH;
    int room = line - used - (t->ranged ? 2 + RANGE_WIDTH : 0);
    int name = room < most ? room : most;
    t->columns[0].width = name > NAME_LEAST || name == most ? name : NAME_LEAST;
    t->columns[t->n] = (struct kp_column){KP_NVTX_RANGE, 0, line - used - 2 - t->columns[0].width, true};
}

/* Lays out the session's columns, and shortens the names of its kernels if the writer has little room for them. */
static int fit_columns(const struct kp_page *p, struct trace *t)
{
    drop_names(t);
    t->ranged = false;
    if (!t->to->kind->name_room)
        return 0;
    int rc = kp_page_each(p, note_launch, t);
    t->ranged &= !p->display->range_names; /* which name each kernel by its range */
    share_room(t);
    size_t room = (size_t)t->columns->width;
    return rc ? rc : kp_short_names(t->kernels, t->n_kernels, t->n_kernels, room, KP_SHORT_BARE, &t->short_names);
}

/* Makes the columns. Free `t` whatever is returned. */
static int make_columns(const struct kp_page *p, struct kp_writer *w, struct trace *t)
{
    *t = (struct trace){.to = w, .chosen = chosen_columns(p)};
    t->n = count_columns(t);
    t->names = calloc(t->n, sizeof *t->names);
    t->columns = calloc(t->n + 1, sizeof *t->columns);
    t->cells = calloc(t->n + 1, sizeof *t->cells);
    t->numbers = calloc(t->n, sizeof *t->numbers);
    if (!t->names || !t->columns || !t->cells || !t->numbers)
        return -ENOMEM;
    int rc = fill_columns(t);
    t->columns[0] = (struct kp_column){"Kernel", KP_NO_FIELD, 0, true};
    return rc;
}

static void drop_columns(struct trace *t)
{
    drop_names(t);
    for (size_t i = 0; t->names && i < t->n; i++)
        free(t->names[i]);
    free(t->names);
    free(t->columns);
    free(t->cells);
    free(t->numbers);
}

static int write_trace(const struct kp_page *pages, size_t n, struct trace *t, const char **fields)
{
    const struct kp_layout layout = {.start = KP_START_LAUNCH, .fields = fields, .n = t->n - 1};
    int rc = 0;
    for (size_t i = 1; i < t->n; i++)
        fields[i - 1] = t->columns[i].heading;
    kp_write_begin(t->to, &layout);
    for (size_t i = 0; !rc && i < n; i++) {
        kp_page_enter(&pages[i], t->to);
        rc = fit_columns(&pages[i], t);
        const struct kp_table table = {KP_TABLE_STREAMED, t->columns, t->n + t->ranged, *t->chosen};
        kp_write_table(t->to, &table);
        if (!rc)
            rc = kp_page_each(&pages[i], write_trace_row, t);
        kp_write_table_end(t->to);
        kp_write_gap(t->to);
    }
    return rc;
}

int kp_page_trace(const struct kp_page *pages, size_t n, struct kp_writer *w)
{
    struct trace t;
    int rc = make_columns(pages, w, &t);
    const char **fields = rc ? NULL : calloc(t.n, sizeof *fields);
    if (!rc)
        rc = fields ? write_trace(pages, n, &t, fields) : -ENOMEM;
    free(fields);
    drop_columns(&t);
    return rc;
}
