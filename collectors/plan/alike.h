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

/* Whether launches of one kind are alike, for each of `n_kinds` kinds (0 to n_kinds - 1) that `kinds` gives the
 * launches. True as well where all launches are alike, whatever their kinds. */
bool kp_alike_by_kind(const char *metric, const double *values, const unsigned char *kinds, size_t n, size_t n_kinds);

#endif
