/* The summary over a run as text. */
#ifndef KP_REPORT_WRITE_RUN_SUMMARY_H
#define KP_REPORT_WRITE_RUN_SUMMARY_H

#include "report/judge/summary.h"
#include "report/write/out.h"

/* Prints what to fix first, then the kernels in the order and number of o->display, the longest first without one.
 * Nothing without launches. Returns 0, -ENOMEM, or an error of the sink. */
int kp_write_run_summary(const struct kp_summary *s, const struct kp_out *o);

#endif
