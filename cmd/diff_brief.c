#include "cmd/diff_brief.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/define/units.h"
#include "report/model/short_names.h"
#include "report/write/columns.h"

enum { A, B };
enum { CHANGE, SPREAD, PERCENT, TIME_A, TIME_B, LAUNCHES, KERNEL, COLUMNS };
enum {
    CELL = 2 * KP_NUMBER_MAX + KP_UNIT_MAX,
    NAME_LEAST = 24, /* room for names up to which other columns give way */
    TOP_AUTO = 12,   /* of each list: with what stands around them, this is one screen */
};

/* Columns that a narrow terminal loses, in this order. */
static const int dispensable[] = {LAUNCHES, TIME_A, SPREAD};

/* --- order --- */

static double mean(const struct kp_diff_kernel *k, int side)
{
    return k->launches[side] ? k->ns[side] / (double)k->launches[side] : 0;
}

static double of_all(const struct kp_diff_kernel *k)
{
    return k->ns[B] - k->ns[A];
}

static double of_mean(const struct kp_diff_kernel *k)
{
    return mean(k, B) - mean(k, A);
}

/* Returns the change in percent; a kernel that A lacks changes by infinity. */
static double percent(double a, double b)
{
    return a > 0 ? (b - a) / a * 100 : b > 0 ? INFINITY : 0;
}

static double of_share(const struct kp_diff_kernel *k)
{
    return percent(k->ns[A], k->ns[B]);
}

/* What says whether a kernel became slower, and by how much; names have an order of their own. */
static double (*const changes[kp_sort_values])(const struct kp_diff_kernel *k) = {
    [KP_SORT_TIME] = of_all,
    [KP_SORT_GAIN] = of_share,
    [KP_SORT_DURATION] = of_mean,
    [KP_SORT_NAME] = of_all,
};

/* Returns the time that is compared: of all launches, or of one. */
static double time_of(const struct kp_diff_kernel *k, int side, enum kp_sort sort)
{
    return sort == KP_SORT_DURATION ? mean(k, side) : k->ns[side];
}

/* Returns true if the times differ by no more than the spread of single launches explains (95 %). */
static bool is_within_spread(const struct kp_diff_kernel *k)
{
    return fabs(of_all(k)) <= k->half; /* false for NaN */
}

static bool kernel_changed(const struct kp_diff_kernel *k, double threshold, enum kp_sort sort)
{
    return !is_within_spread(k) && !(fabs(percent(time_of(k, A, sort), time_of(k, B, sort))) <= threshold);
}

/* The groups in their order. */
enum { SLOWER, FASTER, SAME, UNTIMED, GROUPS };

/* What is sorted: slower kernels first, then faster ones, those without a change, those without all durations. */
struct order {
    enum kp_sort sort;
    double threshold;
};

static int group_of(const struct kp_diff_kernel *k, const struct order *o)
{
    if (k->timed[A] != k->launches[A] || k->timed[B] != k->launches[B])
        return UNTIMED;
    return !kernel_changed(k, o->threshold, o->sort) ? SAME : changes[o->sort](k) > 0 ? SLOWER : FASTER;
}

static int compare_kernels(const void *a, const void *b, void *arg)
{
    const struct kp_diff_kernel *x = a, *y = b;
    const struct order *o = arg;
    int groups = group_of(x, o) - group_of(y, o);
    double left = fabs(changes[o->sort](x)), right = fabs(changes[o->sort](y));
    if (groups)
        return groups;
    if (o->sort != KP_SORT_NAME && left != right)
        return left < right ? 1 : -1;
    return strcmp(x->name, y->name);
}

/* --- a list --- */

struct line {
    char cell[KERNEL][CELL];
};

struct list {
    const struct kp_diff_brief *brief;
    const struct kp_diff_kernel *at;
    size_t n, shown;
    char *const *names; /* among those shown */
    struct line *lines; /* likewise; owned */
    bool hidden[COLUMNS];
};

/* Returns true if a shown kernel has a spread. */
static bool tells_spread(const struct list *l)
{
    for (size_t i = 0; i < l->shown; i++)
        if (!isnan(l->at[i].half))
            return true;
    return false;
}

