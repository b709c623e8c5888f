/*
 * What can be collected on each chip, for the queries of the kprof command. Needs CUPTI, but no GPU and no driver.
 *
 * Errors are -EINVAL for what the user can mend and another negative errno for the rest, each with *err (malloc'ed
 * line) where there is more to say. A callback's non-zero return ends the call and is returned.
 */
#ifndef KP_CMD_CATALOG_H
#define KP_CMD_CATALOG_H

#include <stdbool.h>
#include <stddef.h>

#include "base/dl.h"
#include "report/define/sections.h"

/* The dynamic loader as it is: nothing of libkprof.so is in the command. */
extern const struct kp_dl kp_catalog_dl;

/* Compute capability of a chip that CUPTI knows; false for one that came after this table (chips.def). */
bool kp_catalog_chip_cc(const char *chip, int *major, int *minor);

enum kp_catalog_kind {
    KP_CATALOG_COUNTER,
    KP_CATALOG_RATIO,
    KP_CATALOG_THROUGHPUT,
    KP_CATALOG_LAUNCH, /* of the launch and of the device: not counted */
    KP_CATALOG_SOURCE, /* sampled, or counted, at each instruction */
    KP_CATALOG_DERIVED,
    KP_CATALOG_GROUP, /* not a metric: a name that group: takes */
    KP_CATALOG_KINDS,
};

/* One metric; its strings last until the callback returns. */
struct kp_catalog_metric {
    enum kp_catalog_kind kind;
    const char *name; /* base name of what is counted */
    const char *unit; /* base unit, "" when there is none */
    const char *description;
};

/* What one chip has. */
struct kp_catalog;

/* Opens the catalog of `chip`; "" is the chip of the first GPU, or where there is none a well-known one: then *note is
 * a malloc'ed line that says so. `cupti_dir`: see options.def. */
int kp_catalog_open(const char *chip, const char *cupti_dir, struct kp_catalog **out, char **note, char **err);
void kp_catalog_close(struct kp_catalog *c);

/* "GH100 (CC 9.0), CUPTI 13.0"; valid while `c` is. */
const char *kp_catalog_title(const struct kp_catalog *c);

/* Every chip that CUPTI knows, and what is to be said of it. */
int kp_catalog_chips(struct kp_catalog *c, int (*fn)(const char *chip, const char *about, void *arg), void *arg);

/* Every metric, kind by kind. */
int kp_catalog_metrics(struct kp_catalog *c, int (*fn)(const struct kp_catalog_metric *m, void *arg), void *arg);

/* The same metric under each full name that it has. */
int kp_catalog_full_names(struct kp_catalog *c, const struct kp_catalog_metric *m,
                          int (*fn)(const struct kp_catalog_metric *m, void *arg), void *arg);

/* Every metric that one item of --metrics stands for, by its full name. */
int kp_catalog_listed(struct kp_catalog *c, const char *item, int (*fn)(const struct kp_catalog_metric *m, void *arg),
                      void *arg, char **err);

/* How many metrics the sections have on the chip when nothing else is asked for, and in how many passes. */
int kp_catalog_cost(struct kp_catalog *c, const struct kp_section *const *sections, size_t n, size_t *metrics,
                    size_t *passes, char **err);

/* Calls `fn` for each item of a list of metrics (`columns`: of trace-columns) that no chip of this CUPTI has, with a
 * line that names the nearest. */
int kp_catalog_check_metrics(const char *cupti_dir, const char *list, bool columns,
                             int (*fn)(const char *item, const char *why, void *arg), void *arg);

#endif
