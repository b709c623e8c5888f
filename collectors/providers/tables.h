/*
 * The metric tables of a chip: its metrics, and the lists that can be counted together. Needs no GPU.
 *
 * Errors: see library.h. Threads: a kp_host belongs to one thread at a time; different hosts are independent.
 */
#ifndef KP_COLLECTORS_PROVIDERS_TABLES_H
#define KP_COLLECTORS_PROVIDERS_TABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collectors/model/metrics.h"

struct kp_cupti;

/* The tables of one chip. */
struct kp_host;

/* The two tables: metrics counted for a launch, and metrics sampled over time. */
enum kp_tables { KP_TABLES_COUNTED, KP_TABLES_SAMPLED };

/* Opens the tables of `chip` ("GH100"). `availability` is kp_library_availability's image, or NULL; sampled metrics
 * ignore it. */
int kp_tables_open(const struct kp_cupti *c, enum kp_tables which, const char *chip, const uint8_t *availability,
                   struct kp_host **out);
void kp_tables_close(struct kp_host *h);

/* Returns properties of a metric, with or without suffix. Non-zero if the chip lacks the metric. */
int kp_tables_metric(struct kp_host *h, const char *name, struct kp_metric_props *out);
/* Returns base names of one type; the library owns *names, valid as long as `h`. */
int kp_tables_names(struct kp_host *h, enum kp_metric_type type, const char *const **names, size_t *n);
/* Returns the suffixes of base metric `name`, which must be of that type; valid until the next call with `h`. -ENOSYS
 * if the library does not list them. */
int kp_tables_suffixes(struct kp_host *h, enum kp_metric_type type, const char *name, const char *const **suffixes,
                       size_t *n);
/* Returns the metrics whose maximum is throughput `name`, see kp_host_constituents. *names is malloc'ed. */
int kp_tables_constituents(struct kp_host *h, const char *name, const char ***names, size_t *n);

/* Returns the chips that the library knows; the library owns the array. */
int kp_tables_chips(const struct kp_cupti *c, const char *const **chips, size_t *n);

/* Schedules `n` metrics to be counted together: 0 and *out to kp_config_free, or an error if they cannot be. */
int kp_tables_schedule(const struct kp_cupti *c, const char *chip, const uint8_t *availability,
                       const char *const *names, size_t n, struct kp_config *out);

/* The same; *kept holds the list, so that kp_tables_schedule_turns can add others to it. Close it with
 * kp_tables_close. */
int kp_tables_schedule_kept(const struct kp_cupti *c, const char *chip, const uint8_t *availability,
                            const char *const *names, size_t n, struct kp_config *out, struct kp_host **kept);

/* Returns true if lists may be counted for chosen launches, see kp_chosen_available: each with its own image. */
bool kp_tables_choose(const struct kp_cupti *c);
/* The layout of counter data for such lists, see kp_host_layout. */
int kp_tables_layout(struct kp_host *h, const struct kp_config *lists, size_t n, uint8_t **layout, size_t *size);
/* Schedules lists as the passes of one image, see kp_host_schedule_turns: `first`, or NULL, has the first list. */
int kp_tables_schedule_turns(const struct kp_cupti *c, const char *chip, const uint8_t *availability,
                             struct kp_config *lists, size_t n, struct kp_host *first, size_t *good);

/* Finds out if the counters of names[0..n) fit one pass, see kp_host_fits_pass: a quick answer, which only a schedule
 * proves. Negative if the library cannot say. */
int kp_tables_fit(struct kp_host *h, const char *const *names, size_t n, bool *fit);

#endif
