/* Prints a launch, and the place in the program that made it. */
#ifndef KP_REPORT_WRITE_LAUNCH_HEAD_H
#define KP_REPORT_WRITE_LAUNCH_HEAD_H

#include "report/model/model.h"
#include "report/write/out.h"

/* Prints `name` as one line without its end, whatever the name contains. */
void kp_write_launch_name(struct kp_out *o, const struct kp_launch_info *l);
/* Prints `name (grid)x(block)` likewise. */
void kp_write_launch_line(struct kp_out *o, const struct kp_launch_info *l);
/* Prints the launch's header line, its NVTX ranges, its call stack and its note. `quick`: as in kp_shown. */
void kp_write_launch_head(struct kp_out *o, const struct kp_launch_info *l, bool quick);

/* Prints the NVTX ranges of a launch, a line or more for each thread's stack; nothing without ranges. */
void kp_render_nvtx(struct kp_out *o, const struct kp_nvtx *n);

#endif
