/* The page summary: kernels by their time, in the columns of nvprof and of `nsys stats`. NVTX ranges follow, by the
 * time of their launches. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/model/launch_names.h"
#include "report/pages/page_body.h"

/* The field of a range exists where ranges do. */
enum { TIME, TOTAL, INSTANCES, AVERAGE, MEDIAN, LOWEST, HIGHEST, DEVIATION, NAME, COLUMNS, RANGE = COLUMNS, FIELDS };
static const char *const fields[FIELDS] = {"Time (%)", "Total Time (ns)", "Instances",   "Avg (ns)", "Med (ns)",
                                           "Min (ns)", "Max (ns)",        "StdDev (ns)", "Name",     KP_NVTX_RANGE};

struct group {
    char *name;
    double *ns; /* of each launch */
    size_t n, capacity;
    double total;
};

struct groups {
    struct group *at; /* by name, then by time */
    size_t n, capacity;
};

struct times {
    struct groups kernels, ranges;
    double total;     /* of all launches */
    uint64_t without; /* launches of unknown time */
};

static int insert(struct groups *k, size_t at, const char *name)
{
    if (k->n == k->capacity) {
        size_t capacity = k->capacity ? 2 * k->capacity : 32;
        struct group *grown = realloc(k->at, capacity * sizeof *grown);
        if (!grown)
            return -ENOMEM;
        k->at = grown;
        k->capacity = capacity;
    }
    char *copy = kp_strdup(name);
    if (!copy)
        return -ENOMEM;
    memmove(&k->at[at + 1], &k->at[at], (k->n - at) * sizeof *k->at);
    k->at[at] = (struct group){.name = copy};
    k->n++;
    return 0;
}

