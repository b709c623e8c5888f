/* What launches and NVTX ranges are called. Threads: pure functions. */
#ifndef KP_REPORT_MODEL_LAUNCH_NAMES_H
#define KP_REPORT_MODEL_LAUNCH_NAMES_H

#include <stdbool.h>
#include <stddef.h>

#include "report/model/model.h"

/* The kernel's name as reports have it; valid as long as `l`. */
const char *kp_launch_name(const struct kp_launch_info *l);
/* That name behind the innermost push-pop range of the launching thread, as print-nvtx-rename and ncu write it:
 * RANGE/NAME. malloc'ed in *out, which is NULL where there is no such range. 0 or -ENOMEM. */
int kp_launch_range_name(const struct kp_launch_info *l, char **out);
/* How much of kp_launch_name is that range with its '/', where kp_launch_range_name has become the name; else 0. */
size_t kp_launch_range_length(const struct kp_launch_info *l);
/* Writes the first `range` bytes of such a name into *out, which has `most` bytes and is not terminated. Where they
 * are more, writes their beginning and ".../", for which `most` must have room. Returns how many bytes were written. */
size_t kp_range_cut(const char *name, size_t range, size_t most, char *out);
/* A kernel's name without return type, template arguments and parameters; where that is longer than `width`, without
 * namespaces, and if need be cut and ended by "...". malloc'ed; NULL without memory. */
char *kp_trace_name(const char *demangled, size_t width);

/* The name of a range where launches are put together by ranges: as a filter names it, without line ends. malloc'ed;
 * NULL without memory. */
char *kp_range_title(const struct kp_nvtx_range *r);
/* Stands for the name of a range that has none. */
extern const char kp_range_nameless[];
/* Whether range `i` is the first of its kind, domain and name around the launch: a recursion has several. */
bool kp_range_is_new(const struct kp_nvtx *n, size_t i);

#endif
