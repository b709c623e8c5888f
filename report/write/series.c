#include "report/write/drawings.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/define/units.h"
#include "report/write/columns.h"

enum { TITLE, UNIT, LEAST, MEAN, MOST, TIMELINE, COLUMNS };

/* The room that a line of a file has beside the longest label. */
enum { TIMELINE_WIDTH = 56 };

static size_t timeline_width(const struct kp_out *o)
{
    return TIMELINE_WIDTH - (KP_LINE_WIDTH - kp_out_width(o));
}

/* Whether a narrow terminal loses the column: the drawing tells nearly the same. */
static bool is_lost(const struct kp_out *o, size_t column)
{
    return (column == LEAST || column == MEAN) && kp_out_wide(o) < KP_LINE_WIDTH_LEAST;
}

/* Adds a row of those columns that are shown. */
static int add_cells(const struct kp_out *o, struct kp_columns *table, const char *const all[COLUMNS])
{
    const char *cells[COLUMNS];
    size_t n = 0;
    for (size_t i = 0; i < COLUMNS; i++)
        if (!is_lost(o, i))
            cells[n++] = all[i];
    return kp_columns_add(table, cells);
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

static int add_row(const struct kp_out *o, struct kp_columns *table, const char *title, const struct timeline *t,
                   double end)
{
    bool base = o->display->base_units;
    char unit[KP_UNIT_MAX], least[KP_NUMBER_MAX], mean[KP_NUMBER_MAX], most[KP_NUMBER_MAX], line[TIMELINE_WIDTH + 1];
    double divisor = kp_unit_divisor(t->series->unit, t->n ? t->most : 0, base, unit);
    if (!t->n)
        return add_cells(o, table, (const char *[COLUMNS]){title, unit, "", "", "", "n/a"});
    kp_format_real(t->least / divisor, least);
    kp_format_real(t->mean / divisor, mean);
    kp_format_real(t->most / divisor, most);
    draw(t, end, timeline_width(o), line);
    return add_cells(o, table, (const char *[COLUMNS]){title, unit, least, mean, most, line});
}

/* Writes the heading of the timelines: the begin of the kernel, and the end of the last sample. */
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
static void print_samples(struct kp_out *o, const struct timeline *t, size_t n, double dropped)
{
    char fewest[KP_NUMBER_MAX], most[KP_NUMBER_MAX], interval[KP_NUMBER_MAX + KP_UNIT_MAX], lost[KP_NUMBER_MAX];
    size_t low = t->series->n_values, high = low;
    for (size_t i = 1; i < n; i++) {
        size_t have = t[i].series->n_values;
        low = have < low ? have : low;
        high = have > high ? have : high;
    }
    kp_format_count(low, fewest);
    kp_format_count(high, most);
    kp_format_quantity(t->step, "ns", o->display->base_units, interval);
    kp_out_print(o, "    %s%s%s samples, one every %s", fewest, low < high ? " to " : "", low < high ? most : "",
                 interval);
    if (dropped > 0) {
        kp_format_real(dropped, lost);
        kp_out_print(o, "; %s dropped", lost);
    }
    kp_out_print(o, "; rows are drawn from 0 to their maximum\n");
}

static int make_table(struct kp_out *o, const struct kp_series_row *rows, const struct timeline *lines, size_t n,
                      double end, struct kp_columns *table)
{
    int rc = 0;
    for (size_t i = 0; !rc && i < n; i++) {
        const char *name = rows[i].series->name;
        char *title = kp_out_title(o, &(struct kp_line){.label = rows[i].label, .name = name});
        rc = title ? add_row(o, table, title, &lines[i], end) : -ENOMEM;
        free(title);
    }
    return rc;
}

void kp_series_draw(struct kp_out *o, const struct kp_series_row *rows, size_t n, double dropped)
{
    static const bool left[COLUMNS] = {[TITLE] = true, [UNIT] = true, [TIMELINE] = true};
    static const struct kp_columns_look look = {KP_INDENT, 2, false};
    char axis[TIMELINE_WIDTH + 1];
    const char *const all[COLUMNS] = {"Metric", "Unit", "Min", "Mean", "Max", axis}, *headings[COLUMNS];
    bool to_the_left[COLUMNS];
    struct kp_columns table = {.headings = headings, .to_the_left = to_the_left, .n = 0};
    for (size_t i = 0; i < COLUMNS; i++)
        if (!is_lost(o, i)) {
            to_the_left[table.n] = left[i];
            headings[table.n++] = all[i];
        }
    struct timeline *lines = calloc(n, sizeof *lines);
    double end = 0;
    if (!kp_out_has(o, lines))
        return;
    for (size_t i = 0; i < n; i++) {
        lines[i] = read_series(rows[i].series);
        end = end_of(&lines[i]) > end ? end_of(&lines[i]) : end;
    }
    write_axis(end, timeline_width(o), o->display->base_units, axis);
    int rc = make_table(o, rows, lines, n, end, &table);
    if (!rc) {
        kp_columns_print(o, &table, &look);
        print_samples(o, lines, n, dropped);
    } else if (!o->rc) {
        o->rc = rc;
    }
    kp_columns_free(&table);
    free(lines);
}
