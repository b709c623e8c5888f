/*
 * Launch and occupancy metrics: from the driver's attributes and the occupancy calculation, without counters or
 * passes. Names and meaning as in Nsight Compute (launch__*, sm__maximum_warps_*).
 */
#ifndef KP_COLLECTORS_FACTS_LAUNCH_H
#define KP_COLLECTORS_FACTS_LAUNCH_H

#include <stdbool.h>

#include "collectors/facts/device.h"
#include "report/model/model.h"

/* Every metric that kp_launch_metrics may set, in the order of strcmp, NULL at the end. */
extern const char *const kp_launch_metric_names[];

/* Returns true if the metric needs no counting: it belongs to the launch (above) or the device
 * (collectors/facts/topology.h). */
bool kp_launch_is_metric(const char *name);

/* How a kernel was launched. */
struct kp_shape {
    uint32_t grid[3], block[3];
    uint64_t dynamic_shared;       /* bytes per block */
    uint32_t cluster[3];           /* from the launch's attributes, else the function's; all 0 = no clusters */
    uint32_t preferred_cluster[3]; /* the launch's wish; all 0 = none */
    int cluster_policy;            /* CUclusterSchedulingPolicy */
    bool nvlink_centric;           /* the launch wants NVLink-centric scheduling */
};

/* Values from other sources than attributes; NULL or 0 is shown as n/a with `why`. */
struct kp_launch_extra {
    uint64_t shared_config; /* bytes; 0 = unknown */
    uint32_t registers;     /* per thread, as launched; 0 = as in the function's attribute */
    struct kp_why shared_config_why;
    bool curves; /* also sets the occupancy curves: launch__occupancy_per_* and derived__pct_occupancy_per_* */
};

/* Sets every launch and occupancy metric of one launch in `r`, whose header (r->launch) is filled. The launch's
 * context must be current. The instances of a curve are its points, keyed by their x; its value is their sum. 0 or
 * -ENOMEM. */
int kp_launch_metrics(struct kp_result *r, const struct kp_driver *d, const struct kp_device *device,
                      const struct kp_context_facts *context, const struct kp_function *f, const struct kp_shape *s,
                      const struct kp_launch_extra *extra);

#endif
