/*
 * Metrics that are the same for each launch on a device: its attributes, its place among the machine's NUMA nodes, its
 * NVLinks. They cost system calls and perhaps the loading of NVML, so only requested metrics are read, once per
 * context, and copied into each result. Names and meaning as in Nsight Compute (device__attribute_*, numa__*,
 * nvlink__*, launch__uses_vgpu).
 */
#ifndef KP_COLLECTORS_FACTS_TOPOLOGY_H
#define KP_COLLECTORS_FACTS_TOPOLOGY_H

#include <stdbool.h>

#include "base/dl.h"
#include "collectors/facts/device.h"
#include "report/model/model.h"

/* Every metric that kp_device_metrics may set, in the order of strcmp, NULL at the end. None has a unit. */
extern const char *const kp_device_metric_names[];

bool kp_device_is_metric(const char *name);

#define KP_SYSFS "/sys"
#define KP_NVML  "libnvidia-ml.so.1"
#define KP_GPUS  "/proc/driver/nvidia/gpus"

/* The sources of the machine's facts. */
struct kp_machine {
    const struct kp_dl *dl;
    const char *sysfs; /* KP_SYSFS */
    const char *nvml;  /* KP_NVML */
    const char *gpus;  /* KP_GPUS */
    const char *chip;  /* CUPTI's name of the device's chip, "" if unknown */
};

/* Sets in `r` each metric of this file that is in the comma list `names`; skips other names. A value that the machine
 * does not provide is n/a with the reason. Values are counts, or text if ncu prints text: a list over the GPUs of the
 * machine is "2 (first; second)". NVLink values are sums over their instances, which are keyed by device (ports, masks)
 * or by the running number of the joined pair of devices. 0 or -ENOMEM. */
int kp_device_metrics(struct kp_result *r, const struct kp_driver *d, const struct kp_device *device,
                      const struct kp_machine *machine, const char *names);

/* Returns all metrics of the device (device_metrics.def) as lines of a name, a tab and its value, which is empty if
 * the machine does not provide it; malloc'ed, NULL without memory. */
char *kp_device_attributes(const struct kp_driver *d, const struct kp_device *device, const struct kp_machine *machine);

#endif
