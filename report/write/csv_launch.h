/* The columns of `ncu --csv` that identify the process and launch of a row. */
#ifndef KP_REPORT_WRITE_CSV_LAUNCH_H
#define KP_REPORT_WRITE_CSV_LAUNCH_H

#include "base/csv.h"
#include "report/model/model.h"
#include "report/view/display.h"

/* Writes the headings from the number to the compute capability; with `nvtx` those of ranges, too. 0 or -ENOMEM. */
void kp_write_csv_launch_headings(struct kp_csv *c, bool nvtx);
int kp_write_csv_launch(struct kp_csv *c, const struct kp_display *d, const struct kp_session *s,
                        const struct kp_launch_info *l, const char *name, bool nvtx);
/* Writes the headings that identify the process. */
void kp_write_csv_process_headings(struct kp_csv *c);
void kp_write_csv_process(struct kp_csv *c, const struct kp_display *d, const struct kp_session *s);

#endif
