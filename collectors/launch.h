/*
 * Launch and occupancy metrics: what the driver's attributes and the occupancy calculation say, no counter and no pass.
 * Names and meaning as in Nsight Compute (launch__*, sm__maximum_warps_*).
 */
#ifndef KP_COLLECTORS_LAUNCH_H
#define KP_COLLECTORS_LAUNCH_H

#include "collectors/device.h"
#include "report/model.h"

/* Every metric that kp_launch_metrics may set, NULL at the end. */
extern const char *const kp_launch_metric_names[];

/* How a kernel was launched. */
struct kp_shape {
    uint32_t grid[3], block[3];
    uint64_t dynamic_shared;       /* byte a block */
    uint32_t cluster[3];           /* from the launch's attributes, else the function's; all 0 = no clusters */
    uint32_t preferred_cluster[3]; /* wished for by the launch; all 0 = none */
    int cluster_policy;            /* CUclusterSchedulingPolicy */
};

/* Values that take more than an attribute; a NULL or 0 is shown as n/a with `why`. */
struct kp_launch_extra {
    uint64_t shared_config; /* byte; 0 = not known */
    uint32_t registers;     /* a thread, as launched; 0 = what the function's attribute says */
    const char *shared_config_why;
};

/* Sets every launch and occupancy metric of one launch in `r`. The launch's context must be current. 0 or -ENOMEM. */
int kp_launch_metrics(struct kp_result *r, const struct kp_driver *d, const struct kp_device *device,
                      const struct kp_context_facts *context, const struct kp_function *f, const struct kp_shape *s,
                      const struct kp_launch_extra *extra);

#endif