static void fill_line(const struct kp_diff_kernel *k, const struct kp_display *d, struct line *l)
{
    char time[KP_NUMBER_MAX + KP_UNIT_MAX], few[KP_NUMBER_MAX], many[KP_NUMBER_MAX];
    const double ns[] = {time_of(k, A, d->sort), time_of(k, B, d->sort)};
    double change = ns[B] - ns[A], by = percent(ns[A], ns[B]);
    kp_format_quantity(fabs(change), "ns", d->base_units, time);
    snprintf(l->cell[CHANGE], CELL, "%s%s", change > 0 ? "+" : change < 0 ? "-" : "", time);
    double half = d->sort == KP_SORT_DURATION && k->launches[A] ? k->half / (double)k->launches[A] : k->half;
    kp_format_quantity(half, "ns", d->base_units, time);
    snprintf(l->cell[SPREAD], CELL, "%s", isnan(half) ? "-" : time);
    if (!k->launches[A] || !k->launches[B])
        snprintf(l->cell[PERCENT], CELL, "%s", k->launches[A] ? "gone" : "new");
    else
        snprintf(l->cell[PERCENT], CELL, isfinite(by) ? "%+.1f" : "n/a", by);
    for (int side = A; side <= B; side++) {
        kp_format_quantity(ns[side], "ns", d->base_units, time);
        snprintf(l->cell[TIME_A + side], CELL, "%s", k->launches[side] ? time : "-");
    }
    kp_format_count(k->launches[A], few);
    kp_format_count(k->launches[B], many);
    snprintf(l->cell[LAUNCHES], CELL, k->launches[A] == k->launches[B] ? "%s" : "%s -> %s", few, many);
}

static const char *heading_of(const struct kp_diff_brief *b, int column, char letter[2])
{
    static const char *const headings[COLUMNS] = {"Change", "+/-", "Change %", "", "", "Launches", "Kernel"};
    if (column != TIME_A && column != TIME_B)
        return headings[column];
    snprintf(letter, 2, "%c", b->letter[column - TIME_A]);
    return letter;
}

/* Leaves out columns until names have room; returns that room. */
static size_t leave_out_columns(const struct kp_out *o, struct list *l)
{
    size_t width[KERNEL], used = KP_INDENT, wide = kp_out_wide(o);
    bool *hidden = l->hidden;
    char letter[2];
    static const struct kp_diff_brief none = {.letter = "AB"};
    for (int i = 0; i < KERNEL; i++) {
        width[i] = strlen(heading_of(&none, i, letter));
        for (size_t j = 0; j < l->shown; j++)
            width[i] = strlen(l->lines[j].cell[i]) > width[i] ? strlen(l->lines[j].cell[i]) : width[i];
        used += hidden[i] ? 0 : width[i] + 1;
    }
    for (size_t i = 0; i < sizeof dispensable / sizeof *dispensable && used + NAME_LEAST > wide; i++) {
        used -= hidden[dispensable[i]] ? 0 : width[dispensable[i]] + 1;
        hidden[dispensable[i]] = true;
    }
    return used + KP_SHORT_ROOM_MIN < wide ? wide - used : KP_SHORT_ROOM_MIN;
}

static void print_table(struct kp_out *o, const struct list *l)
{
    static const struct kp_columns_look look = {KP_INDENT, 1, true};
    const char *headings[COLUMNS], *cells[COLUMNS];
    char letters[COLUMNS][2];
    bool left[COLUMNS];
    struct kp_columns c = {.headings = headings, .to_the_left = left};
    for (int i = 0; i < COLUMNS; i++)
        if (!l->hidden[i]) {
            left[c.n] = i == KERNEL;
            headings[c.n++] = heading_of(l->brief, i, letters[i]);
        }
    for (size_t j = 0; !o->rc && j < l->shown; j++) {
        size_t n = 0;
        for (int i = 0; i < COLUMNS; i++)
            if (!l->hidden[i])
                cells[n++] = i == KERNEL ? l->names[j] : l->lines[j].cell[i];
        o->rc = kp_columns_add(&c, cells);
    }
    kp_columns_print(o, &c, &look);
    kp_columns_free(&c);
}

static void print_list_head(struct kp_out *o, const struct list *l, const char *what)
{
    static const char *const by[kp_sort_values] = {[KP_SORT_TIME] = "by change of time",
                                                   [KP_SORT_GAIN] = "by change in percent",
                                                   [KP_SORT_DURATION] = "by change of a launch on average",
                                                   [KP_SORT_NAME] = "by name"};
    char number[KP_NUMBER_MAX], time[KP_NUMBER_MAX + KP_UNIT_MAX];
    double sum = 0;
    for (size_t i = 0; i < l->n; i++)
        sum += of_all(&l->at[i]);
    kp_format_count(l->n, number);
    kp_format_quantity(fabs(sum), "ns", o->display->base_units, time);
    kp_out_print(o, "==KPROF== %s in %c: %s %s", what, l->brief->letter[B], number, l->n == 1 ? "kernel" : "kernels");
    if (o->display->sort != KP_SORT_DURATION)
        kp_out_print(o, ", together %s%s", sum > 0 ? "+" : sum < 0 ? "-" : "", time);
    kp_out_print(o, ", %s", by[o->display->sort]);
    if (l->shown < l->n)
        kp_out_print(o, "; the first %zu, --top 0 lists all", l->shown);
    kp_out_print(o, "\n");
}

