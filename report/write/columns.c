#include "report/write/columns.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int make_room(struct kp_columns *c)
{
    if (c->n_cells + c->n <= c->capacity)
        return 0;
    size_t capacity = 2 * c->capacity + 16 * c->n;
    char **grown = realloc(c->cells, capacity * sizeof *grown);
    if (!grown)
        return -ENOMEM;
    c->cells = grown;
    c->capacity = capacity;
    return 0;
}

int kp_columns_add(struct kp_columns *c, const char *const *cells)
{
    if (make_room(c))
        return -ENOMEM;
    for (size_t i = 0; i < c->n; i++) {
        if ((c->cells[c->n_cells + i] = kp_strdup(cells[i])))
            continue;
        while (i)
            free(c->cells[c->n_cells + --i]);
        return -ENOMEM;
    }
    c->n_cells += c->n;
    return 0;
}

void kp_columns_free(struct kp_columns *c)
{
    for (size_t i = 0; i < c->n_cells; i++)
        free(c->cells[i]);
    free(c->cells);
    c->cells = NULL;
    c->n_cells = c->capacity = 0;
}

static void print_row(struct kp_out *o, const struct kp_columns *c, const struct kp_columns_look *look,
                      const size_t *widths, const char *const *cells)
{
    kp_out_repeat(o, ' ', (size_t)look->indent);
    for (size_t i = 0; i < c->n; i++) {
        size_t len = strlen(cells[i]), pad = len < widths[i] ? widths[i] - len : 0;
        bool left = c->to_the_left && c->to_the_left[i], last = i + 1 == c->n;
        kp_out_repeat(o, ' ', left ? 0 : pad);
        kp_out_one_line(o, cells[i], len); /* command lines and names may contain anything */
        kp_out_repeat(o, ' ', last ? 0 : (left ? pad : 0) + (size_t)look->gap);
    }
    kp_out_text(o, "\n", 1);
}

static void print_dashes(struct kp_out *o, const struct kp_columns *c, const struct kp_columns_look *look,
                         const size_t *widths)
{
    kp_out_repeat(o, ' ', (size_t)look->indent);
    for (size_t i = 0; i < c->n; i++) {
        kp_out_repeat(o, '-', widths[i]);
        kp_out_repeat(o, ' ', i + 1 < c->n ? (size_t)look->gap : 0);
    }
    kp_out_text(o, "\n", 1);
}

/* Returns the dashes below an unpadded last column, at most to the end of the line. */
static size_t dashes_of_last(const struct kp_columns *c, const struct kp_columns_look *look, const size_t *widths)
{
    size_t last = c->n - 1, used = (size_t)look->indent, least = strlen(c->headings[last]);
    for (size_t i = 0; i < last; i++)
        used += widths[i] + (size_t)look->gap;
    size_t most = used + least < KP_LINE_WIDTH ? KP_LINE_WIDTH - used : least;
    return widths[last] < most || !c->to_the_left || !c->to_the_left[last] ? widths[last] : most;
}

void kp_columns_print(struct kp_out *o, const struct kp_columns *c, const struct kp_columns_look *look)
{
    size_t *widths = calloc(c->n, sizeof *widths);
    if (!kp_out_has(o, widths) || !c->n)
        return;
    for (size_t i = 0; i < c->n; i++) {
        widths[i] = strlen(c->headings[i]);
        for (size_t at = i; at < c->n_cells; at += c->n)
            if (strlen(c->cells[at]) > widths[i])
                widths[i] = strlen(c->cells[at]);
    }
    widths[c->n - 1] = dashes_of_last(c, look, widths);
    if (look->framed)
        print_dashes(o, c, look, widths);
    print_row(o, c, look, widths, c->headings);
    print_dashes(o, c, look, widths);
    for (size_t at = 0; at < c->n_cells; at += c->n)
        print_row(o, c, look, widths, (const char *const *)&c->cells[at]);
    if (look->framed)
        print_dashes(o, c, look, widths);
    free(widths);
}
