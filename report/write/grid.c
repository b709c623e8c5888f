#include "report/write/drawings.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/width.h"
#include "base/wrap.h"
#include "report/define/units.h"
#include "report/write/columns.h"

enum {
    GAP = 2,       /* between columns */
    FOLD_FROM = 6, /* rows; a smaller grid is read at a glance, even with all its zeros */
    UNBROKEN = 8,  /* characters of a heading that stay in one line */
    FOLDED_MAX = 2 /* lines that name folded rows; further rows are counted */
};

struct column {
    const char *label;
    const char *base;                     /* common unit of its values; "" when they differ or have none */
    bool mixed;                           /* values of several units: each cell names its own */
    double divisor;                       /* of the values */
    char unit[KP_UNIT_MAX + sizeof "()"]; /* the unit as the heading shows it */
    size_t width;
    int heading; /* lines */
};

struct grid {
    const char **rows;
    struct column *columns;
    const struct kp_line **cells; /* row by row, NULL = empty */
    bool *folded;                 /* of the rows */
    size_t *shown, n_shown;       /* columns in which unfolded rows have values */
    size_t n_rows, n_columns;
    size_t title; /* width of the row titles */
};

static const struct kp_line *cell(const struct grid *g, size_t row, size_t column)
{
    return g->cells[row * g->n_columns + column];
}

static size_t row_of(struct grid *g, const char *title)
{
    size_t i = 0;
    while (i < g->n_rows && strcmp(g->rows[i], title))
        i++;
    if (i == g->n_rows)
        g->rows[g->n_rows++] = title;
    return i;
}

static size_t column_of(struct grid *g, const char *label)
{
    size_t i = 0;
    while (i < g->n_columns && strcmp(g->columns[i].label, label))
        i++;
    if (i == g->n_columns)
        g->columns[g->n_columns++].label = label;
    return i;
}

static void grid_free(struct grid *g)
{
    free(g->rows);
    free(g->columns);
    free(g->cells);
    free(g->folded);
    free(g->shown);
}

/* Returns false without memory. */
static bool grid_new(struct kp_out *o, const struct kp_lines *l, struct grid *g)
{
    *g = (struct grid){0};
    g->rows = calloc(l->n, sizeof *g->rows);
    g->columns = calloc(l->n, sizeof *g->columns);
    g->shown = calloc(l->n, sizeof *g->shown);
    if (!kp_out_has(o, g->rows) || !kp_out_has(o, g->columns) || !kp_out_has(o, g->shown))
        return false;
    for (size_t i = 0; i < l->n; i++) {
        row_of(g, l->at[i].group);
        column_of(g, l->at[i].label);
    }
    g->cells = calloc(1, g->n_rows * g->n_columns * sizeof *g->cells);
    g->folded = calloc(g->n_rows, sizeof *g->folded);
    if (!kp_out_has(o, g->cells) || !kp_out_has(o, g->folded))
        return false;
    for (size_t i = 0; i < l->n; i++)
        g->cells[row_of(g, l->at[i].group) * g->n_columns + column_of(g, l->at[i].label)] = &l->at[i];
    return true;
}

/* --- which rows --- */

/* Returns true if the value says nothing of the launch: a zero, or a peak, which is a property of the chip. */
static bool is_zero(const struct kp_line *l)
{
    double value;
    return !l || strstr(l->name, ".peak_sustained") || (kp_metric_number(l->metric, &value) && value == 0);
}

static void fold_rows(struct grid *g)
{
    for (size_t i = 0; g->n_rows >= FOLD_FROM && i < g->n_rows; i++) {
        g->folded[i] = true;
        for (size_t j = 0; j < g->n_columns; j++)
            g->folded[i] &= is_zero(cell(g, i, j));
    }
}

static void choose_columns(struct grid *g)
{
    for (size_t j = 0; j < g->n_columns; j++) {
        size_t i = 0;
        while (i < g->n_rows && (g->folded[i] || !cell(g, i, j)))
            i++;
        if (i < g->n_rows)
            g->shown[g->n_shown++] = j;
    }
}

static bool is_short(const struct kp_out *o, const char *text, const char *prefix)
{
    struct kp_wrap w = {text, kp_out_prose(o, strlen(prefix))};
    const char *line;
    size_t len, n = 0;
    while (n <= FOLDED_MAX && kp_wrap_next(&w, &line, &len))
        n++;
    return n <= FOLDED_MAX;
}

static void print_folded(struct kp_out *o, const struct grid *g)
{
    static const char operations[] = "Operations"; /* the first column of rows that compute and move no data */
    const char *prefix = strcmp(g->columns[0].label, operations) ? "    No traffic: " : "    No operations: ";
    char *text = NULL;
    size_t size, n = 0;
    FILE *f = open_memstream(&text, &size);
    if (!kp_out_has(o, f))
        return;
    for (size_t i = 0; i < g->n_rows; i++)
        if (g->folded[i])
            fprintf(f, "%s%s", n++ ? ", " : "", g->rows[i]);
    if (kp_out_has(o, kp_text_end(f, &text) ? NULL : text) && n) {
        if (is_short(o, text, prefix))
            kp_out_wrapped(o, prefix, text);
        else
            kp_out_print(o, "%s%zu %srows\n", prefix, n, n < g->n_rows ? "other " : "");
    }
    free(text);
}

