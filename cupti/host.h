/*
 * The host side of CUPTI's profiler: a chip's metrics, the passes of a list, and the evaluation of counter data.
 * Works without a GPU for every chip the library knows.
 *
 * Errors: int results are 0, a negative errno, or a positive CUPTI code (see kp_cupti_explain). Threads: a kp_host
 * belongs to one thread at a time; different hosts are independent.
 */
#ifndef KP_CUPTI_HOST_H
#define KP_CUPTI_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collectors/model/metrics.h"
#include "cupti/loader.h"

struct kp_host;

/* Opens the metric tables of `chip` ("GH100"). `availability` is the device's image (kp_cupti_target_availability) or
 * NULL.
 */
int kp_host_open(const struct kp_cupti *c, const char *chip, const uint8_t *availability, struct kp_host **out);
void kp_host_close(struct kp_host *h);

/* Returns properties of a metric, with or without suffix. Non-zero if the chip lacks the metric. */
int kp_host_metric(struct kp_host *h, const char *name, struct kp_metric_props *out);

/* Returns base names of one type; CUPTI owns *names, valid as long as `h`. */
int kp_host_names(struct kp_host *h, enum kp_metric_type type, const char *const **names, size_t *n);

/* Returns the suffixes (".avg.per_second") of base metric `name`, which must be of that type. CUPTI owns *suffixes,
 * valid until the next call with `h`. -ENOSYS if this CUPTI does not list them. */
int kp_host_suffixes(struct kp_host *h, enum kp_metric_type type, const char *name, const char *const **suffixes,
                     size_t *n);

/* Returns the metrics whose maximum is the throughput `name`, given with or without suffix: base names, each once. A
 * sub-throughput is replaced by its own constituents. *names is malloc'ed; its strings are the library's and valid as
 * long as `h`. -EINVAL if the chip has no such throughput, -ENOSYS without libnvperf_host, -EIO if that fails. Source:
 * the PerfWorks library. */
int kp_host_constituents(struct kp_host *h, const char *name, const char ***names, size_t *n);

/* Returns the chips that the library knows; CUPTI owns the array. */
int kp_host_chips(const struct kp_cupti *c, const char *const **chips, size_t *n);

/* Schedules `n` metrics in one add call on a fresh host object. (A failed add poisons its object, and one call per
 * metric would open a pass group each.) 0 and *out to kp_config_free(); non-zero if they cannot be collected
 * together. */
int kp_host_schedule(const struct kp_cupti *c, const char *chip, const uint8_t *availability, const char *const *names,
                     size_t n, struct kp_config *out);
/* Does the same; *kept, NULL after a failure, holds the list, so that kp_host_schedule_turns can add others to it. */
int kp_host_schedule_kept(const struct kp_cupti *c, const char *chip, const uint8_t *availability,
                          const char *const *names, size_t n, struct kp_config *out, struct kp_host **kept);

/* Schedules lists[0..n), which were scheduled alone, as the passes of one image, in order: each list gets a copy of it,
 * and its turn. *good receives how many lists in a row the library combined: if it refuses one, that is less than `n`,
 * and nothing has changed. `first` comes from kp_host_schedule_kept for lists[0], and is closed; NULL: that list is
 * scheduled again, for the same time. 0, -ENOMEM, or another code if the library makes no image. KP_VENDOR: metrics of
 * a further add call open passes of their own. */
int kp_host_schedule_turns(const struct kp_cupti *c, const char *chip, const uint8_t *availability,
                           struct kp_config *lists, size_t n, struct kp_host *first, size_t *good);

/* Finds out if the raw counters of names[0..n) fit one pass, like the pass count of kp_host_schedule, in a tenth of
 * its time. That may still refuse to combine them, or lack one on the device. Negative if this library cannot
 * say. */
int kp_host_fits_pass(struct kp_host *h, const char *const *names, size_t n, bool *fits);

/* Returns the layout of an image with room for all metrics of lists[0..n), for kp_chosen_open: *prefix is malloc'ed.
 * -EINVAL if the library does not say what a metric is made of. */
int kp_host_layout(struct kp_host *h, const struct kp_config *lists, size_t n, uint8_t **prefix, size_t *size);

/* Evaluates `n` metrics for range `range` of a decoded counter-data image, in base units, into values[n]. */
int kp_host_evaluate(struct kp_host *h, const uint8_t *image, size_t size, size_t range, const char *const *names,
                     size_t n, double *values);

/* Turns a dimension of the library into the report's spelling, in out[size]: "gpc_cycle/second" becomes "hz". */
void kp_cupti_unit_from_dimension(const char *dimension, char *out, size_t size);

#endif
