/* A text table that is built as a whole and then printed, in a frame or plainly. */
#ifndef KP_REPORT_WRITE_COLUMNS_H
#define KP_REPORT_WRITE_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>

#include "report/write/out.h"

/* The look of a table: blanks before a line and between columns. Dashes stand around the headings and the rows, or
 * else below the headings alone. */
struct kp_columns_look {
    int indent, gap;
    bool framed;
};

struct kp_columns {
    const char *const *headings;
    const bool *to_the_left; /* NULL: no column is */
    size_t n;                /* columns */
    char **cells;            /* row by row; owned */
    size_t n_cells, capacity;
};

/* Adds a row of copies. 0 or -ENOMEM, with the table as it was. */
int kp_columns_add(struct kp_columns *c, const char *const *cells);
void kp_columns_free(struct kp_columns *c);

/* Prints the table. Cells of the widest columns are broken if it is wider than the display, except for the last column
 * of a table without a frame: it may be a drawing. A table that is still too wide is printed as a list. */
void kp_columns_print(struct kp_out *o, const struct kp_columns *c, const struct kp_columns_look *look);
/* Returns how much of a cell stands on its first line, in a column of `width` > 0. */
size_t kp_columns_piece(const char *text, size_t width);
/* Returns the blanks that fill `len` bytes of text up to a width. */
size_t kp_columns_pad(const char *text, size_t len, size_t width);
#endif
