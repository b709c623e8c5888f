#include "report/write/canvas.h"
#include "report/write/drawings.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/width.h"
#include "report/define/units.h"
#include "report/view/roofs.h"

enum {
    PLOT_WIDTH = 100,
    PLOT_HEIGHT = 18,
    Y_LABEL = 14,   /* "10,000 Top/s " */
    TICKS_MAX = 10, /* of an axis */
    FEW = 6,        /* up to so many roofs or points are shown even without work */
    CELLS = 4,      /* of a line of the legend */
    CELL_MAX = KP_NUMBER_MAX + KP_UNIT_MAX,
};

static bool is_positive(double value)
{
    return isfinite(value) && value > 0;
}

/* Chooses, where there are many, only points with work, and their roofs. */
static void choose_shown(struct kp_roofs *r)
{
    size_t roofs = r->n - r->points;
    char roof = '1', point = 'A';
    for (size_t i = 0; i < r->n; i++) {
        r->all[i].shown = r->all[i].is_point ? r->all[i].work != 0 : roofs <= FEW;
        r->with_work += r->all[i].is_point && r->all[i].shown;
    }
    for (size_t i = 0; i < r->n; i++)
        if (r->all[i].is_point && r->all[i].shown && r->all[i].roof)
            ((struct kp_rates *)r->all[i].roof)->shown = true;
    for (size_t i = 0; i < r->n; i++) {
        struct kp_rates *rates = &r->all[i];
        char *next = rates->is_point ? &point : &roof;
        if (rates->shown)
            rates->mark = *next;
        if (rates->shown && *next != (rates->is_point ? 'Z' : '9'))
            ++*next; /* all further points share the last mark */
    }
}

/* --- the drawing: both axes are logarithms --- */

struct axes {
    int left, right, bottom, top; /* powers of ten */
};

/* Computes log10 of a positive finite number, as libkprof.so does not link libm. */
static double log10_of(double value)
{
    enum { BITS = 20 }; /* bits of the fraction: far finer than a column */
    double whole = 0, bit = 0.5, fraction = 0;
    while (value >= 10) {
        value /= 10;
        whole++;
    }
    while (value < 1) {
        value *= 10;
        whole--;
    }
    for (int i = 0; i < BITS; i++, bit /= 2) {
        value *= value;
        if (value >= 10) {
            value /= 10;
            fraction += bit;
        }
    }
    return whole + fraction;
}

static int floor_of(double value)
{
    int whole = (int)value;
    return whole > value ? whole - 1 : whole;
}

static void stretch(int *low, int *high, double value)
{
    int at = floor_of(value);
    *low = at < *low ? at : *low;
    *high = at + 1 > *high ? at + 1 : *high;
}

static bool is_drawable(const struct kp_rates *r)
{
    return r->shown && is_positive(r->work) && is_positive(r->traffic) && is_positive(kp_rates_intensity(r));
}

/* Finds axes with room for all ridges and points, and one more power of ten around them. False when there is nothing
 * to draw. */
static bool find_axes(const struct kp_roofs *r, struct axes *a)
{
    enum { FAR = 1000 }; /* exceeds all powers of ten of a double */
    *a = (struct axes){FAR, -FAR, FAR, -FAR};
    size_t points = 0;
    for (size_t i = 0; i < r->n; i++) {
        const struct kp_rates *rates = &r->all[i];
        if (!is_drawable(rates))
            continue;
        stretch(&a->left, &a->right, log10_of(kp_rates_intensity(rates)));
        stretch(&a->bottom, &a->top, log10_of(rates->work));
        points += rates->is_point;
    }
    a->left--;
    a->right++;
    a->bottom--;
    return points > 0;
}

static int column_at(const struct axes *a, double log)
{
    return (int)((log - a->left) / (a->right - a->left) * (PLOT_WIDTH - 1) + 0.5);
}

static int line_at(const struct axes *a, double log)
{
    double from_top = (a->top - log) / (a->top - a->bottom) * (PLOT_HEIGHT - 1);
    return from_top < 0 ? -1 : (int)(from_top + 0.5);
}

