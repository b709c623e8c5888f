/*
 * The raw counters that metrics are made of: which of them fit one pass, and counter data with room for them. The first
 * costs a tenth of the time of kp_host_schedule, because needs are looked up and the scheduler's tables are made only
 * once.
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

/* Opens the counters of a chip, as if it offered all of them; `evaluator` stays the caller's, and must outlive it.
 * -ENOSYS if this library does not say what metrics are made of, or refuses. */
int kp_raw_open(const struct kp_cupti *c, NVPW_MetricsEvaluator *evaluator, const char *chip, struct kp_raw **out);
void kp_raw_close(struct kp_raw *r);

/* Answers like kp_host_fits_pass. -ENOSYS if this library has no scheduler. */
int kp_raw_fits(struct kp_raw *r, const char *const *names, size_t n, bool *fits);

/* Returns true if this library can lay out counter data. */
bool kp_raw_lays_out(const struct kp_cupti *c);
/* Writes the layout of counter data with room for all that the metrics need, each counter with all instances: *prefix
 * is malloc'ed. -EINVAL if the library does not say what a metric needs. */
int kp_raw_layout(struct kp_raw *r, const char *chip, const char *const *names, size_t n, uint8_t **prefix,
                  size_t *size);

#endif
