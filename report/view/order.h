/* The order of kernels in summaries. Threads: pure functions. */
#ifndef KP_REPORT_VIEW_ORDER_H
#define KP_REPORT_VIEW_ORDER_H

#include <stdint.h>

#include "report/options/options.h"

/* What kernels are ordered by. */
struct kp_ordered {
    const char *name;
    double ns, saved_ns; /* of these launches; saved by the best rule */
    uint64_t launches;   /* whose duration is known */
};

/* Compares two kernels as strcmp does: negative if `a` comes first. No two names are equal in an order. */
int kp_order(const struct kp_ordered *a, const struct kp_ordered *b, enum kp_sort by);

#endif
