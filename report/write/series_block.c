#include "report/write/drawings.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/width.h"
#include "report/define/units.h"
#include "report/write/columns.h"

enum { TITLE, UNIT, LEAST, MEAN, MOST, TIMELINE, COLUMNS };
static const char *const titles[TIMELINE] = {"Metric", "Unit", "Min", "Mean", "Max"};

enum {
    TIMELINE_WIDTH = 56, /* the room that a line of a file has next to the longest label */
    TIMELINE_LEAST = 16, /* narrower drawings show nothing: names are broken then */
    GAP = 2,             /* between columns */
};

/* What is shown of the columns. */
struct layout {
    bool few;     /* without LEAST and MEAN: the drawing shows nearly the same */
    size_t width; /* of the drawing */
};

static bool is_lost(const struct layout *l, size_t column)
{
    return l->few && (column == LEAST || column == MEAN);
}

/* Heights from nothing to the maximum, the lowest for values up to zero; a blank is time without a sample. */
static const char heights[] = "_.:-=+*#%@";

/* The samples of a timeline; each stands for `step` of time before it ended. */
struct timeline {
    const struct kp_series *series;
    double begin, step; /* ns */
    double least, most, mean;
    size_t n; /* samples that are numbers */
};

static double end_of(const struct timeline *t)
{
    return t->begin + (double)t->series->n_values * t->step;
}

/* Reads a series. Stored sessions may contain anything; implausible times are replaced by sample numbers. */
static struct timeline read_series(const struct kp_series *s)
{
    bool timed = s->interval_ns > 0 && isfinite(s->start_ns + (double)s->n_values * s->interval_ns);
    struct timeline t = {.series = s, .step = timed ? s->interval_ns : 1, .least = NAN, .most = NAN};
    double sum = 0;
    t.begin = timed ? s->start_ns - t.step : 0;
    for (size_t i = 0; i < s->n_values; i++) {
        double value = s->values[i];
        if (!isfinite(value))
            continue;
        t.least = t.n && t.least < value ? t.least : value;
        t.most = t.n && t.most > value ? t.most : value;
        sum += value;
        t.n++;
    }
    t.mean = t.n ? sum / (double)t.n : NAN;
    return t;
}

/* Returns the index of what lies at `part` of `n` in a row; `n` outside of it, and for NaN. */
static size_t index_at(double part, size_t n)
{
    return part >= 0 && part < (double)n ? (size_t)part : n;
}

static char height_of(double value, double most)
{
    enum { TALLEST = sizeof heights - 2 };
    if (isnan(value))
        return ' ';
    if (!(value > 0))
        return heights[0];
    size_t height = index_at(value / most * TALLEST, TALLEST);
    return heights[height < TALLEST ? height + 1 : TALLEST];
}

/* Draws a column as the mean of the samples whose middle lies in it. With fewer samples than columns, draws the
 * sample being taken at that time. */
static void draw(const struct timeline *t, double end, size_t width, char out[TIMELINE_WIDTH + 1])
{
    double sums[TIMELINE_WIDTH] = {0}, column = end / (double)width;
    size_t counts[TIMELINE_WIDTH] = {0};
    const struct kp_series *s = t->series;
    for (size_t i = 0; i < s->n_values; i++) {
        size_t at = index_at((t->begin + ((double)i + 0.5) * t->step) / column, width);
        if (at == width || !isfinite(s->values[i]))
            continue;
        sums[at] += s->values[i];
        counts[at]++;
    }
    for (size_t x = 0; x < width; x++) {
        size_t taken = index_at((((double)x + 0.5) * column - t->begin) / t->step, s->n_values);
        double value = counts[x] ? sums[x] / (double)counts[x] : taken < s->n_values ? s->values[taken] : NAN;
        out[x] = height_of(isfinite(value) ? value : NAN, t->most);
    }
    while (width && out[width - 1] == ' ')
        width--;
    out[width] = '\0';
}

/* A row, whose drawing is as wide as the other columns leave room. */
struct row {
    struct timeline line;
    char *title; /* owned */
    char unit[KP_UNIT_MAX], least[KP_NUMBER_MAX], mean[KP_NUMBER_MAX], most[KP_NUMBER_MAX];
};

/* Fills in all but the drawing. `r` starts as all 0. */
static int fill_row(struct kp_out *o, const struct kp_series_row *from, struct row *r)
{
    struct timeline *t = &r->line;
    *t = read_series(from->series);
    double divisor = kp_unit_divisor(t->series->unit, t->n ? t->most : 0, o->display->base_units, r->unit);
    if (t->n) {
        kp_format_real(t->least / divisor, r->least);
        kp_format_real(t->mean / divisor, r->mean);
        kp_format_real(t->most / divisor, r->most);
    }
    r->title = kp_out_title(o, &(struct kp_line){.label = from->label, .name = from->series->name});
    return r->title ? 0 : -ENOMEM;
}

static void cells_of(const struct row *r, const char *drawing, const char *cells[COLUMNS])
{
    const char *const all[COLUMNS] = {r->title, r->unit, r->least, r->mean, r->most, drawing};
    memcpy(cells, all, sizeof all);
}

