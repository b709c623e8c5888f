#include "report/write/canvas.h"
#include "report/write/drawings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "report/define/units.h"

enum {
    CHART_WIDTH = KP_DRAWING_WIDTH,
    CHART_HEIGHT = 13,
    TEXT_MAX = KP_NUMBER_MAX + KP_UNIT_MAX,
};

struct box {
    int x, y, width, height;
};

struct text {
    int x, y;
    const char *text, *with;
};

struct place {
    int x, y, width;
    const char *group, *label;
};

struct view {
    const char *ending, *heading;
};

static const struct box boxes[] = {
#define KP_CHART_BOX(x, y, width, height) {x, y, width, height},
#define KP_CHART_TEXT(x, y, text, with)
#define KP_CHART_HEAD(x, y, text, unit)
#define KP_CHART_VALUE(x, y, width, group, label)
#define KP_CHART_VIEW(ending, heading)
#include "report/define/chart.def"
};

static const struct text texts[] = {
#define KP_CHART_BOX(x, y, width, height)
#define KP_CHART_TEXT(x, y, text, with) {x, y, text, with},
#define KP_CHART_HEAD(x, y, text, unit)
#define KP_CHART_VALUE(x, y, width, group, label)
#define KP_CHART_VIEW(ending, heading)
#include "report/define/chart.def"
};

static const struct head {
    int x, y;
    const char *text, *unit;
} heads[] = {
#define KP_CHART_BOX(x, y, width, height)
#define KP_CHART_TEXT(x, y, text, with)
#define KP_CHART_HEAD(x, y, text, unit) {x, y, text, unit},
#define KP_CHART_VALUE(x, y, width, group, label)
#define KP_CHART_VIEW(ending, heading)
#include "report/define/chart.def"
};

static const struct place places[] = {
#define KP_CHART_BOX(x, y, width, height)
#define KP_CHART_TEXT(x, y, text, with)
#define KP_CHART_HEAD(x, y, text, unit)
#define KP_CHART_VALUE(x, y, width, group, label) {x, y, width, group, label},
#define KP_CHART_VIEW(ending, heading)
#include "report/define/chart.def"
};

static const struct view views[] = {
#define KP_CHART_BOX(x, y, width, height)
#define KP_CHART_TEXT(x, y, text, with)
#define KP_CHART_HEAD(x, y, text, unit)
#define KP_CHART_VALUE(x, y, width, group, label)
#define KP_CHART_VIEW(ending, heading) {ending, heading},
#include "report/define/chart.def"
};

enum {
    N_BOXES = sizeof boxes / sizeof *boxes,
    N_TEXTS = sizeof texts / sizeof *texts,
    N_HEADS = sizeof heads / sizeof *heads,
    N_PLACES = sizeof places / sizeof *places,
    N_VIEWS = sizeof views / sizeof *views,
};

static bool has_group(const struct kp_lines *l, const char *group)
{
    double value;
    for (size_t i = 0; i < l->n; i++)
        if (!strcmp(l->at[i].group, group) && kp_metric_number(l->at[i].metric, &value))
            return true;
    return false;
}

/* --- views: the same number in another form --- */

static const struct view *view_of(const char *label)
{
    size_t n = strlen(label);
    for (size_t i = 0; i < N_VIEWS; i++) {
        size_t tail = strlen(views[i].ending);
        if (n > tail && !strcmp(label + n - tail, views[i].ending))
            return &views[i];
    }
    return NULL;
}

/* Returns the line that `line` is another view of; `line` itself when it is no view, or the other is missing. */
static const struct kp_line *origin_of(const struct kp_lines *l, const struct kp_line *line)
{
    const struct view *v = view_of(line->label);
    size_t n = v ? strlen(line->label) - strlen(v->ending) : 0;
    for (size_t i = 0; v && i < l->n; i++)
        if (!strcmp(l->at[i].group, line->group) && strlen(l->at[i].label) == n &&
            !strncmp(l->at[i].label, line->label, n))
            return &l->at[i];
    return line;
}

/* --- the drawing --- */

static void draw_box(struct kp_canvas *c, const struct box *b)
{
    int right = b->x + b->width - 1, bottom = b->y + b->height - 1;
    for (int x = b->x; x <= right; x++) {
        kp_canvas_put(c, x, b->y, '-');
        kp_canvas_put(c, x, bottom, '-');
    }
    for (int y = b->y; y <= bottom; y++) {
        kp_canvas_put(c, b->x, y, '|');
        kp_canvas_put(c, right, y, '|');
    }
    kp_canvas_put(c, b->x, b->y, '+');
    kp_canvas_put(c, right, b->y, '+');
    kp_canvas_put(c, b->x, bottom, '+');
    kp_canvas_put(c, right, bottom, '+');
}

/* The content of a place. */
struct amount {
    size_t parts; /* non-zero values */
    const char *unit;
    double sum;
};

static bool is_at(const struct kp_lines *l, const struct kp_line *line, const struct place *p)
{
    if (strcmp(line->group, p->group))
        return false;
    return *p->label ? !strcmp(line->label, p->label) : origin_of(l, line) == line;
}

static bool read_place(const struct kp_lines *l, const struct place *p, struct amount *a)
{
    double value;
    *a = (struct amount){0};
    for (size_t i = 0; i < l->n; i++) {
        if (!is_at(l, &l->at[i], p) || !kp_metric_number(l->at[i].metric, &value))
            continue;
        a->sum += value;
        a->parts += value != 0;
        a->unit = l->at[i].metric->unit;
    }
    return a->unit != NULL;
}

