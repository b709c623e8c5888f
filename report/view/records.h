/* The kernels of a timeline as launches: what a session without launches knows of their times. */
#ifndef KP_REPORT_VIEW_RECORDS_H
#define KP_REPORT_VIEW_RECORDS_H

#include "report/model/model.h"
#include "report/model/timeline.h"

/* Calls `fn` for each kernel of the timeline, in the order of the launches, with its name, shape and place, its
 * duration as the only metric, and the NVTX ranges of its thread. A result other than 0 ends this and is returned;
 * -ENOMEM. */
int kp_records_each(const struct kp_timeline *t, int (*fn)(struct kp_result *r, void *arg), void *arg);

#endif
