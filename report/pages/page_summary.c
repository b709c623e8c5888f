/* The page summary: what to fix first, with the verdict of each kernel; then kernels by their time, in the columns of
 * nvprof and of `nsys stats`. NVTX ranges follow, by the time of their launches. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/room.h"
#include "base/sqrt.h"
#include "base/width.h"
#include "report/model/launch_names.h"
#include "report/model/short_names.h"
#include "report/pages/details.h"
#include "report/pages/page_body.h"
#include "report/view/order.h"
#include "report/write/fit.h"
#include "report/write/text_writer.h"

/* Fields of rows. Those of the advice exist if there are rules, that of a range if there are ranges. */
enum {
    TIME,
    TOTAL,
    INSTANCES,
    AVERAGE,
    MEDIAN,
    LOWEST,
    HIGHEST,
    DEVIATION,
    NAME,
    COLUMNS,
    BOUND = COLUMNS,
    GAIN,
    RULE,
    ADVISED,
    FIELDS = ADVISED + 1
};
static const char *const headings[ADVISED] = {"Time (%)", "Total Time (ns)", "Instances", "Avg (ns)",
                                              "Med (ns)", "Min (ns)",        "Max (ns)",  "StdDev (ns)",
                                              "Name",     "Bound By",        "Gain (%)",  "Rule"};

/* A launch, or the launches that an entry of a rotation stands for. */
struct timed {
    double ns, deviation; /* their mean, NaN when unknown, and standard deviation */
    uint64_t launches;
};

struct group {
    char *name;
    struct timed *at;
    size_t n;
    uint64_t launches, timed; /* timed: those whose duration is known */
    double total, saved;      /* of these; saved by the best rule */
    size_t range;             /* of the name, see kp_launch_range_length */
    bool is_text;             /* a graph or a range, whose name is not a signature */
    const char *bound, *rule; /* "" when there is none. Not owned */
};

struct groups {
    struct group *at; /* by name, then by time */
    size_t n;
};

struct times {
    struct groups kernels, ranges;
    double total;     /* of all launches */
    uint64_t without; /* launches of unknown time */
    const struct kp_page *page;
    struct kp_summary *judged; /* NULL without rules */
    struct kp_summary_total advice;
};

static int insert(struct groups *k, size_t at, const char *name)
{
    if (!KP_ROOM(k->at, k->n))
        return -ENOMEM;
    char *copy = kp_strdup(name);
    if (!copy)
        return -ENOMEM;
    memmove(&k->at[at + 1], &k->at[at], (k->n - at) * sizeof *k->at);
    k->at[at] = (struct group){.name = copy, .bound = "", .rule = ""};
    k->n++;
    return 0;
}

