/*
 * Launches that are timed, see timing.h: those whose records have not come, and the times of those that have ended.
 *
 * Threads: inside the gate's exclusive section.
 */
#ifndef KP_PRELOAD_WINDOW_TIMED_H
#define KP_PRELOAD_WINDOW_TIMED_H

#include "preload/window/admit.h"

/* Whether one more launch can be waited for. */
bool kp_timed_has_room(void);
/* Issues a launch; `recorded`: its record comes once it has ended. */
CUresult kp_timed_issue(const struct kp_launch *l, bool recorded);
/* Waits for the record of the launch that was issued last, with room for it. Takes `r` over, its result, to which the
 * time is added. `quiet`: see kp_rotation_times. */
void kp_timed_wait(const struct kp_question *q, struct kp_rotation_key *key, bool quiet, struct kp_result *r);
/* Hands on the times of launches that have ended. Forgets those whose context has ended. */
void kp_timed_settle(void);

#endif
