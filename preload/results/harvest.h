/*
 * Passes the results of a window to the worker, which evaluates and stores them, and reports failures.
 */
#ifndef KP_PRELOAD_RESULTS_HARVEST_H
#define KP_PRELOAD_RESULTS_HARVEST_H

#include "preload/journal/state.h"

/* Reports failures of the passes, and marks the context accordingly. */
void kp_harvest_judge(struct kp_window *w, const struct kp_window_outcome *out);
/* Reads what the results need of the launch's function, now that it has been made. So the function need not stay as it
 * is until the window closes. */
void kp_harvest_settle(const struct kp_window *w, struct kp_item *i);
/* Sets the values of `i` in `r` that need no counter: its result, or that of a variant, whose shape `i` has then.
 * Attributes of the launch win over those of the function. */
void kp_harvest_fill(const struct kp_window *w, const struct kp_item *i, struct kp_result *r);
/* Passes on the results, with the counters of *out. */
void kp_harvest_hand_on(struct kp_window *w, struct kp_window_outcome *out);
/* Reports what the collector lacks besides the counters, and plans again where the profiler refused the plan. */
void kp_harvest_follow_up(struct kp_window *w, const struct kp_window_outcome *out);

#endif