/* Whether the head above the place names the unit. */
static bool is_headed(const struct place *p, const char *unit)
{
    for (size_t i = 0; i < N_HEADS; i++)
        if (!strcmp(heads[i].unit, unit) && heads[i].x + (int)strlen(heads[i].text) == p->x + p->width)
            return true;
    return false;
}

/* Writes the text of a place. Sets *bare where an unscaled unit does not fit. Returns false where the number does
 * not fit. */
static bool place_text(struct kp_out *o, const struct place *p, const struct amount *a, char text[TEXT_MAX], bool *bare)
{
    char scaled[KP_UNIT_MAX];
    bool headed = is_headed(p, a->unit);
    kp_format_quantity(a->sum, a->unit, o->display->base_units, text);
    *bare = !headed && strlen(text) > (size_t)p->width &&
            kp_unit_divisor(a->unit, a->sum, o->display->base_units, scaled) == 1;
    if (headed || *bare)
        kp_format_real(a->sum, text);
    return strlen(text) <= (size_t)p->width;
}

static void draw_place(struct kp_out *o, struct kp_canvas *c, const struct kp_lines *l, const struct place *p)
{
    char text[TEXT_MAX];
    struct amount a;
    bool bare;
    if (!read_place(l, p, &a))
        return;
    if (!place_text(o, p, &a, text, &bare))
        strcpy(text, "(below)");
    kp_canvas_text(c, p->x + p->width - (int)strlen(text), p->y, text);
}

/* Returns the label of a place, or of its first part. */
static const char *place_label(const struct kp_lines *l, const struct place *p)
{
    for (size_t i = 0; !*p->label && i < l->n; i++)
        if (is_at(l, &l->at[i], p))
            return l->at[i].label;
    return p->label;
}

/* Prints, below the drawing, the units that did not fit. */
static void print_units(struct kp_out *o, const struct kp_lines *l)
{
    char *list = NULL, text[TEXT_MAX];
    size_t size;
    struct amount a;
    bool bare;
    FILE *f = open_memstream(&list, &size);
    if (!kp_out_has(o, f))
        return;
    for (size_t i = 0; i < N_PLACES; i++)
        if (read_place(l, &places[i], &a) && place_text(o, &places[i], &a, text, &bare) && bare && *a.unit)
            fprintf(f, "%s%s (%s)", ftell(f) > 0 ? ", " : "", place_label(l, &places[i]), a.unit);
    if (kp_out_has(o, kp_text_end(f, &list) ? NULL : list) && *list)
        kp_out_wrapped(o, "    Units: ", list);
    free(list);
}

static bool has_any_place(const struct kp_lines *l)
{
    struct amount a;
    for (size_t i = 0; i < N_PLACES; i++)
        if (read_place(l, &places[i], &a))
            return true;
    return false;
}

static void print_drawing(struct kp_out *o, const struct kp_lines *l)
{
    struct kp_canvas c;
    if (!has_any_place(l))
        return;
    if (!kp_out_has(o, kp_canvas_new(&c, CHART_WIDTH, CHART_HEIGHT) ? NULL : c.cells))
        return;
    for (size_t i = 0; i < N_BOXES; i++)
        draw_box(&c, &boxes[i]);
    for (size_t i = 0; i < N_TEXTS; i++)
        if (!*texts[i].with || has_group(l, texts[i].with))
            kp_canvas_text(&c, texts[i].x, texts[i].y, texts[i].text);
    for (size_t i = 0; i < N_HEADS; i++)
        kp_canvas_text(&c, heads[i].x, heads[i].y, heads[i].text);
    for (size_t i = 0; i < N_PLACES; i++)
        draw_place(o, &c, l, &places[i]);
    for (int y = 0; y < c.height; y++) {
        kp_out_repeat(o, ' ', KP_INDENT);
        kp_canvas_print_line(o, &c, y);
    }
    free(c.cells);
    print_units(o, l);
}

/* --- lines outside of the drawing --- */

/* Whether the drawing shows the line's own value, and not only a sum with others. */
static bool is_drawn(struct kp_out *o, const struct kp_lines *l, const struct kp_line *line)
{
    char text[TEXT_MAX];
    struct amount a;
    double value;
    bool bare;
    for (size_t i = 0; i < N_PLACES; i++)
        if (is_at(l, line, &places[i]) && kp_metric_number(line->metric, &value))
            return read_place(l, &places[i], &a) && place_text(o, &places[i], &a, text, &bare) &&
                   a.parts <= (value != 0);
    return false;
}

/* Adds a line as a row of a grid: the value, and beside it its other views. Labels are unique, so no group is
 * needed. */
static int add_rest(struct kp_out *o, const struct kp_lines *l, const struct kp_line *from, struct kp_lines *rest)
{
    struct kp_line line = *from;
    const struct kp_line *origin = origin_of(l, from);
    line.made_label = NULL;
    if (o->display->naming == KP_NAMING_LABEL) {
        line.group = origin->label;
        line.label = origin == from ? "Value" : view_of(from->label)->heading;
    }
    return kp_lines_add(rest, &line);
}

static void print_rest(struct kp_out *o, const struct kp_lines *l)
{
    struct kp_lines rest = {0};
    int rc = 0;
    for (size_t i = 0; !rc && i < l->n; i++)
        if (kp_line_has_value(&l->at[i]) && !is_drawn(o, l, &l->at[i]))
            rc = add_rest(o, l, &l->at[i], &rest);
    if (rc)
        kp_out_has(o, NULL);
    else if (rest.n) {
        kp_out_print(o, "    Not in the drawing\n");
        kp_grid_draw(o, &rest);
    }
    kp_lines_free(&rest);
}

void kp_chart_draw(struct kp_out *o, const struct kp_lines *l)
{
    print_drawing(o, l);
    print_rest(o, l);
}
