/*
 * Learns facts of a launch that only an activity record has: its configured shared memory and its registers.
 */
#ifndef KP_PRELOAD_RESULTS_PROBE_H
#define KP_PRELOAD_RESULTS_PROBE_H

#include "cupti/target.h"
#include "preload/journal/journal.h"

/* Sets known facts of the journal's launches. Returns true if a record would add missing ones. */
bool kp_probe_wanted(const struct kp_context_setup *setup);

/* Has launches whose facts are missing issued as graphs the next time if records of plain launches would be wrong: once
 * a graph was instantiated, CUPTI 13.0 gives plain launches the configuration of the last one that was recorded before
 * it, or 0; nodes of graphs have their own: measured on an H200. */
void kp_probe_mark(void);
/* Does so for one launch. */
void kp_probe_mark_one(struct kp_entry *e);
/* Returns true if a record has the facts of its launch. */
bool kp_probe_tells(const struct kp_executed *r);

/* Applies `n` records, in launch order. */
void kp_probe_learn(const struct kp_executed *records, size_t n);

#endif
