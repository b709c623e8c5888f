/*
 * The harvest of a window: its results are completed and handed to the worker, which evaluates and stores them, and
 * what went wrong is told. Inside the gate's exclusive section.
 */
#ifndef KP_PRELOAD_WINDOW_HARVEST_H
#define KP_PRELOAD_WINDOW_HARVEST_H

#include "collectors/run/collector.h"

/* Notes in the context what the outcome says of it, and tells the user. */
void kp_harvest_judge(const struct kp_window_outcome *out);

/* Hands the results on; takes out->counters over. */
void kp_harvest(struct kp_window_outcome *out);

/* Tells what the collector lacks beside the counters: for good, or in this window. */
void kp_harvest_complaints(void);

#endif
