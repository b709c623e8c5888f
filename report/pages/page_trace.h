/* The page trace: one line a launch, in launch order. */
#ifndef KP_REPORT_PAGES_PAGE_TRACE_H
#define KP_REPORT_PAGES_PAGE_TRACE_H

#include <stddef.h>

#include "report/options/options.h"

/* What is collected for the page when neither set, section nor metrics are given: where it is all that is asked for,
 * what one pass has, or, if that has not all its columns, these. Changes set and metrics of `o`. 0 or -ENOMEM. */
int kp_trace_wants(struct kp_options *o);

/* A kernel's name without return type, template arguments and parameters; where that is longer than `width`, without
 * namespaces, and if need be cut and ended by "...". malloc'ed; NULL without memory. */
char *kp_trace_name(const char *demangled, size_t width);

#endif
