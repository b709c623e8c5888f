/* The page ranks: the same kernel and shape on several ranks of a program, and how evenly its time is distributed over
 * them. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/room.h"
#include "base/text.h"
#include "base/width.h"
#include "report/model/launch_names.h"
#include "report/model/ranks.h"
#include "report/model/short_names.h"
#include "report/pages/page_body.h"
#include "report/view/order.h"

enum {
    TIME,
    LAUNCHES,
    RANKS,
    AVERAGE,
    LOWEST,
    HIGHEST,
    SLOWEST,
    IMBALANCE,
    INTERVAL,
    GRID,
    BLOCK,
    WHICH,
    NAME,
    FIELDS
};
static const char *const headings[FIELDS] = {"Time (%)", "Launches", "Ranks",         "Avg (ns)", "Min (ns)",
                                             "Max (ns)", "Slowest",  "Imbalance (%)", "+- (%)",   "Grid",
                                             "Block",    "Which",    "Name"};
enum { CELL = KP_NUMBER_MAX + 64 };

/* A kernel and shape. */
struct entry {
    char *name, *slowest;
    char *which;  /* of the launches of the kernel and shape; "" = all */
    size_t range; /* of the name, see kp_launch_range_length */
    bool is_text; /* a graph or a range, whose name is not a signature */
    uint32_t grid[3], block[3];
    struct kp_ranks of;
};

struct entries {
    struct entry *at;
    size_t n;
    double total;     /* of all launches on all ranks, ns */
    uint64_t without; /* entries without ranks */
};

static void free_entry(struct entry *e)
{
    free(e->name);
    free(e->slowest);
    free(e->which);
}

static int add_entry(struct kp_result *r, void *arg)
{
    struct entries *e = arg;
    struct kp_ranks of;
    if (!kp_ranks_of(r, &of)) {
        e->without++;
        return 0;
    }
    if (!KP_ROOM(e->at, e->n))
        return -ENOMEM;
    struct entry one = {.name = kp_strdup(kp_launch_name(&r->launch)),
                        .slowest = kp_strdup(of.slowest),
                        .which = kp_launch_which(&r->launch),
                        .of = of};
    if (!one.name || !one.slowest || !one.which) {
        free_entry(&one);
        return -ENOMEM;
    }
    one.range = kp_launch_range_length(&r->launch);
    one.is_text = r->launch.kind != KP_WORKLOAD_KERNEL;
    memcpy(one.grid, r->launch.grid, sizeof one.grid);
    memcpy(one.block, r->launch.block, sizeof one.block);
    e->at[e->n++] = one;
    e->total += of.total;
    return 0;
}

static void free_entries(struct entries *e)
{
    for (size_t i = 0; i < e->n; i++)
        free_entry(&e->at[i]);
    free(e->at);
}

/* What would be saved is what the other ranks wait for the slowest. */
static int by_rank_choice(const void *a, const void *b, void *sort)
{
    const struct entry *x = a, *y = b;
    int order =
        kp_order(&(struct kp_ordered){x->name, x->of.total, x->of.lost, x->of.launches},
                 &(struct kp_ordered){y->name, y->of.total, y->of.lost, y->of.launches}, *(const enum kp_sort *)sort);
    order = order ? order : memcmp(x->grid, y->grid, sizeof x->grid);
    order = order ? order : memcmp(x->block, y->block, sizeof x->block);
    return order ? order : strcmp(x->which, y->which);
}

/* --- rows --- */

struct cells {
    char text[NAME][CELL];
    const char *at[FIELDS];
};

static void fill_size(char *to, const uint32_t size[3])
{
    snprintf(to, CELL, "(%u, %u, %u)", size[0], size[1], size[2]);
}

/* Writes the end of a text that needs more than a quarter of the line: the innermost range says most. */
static void fill_which(char *to, const char *which, size_t wide)
{
    enum { MOST = 44, MOST_BYTES = CELL - 4 };
    static const char cut[] = "...";
    size_t most = wide / 4 < MOST ? wide / 4 : MOST;
    const char *at = which;
    while (kp_width(at) > (at == which ? most : most - strlen(cut)) || strlen(at) > MOST_BYTES) {
        size_t len = kp_utf8_len(at, strlen(at));
        at += len ? len : 1;
    }
    snprintf(to, CELL, "%s%s", at == which ? "" : cut, at);
}

