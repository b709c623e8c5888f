#include "report/write/drawings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/width.h"
#include "base/wrap.h"
#include "report/define/units.h"
#include "report/write/cells.h"
#include "report/write/columns.h"

enum { VALUE_WIDTH_MAX = 30 /* longer values are wrapped on a terminal, and else reach further */, LABEL_LEAST = 20 };

/* The texts of one line. */
struct cells {
    char *label, *instances;
    const char *value; /* `number`, `instances`, or text of the metric */
    char number[2 * KP_NUMBER_MAX], unit[KP_UNIT_MAX];
};

struct widths {
    size_t label, unit, value;
};

static size_t widest(size_t width, const char *text)
{
    size_t n = kp_width(text);
    return n > width ? n : width;
}

static void print_rule(struct kp_out *o, const struct widths *w)
{
    kp_out_repeat(o, ' ', KP_INDENT);
    kp_out_repeat(o, '-', w->label);
    kp_out_text(o, " ", 1);
    kp_out_repeat(o, '-', w->unit);
    kp_out_text(o, " ", 1);
    kp_out_repeat(o, '-', w->value);
    kp_out_text(o, "\n", 1);
}

static void print_line(struct kp_out *o, const struct widths *w, const char *label, const char *unit, const char *value)
{
    struct kp_wrap wrap = {value, kp_out_breaks(o) ? w->value : SIZE_MAX};
    const char *part = "";
    size_t len = 0;
    bool more = kp_wrap_next(&wrap, &part, &len);
    if (kp_width(label) > w->label && !strchr(label, ' ')) { /* a metric's name stays one word, to be searched for */
        kp_out_print(o, "    %s\n", label);
        label = "";
    }
    while (more || *label) {
        size_t shown = kp_columns_piece(label, w->label);
        kp_out_print(o, "    %.*s", (int)shown, label);
        if (more) {
            kp_out_repeat(o, ' ', kp_columns_pad(label, shown, w->label));
            kp_out_print(o, " %*s ", kp_width_printf(unit, w->unit), unit);
            kp_out_repeat(o, ' ', kp_columns_pad(part, len, w->value));
            kp_out_print(o, "%.*s", (int)len, part);
        }
        kp_out_text(o, "\n", 1);
        label += shown;
        unit = "";
        more = more && kp_wrap_next(&wrap, &part, &len);
    }
}

static char *instances_text(struct kp_out *o, const struct kp_metric *m)
{
    const struct kp_display *d = o->display;
    if (d->instances == KP_INSTANCES_NONE || !m || !m->n_instances)
        return NULL;
    char *text = kp_format_instances(m, d->base_units, d->instances == KP_INSTANCES_DETAILS);
    return kp_out_has(o, text) ? text : NULL;
}

/* Adds how far a mean of a rotation may be off. */
static void add_interval(struct kp_out *o, const struct kp_metric *m, struct cells *c)
{
    char half[KP_NUMBER_MAX];
    if (c->value != c->number || !kp_format_interval(m, o->display->base_units, half))
        return;
    size_t n = strlen(c->number);
    snprintf(c->number + n, sizeof(c->number) - n, " +-%s", half);
}

/* Fills `c` from a line; false without memory. */
static bool fill_cells(struct kp_out *o, const struct kp_line *l, struct cells *c)
{
    c->label = kp_out_title(o, l);
    c->instances = instances_text(o, l->metric);
    c->value = kp_format_metric(l->metric, o->display->base_units, c->number, c->unit);
    if (o->display->decimals && c->value == c->number)
        kp_write_decimals(c->number);
    if (c->instances)
        c->value = c->instances;
    add_interval(o, l->metric, c);
    return c->label != NULL;
}

/* Narrows values that are texts, and then names, if a line has no room for both. Returns true if all fits then. */
static bool fit_line(const struct kp_out *o, const struct cells *cells, size_t n, struct widths *w)
{
    size_t others = KP_INDENT + 2 + w->unit, line = kp_out_wide(o), word = strlen("Metric Value");
    if (w->label + others + w->value <= line)
        return true;
    for (size_t i = 0; i < n; i++)
        if (!strchr(cells[i].value, ' '))
            word = widest(word, cells[i].value);
    w->value = word < w->value ? word : w->value;
    if (w->label + others + w->value > line)
        w->label = line > others + w->value + LABEL_LEAST ? line - others - w->value : LABEL_LEAST;
    return w->label + others + w->value <= line;
}

