/*
 * What only an activity record tells of a launch: the shared memory that it was configured with, and its registers.
 */
#ifndef KP_PRELOAD_WINDOW_PROBE_H
#define KP_PRELOAD_WINDOW_PROBE_H

#include "cupti/target.h"
#include "preload/window/state.h"

/* Fills in what is known of the window's launches. Whether something is missing that a record would tell. */
bool kp_probe_wanted(struct kp_window *w);

/* Takes over what `n` records say, which come in launch order. */
void kp_probe_learn(struct kp_window *w, const struct kp_executed *records, size_t n);

#endif
