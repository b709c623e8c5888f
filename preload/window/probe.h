/*
 * Learns facts of a launch that only an activity record has: its configured shared memory and its registers.
 */
#ifndef KP_PRELOAD_WINDOW_PROBE_H
#define KP_PRELOAD_WINDOW_PROBE_H

#include "cupti/target.h"
#include "preload/window/state.h"

/* Sets known facts of the window's launches. Returns whether a record would add missing ones. */
bool kp_probe_wanted(struct kp_window *w);

/* Applies `n` records, in launch order. */
void kp_probe_learn(struct kp_window *w, const struct kp_executed *records, size_t n);

#endif
