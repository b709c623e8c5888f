/* The value of range-filter, as ncu has it: [yes|no]:[ranges of cu(da)ProfilerStart]:[NVTX ranges], by number from 1.
 */
#ifndef KP_REPORT_OPTIONS_RANGE_FILTER_H
#define KP_REPORT_OPTIONS_RANGE_FILTER_H

#include <stdbool.h>

#include "base/pattern.h"

struct kp_range_filter {
    bool anew;                        /* NVTX ranges are counted anew from each cu(da)ProfilerStart */
    struct kp_pattern *starts, *nvtx; /* match the wanted numbers; NULL = all */
};

/* Reads a value such as `yes:2:[1-3]`: numbers are regular expressions for whole numbers. Free the patterns with
 * kp_option_numbers_free. Returns 0, -EINVAL with *err (malloc'ed line) or -ENOMEM: then there is nothing to free. */
int kp_option_numbers_read(const char *value, struct kp_range_filter *out, char **err);
void kp_option_numbers_free(struct kp_range_filter *f);

#endif
