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
#include "report/model/launch_names.h"

enum {
    KERNELS_MAX = 20, /* lines of the table */
    LINE_WIDTH = 120,
    NAME_MIN = 30,   /* least width for a kernel's name */
    NAME_FIRST = 90, /* width of the name in the sentence on what to fix first */
};

enum { TIME, TOTAL, LAUNCHES, BOUND, GAIN, RULE, KERNEL, COLUMNS };
enum { CELL_MAX = KP_NUMBER_MAX + KP_UNIT_MAX };
static const char *const heading[COLUMNS] = {"Time %", "Total Time", "Launches", "Bound by",
                                             "Gain %", "By Rule",    "Kernel"};
static const bool to_the_left[COLUMNS] = {[BOUND] = true, [RULE] = true, [KERNEL] = true};

/* A line of the table. `cell` lacks the kernel's name, whose room depends on the other columns. */
struct line {
    char cell[KERNEL][CELL_MAX];
    char name[LINE_WIDTH + 1];
};

static void fill_line(const struct kp_summary_total *s, const struct kp_summary_kernel *k, struct line *l)
{
    snprintf(l->cell[TIME], CELL_MAX, "%.1f", s->ns > 0 ? 100 * k->ns / s->ns : 0);
    kp_format_quantity(k->ns, "ns", false, l->cell[TOTAL]);
    kp_format_count(k->launches, l->cell[LAUNCHES]);
    snprintf(l->cell[BOUND], CELL_MAX, "%s", *k->bound ? k->bound : "not known");
    *l->cell[GAIN] = '\0';
    if (k->rule) /* kernels far down a long list matter little to the run */
        snprintf(l->cell[GAIN], CELL_MAX, 100 * k->saved_ns < 0.05 * s->ns ? "<0.1" : "%.1f",
                 100 * k->saved_ns / s->ns);
    snprintf(l->cell[RULE], CELL_MAX, "%s", k->rule ? k->rule->id : "");
}

/* --- names that fit --- */

/* Offsets of the parts of a demangled name; all are its end where it has no parts. */
struct parts {
    size_t scoped; /* the function with its scopes, behind the return type */
    size_t function;
    size_t arguments; /* of a template */
    size_t parameters;
};

/* Returns where the bracket that ends before `end` opens; the closing bracket itself if unmatched. */
static size_t opening(const char *name, size_t end)
{
    int depth = 0;
    for (size_t at = end; at--;) {
        depth += strchr(")>]", name[at]) ? 1 : strchr("(<[", name[at]) ? -1 : 0;
        if (!depth)
            return at;
    }
    return end - 1;
}

static struct parts find_parts(const char *name)
{
    size_t end = strlen(name), at;
    struct parts p = {.parameters = end};
    if (end && name[end - 1] == ')')
        p.parameters = end = opening(name, end);
    p.arguments = end;
    if (end && name[end - 1] == '>')
        p.arguments = end = opening(name, end);
    for (at = end; at && name[at - 1] != ':' && name[at - 1] != ' '; at--)
        ;
    p.function = at;
    while (at && name[at - 1] != ' ')
        at = strchr(")>]", name[at - 1]) ? opening(name, at) : at - 1;
    p.scoped = at;
    return p;
}

/* Writes as much of the name as fits into `room`. Drops the return type and parameters first, then scopes, then the
 * end. */
static void cut_name(const char *name, size_t room, char out[LINE_WIDTH + 1])
{
    static const char cut[] = "...", parameters[] = "(...)";
    struct parts p = find_parts(name);
    const char *tail = name[p.parameters] ? parameters : "";
    const size_t starts[] = {p.scoped, p.function};
    if (strlen(name) <= room) {
        snprintf(out, LINE_WIDTH + 1, "%s", name);
        return;
    }
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        if (p.parameters - starts[i] + strlen(tail) <= room) {
            snprintf(out, LINE_WIDTH + 1, "%.*s%s", (int)(p.parameters - starts[i]), name + starts[i], tail);
            return;
        }
    snprintf(out, LINE_WIDTH + 1, "%.*s%s", (int)(room - strlen(cut)), name + p.function, cut);
}

