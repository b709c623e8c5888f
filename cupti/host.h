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

/* Opens the metric tables of `chip` ("GH100"). `availability` is the device's image (kp_target_availability) or NULL.
 */
int kp_host_open(const struct kp_cupti *c, const char *chip, const uint8_t *availability, struct kp_host **out);
void kp_host_close(struct kp_host *h);

/* Returns properties of a metric, with or without suffix. Non-zero when the chip lacks the metric. */
int kp_host_metric(struct kp_host *h, const char *name, struct kp_metric_props *out);

/* Returns base names of one type; CUPTI owns *names, valid as long as `h`. */
int kp_host_names(struct kp_host *h, enum kp_metric_type type, const char *const **names, size_t *n);

/* Returns the suffixes (".avg.per_second") of base metric `name`, which is of that type. CUPTI owns *suffixes, valid
 * until the next call with `h`. -ENOSYS when this CUPTI does not tell. */
int kp_host_suffixes(struct kp_host *h, enum kp_metric_type type, const char *name, const char *const **suffixes,
                     size_t *n);

/* Returns the metrics of which throughput `name`, with or without suffix, is the largest: base names, each once. A
 * sub-throughput is replaced by its own. *names is malloc'ed; its strings are the library's and valid as long as
 * `h`. -EINVAL if the chip has no such throughput, -ENOSYS without libnvperf_host, -EIO when that fails. Source: the
 * PerfWorks library. */
int kp_host_constituents(struct kp_host *h, const char *name, const char ***names, size_t *n);

/* Returns the chips that the library knows; CUPTI owns the array. */
int kp_host_chips(const struct kp_cupti *c, const char *const **chips, size_t *n);

/* Schedules `n` metrics in one add call on a fresh host object. (A failed add poisons its object, and one call for
 * each metric opens a pass group each.) 0 and *out to kp_config_free(); non-zero when they cannot be collected
 * together. */
int kp_host_schedule(const struct kp_cupti *c, const char *chip, const uint8_t *availability, const char *const *names,
                     size_t n, struct kp_config *out);
/* Does the same, and *kept, NULL after a failure, has the list: kp_host_schedule_turns can add others to it. */
int kp_host_schedule_kept(const struct kp_cupti *c, const char *chip, const uint8_t *availability,
                          const char *const *names, size_t n, struct kp_config *out, struct kp_host **kept);

/* Schedules lists[0..n), which were scheduled alone, as the passes of one image, in their order: each list gets a copy
 * of it, and its turn. *good receives how many lists in a row the library combined: less than `n` where it refuses
 * the next one, and then nothing has changed. `first` is that of kp_host_schedule_kept for lists[0], and is closed;
 * NULL: that list is scheduled anew, which takes as long as before. 0, -ENOMEM, or another code where it gives no
 * image. KP_VENDOR: metrics of a further add call open passes of their own. */
int kp_host_schedule_turns(const struct kp_cupti *c, const char *chip, const uint8_t *availability,
                           struct kp_config *lists, size_t n, struct kp_host *first, size_t *good);

/* Whether the raw counters of names[0..n) fit one pass, as kp_host_schedule's number of passes says. It may refuse to
 * combine them none the less, or lack one on the device. Takes a tenth of its time. Negative when this library does
 * not tell. */
int kp_host_fits_pass(struct kp_host *h, const char *const *names, size_t n, bool *fits);

/* The layout of an image with room for all metrics of lists[0..n): *prefix is malloc'ed, for kp_chosen_open. -EINVAL
 * when the library does not tell what a metric is made of. */
int kp_host_layout(struct kp_host *h, const struct kp_config *lists, size_t n, uint8_t **prefix, size_t *size);

/* Evaluates `n` metrics for range `range` of a decoded counter-data image, in base units, into values[n]. */
int kp_host_evaluate(struct kp_host *h, const uint8_t *image, size_t size, size_t range, const char *const *names,
                     size_t n, double *values);

/* Turns a dimension of the library into the report's spelling, in out[size]: "gpc_cycle/second" becomes "hz". */
void kp_unit_from_dimension(const char *dimension, char *out, size_t size);

#endif
