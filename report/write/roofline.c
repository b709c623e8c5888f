/* The roofs and points of a roofline in tables. The HTML file draws them. */
#include "report/write/drawings.h"

#include <math.h>
#include <stdio.h>

#include "report/define/units.h"
#include "report/view/roofs.h"
#include "report/write/columns.h"

enum { CELLS = 5, CELL_MAX = KP_NUMBER_MAX + KP_UNIT_MAX };

static void quantity(struct kp_out *o, double value, const char *unit, char out[CELL_MAX])
{
    if (isnan(value))
        snprintf(out, CELL_MAX, "n/a");
    else
        kp_format_quantity(value, unit, o->display->base_units, out);
}

static int add_row(struct kp_out *o, const struct kp_roofs *r, const struct kp_rates *of, struct kp_columns *to)
{
    char rate[16], per_byte[16], cells[CELLS - 1][CELL_MAX] = {""};
    snprintf(rate, sizeof rate, "%s/s", r->operation);
    snprintf(per_byte, sizeof per_byte, "%s/byte", r->operation);
    quantity(o, of->work, rate, cells[0]);
    quantity(o, of->traffic, "byte/s", cells[1]);
    quantity(o, kp_rates_intensity(of), per_byte, cells[2]);
    if (of->is_point)
        quantity(o, 100 * of->work / kp_rates_limit(of), "%", cells[3]);
    return kp_columns_add(to, (const char *const[]){of->name, cells[0], cells[1], cells[2], cells[3]});
}

/* Prints all roofs, or the points with work. */
static void print_rates(struct kp_out *o, const struct kp_roofs *r, bool points)
{
    static const char *const headings[][CELLS] = {
        {"Roof", "Peak Work", "Peak Traffic", "Ridge Point"},
        {"Point", "Achieved Work", "Achieved Traffic", "Arithmetic Intensity", "Of Its Roof"}};
    static const bool to_the_left[CELLS] = {true};
    struct kp_columns c = {.headings = headings[points], .to_the_left = to_the_left, .n = CELLS - !points};
    int rc = 0;
    for (size_t i = 0; !rc && i < r->n; i++)
        if (r->all[i].is_point == points && !(points && r->all[i].work == 0))
            rc = add_row(o, r, &r->all[i], &c);
    if (rc)
        kp_out_has(o, NULL);
    else if (c.n_cells)
        kp_columns_print(o, &c, &(struct kp_columns_look){KP_INDENT, 1, true});
    kp_columns_free(&c);
}

static bool has_work(const struct kp_roofs *r)
{
    bool any = false;
    for (size_t i = 0; i < r->n; i++)
        any |= r->all[i].is_point && r->all[i].work != 0;
    return any;
}

void kp_roofline_print(struct kp_out *o, const struct kp_lines *l)
{
    struct kp_roofs r;
    if (kp_roofs_of(l, &r)) {
        kp_out_has(o, NULL);
        return;
    }
    if (has_work(&r)) {
        print_rates(o, &r, false);
        print_rates(o, &r, true);
    } else {
        kp_out_print(o, "    No work of this kind was done.\n");
    }
    kp_roofs_free(&r);
}
