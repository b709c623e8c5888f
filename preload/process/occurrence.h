/*
 * Which of the program's ranges it is in, by their numbers from 1, for range-filter: of cu(da)ProfilerStart and Stop,
 * and of NVTX ranges that nvtx-include names. Threads: kp_occurrence_configure before all others, which are for any.
 */
#ifndef KP_PRELOAD_PROCESS_OCCURRENCE_H
#define KP_PRELOAD_PROCESS_OCCURRENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "report/options/options.h"

/* Applies the options, which must have been checked. 0 or -ENOMEM. */
int kp_occurrence_configure(const struct kp_options *o);
/* Notes a call of cu(da)ProfilerStart (`on`) or Stop. */
void kp_occurrence_profile(bool on);
/* Counts an NVTX range that this thread begins or ends, by its id, if the launches in it are wanted. */
void kp_occurrence_edge(uint64_t id, bool begins);
/* Returns true if range-filter chooses the ranges that this thread is in; for a launch that nvtx-include chooses. */
bool kp_occurrence_wanted(void);

#endif
