#include "report/write/columns.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/width.h"

enum { CELL_LEAST = 8 /* the least width that a column is narrowed to */ };

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

size_t kp_columns_piece(const char *text, size_t width)
{
    size_t len = strlen(text), cut = kp_width_fit(text, len, width), bytes = 0;
    if (cut == len)
        return len;
    for (size_t at = cut; at > cut / 2; at--)
        if (strchr(" ,_./", text[at - 1]) || text[at] == ' ')
            return at;
    if (!cut)
        kp_width_of_char(text, len, &bytes);
    return cut ? cut : bytes;
}

size_t kp_columns_pad(const char *text, size_t len, size_t width)
{
    size_t columns = kp_width_of(text, len);
    return columns < width ? width - columns : 0;
}

/* Prints one line of a row; moves each cell to its rest. Returns whether there is any. `rest`: a further line, which
 * ends with its last text. */
static bool print_line_of_row(struct kp_out *o, const struct kp_columns *c, const struct kp_columns_look *look,
                              const size_t *widths, const char **cells, bool rest)
{
    bool more = false;
    size_t n = c->n;
    while (rest && n && !*cells[n - 1])
        n--;
    kp_out_repeat(o, ' ', (size_t)look->indent);
    for (size_t i = 0; i < n; i++) {
        bool left = c->to_the_left && c->to_the_left[i], last = i + 1 == n;
        size_t len = i + 1 == c->n && !look->framed ? strlen(cells[i]) : kp_columns_piece(cells[i], widths[i]);
        size_t pad = kp_columns_pad(cells[i], len, widths[i]);
        kp_out_repeat(o, ' ', left ? 0 : pad);
        size_t shown = len;
        while (last && shown && cells[i][shown - 1] == ' ')
            shown--;
        kp_out_one_line(o, cells[i], shown); /* command lines and names may contain anything */
        kp_out_repeat(o, ' ', last ? 0 : (left ? pad : 0) + (size_t)look->gap);
        cells[i] += len;
        cells[i] += strspn(cells[i], " ");
        more |= *cells[i] != '\0';
    }
    kp_out_text(o, "\n", 1);
    return more;
}

static void print_row(struct kp_out *o, const struct kp_columns *c, const struct kp_columns_look *look,
                      const size_t *widths, const char *const *cells)
{
    const char **rest = calloc(c->n, sizeof *rest); /* gcc -O0 considers malloc's uninitialised */
    if (!kp_out_has(o, rest))
        return;
    memcpy(rest, cells, c->n * sizeof *rest);
    for (bool more = print_line_of_row(o, c, look, widths, rest, false); more && !o->rc;)
        more = print_line_of_row(o, c, look, widths, rest, true);
    free(rest);
}

static void print_column_dashes(struct kp_out *o, const struct kp_columns *c, const struct kp_columns_look *look,
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
static size_t dashes_of_last(const struct kp_columns *c, const struct kp_columns_look *look, const size_t *widths,
                             size_t line)
{
    size_t last = c->n - 1, used = (size_t)look->indent, least = kp_width(c->headings[last]);
    for (size_t i = 0; i < last; i++)
        used += widths[i] + (size_t)look->gap;
    size_t most = used + least < line ? line - used : least;
    return widths[last] < most || !c->to_the_left || !c->to_the_left[last] ? widths[last] : most;
}

/* Narrows the widest columns until the table fits into the line; false if it does not. The last column of a table
 * without a frame stays: it may be a drawing. */
static bool narrow(const struct kp_columns *c, const struct kp_columns_look *look, size_t *widths, size_t line)
{
    size_t total = (size_t)look->indent + (c->n - 1) * (size_t)look->gap, n = c->n - !look->framed;
    for (size_t i = 0; i < c->n; i++)
        total += widths[i];
    for (; total > line; total--) {
        size_t widest = 0;
        for (size_t i = 1; i < n; i++)
            widest = widths[i] > widths[widest] ? i : widest;
        if (!n || widths[widest] <= CELL_LEAST)
            return false;
        widths[widest]--;
    }
    return true;
}

/* Prints a table that is too wide for the terminal as a list: for each row its headings and cells, one below another.
 */
static void print_records(struct kp_out *o, const struct kp_columns *c, const struct kp_columns_look *look)
{
    size_t width = 0;
    for (size_t i = 0; i < c->n; i++)
        width = kp_width(c->headings[i]) > width ? kp_width(c->headings[i]) : width;
    for (size_t at = 0; at < c->n_cells; at++) {
        const char *heading = c->headings[at % c->n];
        if (at && at % c->n == 0)
            kp_out_text(o, "\n", 1);
        kp_out_repeat(o, ' ', (size_t)look->indent);
        kp_out_print(o, "%-*s  ", kp_width_printf(heading, width), heading);
        kp_out_one_line(o, c->cells[at], strlen(c->cells[at]));
        kp_out_text(o, "\n", 1);
    }
}

void kp_columns_print(struct kp_out *o, const struct kp_columns *c, const struct kp_columns_look *look)
{
    size_t *widths = calloc(c->n, sizeof *widths);
    if (!kp_out_has(o, widths) || !c->n)
        return;
    for (size_t i = 0; i < c->n; i++) {
        widths[i] = kp_width(c->headings[i]);
        for (size_t at = i; at < c->n_cells; at += c->n)
            if (kp_width(c->cells[at]) > widths[i])
                widths[i] = kp_width(c->cells[at]);
    }
    if (!narrow(c, look, widths, kp_out_wide(o))) {
        print_records(o, c, look);
        free(widths);
        return;
    }
    widths[c->n - 1] = dashes_of_last(c, look, widths, kp_out_wide(o));
    if (look->framed)
        print_column_dashes(o, c, look, widths);
    print_row(o, c, look, widths, c->headings);
    print_column_dashes(o, c, look, widths);
    for (size_t at = 0; at < c->n_cells; at += c->n)
        print_row(o, c, look, widths, (const char *const *)&c->cells[at]);
    if (look->framed)
        print_column_dashes(o, c, look, widths);
    free(widths);
}
