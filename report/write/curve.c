#include "report/write/canvas.h"
#include "report/write/drawings.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "report/define/units.h"

enum {
    PLOT_WIDTH = 100,
    PLOT_HEIGHT = 8,
    Y_LABEL = 12, /* and the axis beside it */
};

/* A metric over the keys of its instances. */
struct curve {
    const struct kp_metric *metric;
    double *x;
    double most;    /* of the finite values, at least 0 */
    bool is_axis;   /* the keys are numbers, ascending */
    double divisor; /* of the values, so that the largest is printed in `unit` */
    char unit[KP_UNIT_MAX];
};

static bool read_key(const char *key, double *out)
{
    char *end;
    *out = strtod(key, &end);
    return end != key && !*end && isfinite(*out);
}

static bool curve_new(struct kp_out *o, const struct kp_metric *m, struct curve *c)
{
    *c = (struct curve){.metric = m, .x = calloc(m->n_instances, sizeof *c->x), .is_axis = true};
    if (!kp_out_has(o, c->x))
        return false;
    for (size_t i = 0; i < m->n_instances; i++) {
        double value = m->instances[i].value;
        c->is_axis &= read_key(m->instances[i].key, &c->x[i]) && (!i || c->x[i] > c->x[i - 1]);
        if (isfinite(value) && value > c->most)
            c->most = value;
    }
    c->divisor = kp_unit_divisor(m->unit, c->most, o->display->base_units, c->unit);
    if (*c->unit == '%') /* the rest of the unit is the step of x, and says nothing of y */
        c->unit[1] = '\0';
    return true;
}

/* Returns the width of the plot: in a short curve all points have equally many columns. */
static int width_of(const struct curve *c)
{
    size_t n = c->metric->n_instances;
    return n > PLOT_WIDTH ? PLOT_WIDTH : (int)(n * (PLOT_WIDTH / n));
}

static double last_x(const struct curve *c)
{
    return c->x[c->metric->n_instances - 1];
}

/* Returns the column of `x`, which may lie outside of the plot; NaN does. */
static int column_at(const struct curve *c, double x)
{
    double range = last_x(c) - c->x[0];
    double part = range > 0 ? (x - c->x[0]) / range : 0;
    return !(part >= 0) ? -1 : part > 1 ? width_of(c) : (int)(part * (width_of(c) - 1) + 0.5);
}

/* Returns the value in a column: a curve consists of steps that each end at the next point. */
static double value_at(const struct curve *c, int column)
{
    size_t i = 0;
    while (i + 1 < c->metric->n_instances && column_at(c, c->x[i + 1]) <= column)
        i++;
    return c->metric->instances[i].value;
}

/* Returns the lines that a value fills from below: at least one for any value above zero. */
static int filled(const struct curve *c, double value)
{
    if (isnan(value) || value <= 0 || c->most <= 0)
        return 0;
    if (value >= c->most)
        return PLOT_HEIGHT;
    int lines = (int)(value / c->most * PLOT_HEIGHT + 0.5);
    return lines ? lines : 1;
}

static void draw_steps(struct kp_canvas *canvas, const struct curve *c)
{
    for (int x = 0; x < width_of(c); x++) {
        int lines = filled(c, value_at(c, x));
        for (int y = 0; y < lines; y++)
            kp_canvas_put(canvas, x, PLOT_HEIGHT - 1 - y, y + 1 == lines ? '*' : '.');
    }
}

static void print_plot(struct kp_out *o, const struct curve *c, const struct kp_canvas *canvas)
{
    char number[KP_NUMBER_MAX];
    kp_format_real(c->most / c->divisor, number);
    for (int y = 0; y < PLOT_HEIGHT; y++) {
        const char *label = y == 0 ? number : y == 1 ? c->unit : "";
        kp_out_print(o, "    %*s |", Y_LABEL - 1, label);
        kp_canvas_print_line(o, canvas, y);
    }
    kp_out_print(o, "    %*s +", Y_LABEL - 1, "0");
    kp_out_repeat(o, '-', (size_t)width_of(c));
    kp_out_text(o, "\n", 1);
}

