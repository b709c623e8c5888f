/*
 * Decides if launches of a kernel are alike enough to combine groups of counters that were counted in different
 * launches, by a metric that all of them counted.
 */
#ifndef KP_COLLECTORS_PLAN_ALIKE_H
#define KP_COLLECTORS_PLAN_ALIKE_H

#include <stdbool.h>
#include <stddef.h>

#include "report/model/reasons.h"

/* Sorts the values, and judges them. False: they spread too much, or fall into two modes; *why (NULL: not needed) then
 * says so, for kp_why_free. */
bool kp_alike(const char *metric, double *values, size_t n, struct kp_why *why);

#endif