static void draw_roof(struct kp_canvas *c, const struct axes *a, const struct kp_rates *r, int place)
{
    double work = log10_of(r->work), traffic = log10_of(r->traffic);
    bool marked = false;
    for (int x = 0; x < PLOT_WIDTH; x++) {
        double moved = a->left + x * (double)(a->right - a->left) / (PLOT_WIDTH - 1) + traffic;
        int y = line_at(a, moved < work ? moved : work);
        if (y < 0 || y >= PLOT_HEIGHT)
            continue;
        kp_canvas_put(c, x, y, !marked ? r->mark : moved < work ? '/' : '-');
        marked = true;
    }
    kp_canvas_put(c, column_at(a, work - traffic), line_at(a, work), '+');
    kp_canvas_put(c, PLOT_WIDTH - 1 - 2 * place, line_at(a, work), r->mark);
}

/* Puts the point beside a letter that is already there. */
static void draw_point(struct kp_canvas *c, const struct axes *a, const struct kp_rates *r)
{
    int x = column_at(a, log10_of(kp_rates_intensity(r))), y = line_at(a, log10_of(r->work));
    while (x + 1 < PLOT_WIDTH && kp_canvas_at(c, x, y) >= 'A' && kp_canvas_at(c, x, y) <= 'Z')
        x++;
    kp_canvas_put(c, x, y, r->mark);
}

/* Writes 10^power, short. */
static void power_text(int power, char out[16])
{
    static const char zeros[] = "000000";
    if (power > 3 || power < -3)
        snprintf(out, 16, "1e%d", power);
    else if (power >= 0)
        snprintf(out, 16, "1%.*s", power, zeros);
    else
        snprintf(out, 16, "0.%.*s1", -power - 1, zeros);
}

static double power_of(int power)
{
    double value = 1;
    for (; power > 0; power--)
        value *= 10;
    for (; power < 0; power++)
        value /= 10;
    return value;
}

static int tick_step(int low, int high)
{
    return (high - low + TICKS_MAX - 1) / TICKS_MAX;
}

static bool is_tick(int power, int low, int high)
{
    return (power - low) % tick_step(low, high) == 0;
}

/* Writes the label of the tick at line `y`, if any. */
static void tick_label(const struct kp_roofs *r, const struct axes *a, int y, char label[CELL_MAX])
{
    char rate[16];
    snprintf(rate, sizeof rate, "%s/s", r->operation);
    *label = '\0';
    for (int power = a->bottom; power <= a->top; power++) {
        if (line_at(a, power) != y || !is_tick(power, a->bottom, a->top))
            continue;
        kp_format_quantity(power_of(power), rate, false, label);
        if (strlen(label) >= Y_LABEL)
            power_text(power, label);
    }
}

static void print_plot(struct kp_out *o, const struct kp_roofs *r, const struct axes *a, const struct kp_canvas *c)
{
    char label[CELL_MAX];
    for (int y = 0; y < PLOT_HEIGHT; y++) {
        tick_label(r, a, y, label);
        kp_out_print(o, "    %*s |", Y_LABEL - 1, label);
        kp_canvas_print_line(o, c, y);
    }
}

static void print_x_axis(struct kp_out *o, const struct kp_roofs *r, const struct axes *a)
{
    struct kp_canvas axis;
    char label[16];
    if (kp_canvas_new(&axis, KP_DRAWING_WIDTH, 2)) {
        kp_out_has(o, NULL);
        return;
    }
    for (int x = 0; x < PLOT_WIDTH; x++)
        kp_canvas_put(&axis, Y_LABEL + 1 + x, 0, '-');
    kp_canvas_put(&axis, Y_LABEL, 0, '+');
    for (int power = a->left; power <= a->right; power++) {
        if (!is_tick(power, a->left, a->right))
            continue;
        power_text(power, label);
        int x = Y_LABEL + 1 + column_at(a, power);
        kp_canvas_put(&axis, x, 0, '+');
        kp_canvas_text(&axis, x - (int)strlen(label) / 2, 1, label);
    }
    kp_canvas_text(&axis, 0, 1, r->operation);
    kp_canvas_text(&axis, (int)strlen(r->operation), 1, "/byte");
    for (int y = 0; y < 2; y++) {
        kp_out_repeat(o, ' ', KP_INDENT);
        kp_canvas_print_line(o, &axis, y);
    }
    free(axis.cells);
}

