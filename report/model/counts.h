/*
 * What was counted and sampled at the instructions of a launch, and over time, put together with that of others.
 *
 * Threads: a result belongs to its holder.
 */
#ifndef KP_REPORT_MODEL_COUNTS_H
#define KP_REPORT_MODEL_COUNTS_H

#include "report/model/model.h"

/* Begins the names of metrics by samples of warps; and the number of launches that the samples are of. */
#define KP_SAMPLED_WARPS    "smsp__pcsamp_"
#define KP_SAMPLED_LAUNCHES "smsp__pcsamp_aggregated_passes"

/* Moves what was counted in one function to `r`. Samples are added to those of the same function there; other metrics
 * of `r` stay. 0, or -ENOMEM with both as far as it got. */
int kp_counts_take(struct kp_result *r, struct kp_code_counts *from);

/* Adds what a further launch of the kernel was counted and sampled for: its samples, with their number; its counts, if
 * `r` has none of another launch; and series that `r` lacks. What is left in `from` is still to be freed. 0, or -ENOMEM
 * with both as far as it got. */
int kp_counts_add_launch(struct kp_result *r, struct kp_result *from);

/* Removes the numbers that say how much of launches was gathered, if their samples and series are not in `r`. */
void kp_counts_forget(struct kp_result *r);

/* Appends copies of all counts and series of `r`. 0, or -ENOMEM with `out` as far as it got. */
int kp_counts_copy(const struct kp_result *r, struct kp_result *out);

#endif