/* Prints a table that is too wide for the terminal as a list: values with their units, each below its name. */
static void print_list(struct kp_out *o, const struct cells *cells, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char *text = NULL;
        kp_out_wrapped(o, "    ", cells[i].label);
        if (!kp_out_has(o, asprintf(&text, "%s%s%s", cells[i].value, *cells[i].unit ? " " : "", cells[i].unit) < 0
                               ? NULL
                               : text))
            return;
        kp_out_wrapped(o, "      ", text);
        free(text);
    }
}

static void print_cells(struct kp_out *o, const struct cells *cells, size_t n)
{
    static const char *const heading[] = {"Metric Name", "Metric Unit", "Metric Value"};
    struct widths w = {strlen(heading[0]), strlen(heading[1]), strlen(heading[2])};
    for (size_t i = 0; i < n; i++) {
        w.label = widest(w.label, cells[i].label);
        w.unit = widest(w.unit, cells[i].unit);
        w.value = widest(w.value, cells[i].value);
    }
    if (w.value > VALUE_WIDTH_MAX)
        w.value = VALUE_WIDTH_MAX;
    if (kp_out_breaks(o) && !fit_line(o, cells, n, &w)) {
        print_list(o, cells, n);
        return;
    }
    print_rule(o, &w);
    print_line(o, &w, heading[0], heading[1], heading[2]);
    print_rule(o, &w);
    for (size_t i = 0; i < n; i++)
        print_line(o, &w, cells[i].label, cells[i].unit, cells[i].value);
    print_rule(o, &w);
}

void kp_table_print(struct kp_out *o, const struct kp_lines *l)
{
    struct cells *cells = calloc(l->n ? l->n : 1, sizeof *cells);
    if (!kp_out_has(o, cells))
        return;
    bool complete = true;
    for (size_t i = 0; i < l->n; i++)
        complete &= fill_cells(o, &l->at[i], &cells[i]);
    if (complete)
        print_cells(o, cells, l->n);
    for (size_t i = 0; i < l->n; i++) {
        free(cells[i].label);
        free(cells[i].instances);
    }
    free(cells);
}

void kp_table_print_instances(struct kp_out *o, const struct kp_lines *l)
{
    for (size_t i = 0; i < l->n; i++) {
        char *text = instances_text(o, l->at[i].metric), *title = text ? kp_out_title(o, &l->at[i]) : NULL;
        if (title) {
            kp_out_print(o, "    %s:\n", title);
            kp_out_wrapped(o, "      ", text);
        }
        free(title);
        free(text);
    }
}

/* --- lines without a value --- */

static const char *why_missing(const struct kp_line *l)
{
    if (kp_line_has_value(l))
        return NULL;
    return l->metric && *l->metric->text ? l->metric->text : kp_reason_text(KP_REASON_NOT_COLLECTED);
}

static bool missing_for(const struct kp_line *l, const char *why)
{
    const char *reason = why_missing(l);
    return reason && !strcmp(reason, why);
}

/* Returns true if an earlier line has the metric: bodies may show one in several places. */
static bool named_before(const struct kp_lines *l, size_t i)
{
    const char *name = l->at[i].name;
    while (i--)
        if (!strcmp(l->at[i].name, name))
            return true;
    return false;
}

/* Writes the reason and, unless all that is shown lacks its value for it, which lines. malloc'ed. */
static char *describe_missing(const struct kp_lines *l, const char *why)
{
    char *text = NULL;
    size_t size, n = 0, without = 0;
    for (size_t i = 0; i < l->n; i++) {
        n += missing_for(&l->at[i], why) && !named_before(l, i);
        without += missing_for(&l->at[i], why);
    }
    bool named = l->beside || without < l->n || n == 1;
    FILE *f = open_memstream(&text, &size);
    if (!f)
        return NULL;
    for (size_t i = 0; named && i < l->n; i++)
        if (missing_for(&l->at[i], why) && !named_before(l, i))
            fprintf(f, "%s%s", l->at[i].name, --n ? ", " : ": ");
    fputs(why, f);
    if (!kp_text_end(f, &text))
        return text;
    free(text);
    return NULL;
}

/* Returns true if `why` was already given for a line before the one at `i`. */
static bool said_before(const struct kp_lines *l, size_t i, const char *why)
{
    while (i--)
        if (missing_for(&l->at[i], why))
            return true;
    return false;
}

void kp_table_print_missing(struct kp_out *o, const struct kp_lines *l)
{
    for (size_t i = 0; i < l->n; i++) {
        const char *why = why_missing(&l->at[i]);
        if (!why || (l->note && !strcmp(l->note, why)) || said_before(l, i, why))
            continue;
        char *text = describe_missing(l, why);
        if (kp_out_has(o, text))
            kp_out_wrapped(o, "    n/a: ", text);
        free(text);
    }
}
