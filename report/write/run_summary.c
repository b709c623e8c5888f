#include "report/write/run_summary.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/plain.h"
#include "base/text.h"
#include "base/wrap.h"
#include "report/define/units.h"
#include "report/model/short_names.h"
#include "report/view/order.h"

enum {
    NAME_MIN = 30,   /* least width for a kernel's name */
    NAME_FIRST = 90, /* width of the name in the sentence on what to fix first */
    RULE_LEAST = 10, /* least width for a rule's name, with which rules stay different */
    NAME_SHORT = 20, /* width of a kernel's name up to which rules give way */
};

enum { TIME, TOTAL, LAUNCHES, BOUND, GAIN, RULE, KERNEL, COLUMNS };
enum { CELL_MAX = KP_NUMBER_MAX + KP_UNIT_MAX };
static const char *const heading[COLUMNS] = {"Time %", "Total Time", "Launches", "Bound by",
                                             "Gain %", "By Rule",    "Kernel"};
static const bool to_the_left[COLUMNS] = {[BOUND] = true, [RULE] = true, [KERNEL] = true};
/* Columns that a narrow terminal loses, in this order: others say nearly the same. */
static const int dispensable[] = {TOTAL, LAUNCHES};

/* A line of the table, without the kernel's name, whose room depends on the other columns. */
struct line {
    char cell[KERNEL][CELL_MAX];
};

/* The table; a column of width 0 is left out. */
struct table {
    FILE *to;
    struct line *lines;
    char **names;
    size_t n;
    int width[COLUMNS];
};

static void fill_line(const struct kp_summary_total *s, const struct kp_summary_kernel *k, bool base_units,
                      struct line *l)
{
    snprintf(l->cell[TIME], CELL_MAX, "n/a");
    snprintf(l->cell[TOTAL], CELL_MAX, "n/a");
    if (k->timed) {
        snprintf(l->cell[TIME], CELL_MAX, "%.1f", s->ns > 0 ? 100 * k->ns / s->ns : 0);
        kp_format_quantity(k->ns, "ns", base_units, l->cell[TOTAL]);
    }
    kp_format_count(k->launches, l->cell[LAUNCHES]);
    snprintf(l->cell[BOUND], CELL_MAX, "%s", *k->bound ? k->bound : "not known");
    *l->cell[GAIN] = '\0';
    if (k->rule) /* kernels far down a long list matter little to the run */
        snprintf(l->cell[GAIN], CELL_MAX, 100 * k->saved_ns < 0.05 * s->ns ? "<0.1" : "%.1f",
                 100 * k->saved_ns / s->ns);
    snprintf(l->cell[RULE], CELL_MAX, "%s", k->rule ? k->rule->id : "");
}

static void print_row_cells(const struct table *t, const char *const cell[COLUMNS])
{
    fprintf(t->to, "  ");
    for (int i = 0; i < KERNEL; i++)
        if (t->width[i])
            fprintf(t->to, to_the_left[i] ? "%-*s " : "%*s ", t->width[i], cell[i]);
    fprintf(t->to, "%s\n", cell[KERNEL]);
}

static void print_dashes(const struct table *t)
{
    static const char dashes[] = "------------------------------------------------------------";
    const char *cell[COLUMNS];
    char rule[COLUMNS][sizeof dashes];
    for (int i = 0; i < COLUMNS; i++) {
        snprintf(rule[i], sizeof rule[i], "%.*s", t->width[i], dashes);
        cell[i] = rule[i];
    }
    print_row_cells(t, cell);
}

static bool is_begin_of_word(const char *at)
{
    return *at >= 'A' && *at <= 'Z';
}

/* Removes a letter from the longest word of a name like LaunchConfiguration. */
static void shorten_longest_word(char *name)
{
    char *longest = name;
    size_t most = 0;
    for (char *at = name; *at;) {
        char *end = at + 1;
        while (*end && !is_begin_of_word(end))
            end++;
        if ((size_t)(end - at) > most) {
            most = (size_t)(end - at);
            longest = at;
        }
        at = end;
    }
    memmove(longest + most - 1, longest + most, strlen(longest + most) + 1);
}

/* Makes room for names by shorter names of rules; without enough for these, the column is left out. Returns the width
 * of the columns before the name, which was `used`. */
static size_t narrow_rules(struct table *t, size_t used, size_t line)
{
    size_t others = used - (size_t)t->width[RULE] - 1, left = line > others ? line - others : 0;
    if (used + NAME_SHORT <= line)
        return used;
    if (left < RULE_LEAST + 1 + KP_SHORT_ROOM_MIN) { /* the line above the table names the rule that matters */
        t->width[RULE] = 0;
        return others;
    }
    int room = (int)left - NAME_SHORT - 1;
    t->width[RULE] = room < RULE_LEAST ? RULE_LEAST : room;
    for (size_t j = 0; j < t->n; j++)
        while ((int)strlen(t->lines[j].cell[RULE]) > t->width[RULE])
            shorten_longest_word(t->lines[j].cell[RULE]);
    return others + (size_t)t->width[RULE] + 1;
}

