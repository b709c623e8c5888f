/*
 * Chooses launches of a stored session by the filters of a run: device, kernel-name, kernel-id, NVTX ranges, and
 * number. A launch passes these in turn, in the order of a run.
 *
 * Threads: one at a time.
 */
#ifndef KP_REPORT_VIEW_CHOOSER_H
#define KP_REPORT_VIEW_CHOOSER_H

#include "report/model/model.h"
#include "report/options/options.h"

struct kp_chooser;

/* Makes a chooser. `o` must outlive it, and have been checked. *out is NULL if it would choose every launch. 0;
 * -ENOMEM; -EINVAL with *err (malloc'ed line). */
int kp_chooser_new(const struct kp_options *o, struct kp_chooser **out, char **err);
void kp_chooser_free(struct kp_chooser *c);

/* Begins with the first launch of a session again. */
void kp_chooser_begin(struct kp_chooser *c);

/* Returns the metric that results need for it in addition to their header; NULL = none. */
const char *kp_chooser_needs(const struct kp_chooser *c);

/* Returns 1 if the next launch is chosen, else 0; or -ENOMEM. */
int kp_chooser_takes(struct kp_chooser *c, const struct kp_result *r);

/* What it has seen since kp_chooser_begin: launches that all but the numbers let pass, and graphs that were left out as
 * they have no name of a kernel. */
uint64_t kp_chooser_matched(const struct kp_chooser *c);
uint64_t kp_chooser_graphs(const struct kp_chooser *c);

/* Writes the flags of the filters that are given, numbers aside: "kernel-name and devices". Returns how many. */
enum { KP_CHOOSER_FILTERS_MAX = 96 };
size_t kp_chooser_filters(const struct kp_chooser *c, char out[KP_CHOOSER_FILTERS_MAX]);
/* Returns the filter nvtx-include, "" for none. */
const char *kp_chooser_range(const struct kp_chooser *c);

/* Returns what the filters by name look at, of a kernel's symbol; malloc'ed, NULL without memory. Any thread. */
char *kp_chooser_name(enum kp_name_base base, const char *mangled);

#endif