static void fill_entry(struct cells *c, const struct entry *e, double total, bool plain, size_t wide)
{
    snprintf(c->text[TIME], CELL, "%.1f", total > 0 ? 100 * e->of.total / total : 0);
    kp_count_cell(e->of.launches, plain, c->text[LAUNCHES]);
    kp_count_cell(e->of.n, plain, c->text[RANKS]);
    kp_write_number_cell(e->of.mean, plain, c->text[AVERAGE]);
    kp_write_number_cell(e->of.low, plain, c->text[LOWEST]);
    kp_write_number_cell(e->of.high, plain, c->text[HIGHEST]);
    snprintf(c->text[IMBALANCE], CELL, "%.2f", e->of.imbalance);
    *c->text[INTERVAL] = '\0';
    if (!isnan(e->of.half))
        snprintf(c->text[INTERVAL], CELL, "%.2f", e->of.half);
    fill_size(c->text[GRID], e->grid);
    fill_size(c->text[BLOCK], e->block);
    fill_which(c->text[WHICH], e->which, plain ? SIZE_MAX : wide);
    for (int i = 0; i < NAME; i++)
        c->at[i] = c->text[i];
    c->at[SLOWEST] = e->of.high > e->of.low ? e->slowest : ""; /* no rank is, if all are alike */
    if (plain)
        c->at[WHICH] = e->which;
    c->at[NAME] = e->name;
}

/* Columns that a narrow terminal loses, in this order: the last ones only if marks replace the content of WHICH, which
 * distinguishes entries of one kernel and shape. */
static const int dispensable[] = {AVERAGE, BLOCK, LOWEST, GRID, RANKS, LAUNCHES, INTERVAL};
enum { DISPENSABLE = sizeof dispensable / sizeof *dispensable, BESIDE_WHICH = DISPENSABLE - 2 };

/* A table being written. */
struct written {
    struct kp_writer *to;
    const struct entries *entries;
    size_t n;            /* of the entries */
    struct cells *cells; /* of these */
    bool hidden[FIELDS];
    bool marked;  /* the column WHICH has marks, which notes below the table explain */
    char **names; /* NULL: in full */
};

static int fill_entries(struct written *s)
{
    if (!(s->cells = calloc(s->n + 1, sizeof *s->cells)))
        return -ENOMEM;
    for (size_t i = 0; i < s->n; i++)
        fill_entry(&s->cells[i], &s->entries->at[i], s->entries->total, s->to->kind->plain, kp_out_wide(&s->to->out));
    return 0;
}

static size_t rank_width(const struct written *s, size_t column)
{
    size_t width = strlen(headings[column]);
    for (size_t i = 0; i < s->n; i++) {
        size_t len = kp_width(s->cells[i].at[column]);
        width = len > width ? len : width;
    }
    return width;
}

/* Returns the first entry whose WHICH is the same: up to `i`. */
static size_t first_of(const struct written *s, size_t i)
{
    size_t first = 0;
    while (strcmp(s->entries->at[first].which, s->entries->at[i].which) != 0)
        first++;
    return first;
}

/* Returns true if entries with other launches have the same cell because their beginnings are cut. */
static bool is_ambiguous(const struct written *s)
{
    for (size_t i = 0; i < s->n; i++)
        for (size_t k = 0; k < i; k++)
            if (!strcmp(s->cells[i].at[WHICH], s->cells[k].at[WHICH]) &&
                strcmp(s->entries->at[i].which, s->entries->at[k].which) != 0)
                return true;
    return false;
}

/* Writes [1], [2], ... into the cells, the same for the same launches. */
static void mark_which(struct written *s)
{
    unsigned marks = 0;
    for (size_t i = 0; i < s->n; i++) {
        size_t first = first_of(s, i);
        if (first < i)
            memcpy(s->cells[i].text[WHICH], s->cells[first].text[WHICH], CELL);
        else if (*s->entries->at[i].which)
            snprintf(s->cells[i].text[WHICH], CELL, "[%u]", ++marks);
    }
    s->marked = marks;
}

static void explain_marks(const struct written *s)
{
    for (size_t i = 0; s->marked && i < s->n; i++)
        if (first_of(s, i) == i && *s->entries->at[i].which)
            kp_write_note(s->to, KP_LEVEL_PAGE, s->cells[i].text[WHICH], s->entries->at[i].which);
}

/* Hides columns so that names have room; returns that room. *fits: all the others do. */
static size_t fit_rank_columns(struct written *s, size_t n, bool *fits)
{
    size_t widths[NAME], wide = kp_out_wide(&s->to->out), used = 1;
    for (size_t i = 0; i < NAME; i++)
        widths[i] = rank_width(s, i);
    if (s->hidden[WHICH]) { /* it needs no room */
        widths[WHICH] = 0;
        wide += KP_PAGE_GAP;
    }
    size_t room = kp_page_fit_columns(widths, NAME, dispensable, n, wide, s->hidden);
    for (size_t i = 0; i < NAME; i++)
        used += s->hidden[i] && i != WHICH ? 0 : widths[i] + KP_PAGE_GAP;
    *fits = used + room <= wide;
    return room;
}

