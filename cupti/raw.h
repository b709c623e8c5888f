/*
 * What fits one pass, by the raw counters that metrics are made of. A question takes a tenth of the time that
 * kp_host_schedule needs, because counters are looked up and the scheduler's tables are made once.
 *
 * Errors: 0 or a negative errno. Threads: a kp_raw belongs to one thread at a time. Source: the PerfWorks library.
 */
#ifndef KP_CUPTI_RAW_H
#define KP_CUPTI_RAW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cupti/internal.h"

struct kp_raw;

/* Opens the scheduler of a chip, as if it offered all counters; `evaluator` stays the caller's, and must live as long.
 * -ENOSYS when this library has none, or refuses. */
int kp_raw_open(const struct kp_cupti *c, NVPW_MetricsEvaluator *evaluator, const char *chip, struct kp_raw **out);
void kp_raw_close(struct kp_raw *r);

/* Answers as kp_host_fits_pass. */
int kp_raw_fits(struct kp_raw *r, const char *const *names, size_t n, bool *fits);

#endif