/* Finds or inserts a group. NULL without memory. */
static struct group *find_or_insert(struct groups *k, const char *name)
{
    size_t low = 0, high = k->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(k->at[middle].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    bool known = low < k->n && !strcmp(k->at[low].name, name);
    return known || !insert(k, low, name) ? &k->at[low] : NULL;
}

static int add_time(struct group *k, double ns)
{
    if (k->n == k->capacity) {
        size_t capacity = k->capacity ? 2 * k->capacity : 16;
        double *grown = realloc(k->ns, capacity * sizeof *grown);
        if (!grown)
            return -ENOMEM;
        k->ns = grown;
        k->capacity = capacity;
    }
    k->ns[k->n++] = ns;
    k->total += ns;
    return 0;
}

static int add_named(struct groups *g, const char *name, double ns)
{
    struct group *one = find_or_insert(g, name);
    return one ? add_time(one, ns) : -ENOMEM;
}

/* Counts a launch in each range around it. */
static int add_to_ranges(struct groups *g, const struct kp_nvtx *n, double ns)
{
    int rc = 0;
    for (size_t i = 0; !rc && i < n->n_ranges; i++) {
        if (!kp_range_is_new(n, i))
            continue;
        char *title = kp_range_title(&n->ranges[i]);
        rc = title ? add_named(g, title, ns) : -ENOMEM;
        free(title);
    }
    return rc;
}

static int take_launch(struct kp_result *r, void *arg)
{
    struct times *t = arg;
    double ns;
    if (!kp_metric_number(kp_result_find(r, "gpu__time_duration.sum"), &ns) || !isfinite(ns)) {
        t->without++;
        return 0;
    }
    t->total += ns;
    int rc = add_named(&t->kernels, kp_launch_name(&r->launch), ns);
    return rc ? rc : add_to_ranges(&t->ranges, &r->launch.nvtx, ns);
}

static int by_number(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int by_total(const void *a, const void *b)
{
    const struct group *x = a, *y = b;
    return x->total != y->total ? (x->total < y->total ? 1 : -1) : strcmp(x->name, y->name);
}

/* Returns the deviation of a sample, as nvprof's successors do: the divisor is one instance less. */
static double deviation(const struct group *k)
{
    double mean = k->total / (double)k->n, squares = 0;
    for (size_t i = 0; i < k->n; i++)
        squares += (k->ns[i] - mean) * (k->ns[i] - mean);
    return k->n > 1 ? sqrt(squares / (double)(k->n - 1)) : 0;
}

static void free_groups(struct groups *g)
{
    for (size_t i = 0; i < g->n; i++) {
        free(g->at[i].name);
        free(g->at[i].ns);
    }
    free(g->at);
}

static void free_times(struct times *t)
{
    free_groups(&t->kernels);
    free_groups(&t->ranges);
}

/* Collects the times. `t` starts as all 0; free it whatever is returned. */
static int find_times(const struct kp_page *p, struct times *t)
{
    int rc = kp_page_each(p, take_launch, t);
    if (t->kernels.n)
        qsort(t->kernels.at, t->kernels.n, sizeof *t->kernels.at, by_total);
    if (t->ranges.n)
        qsort(t->ranges.at, t->ranges.n, sizeof *t->ranges.at, by_total);
    return rc;
}

/* --- rows --- */

struct cells {
    char number[NAME][KP_NUMBER_MAX];
    const char *at[COLUMNS];
};

static void fill_cells(struct cells *c, struct group *g, double total, bool plain)
{
    qsort(g->ns, g->n, sizeof *g->ns, by_number);
    snprintf(c->number[TIME], KP_NUMBER_MAX, "%.1f", total > 0 ? 100 * g->total / total : 0);
    kp_number_cell(g->total, plain, c->number[TOTAL]);
    kp_count_cell(g->n, plain, c->number[INSTANCES]);
    kp_number_cell(g->total / (double)g->n, plain, c->number[AVERAGE]);
    kp_number_cell((g->ns[(g->n - 1) / 2] + g->ns[g->n / 2]) / 2, plain, c->number[MEDIAN]);
    kp_number_cell(g->ns[0], plain, c->number[LOWEST]);
    kp_number_cell(g->ns[g->n - 1], plain, c->number[HIGHEST]);
    kp_number_cell(deviation(g), plain, c->number[DEVIATION]);
    for (int i = 0; i < NAME; i++)
        c->at[i] = c->number[i];
    c->at[NAME] = g->name;
}

static void write_groups(struct kp_writer *w, const struct groups *g, double total, size_t name_field)
{
    struct kp_column columns[COLUMNS];
    struct cells cells;
    for (size_t i = 0; i < COLUMNS; i++)
        columns[i] = (struct kp_column){.heading = fields[i], .field = i};
    columns[NAME].field = name_field;
    columns[NAME].to_the_left = true;
    kp_write_table(w, &(struct kp_table){.kind = KP_TABLE_OPEN, .columns = columns, .n = COLUMNS});
    for (size_t i = 0; i < g->n; i++) {
        fill_cells(&cells, &g->at[i], total, w->kind->plain);
        kp_write_row(w, cells.at);
    }
    kp_write_table_end(w);
}

static void write_times(struct kp_writer *w, const struct times *t)
{
    char number[KP_NUMBER_MAX], text[KP_NUMBER_MAX + 64];
    write_groups(w, &t->kernels, t->total, NAME);
    if (t->without) {
        kp_format_count(t->without, number);
        snprintf(text, sizeof text, "%s without a duration: not in the table", number);
        kp_write_note(w, KP_LEVEL_PAGE, NULL, text);
    }
    if (t->ranges.n) {
        kp_write_gap(w);
        kp_write_heading(w, KP_LEVEL_PAGE, "NVTX ranges, each with the time of all launches inside");
        write_groups(w, &t->ranges, t->total, RANGE);
    }
    kp_write_gap(w);
}

int kp_summary_page(const struct kp_page *pages, size_t n, struct kp_writer *w)
{
    struct times *times = calloc(n, sizeof *times);
    struct kp_layout layout = {.start = KP_START_EMPTY, .fields = fields, .n = COLUMNS};
    int rc = times ? 0 : -ENOMEM;
    for (size_t i = 0; !rc && i < n; i++) {
        rc = find_times(&pages[i], &times[i]);
        if (times[i].ranges.n)
            layout.n = FIELDS;
    }
    if (!rc)
        kp_write_begin(w, &layout);
    for (size_t i = 0; !rc && i < n; i++) {
        kp_page_enter(&pages[i], w);
        write_times(w, &times[i]);
    }
    for (size_t i = 0; times && i < n; i++)
        free_times(&times[i]);
    free(times);
    return rc;
}