/* Chooses the columns that leave room for names; returns that room. */
static size_t choose_rank_columns(struct written *s)
{
    const bool none = s->hidden[WHICH];
    bool fits;
    size_t room = fit_rank_columns(s, none ? DISPENSABLE : BESIDE_WHICH, &fits);
    if (none || (fits && !is_ambiguous(s)))
        return room;
    memset(s->hidden, 0, sizeof s->hidden);
    mark_which(s);
    return fit_rank_columns(s, DISPENSABLE, &fits);
}

static int shorten_entries(struct written *s, size_t room)
{
    struct kp_long_name *whole = calloc(s->n + 1, sizeof *whole);
    if (!whole)
        return -ENOMEM;
    for (size_t i = 0; i < s->n; i++)
        whole[i] = (struct kp_long_name){s->entries->at[i].name, s->entries->at[i].range, s->entries->at[i].is_text};
    int rc = kp_short_names(whole, s->n, s->n, room, KP_SHORT_SIGNATURE, &s->names);
    free(whole);
    return rc;
}

static void write_table(const struct written *s)
{
    struct kp_column columns[FIELDS];
    size_t shown[FIELDS], n = 0;
    const char *row[FIELDS];
    for (size_t i = 0; i < FIELDS; i++)
        if (!s->hidden[i]) {
            columns[n] = (struct kp_column){headings[i], i, 0, i == NAME};
            shown[n++] = i;
        }
    kp_write_table(s->to, &(struct kp_table){.kind = KP_TABLE_OPEN, .columns = columns, .n = n});
    for (size_t i = 0; i < s->n; i++) {
        if (s->names)
            s->cells[i].at[NAME] = s->names[i];
        for (size_t j = 0; j < n; j++)
            row[j] = s->cells[i].at[shown[j]];
        kp_write_row(s->to, row);
    }
    kp_write_table_end(s->to);
}

/* Says how to read the table, by the columns that it has, and how many rows it lacks. */
static void write_notes(const struct written *s, size_t rest)
{
    char text[256];
    const char *means = s->hidden[LOWEST] ? "Max is" : s->hidden[AVERAGE] ? "Min and Max are" : "Avg, Min and Max are";
    snprintf(text, sizeof text,
             "%s of the ranks' mean durations. The imbalance is how far Max exceeds %s; %s may be chance", means,
             s->hidden[AVERAGE] ? "their average" : "Avg",
             s->hidden[INTERVAL] ? "a wider line has the column +- (%), and one that is not above it"
                                 : "one that is not above its +-");
    kp_write_rest(s->to, rest);
    kp_write_note(s->to, KP_LEVEL_PAGE, NULL, text);
}

static int write_entries(struct kp_writer *w, struct entries *e)
{
    const struct kp_display *d = w->out.display;
    struct written s = {.to = w, .entries = e, .n = d->top && d->top < e->n ? d->top : e->n};
    enum kp_sort sort = d->sort;
    qsort_r(e->at, e->n, sizeof *e->at, by_rank_choice, &sort);
    int rc = fill_entries(&s);
    s.hidden[WHICH] = true;
    for (size_t i = 0; i < e->n; i++)
        s.hidden[WHICH] &= !*e->at[i].which;
    if (!rc && !w->kind->rows)
        rc = shorten_entries(&s, choose_rank_columns(&s));
    if (!rc) {
        kp_write_heading(w, KP_LEVEL_PAGE, "Kernels by rank");
        write_table(&s);
        explain_marks(&s);
        if (!w->kind->rows)
            write_notes(&s, e->n - s.n);
        kp_write_gap(w);
        kp_short_names_free(s.names, s.n);
    }
    free(s.cells);
    return rc;
}

int kp_page_ranks(const struct kp_page *pages, size_t n, struct kp_writer *w)
{
    const struct kp_layout layout = {.start = KP_START_EMPTY, .fields = headings, .n = FIELDS};
    int rc = 0;
    kp_write_begin(w, &layout);
    for (size_t i = 0; !rc && i < n; i++) {
        struct entries e = {.n = 0};
        kp_page_enter(&pages[i], w);
        rc = kp_page_each(&pages[i], add_entry, &e);
        if (!rc && e.n)
            rc = write_entries(w, &e);
        if (!rc && e.without)
            kp_page_tell_without(w, e.without, "launch has", "launches have",
                                 "no durations by rank: `kprof report --ranks FILE...` merges the sessions of ranks "
                                 "that rotation recorded");
        free_entries(&e);
    }
    return rc;
}