/* Returns where the curve has the launch's own `x`. A launch that ran has warps, so no point without any is its own:
 * the curve over shared memory, as ncu's, ends at the most that a block may ask for, and `x` has the driver's bytes on
 * top. */
static double place_of(const struct curve *c, double x)
{
    size_t i = 0, near;
    while (i + 1 < c->metric->n_instances && c->x[i + 1] <= x)
        i++;
    near = i + 1 < c->metric->n_instances && c->x[i + 1] - x < x - c->x[i] ? i + 1 : i;
    for (i = near; i && !(c->metric->instances[i].value > 0);)
        i--;
    return i == near || x > last_x(c) || !(c->metric->instances[i].value > 0) ? x : c->x[i];
}

/* A launch's own value on the x axis. */
struct mark {
    const struct kp_line *line; /* NULL = none */
    double x;
};

/* Returns the column of the launch's own value; -1 without one on the axis. */
static int column_of_mark(const struct curve *c, const struct mark *m)
{
    int column = m->line ? column_at(c, place_of(c, m->x)) : -1;
    return column < width_of(c) ? column : -1;
}

/* Prints, below the axis, its begin and end, and the launch's own value. */
static void print_axis_labels(struct kp_out *o, const struct curve *c, const struct mark *m)
{
    struct kp_canvas labels;
    const struct kp_instance *at = c->metric->instances, *last = at + c->metric->n_instances - 1;
    if (!kp_out_has(o, kp_canvas_new(&labels, KP_DRAWING_WIDTH, 1) ? NULL : labels.cells))
        return;
    int end = Y_LABEL + 1 + width_of(c), last_length = (int)strnlen(last->key, PLOT_WIDTH);
    kp_canvas_text(&labels, Y_LABEL + 1, 0, at->key);
    kp_canvas_text(&labels, end - last_length, 0, last->key);
    if (column_of_mark(c, m) >= 0)
        kp_canvas_put(&labels, Y_LABEL + 1 + column_of_mark(c, m), 0, '^');
    kp_out_repeat(o, ' ', KP_INDENT);
    kp_canvas_print_line(o, &labels, 0);
    free(labels.cells);
}

static void print_mark(struct kp_out *o, const struct curve *c, const struct mark *m)
{
    char number[KP_NUMBER_MAX], unit[KP_UNIT_MAX], *title = kp_out_title(o, m->line);
    const char *value = kp_format_metric(m->line->metric, o->display->base_units, number, unit);
    if (title)
        kp_out_print(o, "    %sthis launch: %s %s%s%s\n", column_of_mark(c, m) >= 0 ? "^ " : "", title, value,
                     *unit ? " " : "", unit);
    free(title);
}

/* Prints each value with the last key that has it: `64 up to 32, 48 up to 40, 0 up to 255`. */
static void print_steps(struct kp_out *o, const struct curve *c)
{
    char *text = NULL, number[KP_NUMBER_MAX], next[KP_NUMBER_MAX], prefix[KP_UNIT_MAX + sizeof "    Steps (): "];
    size_t size, n = c->metric->n_instances;
    FILE *f = open_memstream(&text, &size);
    if (!kp_out_has(o, f))
        return;
    for (size_t i = 0; i < n; i++) {
        const struct kp_instance *at = &c->metric->instances[i];
        kp_format_real(at->value / c->divisor, number);
        if (i + 1 < n)
            kp_format_real(at[1].value / c->divisor, next);
        if (i + 1 == n || strcmp(number, next))
            fprintf(f, "%s up to %s%s", number, at->key, i + 1 < n ? ", " : "");
    }
    snprintf(prefix, sizeof prefix, *c->unit ? "    Steps (%s): " : "    Steps: ", c->unit);
    if (kp_out_has(o, kp_text_end(f, &text) ? NULL : text))
        kp_out_wrapped(o, prefix, text);
    free(text);
}

