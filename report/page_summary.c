/* The page summary: kernels by their time, in the columns of nvprof and of `nsys stats`. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/page_body.h"

enum { TIME, TOTAL, INSTANCES, AVERAGE, MEDIAN, LOWEST, HIGHEST, DEVIATION, NAME, COLUMNS };
static const char *const headings[COLUMNS] = {"Time (%)", "Total Time (ns)", "Instances",   "Avg (ns)", "Med (ns)",
                                              "Min (ns)", "Max (ns)",        "StdDev (ns)", "Name"};
static const bool to_the_left[COLUMNS] = {[NAME] = true};

struct kernel {
    char *name;
    double *ns; /* of each launch */
    size_t n, capacity;
    double total;
};

struct kernels {
    struct kernel *at; /* by name, then by time */
    size_t n, capacity;
    double total;
    uint64_t without; /* launches whose time is not known */
};

static int insert(struct kernels *k, size_t at, const char *name)
{
    if (k->n == k->capacity) {
        size_t capacity = k->capacity ? 2 * k->capacity : 32;
        struct kernel *grown = realloc(k->at, capacity * sizeof *grown);
        if (!grown)
            return -ENOMEM;
        k->at = grown;
        k->capacity = capacity;
    }
    char *copy = kp_strdup(name);
    if (!copy)
        return -ENOMEM;
    memmove(&k->at[at + 1], &k->at[at], (k->n - at) * sizeof *k->at);
    k->at[at] = (struct kernel){.name = copy};
    k->n++;
    return 0;
}

/* NULL without memory. */
static struct kernel *find_or_insert(struct kernels *k, const char *name)
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

static int add_time(struct kernel *k, double ns)
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

static int take_launch(struct kp_result *r, void *arg)
{
    struct kernels *all = arg;
    double ns;
    if (!kp_metric_number(kp_result_find(r, "gpu__time_duration.sum"), &ns) || !isfinite(ns)) {
        all->without++;
        return 0;
    }
    struct kernel *k = find_or_insert(all, kp_launch_name(&r->launch));
    all->total += ns;
    return k ? add_time(k, ns) : -ENOMEM;
}

static int by_number(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int by_total(const void *a, const void *b)
{
    const struct kernel *x = a, *y = b;
    return x->total != y->total ? (x->total < y->total ? 1 : -1) : strcmp(x->name, y->name);
}

/* Of a sample, as nvprof's successors have it: with one instance less in the divisor. */
static double deviation(const struct kernel *k)
{
    double mean = k->total / (double)k->n, squares = 0;
    for (size_t i = 0; i < k->n; i++)
        squares += (k->ns[i] - mean) * (k->ns[i] - mean);
    return k->n > 1 ? sqrt(squares / (double)(k->n - 1)) : 0;
}

static int add_row(struct kp_columns *table, struct kernel *k, double total, bool plain)
{
    char cell[NAME][KP_NUMBER_MAX];
    const char *cells[COLUMNS];
    qsort(k->ns, k->n, sizeof *k->ns, by_number);
    snprintf(cell[TIME], KP_NUMBER_MAX, "%.1f", total > 0 ? 100 * k->total / total : 0);
    kp_number_cell(k->total, plain, cell[TOTAL]);
    kp_count_cell(k->n, plain, cell[INSTANCES]);
    kp_number_cell(k->total / (double)k->n, plain, cell[AVERAGE]);
    kp_number_cell((k->ns[(k->n - 1) / 2] + k->ns[k->n / 2]) / 2, plain, cell[MEDIAN]);
    kp_number_cell(k->ns[0], plain, cell[LOWEST]);
    kp_number_cell(k->ns[k->n - 1], plain, cell[HIGHEST]);
    kp_number_cell(deviation(k), plain, cell[DEVIATION]);
    for (int i = 0; i < NAME; i++)
        cells[i] = cell[i];
    cells[NAME] = k->name;
    return kp_columns_add(table, cells);
}

static int make_table(const struct kp_page *p, bool plain, struct kp_columns *table, uint64_t *without)
{
    struct kernels all = {.n = 0};
    *table = (struct kp_columns){.headings = headings, .to_the_left = to_the_left, .n = COLUMNS};
    int rc = kp_page_each(p, take_launch, &all);
    if (!rc && all.n)
        qsort(all.at, all.n, sizeof *all.at, by_total);
    for (size_t i = 0; !rc && i < all.n; i++)
        rc = add_row(table, &all.at[i], all.total, plain);
    for (size_t i = 0; i < all.n; i++) {
        free(all.at[i].name);
        free(all.at[i].ns);
    }
    free(all.at);
    *without = all.without;
    return rc;
}

int kp_summary_text(const struct kp_page *p)
{
    static const struct kp_columns_look look = {1, 2, false};
    struct kp_out o = {.sink = p->out, .display = p->display};
    struct kp_columns table;
    char number[KP_NUMBER_MAX];
    uint64_t without;
    int rc = make_table(p, false, &table, &without);
    if (!rc)
        kp_columns_print(&o, &table, &look);
    if (!rc && without) {
        kp_format_count(without, number);
        kp_out_print(&o, " %s without a duration: not in the table\n", number);
    }
    kp_out_print(&o, "\n");
    kp_columns_free(&table);
    return rc ? rc : o.rc;
}

int kp_summary_csv(const struct kp_page *p, struct kp_csv *to)
{
    struct kp_columns table;
    uint64_t without;
    int rc = make_table(p, true, &table, &without);
    if (!rc) {
        kp_csv_fields(to, headings, COLUMNS);
        kp_csv_end_row(to);
        kp_columns_csv(to, &table);
    }
    kp_columns_free(&table);
    return rc;
}
