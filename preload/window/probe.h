/*
 * Learns what only an activity record tells of a launch: its configured shared memory and its registers.
 */
#ifndef KP_PRELOAD_WINDOW_PROBE_H
#define KP_PRELOAD_WINDOW_PROBE_H

#include "cupti/target.h"
#include "preload/window/state.h"

/* Fills in what is known of the window's launches. Whether a record would tell something that is missing. */
bool kp_probe_wanted(struct kp_window *w);

/* Takes over what `n` records say, in launch order. */
void kp_probe_learn(struct kp_window *w, const struct kp_executed *records, size_t n);

#endif