static size_t common(const char *a, const char *b)
{
    size_t n = 0;
    while (a[n] && a[n] == b[n])
        n++;
    return n;
}

/* Writes the function, and the name from `differs` on: the only part that distinguishes it from another one. */
static void cut_to_difference(const char *name, size_t differs, size_t room, char out[LINE_WIDTH + 1])
{
    static const char cut[] = "...";
    struct parts p = find_parts(name);
    size_t head = p.arguments - p.function, gap = strlen(cut);
    if (head > room / 2)
        head = room / 2;
    for (size_t back = 0; differs && back < room / 8 && !strchr(" ,<", name[differs - 1]); back++)
        differs--; /* moves to the begin of the word */
    int left = (int)(room - head - 2 * gap);
    bool ends = strlen(name + differs) <= (size_t)left + gap;
    snprintf(out, LINE_WIDTH + 1, "%.*s%s%.*s%s", (int)head, name + p.function, cut, ends ? left + (int)gap : left,
             name + differs, ends ? "" : cut);
}

/* Cuts a name; `differs` 0: the name begins where it does. A range before it has at most half of the room. */
static void cut_at(const struct kp_summary_kernel *k, size_t differs, size_t room, char out[LINE_WIDTH + 1])
{
    size_t range = strlen(k->name) > room ? k->range : 0;
    size_t used = kp_range_cut(k->name, range, room / 2, out);
    char name[LINE_WIDTH + 1];
    if (differs > range)
        cut_to_difference(k->name + range, differs - range, room - used, name);
    else
        cut_name(k->name + range, room - used, name);
    strcpy(out + used, name); /* fits: not longer than the room */
    kp_blank_controls(out, strlen(out));
}

/* Names kernel `which` so that it differs from the others. Cuts at the first difference from those that look the
 * same. Where it still looks like some of them, cuts at the next difference. */
static void name_kernel(const struct kp_summary_kernel *kernels, size_t n, size_t which, size_t room,
                        char out[LINE_WIDTH + 1])
{
    const char *name = kernels[which].name;
    char other[LINE_WIDTH + 1];
    size_t differs = 0, next = 0;
    do {
        differs = next;
        next = SIZE_MAX;
        cut_at(&kernels[which], differs, room, out);
        for (size_t i = 0; i < n; i++) {
            size_t same = i == which ? SIZE_MAX : common(name, kernels[i].name);
            if (same <= differs || same >= next) /* already visible, or behind another difference */
                continue;
            cut_at(&kernels[i], differs, room, other);
            if (!strcmp(out, other))
                next = same;
        }
    } while (next != SIZE_MAX);
}

static void print_line(FILE *f, const int width[COLUMNS], const char *const cell[COLUMNS])
{
    fprintf(f, "  ");
    for (int i = 0; i < KERNEL; i++)
        fprintf(f, to_the_left[i] ? "%-*s " : "%*s ", width[i], cell[i]);
    fprintf(f, "%s\n", cell[KERNEL]);
}

static void print_dashes(FILE *f, const int width[COLUMNS])
{
    static const char dashes[] = "------------------------------------------------------------";
    const char *cell[COLUMNS];
    char rule[COLUMNS][sizeof dashes];
    for (int i = 0; i < COLUMNS; i++) {
        snprintf(rule[i], sizeof rule[i], "%.*s", width[i], dashes);
        cell[i] = rule[i];
    }
    print_line(f, width, cell);
}

/* Measures the columns before the kernel's name; returns the room left for the name. */
static size_t measure(const struct line *lines, size_t n, int width[COLUMNS])
{
    size_t used = 2;
    for (int i = 0; i < KERNEL; i++) {
        width[i] = (int)strlen(heading[i]);
        for (size_t j = 0; j < n; j++)
            if ((int)strlen(lines[j].cell[i]) > width[i])
                width[i] = (int)strlen(lines[j].cell[i]);
        used += (size_t)width[i] + 1;
    }
    width[KERNEL] = (int)strlen(heading[KERNEL]);
    return used + NAME_MIN < LINE_WIDTH ? LINE_WIDTH - used : NAME_MIN;
}

