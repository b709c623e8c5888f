#include "report/write/drawings.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/width.h"

#include "report/define/units.h"

enum {
    BAR_MAX = 50,
    BAR_MIN = 10, /* with less room, the numbers stand alone */
};

struct bar {
    char *title;
    const char *name, *base; /* of the metric, and its unit */
    double value, key;       /* as measured, and as printed; NaN when missing */
    size_t place;            /* its index among the rows */
    const char *other;       /* printed in place of the number; NULL = the number */
    char number[KP_NUMBER_MAX], unit[KP_UNIT_MAX];
};

static const char *bar_text(const struct bar *b)
{
    return b->other ? b->other : b->number;
}

/* Reads a printed number back, so that values that look alike compare as equal. */
static double as_printed(const char *text)
{
    char digits[KP_NUMBER_MAX], *to = digits;
    for (; *text; text++)
        if (*text != ',')
            *to++ = *text;
    *to = '\0';
    /* strtod expects the locale's decimal point, but the text has a dot: drop it and count hundredths. */
    char *point = strchr(digits, '.');
    if (!point)
        return strtod(digits, NULL);
    memmove(point, point + 1, strlen(point));
    return strtod(digits, NULL) / 100;
}

static void set_number(struct bar *b, double value, double divisor)
{
    b->value = value;
    b->key = as_printed(b->number) * divisor;
}

/* Fills one bar for the metric; false without memory. */
static bool fill_bar(struct kp_out *o, const struct kp_line *l, struct bar *b)
{
    double value, divisor;
    b->title = kp_out_title(o, l);
    b->name = l->name;
    b->base = kp_line_unit(l);
    b->value = b->key = NAN;
    if (kp_metric_number(l->metric, &value)) {
        divisor = kp_unit_divisor(b->base, value, o->display->base_units, b->unit);
        kp_format_scaled(l->metric, divisor, b->number);
        set_number(b, value, divisor);
    } else {
        b->other = kp_format_metric(l->metric, o->display->base_units, b->number, b->unit);
    }
    return b->title != NULL;
}

/* Fills one bar for one of the instances. */
static bool fill_instance(struct kp_out *o, const struct kp_metric *m, size_t i, struct bar *b)
{
    double value = m->instances[i].value;
    double divisor = kp_unit_divisor(m->unit, value, o->display->base_units, b->unit);
    b->title = strdup(m->instances[i].key);
    b->name = m->name;
    b->base = m->unit;
    kp_format_real(value / divisor, b->number);
    set_number(b, value, divisor);
    return kp_out_has(o, b->title);
}

static int longest_first(const void *a, const void *b)
{
    const struct bar *x = a, *y = b;
    if (isnan(x->key) != isnan(y->key))
        return isnan(x->key) ? 1 : -1;
    if (!isnan(x->key) && x->key != y->key)
        return x->key < y->key ? 1 : -1;
    int by_name = strcmp(x->name, y->name);
    return by_name ? by_name : (x->place > y->place) - (x->place < y->place);
}

/* Returns the value of a full bar: 100 for percentages, else the largest value of the unit. */
static double full_bar(const struct bar *b, const struct bar *bars, size_t n)
{
    double most = 0;
    if (!strcmp(b->base, "%"))
        return 100;
    for (size_t i = 0; i < n; i++)
        if (isfinite(bars[i].value) && bars[i].value > most && !strcmp(bars[i].base, b->base))
            most = bars[i].value;
    return most;
}

/* Returns true if a bar is meaningful: the only one of its unit would always be full. A percentage compares to 100. */
static bool is_comparable(const struct bar *b, const struct bar *bars, size_t n)
{
    size_t same = 0;
    for (size_t i = 0; i < n; i++)
        same += !isnan(bars[i].value) && !strcmp(bars[i].base, b->base);
    return same > 1 || !strcmp(b->base, "%");
}

static void draw_bar(struct kp_out *o, const struct bar *b, double full, size_t width)
{
    bool over = b->value > full;
    double part = over ? 1 : full > 0 && b->value > 0 ? b->value / full : 0;
    size_t filled = (size_t)(part * (double)width + 0.5);
    kp_out_text(o, " |", 2);
    kp_out_repeat(o, '#', filled);
    kp_out_repeat(o, '.', width - filled);
    kp_out_text(o, over ? ">" : "|", 1);
}

static size_t longer(size_t width, const char *text)
{
    size_t len = kp_width(text);
    return len > width ? len : width;
}

/* Widths of the columns, and of the drawing (0 = none). */
struct widths {
    size_t title, text, unit, bar;
};

/* Ignores titles that leave no room for a bar: they get lines of their own. */
static struct widths measure_bars(const struct kp_out *o, const struct bar *bars, size_t n)
{
    struct widths w = {0};
    size_t line = kp_out_prose(o, 0);
    for (size_t i = 0; i < n; i++) {
        w.text = longer(w.text, bar_text(&bars[i]));
        w.unit = longer(w.unit, bars[i].unit);
    }
    size_t taken = KP_INDENT + 2 + w.text + !!w.unit + w.unit + strlen(" ||"), room = line - BAR_MIN;
    room = room > taken ? room - taken : 0;
    for (size_t i = 0; i < n; i++)
        if (!room || kp_width(bars[i].title) <= room)
            w.title = longer(w.title, bars[i].title);
    taken += w.title;
    w.bar = taken + BAR_MIN > line ? 0 : line - taken;
    w.bar = w.bar < BAR_MAX ? w.bar : BAR_MAX;
    return w;
}

static void print_bars(struct kp_out *o, const struct bar *bars, size_t n)
{
    const struct widths w = measure_bars(o, bars, n);
    for (size_t i = 0; i < n; i++) {
        const struct bar *b = &bars[i];
        bool drawn = w.bar && !isnan(b->value) && is_comparable(b, bars, n);
        bool fits = kp_width(b->title) <= w.title;
        if (!fits) /* on a separate line */
            kp_out_print(o, "    %s\n", b->title);
        const char *title = fits ? b->title : "", *text = bar_text(b);
        kp_out_print(o, "    %-*s  %*s", kp_width_printf(title, w.title), title, kp_width_printf(text, w.text), text);
        if (*b->unit || (w.unit && drawn))
            kp_out_print(o, " %-*s", drawn ? (int)w.unit : 0, b->unit);
        if (drawn)
            draw_bar(o, b, full_bar(b, bars, n), w.bar);
        kp_out_text(o, "\n", 1);
    }
}

static bool fill_bars(struct kp_out *o, const struct kp_lines *l, const struct kp_metric *only, struct bar *bars,
                      size_t n)
{
    bool complete = true;
    for (size_t i = 0; i < n; i++) {
        bars[i].place = i;
        complete &= only ? fill_instance(o, only, i, &bars[i]) : fill_bar(o, &l->at[i], &bars[i]);
    }
    return complete;
}

void kp_bars_draw(struct kp_out *o, const struct kp_lines *l, bool sorted)
{
    /* a chart of one metric shows its instances */
    const struct kp_metric *only = l->n == 1 && l->at->metric->n_instances ? l->at->metric : NULL;
    size_t n = only ? only->n_instances : l->n;
    struct bar *bars = calloc(n, sizeof *bars);
    if (!kp_out_has(o, bars))
        return;
    bool complete = fill_bars(o, l, only, bars, n);
    if (complete && sorted)
        qsort(bars, n, sizeof *bars, longest_first);
    if (complete)
        print_bars(o, bars, n);
    for (size_t i = 0; i < n; i++)
        free(bars[i].title);
    free(bars);
    kp_table_print_instances(o, l);
}