/* --- columns --- */

static const char *unit_of(const struct kp_line *l)
{
    return kp_line_has_value(l) ? kp_line_unit(l) : NULL;
}

static bool scales(const char *unit)
{
    char scaled[KP_UNIT_MAX];
    return kp_unit_scale(unit, 1e9, scaled) != 1;
}

/* Chooses the unit of a column, scaled for its largest value. */
static void choose_unit(struct kp_out *o, const struct grid *g, size_t at)
{
    struct column *c = &g->columns[at];
    double most = 0, value;
    const char *unit, *first = NULL;
    for (size_t i = 0; i < g->n_rows; i++) {
        const struct kp_line *l = cell(g, i, at);
        if (!l || !(unit = unit_of(l)))
            continue;
        first = first && (*first || !*unit || scales(unit)) ? first : unit;
        c->mixed |= strcmp(unit, first) && (*unit || scales(first));
        if (kp_metric_number(l->metric, &value) && fabs(value) > most)
            most = fabs(value);
    }
    c->base = first && !c->mixed ? first : "";
    char scaled[KP_UNIT_MAX];
    c->divisor = kp_unit_divisor(c->base, most, o->display->base_units, scaled);
    bool said = !strcmp(scaled, "%") && strchr(c->label, '%'); /* the label contains the unit */
    c->unit[0] = '\0';
    if (*scaled && !said)
        snprintf(c->unit, sizeof c->unit, "(%s)", scaled);
}

/* Returns malloc'ed text. */
static char *cell_text(struct kp_out *o, const struct column *c, const struct kp_line *l)
{
    char number[KP_NUMBER_MAX], unit[KP_UNIT_MAX], *text = NULL;
    if (!l)
        text = strdup("");
    else if (!kp_line_has_value(l))
        text = strdup("n/a");
    else if (!c->mixed)
        text = strdup(kp_format_scaled(l->metric, c->divisor, number));
    else {
        const char *value = kp_format_metric(l->metric, o->display->base_units, number, unit);
        text = kp_asprintf("%s%s%s", value, *unit ? " " : "", unit);
    }
    kp_out_has(o, text);
    return text;
}

static size_t longest_word(const char *text)
{
    size_t most = 0;
    for (size_t n; *text; text += n + (text[n] == ' ')) {
        n = strcspn(text, " ");
        most = n > most ? n : most;
    }
    return most;
}

static int heading_lines(const struct column *c)
{
    struct kp_wrap w = {c->label, c->width};
    const char *line;
    size_t len;
    int n = 0;
    while (kp_wrap_next(&w, &line, &len))
        n++;
    return n + (*c->unit != '\0');
}

/* Makes a column wide enough for its numbers and for any word of the heading, which breaks between words. */
static void measure_column(struct kp_out *o, const struct grid *g, size_t at)
{
    struct column *c = &g->columns[at];
    c->width = kp_width(c->label) <= UNBROKEN ? kp_width(c->label) : longest_word(c->label);
    c->width = kp_width(c->unit) > c->width ? kp_width(c->unit) : c->width;
    for (size_t i = 0; i < g->n_rows; i++) {
        char *text = g->folded[i] ? NULL : cell_text(o, c, cell(g, i, at));
        if (text && kp_width(text) > c->width)
            c->width = kp_width(text);
        free(text);
    }
    c->width += c->width == 0;
    /* a blank at a break counts for the next line: leave room for it, so that no word is cut */
    c->width += kp_width(c->label) > c->width && longest_word(c->label) == c->width;
    c->heading = heading_lines(c);
}

/* --- printing --- */

/* Ends a line that was written into memory, without its trailing blanks. */
static void print_grid_line(struct kp_out *o, FILE *f, char *const *text)
{
    if (!kp_out_has(o, fclose(f) ? NULL : *text))
        return;
    size_t n = strlen(*text);
    while (n && (*text)[n - 1] == ' ')
        n--;
    kp_out_one_line(o, *text, n);
    kp_out_text(o, "\n", 1);
}

/* Writes line `at` of a column's heading, of `all` lines in its block; headings are aligned at the bottom. */
static void write_heading(FILE *f, const struct column *c, int at, int all)
{
    struct kp_wrap w = {c->label, c->width};
    const char *line = "";
    size_t len = 0;
    int own = at - (all - c->heading);
    if (own >= 0 && *c->unit && own == c->heading - 1) {
        line = c->unit;
        len = strlen(line);
    } else {
        for (int i = 0; i <= own; i++)
            kp_wrap_next(&w, &line, &len);
    }
    fprintf(f, "%*s%.*s", GAP + (int)kp_columns_pad(line, len, c->width), "", (int)len, line);
}