static void print_drawing(struct kp_out *o, const struct kp_roofs *r)
{
    struct axes a;
    struct kp_canvas c;
    int place = 0;
    if (!find_axes(r, &a))
        return;
    if (!kp_out_has(o, kp_canvas_new(&c, PLOT_WIDTH, PLOT_HEIGHT) ? NULL : c.cells))
        return;
    for (size_t i = 0; i < r->n; i++)
        if (!r->all[i].is_point && is_drawable(&r->all[i]))
            draw_roof(&c, &a, &r->all[i], place++);
    for (size_t i = 0; i < r->n; i++)
        if (r->all[i].is_point && is_drawable(&r->all[i]))
            draw_point(&c, &a, &r->all[i]);
    print_plot(o, r, &a, &c);
    print_x_axis(o, r, &a);
    kp_out_text(o, "\n", 1);
    free(c.cells);
}

/* --- the legend --- */

struct legend {
    char mark;
    const char *name;
    char cells[CELLS][CELL_MAX];
};

static void quantity(struct kp_out *o, double value, const char *unit, char out[CELL_MAX])
{
    if (isnan(value))
        snprintf(out, CELL_MAX, "n/a");
    else
        kp_format_quantity(value, unit, o->display->base_units, out);
}

static void describe(struct kp_out *o, const struct kp_roofs *r, const struct kp_rates *rates, struct legend *l)
{
    char rate[16], per_byte[16];
    snprintf(rate, sizeof rate, "%s/s", r->operation);
    snprintf(per_byte, sizeof per_byte, "%s/byte", r->operation);
    l->mark = rates->mark ? rates->mark : ' ';
    l->name = rates->name;
    quantity(o, rates->work, rate, l->cells[0]);
    quantity(o, rates->traffic, "byte/s", l->cells[1]);
    quantity(o, kp_rates_intensity(rates), per_byte, l->cells[2]);
    l->cells[3][0] = '\0';
    if (rates->is_point)
        quantity(o, 100 * rates->work / kp_rates_limit(rates), "%", l->cells[3]);
}

static void print_legend_lines(struct kp_out *o, const struct legend *lines, size_t n)
{
    size_t name = 0, width[CELLS] = {0}, all = KP_INDENT + strlen("A  ");
    for (size_t i = 0; i < n; i++) {
        name = kp_width(lines[i].name) > name ? kp_width(lines[i].name) : name;
        for (size_t j = 0; j < CELLS; j++)
            width[j] = strlen(lines[i].cells[j]) > width[j] ? strlen(lines[i].cells[j]) : width[j];
    }
    for (size_t j = 0; j < CELLS; j++)
        all += width[j] + 2;
    bool apart = all + name > kp_out_prose(o, 0); /* the numbers go below the name then */
    for (size_t i = 0; i < n; i++) {
        kp_out_print(o, "    %c  %-*s", lines[i].mark, apart ? 0 : kp_width_printf(lines[i].name, name), lines[i].name);
        if (apart)
            kp_out_print(o, "\n%*s", KP_INDENT + 3, "");
        for (size_t j = 0; j < CELLS && width[j]; j++)
            kp_out_print(o, "  %*s", (int)width[j], lines[i].cells[j]);
        kp_out_text(o, "\n", 1);
    }
}

