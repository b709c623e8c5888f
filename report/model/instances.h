/*
 * Instances of a metric: numeric keys, and the text for the session file, a JSON array of [key, value] pairs. Both
 * are made thousands of times a launch, so whole numbers are written without printf.
 *
 * Threads: shares no data; does not depend on the program's locale, or change it for other threads.
 */
#ifndef KP_REPORT_MODEL_INSTANCES_H
#define KP_REPORT_MODEL_INSTANCES_H

#include "report/model/model.h"

/* Returns malloc'ed text; NULL without memory. NaN becomes null, infinity 1e999 or -1e999. */
char *kp_instances_write(const struct kp_instance *instances, size_t n);

/* Gives metric `name` of `r`, which must be set, the instances in `json`. 0; -EINVAL for text that
 * kp_instances_write would not write; -ENOMEM. */
int kp_instances_read(const char *json, struct kp_result *r, const char *name);

#endif
