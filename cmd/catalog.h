/*
 * Lists what each chip can collect, for the queries of the kprof command. Needs CUPTI, but no GPU and no driver.
 *
 * Errors are -EINVAL if the user can fix them, else another negative errno. *err receives a malloc'ed line if there is
 * more to say. A callback's non-zero return ends the call and is returned.
 */
#ifndef KP_CMD_CATALOG_H
#define KP_CMD_CATALOG_H

#include <stdbool.h>
#include <stddef.h>

#include "base/dl.h"
#include "base/pattern.h"
#include "report/define/sections.h"

/* The dynamic loader, undisguised: the command contains nothing of libkprof.so. */
extern const struct kp_dl kp_catalog_dl;

enum kp_catalog_kind {
    KP_CATALOG_COUNTER,
    KP_CATALOG_RATIO,
    KP_CATALOG_THROUGHPUT,
    KP_CATALOG_LAUNCH, /* of the launch and of the device: not counted */
    KP_CATALOG_SOURCE, /* sampled, or counted, at each instruction */
    KP_CATALOG_DERIVED,
    KP_CATALOG_GROUP, /* not a metric: a name that "group:" accepts */
    KP_CATALOG_KINDS,
};

/* One metric; its strings are valid until the callback returns. */
struct kp_catalog_metric {
    enum kp_catalog_kind kind;
    const char *name; /* base name of the counter */
    const char *unit; /* base unit, "" when there is none */
    const char *description;
};

/* The metrics of one chip. */
struct kp_catalog;

/* Opens the catalog of `chip`; "" is the chip of the first GPU. Without a GPU it is a well-known chip, and *note is
 * a malloc'ed line that says so. `cupti_dir`: see options.def. `sampled`: the metrics are those that can be sampled
 * over time, in place of those of launches. */
int kp_catalog_open(const char *chip, const char *cupti_dir, bool sampled, struct kp_catalog **out, char **note,
                    char **err);
void kp_catalog_close(struct kp_catalog *c);

/* Returns "GH100 (CC 9.0), CUPTI 13.0"; valid as long as `c`. */
const char *kp_catalog_title(const struct kp_catalog *c);

/* Calls `fn` for every chip that CUPTI knows, with a text about it. */
int kp_catalog_chips(struct kp_catalog *c, int (*fn)(const char *chip, const char *about, void *arg), void *arg);

/* Calls `fn` for every metric, kind by kind. */
int kp_catalog_metrics(struct kp_catalog *c, int (*fn)(const struct kp_catalog_metric *m, void *arg), void *arg);

/* Calls `fn` for the same metric under each of its full names that `pattern` matches; NULL: under each. */
int kp_catalog_full_names(struct kp_catalog *c, const struct kp_catalog_metric *m, const struct kp_pattern *pattern,
                          int (*fn)(const struct kp_catalog_metric *m, void *arg), void *arg);

/* Calls `fn` for every metric of one item of --metrics, by its full name. */
int kp_catalog_listed(struct kp_catalog *c, const char *item, int (*fn)(const struct kp_catalog_metric *m, void *arg),
                      void *arg, char **err);

/* Computes how many metrics the sections have on the chip when nothing else is asked for, and how many passes they
 * need; `rotates`: the number of their counter groups in a rotation. */
int kp_catalog_cost(struct kp_catalog *c, const struct kp_section *const *sections, size_t n, bool rotates,
                    size_t *metrics, size_t *passes, char **err);

/* Calls `fn` for each item of a list of metrics (`columns`: of trace-columns) that no chip of this CUPTI has. The
 * line names the nearest metric. */
int kp_catalog_check_metrics(const char *cupti_dir, const char *list, bool columns,
                             int (*fn)(const char *item, const char *why, void *arg), void *arg);

#endif