static void print_table(FILE *f, struct line *lines, const struct kp_summary_kernel *kernels, size_t n)
{
    int width[COLUMNS];
    const char *cell[COLUMNS];
    size_t room = measure(lines, n, width);
    print_dashes(f, width);
    print_line(f, width, heading);
    print_dashes(f, width);
    for (size_t j = 0; j < n; j++) {
        for (int i = 0; i < KERNEL; i++)
            cell[i] = lines[j].cell[i];
        name_kernel(kernels, n, j, room, lines[j].name);
        cell[KERNEL] = lines[j].name;
        print_line(f, width, cell);
    }
    print_dashes(f, width);
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

static void print_wrapped(FILE *f, const char *head, const char *text)
{
    struct kp_wrap wrap = {text, LINE_WIDTH - strlen(head)};
    const char *line;
    int indent = (int)strlen(head);
    size_t len;
    for (; kp_wrap_next(&wrap, &line, &len); head = "")
        fprintf(f, "%-*s%.*s\n", indent, head, (int)len, line);
}

static int print_first(FILE *f, const struct kp_summary_total *s)
{
    size_t first = fix_first(s);
    const struct kp_summary_kernel *k = &s->kernels[first];
    const char *by = *k->bound ? ", bound by " : "";
    char name[LINE_WIDTH + 1], *text;
    name_kernel(s->kernels, s->n, first, NAME_FIRST, name);
    int len = k->rule ? asprintf(&text,
                                 "%s%s%s: rule %s (%s) would save up to %.1f%% of the run's GPU time (%.1f%% of "
                                 "this kernel's)",
                                 name, by, k->bound, k->rule->id, k->section->display, 100 * k->saved_ns / s->ns,
                                 100 * k->saved_ns / k->ns)
                      : asprintf(&text, "%s%s%s: no rule names a gain for a whole kernel", name, by, k->bound);
    if (len < 0)
        return -ENOMEM;
    print_wrapped(f, k->rule ? "==KPROF== Fix first: " : "==KPROF== Look first at: ", text);
    free(text);
    return 0;
}

static void print_totals(FILE *f, const struct kp_summary_total *s, size_t shown)
{
    char total[CELL_MAX];
    kp_format_quantity(s->ns, "ns", false, total);
    fprintf(f, "==KPROF== %" PRIu64 " %s of %zu %s, %s of GPU time; gains are of the run", s->launches,
            s->launches == 1 ? "launch" : "launches", s->n, s->n == 1 ? "kernel" : "kernels", total);
    fprintf(f, shown < s->n ? "; the %zu longest:\n" : "\n", shown);
}

static int print_all(FILE *f, const struct kp_summary_total *s, struct line *lines)
{
    size_t shown = s->n < KERNELS_MAX ? s->n : KERNELS_MAX;
    int rc = print_first(f, s);
    if (rc)
        return rc;
    for (size_t i = 0; i < shown; i++)
        fill_line(s, &s->kernels[i], &lines[i]);
    print_totals(f, s, shown);
    print_table(f, lines, s->kernels, shown);
    return 0;
}

int kp_run_summary_print(const struct kp_summary *summary, const struct kp_sink *out)
{
    char *text = NULL;
    size_t size = 0;
    struct kp_summary_total s;
    int rc = kp_summary_total(summary, &s);
    if (rc || !s.n)
        return rc;
    struct line *lines = malloc(KERNELS_MAX * sizeof *lines);
    FILE *f = lines ? open_memstream(&text, &size) : NULL;
    rc = f ? 0 : -ENOMEM;
    if (f) {
        locale_t before = kp_plain_begin();
        rc = print_all(f, &s, lines);
        kp_plain_end(before);
        rc = kp_text_end(f, &text) ? -ENOMEM : rc;
    }
    if (!rc)
        rc = out->write(out->arg, text, size);
    free(text);
    free(lines);
    kp_summary_total_free(&s);
    return rc;
}
