/*
 * The metric tables of a chip: what it has, and which lists of it can be counted together. Needs no GPU.
 *
 * Errors: as library.h has them. Threads: a kp_host belongs to one thread at a time; different ones are independent.
 */
#ifndef KP_COLLECTORS_PROVIDERS_TABLES_H
#define KP_COLLECTORS_PROVIDERS_TABLES_H

#include <stddef.h>
#include <stdint.h>

#include "collectors/model/metrics.h"

struct kp_cupti;

/* The tables of one chip. */
struct kp_host;

/* The tables differ: what is counted for a launch, and what can be sampled over time. */
enum kp_tables { KP_TABLES_COUNTED, KP_TABLES_SAMPLED };

/* Opens the tables of `chip` ("GH100"). `availability` is kp_library_availability's image, or NULL; none is taken for
 * what is sampled. */
int kp_tables_open(const struct kp_cupti *c, enum kp_tables which, const char *chip, const uint8_t *availability,
                   struct kp_host **out);
void kp_tables_close(struct kp_host *h);

/* Properties of a metric, with or without suffix. Non-zero when the chip has no such metric. */
int kp_tables_metric(struct kp_host *h, const char *name, struct kp_metric_props *out);
/* Base names of one type; *names is the library's and valid while `h` is. */
int kp_tables_names(struct kp_host *h, enum kp_metric_type type, const char *const **names, size_t *n);
/* Suffixes that base metric `name`, which is of that type, takes; valid until the next call with `h`. -ENOSYS when the
 * library does not tell. */
int kp_tables_suffixes(struct kp_host *h, enum kp_metric_type type, const char *name, const char *const **suffixes,
                       size_t *n);
/* The metrics of which throughput `name` is the largest, as kp_host_constituents. *names is malloc'ed. */
int kp_tables_constituents(struct kp_host *h, const char *name, const char ***names, size_t *n);

/* Chips the library knows; the array is the library's. */
int kp_tables_chips(const struct kp_cupti *c, const char *const **chips, size_t *n);

/* Schedules `n` metrics to be counted together: 0 and *out to kp_config_free, or why they cannot be. */
int kp_tables_schedule(const struct kp_cupti *c, const char *chip, const uint8_t *availability,
                       const char *const *names, size_t n, struct kp_config *out);

#endif
