/*
 * What the strategies that repeat a window have in common: its end, and the passes.
 */
#ifndef KP_PRELOAD_MODE_REPEAT_COMMON_H
#define KP_PRELOAD_MODE_REPEAT_COMMON_H

#include "base/wait_limits.h"
#include "preload/mode/job.h"

/* Notes that the window's launches, as the program made them, have ended. Call it once they have, before anything is
 * repeated; later calls do nothing. */
void kp_replay_ended(struct kp_window *w);

/* Counts a job that `how` made: rehearses it and runs its passes, while the program's own output of kernels is muted. A
 * rehearsed launch is assumed to wait for something after `more` plus twice the window's time in the program. Does
 * nothing if memory was short for the job. */
void kp_replay_passes(struct kp_window *w, const struct kp_order *how, enum kp_wait more, struct kp_job *j,
                      struct kp_window_outcome *out);

/* Closes a window whose memory was saved: waits for its launches, repeats and counts them. */
void kp_replay_close(struct kp_window *w, const struct kp_order *how, struct kp_window_outcome *out);

#endif