static void print_list(struct kp_out *o, const struct list *l, const char *what)
{
    print_list_head(o, l, what);
    if (l->shown)
        print_table(o, l);
    kp_out_print(o, "\n");
}

/* --- both lists --- */

/* Fills the lines of both lists. Returns the least room that names have in one of them; 0 without memory. */
static size_t fill_lines(struct kp_out *o, struct list lists[2])
{
    size_t least = SIZE_MAX;
    for (struct list *l = lists; l < lists + 2; l++) {
        l->lines = calloc(l->shown + 1, sizeof *l->lines);
        if (!kp_out_has(o, l->lines))
            return 0;
        for (size_t j = 0; j < l->shown; j++)
            fill_line(&l->at[j], o->display, &l->lines[j]);
        l->hidden[SPREAD] = !tells_spread(l);
        size_t room = leave_out_columns(o, l);
        least = room < least ? room : least;
    }
    return least;
}

/* Shortens the names of all that both lists show, so that they differ from each other. */
static char **short_names(const struct kp_diff_brief *b, const struct list lists[2], size_t room)
{
    struct kp_long_name *whole = calloc(b->n + 1, sizeof *whole);
    char **names = NULL;
    size_t n = 0;
    for (int part = 0; whole && part < 2; part++) /* the shown ones first */
        for (size_t i = 0; i < b->n; i++) {
            const struct kp_diff_kernel *k = &b->kernels[i];
            bool shown = false;
            for (int list = 0; list < 2; list++)
                shown |= k >= lists[list].at && k < lists[list].at + lists[list].shown;
            if (shown == !part)
                whole[n++] = (struct kp_long_name){k->name, 0, k->is_text};
        }
    size_t shown = lists[0].shown + lists[1].shown;
    if (whole && kp_short_names(whole, n, shown, room, KP_SHORT_SIGNATURE, &names))
        names = NULL;
    free(whole);
    return names;
}

static bool any_is_within_spread(const struct kp_diff_brief *b)
{
    for (size_t i = 0; i < b->n; i++)
        if (is_within_spread(&b->kernels[i]) && b->kernels[i].half > 0)
            return true;
    return false;
}

/* Prints how many kernels are in neither list, and what they come to together. */
static void print_same(struct kp_out *o, const struct kp_diff_brief *b, const struct kp_diff_kernel *at, size_t n)
{
    char time[KP_NUMBER_MAX + KP_UNIT_MAX];
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += of_all(&at[i]);
    kp_format_quantity(fabs(sum), "ns", o->display->base_units, time);
    kp_out_print(o, "==KPROF== %zu %s changed by no more than %g%%%s, together %s%s\n", n,
                 n == 1 ? "kernel" : "kernels", b->threshold,
                 any_is_within_spread(b) ? ", or than launches vary (+/-, 95 %)" : "",
                 sum > 0   ? "+"
                 : sum < 0 ? "-"
                           : "",
                 time);
}

static void print_both(struct kp_out *o, const struct kp_diff_brief *b, struct list lists[2], char **names,
                       const size_t count[GROUPS])
{
    lists[0].names = names;
    lists[1].names = names + lists[0].shown;
    print_list(o, &lists[0], "Slower");
    print_list(o, &lists[1], "Faster");
    if (count[SAME])
        print_same(o, b, b->kernels + count[SLOWER] + count[FASTER], count[SAME]);
    if (count[UNTIMED])
        kp_out_print(o, "==KPROF== %zu %s launches without a duration, and %s not compared\n", count[UNTIMED],
                     count[UNTIMED] == 1 ? "kernel has" : "kernels have", count[UNTIMED] == 1 ? "is" : "are");
    kp_short_names_free(names, lists[0].shown + lists[1].shown);
}

void kp_diff_brief_print(struct kp_out *o, const struct kp_diff_brief *b)
{
    struct order order = {o->display->sort, b->threshold};
    size_t count[GROUPS] = {0}, top = o->display->top;
    if (o->display->screen && top > TOP_AUTO)
        top = TOP_AUTO;
    if (b->n)
        qsort_r(b->kernels, b->n, sizeof *b->kernels, compare_kernels, &order);
    for (size_t i = 0; i < b->n; i++)
        count[group_of(&b->kernels[i], &order)]++;
    struct list lists[2] = {{.brief = b, .at = b->kernels, .n = count[SLOWER]},
                            {.brief = b, .at = b->kernels + count[SLOWER], .n = count[FASTER]}};
    for (int i = 0; i < 2; i++)
        lists[i].shown = top && top < lists[i].n ? top : lists[i].n;
    size_t room = fill_lines(o, lists);
    char **names = room ? short_names(b, lists, room) : NULL;
    if (kp_out_has(o, names))
        print_both(o, b, lists, names, count);
    free(lists[0].lines);
    free(lists[1].lines);
}