/* Measures the columns before the kernel's name; returns the room left for the name. */
static size_t measure(struct table *t, size_t line)
{
    size_t used = 2;
    for (int i = 0; i < KERNEL; i++) {
        t->width[i] = (int)strlen(heading[i]);
        for (size_t j = 0; j < t->n; j++)
            if ((int)strlen(t->lines[j].cell[i]) > t->width[i])
                t->width[i] = (int)strlen(t->lines[j].cell[i]);
        used += (size_t)t->width[i] + 1;
    }
    t->width[KERNEL] = (int)strlen(heading[KERNEL]);
    for (size_t i = 0; i < sizeof dispensable / sizeof *dispensable && used + NAME_MIN > line; i++) {
        used -= (size_t)t->width[dispensable[i]] + 1;
        t->width[dispensable[i]] = 0;
    }
    used = narrow_rules(t, used, line);
    if (!t->width[RULE] && used + KP_SHORT_ROOM_MIN > line) { /* a gain is that of the rule, which is not shown */
        used -= (size_t)t->width[GAIN] + 1;
        t->width[GAIN] = 0;
    }
    return used + KP_SHORT_ROOM_MIN < line ? line - used : KP_SHORT_ROOM_MIN;
}

static void print_table(const struct table *t)
{
    const char *cell[COLUMNS];
    print_dashes(t);
    print_row_cells(t, heading);
    print_dashes(t);
    for (size_t j = 0; j < t->n; j++) {
        for (int i = 0; i < KERNEL; i++)
            cell[i] = t->lines[j].cell[i];
        cell[KERNEL] = t->names[j];
        print_row_cells(t, cell);
    }
    print_dashes(t);
}

/* Shortens the names of the first `n` kernels; free them with kp_short_names_free. */
static int name_kernels(const struct kp_summary_total *s, size_t n, size_t room, char ***names)
{
    struct kp_long_name *whole = calloc(s->n, sizeof *whole);
    if (!whole)
        return -ENOMEM;
    for (size_t i = 0; i < s->n; i++)
        whole[i] = (struct kp_long_name){s->kernels[i].name, s->kernels[i].range, s->kernels[i].is_text};
    int rc = kp_short_names(whole, s->n, n, room, KP_SHORT_SIGNATURE, names);
    free(whole);
    return rc;
}

/* Returns the kernel whose best rule saves most of the run; the longest kernel if no rule saves anything. */
static size_t fix_first(const struct kp_summary_total *s)
{
    size_t first = 0;
    double most = 0;
    for (size_t i = 0; i < s->n; i++)
        if (s->kernels[i].rule && s->kernels[i].saved_ns > most) {
            most = s->kernels[i].saved_ns;
            first = i;
        }
    return first;
}

static void print_wrapped(FILE *f, const struct kp_out *o, const char *mark, const char *label, const char *text)
{
    int indent = (int)(strlen(mark) + strlen(label));
    struct kp_wrap wrap = {text, kp_out_prose(o, (size_t)indent)};
    const char *line, *paint = kp_paint(o, KP_PAINT_LABEL), *plain = kp_paint(o, KP_PAINT_NONE);
    size_t len;
    fprintf(f, "%s%s%s%s", mark, paint, label, plain);
    for (int first = 1; kp_wrap_next(&wrap, &line, &len); first = 0)
        fprintf(f, "%*s%.*s\n", first ? 0 : indent, "", (int)len, line);
}

static int print_first(FILE *f, const struct kp_out *o, const struct kp_summary_total *s)
{
    size_t first = fix_first(s), room = kp_out_width(o) - KP_LINE_WIDTH + NAME_FIRST;
    const struct kp_summary_kernel *k = &s->kernels[first];
    const char *by = *k->bound ? ", bound by " : "";
    char **names, *text;
    int rc = name_kernels(s, s->n, room, &names);
    if (rc)
        return rc;
    const char *name = names[first];
    int len = k->rule
                  ? asprintf(&text, "%s%s%s: rule %s (%s) would save up to %.1f%% of the GPU time shown (%.1f%% of %s)",
                             name, by, k->bound, k->rule->id, k->section->display, 100 * k->saved_ns / s->ns,
                             100 * k->saved_ns / k->ns, k->is_text ? "its own" : "this kernel's")
                  : asprintf(&text, "%s%s%s; no rule estimates a gain for a whole kernel", name, by, k->bound);
    kp_short_names_free(names, s->n);
    if (len < 0)
        return -ENOMEM;
    print_wrapped(f, o, "==KPROF== ", k->rule ? "Fix first: " : "Look first at: ", text);
    free(text);
    return 0;
}