static void print_legend(struct kp_out *o, const struct kp_roofs *r, bool points)
{
    static const struct legend headings[] = {
        {' ', "Roof", {"Peak Work", "Peak Traffic", "Ridge Point", ""}},
        {' ', "Point", {"Achieved Work", "Achieved Traffic", "Arithmetic Intensity", "Of Its Roof"}},
    };
    struct legend *lines = calloc(r->n + 1, sizeof *lines);
    size_t n = 1;
    if (!kp_out_has(o, lines))
        return;
    lines[0] = headings[points];
    for (size_t i = 0; i < r->n; i++)
        if (r->all[i].is_point == points && r->all[i].shown)
            describe(o, r, &r->all[i], &lines[n++]);
    if (n > 1) {
        print_legend_lines(o, lines, n);
        kp_out_text(o, "\n", 1);
    }
    free(lines);
}

/* Prints the points that are left out, as logarithmic axes have no zero. */
static void print_without_work(struct kp_out *o, const struct kp_roofs *r)
{
    char *text = NULL;
    size_t size, without = r->points - r->with_work;
    if (!r->with_work) {
        kp_out_print(o, "    No work of this kind was done: there is no point to draw.\n");
        return;
    }
    if (!without)
        return;
    FILE *f = open_memstream(&text, &size);
    if (!kp_out_has(o, f))
        return;
    if (without > FEW)
        fprintf(f, "%zu more points", without);
    for (size_t i = 0, n = 0; without <= FEW && i < r->n; i++)
        if (r->all[i].is_point && !r->all[i].shown)
            fprintf(f, "%s%s", n++ ? ", " : "", r->all[i].name);
    if (kp_out_has(o, kp_text_end(f, &text) ? NULL : text))
        kp_out_wrapped(o, "    No work: ", text);
    free(text);
}

static bool has_metric(const struct kp_lines *l, const char *name)
{
    for (size_t i = 0; i < l->n; i++)
        if (!strcmp(l->at[i].name, name))
            return true;
    return false;
}

static bool has_label(const struct kp_lines *l, const char *label)
{
    for (size_t i = 0; i < l->n; i++)
        if (!strcmp(l->at[i].label, label))
            return true;
    return false;
}

/* Adds an input; a label that is taken gets the roof or point added. 0 or -ENOMEM. */
static int add_input(struct kp_lines *inputs, const struct kp_line *from)
{
    struct kp_line line = *from;
    const char *group = from->group;
    group += strncmp(group, KP_POINT_MARK, strlen(KP_POINT_MARK)) ? 0 : strlen(KP_POINT_MARK);
    line.made_label = NULL;
    if (has_label(inputs, from->label)) {
        if (asprintf(&line.made_label, "%s: %s", group, from->label) < 0)
            return -ENOMEM;
        line.label = line.made_label;
    }
    return kp_lines_add(inputs, &line);
}

/* Prints the values behind the roofline, each once. */
static void print_inputs(struct kp_out *o, struct kp_roofs *r, const struct kp_lines *l)
{
    struct kp_lines inputs = {0};
    bool few = r->n - r->points <= FEW;
    int rc = 0;
    for (size_t i = 0; !rc && i < l->n; i++) {
        bool wanted = kp_line_has_value(&l->at[i]) && (few || kp_roofs_find(r, l->at[i].group)->shown);
        if (wanted && !has_metric(&inputs, l->at[i].name))
            rc = add_input(&inputs, &l->at[i]);
    }
    if (rc)
        kp_out_has(o, NULL);
    else if (inputs.n) {
        kp_out_print(o, "    Computed from\n");
        kp_table_print(o, &inputs);
    }
    kp_lines_free(&inputs);
}

void kp_roofline_draw(struct kp_out *o, const struct kp_lines *l)
{
    struct kp_roofs r;
    if (kp_roofs_of(l, &r)) {
        kp_out_has(o, NULL);
        return;
    }
    choose_shown(&r);
    print_drawing(o, &r);
    print_legend(o, &r, false);
    print_legend(o, &r, true);
    print_without_work(o, &r);
    print_inputs(o, &r, l);
    kp_roofs_free(&r);
}