/* Returns the columns of a line that are not the drawing's. */
static size_t width_of_others(const struct layout *l, const struct row *rows, size_t n)
{
    size_t used = KP_INDENT;
    for (size_t column = 0; column < TIMELINE; column++) {
        size_t widest = kp_width(titles[column]);
        for (size_t i = 0; i < n; i++) {
            const char *cells[COLUMNS];
            cells_of(&rows[i], "", cells);
            widest = kp_width(cells[column]) > widest ? kp_width(cells[column]) : widest;
        }
        used += is_lost(l, column) ? 0 : widest + GAP;
    }
    return used;
}

/* Has the drawing give way to names and numbers; then a narrow terminal loses columns. */
static struct layout layout_of(const struct kp_out *o, const struct row *rows, size_t n)
{
    size_t line = kp_out_wide(o);
    struct layout l = {.few = line < KP_LINE_WIDTH_LEAST};
    l.few |= line < KP_LINE_WIDTH && width_of_others(&l, rows, n) + TIMELINE_LEAST > line;
    size_t used = width_of_others(&l, rows, n), room = line > used ? line - used : 0;
    l.width = room < TIMELINE_LEAST ? TIMELINE_LEAST : room < TIMELINE_WIDTH ? room : TIMELINE_WIDTH;
    return l;
}

/* Adds a row of the columns that are shown. */
static int add_series_row(struct kp_columns *table, const struct layout *l, const struct row *r, double end)
{
    char line[TIMELINE_WIDTH + 1] = "n/a";
    const char *all[COLUMNS], *cells[COLUMNS];
    size_t n = 0;
    if (r->line.n)
        draw(&r->line, end, l->width, line);
    cells_of(r, line, all);
    for (size_t i = 0; i < COLUMNS; i++)
        if (!is_lost(l, i))
            cells[n++] = all[i];
    return kp_columns_add(table, cells);
}

/* Writes the heading of the timelines: the start of the kernel, and the end of the last sample. */
static void write_axis(double end, size_t width, bool base, char out[TIMELINE_WIDTH + 1])
{
    char text[KP_NUMBER_MAX + KP_UNIT_MAX];
    kp_format_quantity(end, "ns", base, text);
    size_t len = strlen(text);
    memset(out, '.', width);
    memcpy(out, "0 ", 2);
    if (len + 4 < width) {
        out[width - len - 1] = ' ';
        memcpy(out + width - len, text, len);
    }
    out[width] = '\0';
}

/* Prints the number of samples, which differs from pass to pass. */
static void print_samples(struct kp_out *o, const struct row *rows, size_t n, double dropped)
{
    char fewest[KP_NUMBER_MAX], most[KP_NUMBER_MAX], interval[KP_NUMBER_MAX + KP_UNIT_MAX], lost[KP_NUMBER_MAX];
    size_t low = rows->line.series->n_values, high = low;
    for (size_t i = 1; i < n; i++) {
        size_t have = rows[i].line.series->n_values;
        low = have < low ? have : low;
        high = have > high ? have : high;
    }
    kp_format_count(low, fewest);
    kp_format_count(high, most);
    kp_format_quantity(rows->line.step, "ns", o->display->base_units, interval);
    kp_out_print(o, "    %s%s%s samples, one every %s", fewest, low < high ? " to " : "", low < high ? most : "",
                 interval);
    if (dropped > 0) {
        kp_format_real(dropped, lost);
        kp_out_print(o, "; %s dropped", lost);
    }
    kp_out_print(o, "; rows are drawn from 0 to their maximum\n");
}

/* Prints the rows. */
static int print_series_table(struct kp_out *o, const struct row *rows, size_t n, double end)
{
    static const bool left[COLUMNS] = {[TITLE] = true, [UNIT] = true, [TIMELINE] = true};
    static const struct kp_columns_look look = {KP_INDENT, GAP, false};
    const struct layout l = layout_of(o, rows, n);
    char axis[TIMELINE_WIDTH + 1];
    const char *headings[COLUMNS];
    bool to_the_left[COLUMNS];
    struct kp_columns table = {.headings = headings, .to_the_left = to_the_left, .n = 0};
    write_axis(end, l.width, o->display->base_units, axis);
    for (size_t i = 0; i < COLUMNS; i++)
        if (!is_lost(&l, i)) {
            to_the_left[table.n] = left[i];
            headings[table.n++] = i == TIMELINE ? axis : titles[i];
        }
    int rc = 0;
    for (size_t i = 0; !rc && i < n; i++)
        rc = add_series_row(&table, &l, &rows[i], end);
    if (!rc)
        kp_columns_print(o, &table, &look);
    kp_columns_free(&table);
    return rc;
}

void kp_write_series_drawing(struct kp_out *o, const struct kp_series_row *from, size_t n, double dropped)
{
    struct row *rows = calloc(n, sizeof *rows);
    double end = 0;
    int rc = 0;
    if (!kp_out_has(o, rows))
        return;
    for (size_t i = 0; !rc && i < n; i++) {
        rc = fill_row(o, &from[i], &rows[i]);
        end = end_of(&rows[i].line) > end ? end_of(&rows[i].line) : end;
    }
    rc = rc ? rc : print_series_table(o, rows, n, end);
    if (!rc)
        print_samples(o, rows, n, dropped);
    else if (!o->rc)
        o->rc = rc;
    for (size_t i = 0; i < n; i++)
        free(rows[i].title);
    free(rows);
}
