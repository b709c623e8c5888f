/*
 * Whether launches of a kernel are alike enough that groups of counters, each of another launch, may be mixed. Judged
 * by a metric that all of them have counted.
 */
#ifndef KP_COLLECTORS_PLAN_ALIKE_H
#define KP_COLLECTORS_PLAN_ALIKE_H

#include <stdbool.h>
#include <stddef.h>

/* Sorts the values, and judges them. False: they spread too much, or fall into two modes; `why` then says so. */
bool kp_alike(const char *metric, double *values, size_t n, char *why, size_t size);

#endif
