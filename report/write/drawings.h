/* Lines as tables, drawings and timelines; each function needs a line with a value. */
#ifndef KP_REPORT_WRITE_DRAWINGS_H
#define KP_REPORT_WRITE_DRAWINGS_H

#include "report/view/lines.h"
#include "report/view/series.h"
#include "report/write/out.h"

/* Prints name, unit and value in a frame. */
void kp_table_print(struct kp_out *o, const struct kp_lines *l);
/* Prints, below a table or a drawing, which lines have no value, and why. */
void kp_table_print_missing(struct kp_out *o, const struct kp_lines *l);
/* Prints the instances below a drawing, if print-metric-instances asks for them. */
void kp_table_print_instances(struct kp_out *o, const struct kp_lines *l);

void kp_bars_draw(struct kp_out *o, const struct kp_lines *l, bool sorted);
void kp_grid_draw(struct kp_out *o, const struct kp_lines *l);
void kp_roofline_print(struct kp_out *o, const struct kp_lines *l);

/* Prints a table with least, mean and largest value of each of `n` > 0 series. Its timelines are folded to the width
 * of the line. `dropped`: as kp_view_series_dropped. */
void kp_write_series_drawing(struct kp_out *o, const struct kp_series_row *rows, size_t n, double dropped);

#endif