static bool same_keys(const struct kp_metric *a, const struct kp_metric *b)
{
    bool same = a->n_instances == b->n_instances;
    for (size_t i = 0; same && i < a->n_instances; i++)
        same = !strcmp(a->instances[i].key, b->instances[i].key);
    return same;
}

static void print_drawing(struct kp_out *o, const struct curve *c, const struct mark *m)
{
    struct kp_canvas canvas;
    if (!kp_out_has(o, kp_canvas_new(&canvas, PLOT_WIDTH, PLOT_HEIGHT) ? NULL : canvas.cells))
        return;
    draw_steps(&canvas, c);
    print_plot(o, c, &canvas);
    print_axis_labels(o, c, m);
    if (m->line)
        print_mark(o, c, m);
    free(canvas.cells);
}

/* Draws one curve, unless its keys are names. `drawn` is the curve before, NULL for the first: the same curve in
 * another unit is not drawn again. */
static void draw_curve(struct kp_out *o, const struct kp_line *l, const struct kp_metric *drawn, const struct mark *m)
{
    struct curve c;
    const struct kp_lines alone = {.at = (struct kp_line *)l, .n = 1};
    char *title = kp_out_title(o, l);
    if (title)
        kp_out_print(o, "    %s\n", title);
    free(title);
    if (!curve_new(o, l->metric, &c))
        return;
    if (!c.is_axis)
        kp_bars_draw(o, &alone, false);
    else {
        if (!drawn || !same_keys(drawn, l->metric))
            print_drawing(o, &c, m);
        print_steps(o, &c);
        kp_table_print_instances(o, &alone);
    }
    free(c.x);
}

static bool is_zero(const struct kp_metric *m)
{
    size_t i = 0;
    while (i < m->n_instances && m->instances[i].value == 0)
        i++;
    return i == m->n_instances;
}

static bool is_curve(const struct kp_line *l)
{
    return kp_line_has_value(l) && l->metric->n_instances;
}

/* Returns the launch's own value on the x axis: a launch property listed beside the curves. */
static struct mark find_mark(const struct kp_lines *l)
{
    static const char of_launch[] = "launch__";
    struct mark m = {0};
    for (size_t i = 0; !m.line && i < l->n; i++)
        if (!strncmp(l->at[i].name, of_launch, strlen(of_launch)) && !is_curve(&l->at[i]) &&
            kp_metric_number(l->at[i].metric, &m.x))
            m.line = &l->at[i];
    return m;
}

/* Draws the curves; false when there are none. */
static bool draw_curves(struct kp_out *o, const struct kp_lines *l, const struct mark *mark)
{
    const struct kp_metric *drawn = NULL;
    for (size_t i = 0; i < l->n; i++) {
        if (!is_curve(&l->at[i]) || is_zero(l->at[i].metric))
            continue;
        draw_curve(o, &l->at[i], drawn, mark);
        drawn = l->at[i].metric;
    }
    return drawn != NULL;
}

/* Prints the lines that are neither a curve nor the mark. */
static void print_others(struct kp_out *o, const struct kp_lines *l, const struct kp_line *told)
{
    struct kp_lines others = {0};
    int rc = 0;
    for (size_t i = 0; !rc && i < l->n; i++)
        if (kp_line_has_value(&l->at[i]) && !is_curve(&l->at[i]) && &l->at[i] != told) {
            struct kp_line line = l->at[i];
            line.made_label = NULL;
            rc = kp_lines_add(&others, &line);
        }
    if (rc)
        kp_out_has(o, NULL);
    else if (others.n)
        kp_table_print(o, &others);
    kp_lines_free(&others);
}

void kp_curve_draw(struct kp_out *o, const struct kp_lines *l)
{
    struct mark mark = find_mark(l);
    bool drawn = draw_curves(o, l, &mark);
    print_others(o, l, drawn ? mark.line : NULL);
}
