/*
 * Instances of a metric: their keys where those are numbers, and all of them as text for the session file, a JSON array
 * of [key, value] pairs. Both are made thousands of times a launch, so whole numbers are written without printf.
 * Threads: none is shared; nothing here depends on the program's locale, or changes it for other threads.
 */
#ifndef KP_REPORT_MODEL_INSTANCES_H
#define KP_REPORT_MODEL_INSTANCES_H

#include "report/model/model.h"

/* malloc'ed; NULL without memory. A value that is not a number is null, an infinite one 1e999 or -1e999. */
char *kp_instances_write(const struct kp_instance *instances, size_t n);

/* Gives metric `name` of `r`, which is set, the instances that `json` holds. 0; -EINVAL when it is not what
 * kp_instances_write writes; -ENOMEM. */
int kp_instances_read(const char *json, struct kp_result *r, const char *name);

#endif
