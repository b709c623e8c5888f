/*
 * The host side of CUPTI's profiler: what metrics a chip has, how many passes a list takes, and the evaluation of
 * counter data. Works without a GPU for every chip the library knows.
 *
 * Errors: int results are 0, a negative errno, or a positive CUPTI code (see kp_cupti_explain). Threads: a kp_host
 * belongs to one thread at a time; different hosts are independent.
 */
#ifndef KP_CUPTI_HOST_H
#define KP_CUPTI_HOST_H

#include <stddef.h>
#include <stdint.h>

#include "collectors/model/metrics.h"
#include "cupti/loader.h"

struct kp_host;

/* Opens the metric tables of `chip` ("GH100"). `availability` is the device's image (kp_target_availability) or NULL.
 */
int kp_host_open(const struct kp_cupti *c, const char *chip, const uint8_t *availability, struct kp_host **out);
void kp_host_close(struct kp_host *h);

/* Properties of a metric, with or without suffix. Non-zero when the chip has no such metric. */
int kp_host_metric(struct kp_host *h, const char *name, struct kp_metric_props *out);

/* Base names of one type; *names is owned by CUPTI and valid while `h` is. */
int kp_host_names(struct kp_host *h, enum kp_metric_type type, const char *const **names, size_t *n);

/* Suffixes that base metric `name`, which is of that type, takes (".avg.per_second"); *suffixes is owned by CUPTI and
 * valid until the next call with `h`. -ENOSYS when this CUPTI does not tell. */
int kp_host_suffixes(struct kp_host *h, enum kp_metric_type type, const char *name, const char *const **suffixes,
                     size_t *n);

/* The metrics of which throughput `name`, with or without suffix, is the largest: base names, each once. Those of a
 * sub-throughput stand in its place. *names is malloc'ed, what it points to is the library's and valid while `h` is.
 * -EINVAL for what is no throughput of the chip, -ENOSYS without libnvperf_host, -EIO when that fails. Source: the
 * PerfWorks library. */
int kp_host_constituents(struct kp_host *h, const char *name, const char ***names, size_t *n);

/* Chips the library knows; the array is CUPTI's. */
int kp_host_chips(const struct kp_cupti *c, const char *const **chips, size_t *n);

/* Schedules `n` metrics in one add call on a fresh host object (a failed add poisons its object, and one call a metric
 * opens a pass group each). 0 and *out to kp_config_free(); non-zero when they cannot be collected together. */
int kp_host_schedule(const struct kp_cupti *c, const char *chip, const uint8_t *availability, const char *const *names,
                     size_t n, struct kp_config *out);

/* Values of `n` metrics for range `range` of a decoded counter-data image, in base units, into values[n]. */
int kp_host_evaluate(struct kp_host *h, const uint8_t *image, size_t size, size_t range, const char *const *names,
                     size_t n, double *values);

/* "gpc_cycle/second" -> "hz": a dimension of the library in the report's spelling, into out[size]. */
void kp_unit_from_dimension(const char *dimension, char *out, size_t size);

#endif