/* Returns the index of `name`, or its place to insert. */
static size_t place(const struct groups *k, const char *name)
{
    size_t low = 0, high = k->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(k->at[middle].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Finds or inserts a group. NULL without memory. */
static struct group *find_or_insert(struct groups *k, const char *name)
{
    size_t at = place(k, name);
    bool known = at < k->n && !strcmp(k->at[at].name, name);
    return known || !insert(k, at, name) ? &k->at[at] : NULL;
}

/* Counts launches; those of unknown time do not contribute to times. */
static int add_time(struct group *k, const struct timed *t)
{
    k->launches += t->launches;
    if (isnan(t->ns))
        return 0;
    if (!KP_ROOM(k->at, k->n))
        return -ENOMEM;
    k->at[k->n++] = *t;
    k->total += t->ns * (double)t->launches;
    k->timed += t->launches;
    return 0;
}

static int add_named(struct groups *g, const char *name, const struct timed *t)
{
    struct group *one = find_or_insert(g, name);
    return one ? add_time(one, t) : -ENOMEM;
}

/* Counts a launch in each range around it. */
static int add_to_ranges(struct groups *g, const struct kp_nvtx *n, const struct timed *time)
{
    int rc = 0;
    for (size_t i = 0; !rc && i < n->n_ranges; i++) {
        if (!kp_range_is_new(n, i))
            continue;
        char *title = kp_range_title(&n->ranges[i]);
        rc = title ? add_named(g, title, time) : -ENOMEM;
        free(title);
    }
    return rc;
}

static int take_launch(struct kp_result *r, void *arg)
{
    struct times *t = arg;
    const struct kp_metric *m = kp_result_find(r, "gpu__time_duration.sum");
    struct timed one = {.ns = NAN, .launches = kp_launch_weight(&r->launch)};
    if (t->judged && kp_details_judge(t->page->display, t->page->session, r, t->judged, t->page->summary))
        return -ENOMEM;
    if (kp_result_mean_duration(r, &one.ns)) {
        one.deviation = m ? m->deviation : 0;
        t->total += one.ns * (double)one.launches;
    } else {
        one.ns = NAN;
        t->without += one.launches;
    }
    struct group *kernel = find_or_insert(&t->kernels, kp_launch_name(&r->launch));
    if (kernel) {
        kernel->range = kp_launch_range_length(&r->launch);
        kernel->is_text = r->launch.kind != KP_WORKLOAD_KERNEL;
    }
    int rc = kernel ? add_time(kernel, &one) : -ENOMEM;
    return rc ? rc : add_to_ranges(&t->ranges, &r->launch.nvtx, &one);
}

static int by_duration(const void *a, const void *b)
{
    double x = ((const struct timed *)a)->ns, y = ((const struct timed *)b)->ns;
    return (x > y) - (x < y);
}

static int by_choice(const void *a, const void *b, void *sort)
{
    const struct group *x = a, *y = b;
    return kp_order(&(struct kp_ordered){x->name, x->total, x->saved, x->timed},
                    &(struct kp_ordered){y->name, y->total, y->saved, y->timed}, *(const enum kp_sort *)sort);
}

/* Returns the sample standard deviation (divisor n - 1, like nvprof's successors). Uncounted launches of a rotation are
 * assumed to spread like the counted ones. */
static double deviation(const struct group *k)
{
    double all = (double)k->timed, mean = k->total / all, squares = 0;
    for (size_t i = 0; i < k->n; i++) {
        double n = (double)k->at[i].launches, apart = k->at[i].ns - mean;
        squares += k->at[i].deviation * k->at[i].deviation * (n - 1) + n * apart * apart;
    }
    return all > 1 ? kp_sqrt(squares / (all - 1)) : 0;
}

/* Returns the duration of the launch that so many are shorter than; those of an entry have its mean. */
static double ranked(const struct group *g, uint64_t before)
{
    size_t i = 0;
    for (; i + 1 < g->n && before >= g->at[i].launches; i++)
        before -= g->at[i].launches;
    return g->at[i].ns;
}

static void free_groups(struct groups *g)
{
    for (size_t i = 0; i < g->n; i++) {
        free(g->at[i].name);
        free(g->at[i].at);
    }
    free(g->at);
}

static void free_times(struct times *t)
{
    kp_summary_total_free(&t->advice);
    kp_summary_free(t->judged);
    free_groups(&t->kernels);
    free_groups(&t->ranges);
}

/* Gives each kernel what was judged of it. */
static int take_advice(struct times *t)
{
    int rc = t->judged ? kp_summary_total(t->judged, &t->advice) : 0;
    for (size_t i = 0; !rc && i < t->advice.n; i++) {
        const struct kp_summary_kernel *k = &t->advice.kernels[i];
        struct group *to = &t->kernels.at[place(&t->kernels, k->name)]; /* each launch is in both */
        to->bound = k->bound;
        to->rule = k->rule ? k->rule->id : "";
        to->saved = k->saved_ns;
    }
    return rc;
}

static void sort(struct groups *g, enum kp_sort by)
{
    if (g->n)
        qsort_r(g->at, g->n, sizeof *g->at, by_choice, &by);
}

/* Collects the times. `t` starts as all 0; free it whatever is returned. */
static int find_times(const struct kp_page *p, struct times *t)
{
    t->page = p;
    if (p->display->rules && !(t->judged = kp_summary_new()))
        return -ENOMEM;
    int rc = kp_page_each(p, take_launch, t);
    if (!rc)
        rc = take_advice(t);
    sort(&t->kernels, p->display->sort);
    sort(&t->ranges, p->display->sort);
    return rc;
}

/* --- rows --- */

struct cells {
    char number[NAME][KP_NUMBER_MAX], gain[KP_NUMBER_MAX];
    const char *at[ADVISED];
};

/* Fills in the times of a group that has some. */
static void fill_times(struct cells *c, struct group *g, double total, bool plain)
{
    qsort(g->at, g->n, sizeof *g->at, by_duration);
    snprintf(c->number[TIME], KP_NUMBER_MAX, "%.1f", total > 0 ? 100 * g->total / total : 0);
    kp_write_number_cell(g->total, plain, c->number[TOTAL]);
    kp_write_number_cell(g->total / (double)g->timed, plain, c->number[AVERAGE]);
    kp_write_number_cell((ranked(g, (g->timed - 1) / 2) + ranked(g, g->timed / 2)) / 2, plain, c->number[MEDIAN]);
    kp_write_number_cell(g->at[0].ns, plain, c->number[LOWEST]);
    kp_write_number_cell(g->at[g->n - 1].ns, plain, c->number[HIGHEST]);
    kp_write_number_cell(deviation(g), plain, c->number[DEVIATION]);
}

static void fill_cells(struct cells *c, struct group *g, double total, bool plain)
{
    for (int i = 0; i < NAME; i++) {
        snprintf(c->number[i], KP_NUMBER_MAX, "n/a");
        c->at[i] = c->number[i];
    }
    kp_count_cell(g->launches, plain, c->number[INSTANCES]);
    if (g->timed)
        fill_times(c, g, total, plain);
    c->at[NAME] = g->name;
    *c->gain = '\0';
    if (*g->rule && total > 0)
        snprintf(c->gain, sizeof c->gain, "%.2f", 100 * g->saved / total);
    c->at[BOUND] = g->bound;
    c->at[GAIN] = c->gain;
    c->at[RULE] = g->rule;
}

/* Columns of numbers that a narrow terminal loses, in this order. */
static const int dispensable[] = {DEVIATION, TOTAL, MEDIAN, LOWEST, HIGHEST};

/* What is written of groups. */
struct written {
    struct kp_writer *to;
    struct groups *groups;
    size_t n;            /* of the groups */
    struct cells *cells; /* of these */
    size_t name_field;   /* of rows */
    size_t shown[ADVISED], n_shown;
    char **names; /* NULL: in full */
};

static int fill_all(struct written *s, double total)
{
    if (!(s->cells = calloc(s->n + 1, sizeof *s->cells)))
        return -ENOMEM;
    for (size_t i = 0; i < s->n; i++)
        fill_cells(&s->cells[i], &s->groups->at[i], total, s->to->kind->plain);
    return 0;
}

static size_t width_of(const struct written *s, size_t column)
{
    size_t width = strlen(headings[column]);
    for (size_t i = 0; i < s->n; i++) {
        size_t len = kp_width(s->cells[i].at[column]);
        width = len > width ? len : width;
    }
    return width;
}

/* Chooses the columns that leave room for names; returns that room. */
static size_t choose_columns(struct written *s)
{
    bool hidden[NAME] = {false};
    size_t widths[NAME];
    for (size_t i = 0; i < NAME; i++)
        widths[i] = width_of(s, i);
    size_t room = kp_page_fit_columns(widths, NAME, dispensable, sizeof dispensable / sizeof *dispensable,
                                      kp_out_wide(&s->to->out), hidden);
    s->n_shown = 0;
    for (size_t i = 0; i < NAME; i++)
        if (!hidden[i])
            s->shown[s->n_shown++] = i;
    s->shown[s->n_shown++] = NAME;
    return room;
}

static int shorten(struct written *s, size_t room)
{
    struct kp_long_name *whole = calloc(s->groups->n + 1, sizeof *whole);
    if (!whole)
        return -ENOMEM;
    for (size_t i = 0; i < s->groups->n; i++)
        whole[i] = (struct kp_long_name){s->groups->at[i].name, s->groups->at[i].range,
                                         s->groups->at[i].is_text || s->name_field != NAME};
    int rc = kp_short_names(whole, s->groups->n, s->n, room, KP_SHORT_SIGNATURE, &s->names);
    free(whole);
    return rc;
}

static void write_group_rows(struct written *s)
{
    struct kp_column columns[ADVISED];
    const char *row[ADVISED];
    for (size_t i = 0; i < s->n_shown; i++) {
        size_t at = s->shown[i];
        columns[i] = (struct kp_column){headings[at], at == NAME ? s->name_field : at, 0, at >= NAME};
    }
    kp_write_table(s->to, &(struct kp_table){.kind = KP_TABLE_OPEN, .columns = columns, .n = s->n_shown});
    for (size_t i = 0; i < s->n; i++) {
        if (s->names)
            s->cells[i].at[NAME] = s->names[i];
        for (size_t j = 0; j < s->n_shown; j++)
            row[j] = s->cells[i].at[s->shown[j]];
        kp_write_row(s->to, row);
    }
    kp_write_table_end(s->to);
}

/* Writes the first `top` groups, 0 for all; rows have the first `fields` fields. */
static int write_groups(struct kp_writer *w, struct groups *g, size_t top, double total, size_t name_field,
                        size_t fields)
{
    struct written s = {.to = w, .groups = g, .n = top && top < g->n ? top : g->n, .name_field = name_field};
    int rc = fill_all(&s, total);
    if (!rc && w->kind->rows)
        for (; s.n_shown < fields; s.n_shown++)
            s.shown[s.n_shown] = s.n_shown;
    else if (!rc)
        rc = shorten(&s, choose_columns(&s));
    if (!rc) {
        write_group_rows(&s);
        if (!w->kind->rows)
            kp_write_rest(w, g->n - s.n);
        kp_short_names_free(s.names, s.n);
    }
    free(s.cells);
    return rc;
}

static int write_times(struct kp_writer *w, struct times *t, size_t range_field)
{
    char number[KP_NUMBER_MAX], text[KP_NUMBER_MAX + 64];
    if (t->judged && !w->kind->rows) {
        kp_write_summary(w, t->judged);
        kp_write_gap(w);
    }
    int rc = write_groups(w, &t->kernels, w->out.display->top, t->total, NAME, t->judged ? ADVISED : COLUMNS);
    if (t->without) {
        kp_format_count(t->without, number);
        snprintf(text, sizeof text, "%s without a duration: not included in the times", number);
        kp_write_note(w, KP_LEVEL_PAGE, NULL, text);
    }
    if (!rc && t->ranges.n) {
        kp_write_gap(w);
        kp_write_heading(w, KP_LEVEL_PAGE, "NVTX ranges, each with the time of all launches inside");
        rc = write_groups(w, &t->ranges, w->out.display->top_ranges, t->total, range_field, COLUMNS);
    }
    kp_write_gap(w);
    return rc;
}

/* --- one screen --- */

enum { KERNELS_LEAST = 6, RANGES_LEAST = 3, TRIES = 4 };

static int count_lines(void *lines, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        *(size_t *)lines += text[i] == '\n';
    return 0;
}

/* Counts the lines of the page as text, with the first and the last ones of its document. */
static int measure_page(const struct kp_page *p, struct times *t, size_t range_field, const struct kp_display *d,
                        size_t *lines)
{
    const struct kp_sink sink = {count_lines, lines};
    struct kp_text_writer text;
    struct kp_fit fit;
    *lines = 0;
    kp_fit_init(&fit, &sink, d->width);
    kp_write_text_writer_init(&text, &fit.sink, d);
    text.base.session = p->session;
    kp_write_process(&text.base);
    int rc = write_times(&text.base, t, range_field);
    kp_write_account(&text.base, p->launches->choice);
    int ended = kp_write_end(&text.base), last = kp_fit_end(&fit);
    return rc ? rc : ended ? ended : last;
}

static size_t less(size_t n, size_t by, size_t least)
{
    return n > least + by ? n - by : n < least ? n : least;
}

/* Lowers the numbers of kernels and ranges that are listed, until the page is one screen or they are the least. */
static int fit_screen(const struct kp_page *p, struct times *t, size_t range_field, struct kp_display *d)
{
    size_t lines, each = t->judged ? 2 : 1; /* a kernel has a line in each table */
    int rc = 0;
    for (int i = 0; i < TRIES; i++) {
        rc = measure_page(p, t, range_field, d, &lines);
        if (rc || lines <= d->screen)
            return rc;
        size_t more = lines - d->screen, kernels = d->top < t->kernels.n ? d->top : t->kernels.n;
        d->top = less(kernels, (more + each - 1) / each, KERNELS_LEAST);
        more -= (kernels - d->top) * each < more ? (kernels - d->top) * each : more;
        d->top_ranges = less(d->top_ranges < t->ranges.n ? d->top_ranges : t->ranges.n, more, RANGES_LEAST);
    }
    return rc;
}

static int write_fitted(const struct kp_page *p, struct kp_writer *w, struct times *t, size_t range_field)
{
    struct kp_display fitted = *p->display;
    int rc = w->kind->rows || !fitted.screen ? 0 : fit_screen(p, t, range_field, &fitted);
    if (rc)
        return rc;
    w->out.display = &fitted;
    rc = write_times(w, t, range_field);
    w->out.display = p->display;
    return rc;
}

int kp_page_summary(const struct kp_page *pages, size_t n, struct kp_writer *w)
{
    const char *fields[FIELDS];
    struct times *times = calloc(n, sizeof *times);
    size_t range_field = pages->display->rules ? ADVISED : COLUMNS;
    struct kp_layout layout = {.start = KP_START_EMPTY, .fields = fields, .n = range_field};
    int rc = times ? 0 : -ENOMEM;
    memcpy(fields, headings, sizeof headings);
    fields[range_field] = KP_NVTX_RANGE;
    for (size_t i = 0; !rc && i < n; i++) {
        rc = find_times(&pages[i], &times[i]);
        if (times[i].ranges.n)
            layout.n = range_field + 1;
    }
    if (!rc)
        kp_write_begin(w, &layout);
    for (size_t i = 0; !rc && i < n; i++) {
        kp_page_enter(&pages[i], w);
        rc = write_fitted(&pages[i], w, &times[i], range_field);
    }
    for (size_t i = 0; times && i < n; i++)
        free_times(&times[i]);
    free(times);
    return rc;
}