static bool in_base_units(const struct kp_out *o)
{
    return o->display && o->display->base_units;
}

/* Returns what the rows of the table are. */
static const char *kind_of(const struct kp_summary_total *s)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->kernels[i].is_text)
            return "workload"; /* a graph or a range is none */
    return "kernel";
}

static void print_totals(FILE *f, const struct kp_summary_total *s, size_t shown, enum kp_sort sort, bool base_units)
{
    static const char *const first[kp_sort_values] = {[KP_SORT_TIME] = "the %zu longest:",
                                                      [KP_SORT_GAIN] = "the %zu with the highest gain:",
                                                      [KP_SORT_DURATION] = "the %zu of the longest launches:",
                                                      [KP_SORT_NAME] = "the first %zu by name:"};
    static const char *const one[kp_sort_values] = {[KP_SORT_TIME] = "the longest:",
                                                    [KP_SORT_GAIN] = "the one with the highest gain:",
                                                    [KP_SORT_DURATION] = "the one of the longest launches:",
                                                    [KP_SORT_NAME] = "the first by name:"};
    const enum kp_sort by = s->timed ? sort : KP_SORT_NAME; /* all times are alike: names are the order */
    char total[CELL_MAX];
    uint64_t untimed = s->launches - s->timed;
    kp_format_quantity(s->ns, "ns", base_units, total);
    fprintf(f, "==KPROF== %" PRIu64 " %s of %zu %s%s, ", s->launches, s->launches == 1 ? "launch" : "launches", s->n,
            kind_of(s), s->n == 1 ? "" : "s");
    if (!s->timed)
        fputs("without a duration", f);
    else
        fprintf(f, "%s of GPU time; gains are of that", total);
    if (s->timed && untimed)
        fprintf(f, "; %" PRIu64 " %s no duration", untimed, untimed == 1 ? "launch has" : "launches have");
    fputs(shown < s->n ? "; " : "", f);
    if (shown < s->n && shown == 1)
        fputs(one[by], f);
    else if (shown < s->n)
        fprintf(f, first[by], shown);
    fputc('\n', f);
}

static int print_kernels(FILE *f, const struct kp_out *o, const struct kp_summary_total *s, size_t shown)
{
    struct table t = {.to = f, .lines = malloc(shown * sizeof *t.lines), .n = shown};
    if (!t.lines)
        return -ENOMEM;
    for (size_t i = 0; i < shown; i++)
        fill_line(s, &s->kernels[i], in_base_units(o), &t.lines[i]);
    int rc = name_kernels(s, shown, measure(&t, kp_out_wide(o)), &t.names);
    if (!rc)
        print_table(&t);
    if (!rc)
        kp_short_names_free(t.names, shown);
    free(t.lines);
    return rc;
}

static int compare(const void *a, const void *b, void *sort)
{
    const struct kp_summary_kernel *x = a, *y = b;
    return kp_order(&(struct kp_ordered){x->name, x->ns, x->saved_ns, x->timed},
                    &(struct kp_ordered){y->name, y->ns, y->saved_ns, y->timed}, *(const enum kp_sort *)sort);
}

static int print_all(FILE *f, const struct kp_out *o, struct kp_summary_total *s)
{
    enum kp_sort sort = o->display ? o->display->sort : KP_SORT_TIME;
    size_t top = o->display ? o->display->top : 0, shown = top && top < s->n ? top : s->n;
    int rc = s->timed ? print_first(f, o, s) : 0; /* without times no kernel is the first */
    if (rc)
        return rc;
    qsort_r(s->kernels, s->n, sizeof *s->kernels, compare, &sort);
    print_totals(f, s, shown, sort, in_base_units(o));
    return print_kernels(f, o, s, shown);
}

int kp_write_run_summary(const struct kp_summary *summary, const struct kp_out *o)
{
    char *text = NULL;
    size_t size = 0;
    struct kp_summary_total s;
    int rc = kp_summary_total(summary, &s);
    if (rc || !s.n)
        return rc;
    FILE *f = open_memstream(&text, &size);
    rc = f ? 0 : -ENOMEM;
    if (f) {
        locale_t before = kp_plain_begin();
        rc = print_all(f, o, &s);
        kp_plain_end(before);
        rc = kp_text_end(f, &text) ? -ENOMEM : rc;
    }
    if (!rc)
        rc = o->sink->write(o->sink->arg, text, size);
    free(text);
    kp_summary_total_free(&s);
    return rc;
}
