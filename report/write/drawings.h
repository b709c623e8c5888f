/* Lines as tables, drawings and timelines; each draws lines that hold at least one value. */
#ifndef KP_REPORT_WRITE_DRAWINGS_H
#define KP_REPORT_WRITE_DRAWINGS_H

#include "report/view/lines.h"
#include "report/view/series.h"
#include "report/write/out.h"

/* Name, unit and value in a frame. */
void kp_table_print(struct kp_out *o, const struct kp_lines *l);
/* Below a table or a drawing: which of the lines have no value, and why. */
void kp_table_print_missing(struct kp_out *o, const struct kp_lines *l);
/* Below a drawing: the instances, where print-metric-instances wants them. */
void kp_table_print_instances(struct kp_out *o, const struct kp_lines *l);

void kp_bars_draw(struct kp_out *o, const struct kp_lines *l, bool sorted);
void kp_grid_draw(struct kp_out *o, const struct kp_lines *l);
void kp_roofline_draw(struct kp_out *o, const struct kp_lines *l);
void kp_curve_draw(struct kp_out *o, const struct kp_lines *l);
void kp_chart_draw(struct kp_out *o, const struct kp_lines *l);

/* A table with least, mean and largest value of each of `n` > 0 series, and its values over time, folded to the width
 * of the line. `dropped`: as kp_series_dropped. */
void kp_series_draw(struct kp_out *o, const struct kp_series_row *rows, size_t n, double dropped);

#endif