/* Columns shown[first..end-1]. */
struct block {
    const struct grid *grid;
    size_t first, end;
};

static const struct column *block_column(const struct block *b, size_t i)
{
    return &b->grid->columns[b->grid->shown[i]];
}

static void print_heading(struct kp_out *o, const struct block *b)
{
    int lines = 0;
    for (size_t j = b->first; j < b->end; j++)
        lines = block_column(b, j)->heading > lines ? block_column(b, j)->heading : lines;
    for (int at = 0; at < lines; at++) {
        char *text = NULL;
        size_t size;
        FILE *f = open_memstream(&text, &size);
        if (!kp_out_has(o, f))
            return;
        fprintf(f, "%*s", KP_INDENT + (int)b->grid->title, "");
        for (size_t j = b->first; j < b->end; j++)
            write_heading(f, block_column(b, j), at, lines);
        print_grid_line(o, f, &text);
        free(text);
    }
}

static void print_grid_rule(struct kp_out *o, const struct block *b)
{
    kp_out_repeat(o, ' ', KP_INDENT);
    kp_out_repeat(o, '-', b->grid->title);
    for (size_t j = b->first; j < b->end; j++) {
        kp_out_repeat(o, ' ', GAP);
        kp_out_repeat(o, '-', block_column(b, j)->width);
    }
    kp_out_text(o, "\n", 1);
}

static void print_grid_row(struct kp_out *o, const struct block *b, size_t row)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    if (!kp_out_has(o, f))
        return;
    fprintf(f, "    %-*s", kp_width_printf(b->grid->rows[row], b->grid->title), b->grid->rows[row]);
    for (size_t j = b->first; j < b->end; j++) {
        const struct column *c = block_column(b, j);
        char *value = cell_text(o, c, cell(b->grid, row, b->grid->shown[j]));
        fprintf(f, "%*s%*s", GAP, "", kp_width_printf(value ? value : "", c->width), value ? value : "");
        free(value);
    }
    print_grid_line(o, f, &text);
    free(text);
}

static bool has_cell(const struct block *b, size_t row)
{
    for (size_t j = b->first; j < b->end; j++)
        if (cell(b->grid, row, b->grid->shown[j]))
            return true;
    return false;
}

static void print_block(struct kp_out *o, const struct block *b)
{
    print_heading(o, b);
    print_grid_rule(o, b);
    for (size_t i = 0; i < b->grid->n_rows; i++)
        if (!b->grid->folded[i] && has_cell(b, i))
            print_grid_row(o, b, i);
    print_grid_rule(o, b);
}

/* Prints as many columns side by side as fit, at least one. */
static void print_blocks(struct kp_out *o, const struct grid *g)
{
    for (struct block b = {g, 0, 0}; b.first < g->n_shown; b.first = b.end) {
        size_t width = KP_INDENT + g->title + GAP + block_column(&b, b.first)->width;
        for (b.end = b.first + 1; b.end < g->n_shown; b.end++) {
            width += GAP + block_column(&b, b.end)->width;
            if (width > kp_out_prose(o, 0))
                break;
        }
        print_block(o, &b);
    }
}

static void measure_grid(struct kp_out *o, struct grid *g)
{
    fold_rows(g);
    choose_columns(g);
    for (size_t i = 0; i < g->n_shown; i++) {
        choose_unit(o, g, g->shown[i]);
        measure_column(o, g, g->shown[i]);
    }
    for (size_t i = 0; i < g->n_rows; i++) {
        size_t len = g->folded[i] ? 0 : kp_width(g->rows[i]);
        g->title = len > g->title ? len : g->title;
    }
}

/* Prints a list instead: a grid has no room for the metrics' names. */
static void print_grid_list(struct kp_out *o, const struct kp_lines *l)
{
    struct kp_lines list = {0};
    int rc = 0;
    for (size_t i = 0; !rc && i < l->n; i++) {
        struct kp_line line = l->at[i];
        line.made_label = kp_asprintf("%s: %s", line.group, line.label);
        line.label = line.made_label;
        rc = kp_out_has(o, line.label) ? kp_lines_add(&list, &line) : o->rc;
    }
    if (!rc)
        kp_table_print(o, &list);
    else
        o->rc = o->rc ? o->rc : rc;
    kp_lines_free(&list);
}

void kp_grid_draw(struct kp_out *o, const struct kp_lines *l)
{
    struct grid g;
    if (o->display->naming != KP_NAMING_LABEL) {
        print_grid_list(o, l);
        return;
    }
    if (grid_new(o, l, &g)) {
        measure_grid(o, &g);
        print_blocks(o, &g);
        print_folded(o, &g);
        kp_table_print_instances(o, l);
    }
    grid_free(&g);
}
