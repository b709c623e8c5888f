/* A launch, and where it was made. */
#ifndef KP_REPORT_WRITE_LAUNCH_H
#define KP_REPORT_WRITE_LAUNCH_H

#include "report/model/model.h"
#include "report/write/out.h"

/* `  name`, whatever it holds in one line, without its end. */
void kp_launch_print_name(struct kp_out *o, const struct kp_launch_info *l);
/* `  name (grid)x(block)`, the same. */
void kp_launch_print(struct kp_out *o, const struct kp_launch_info *l);
/* The launch's header line, what NVTX tells of it, its call stack and its note. `quick`: as in kp_shown. */
void kp_launch_head(struct kp_out *o, const struct kp_launch_info *l, bool quick);

/* What NVTX tells of a launch, a line or more for each thread's stack; nothing where that is nothing. */
void kp_render_nvtx(struct kp_out *o, const struct kp_nvtx *n);

#endif
