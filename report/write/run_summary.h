/* The summary over a run as text. */
#ifndef KP_REPORT_WRITE_RUN_SUMMARY_H
#define KP_REPORT_WRITE_RUN_SUMMARY_H

#include "base/sink.h"
#include "report/judge/summary.h"

/* Prints what to fix first, then the kernels by time, the longest first. Nothing without launches. Returns 0,
 * -ENOMEM, or an error of the sink. */
int kp_run_summary_print(const struct kp_summary *s, const struct kp_sink *out);

#endif
