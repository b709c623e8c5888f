/* What ran on a device, from a record of CUPTI. */
#ifndef KP_COLLECTORS_MODEL_ACTIVITIES_H
#define KP_COLLECTORS_MODEL_ACTIVITIES_H

#include <stdint.h>

#include "report/model/timeline.h"

/* A record. `activity.name` is not set: `name` is the mangled name of a kernel, else a phrase such as "memcpy HtoD";
 * valid during the sink's call. */
struct kp_device_record {
    struct kp_activity activity;
    const char *name;
    uint32_t dynamic_shared; /* bytes, of a kernel */
};

/* Receives a record, on any thread, even CUPTI's own. It must not call CUDA or CUPTI. */
typedef void kp_record_sink(const struct kp_device_record *r);

#endif
