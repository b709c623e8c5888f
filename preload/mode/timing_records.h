/*
 * Launches that are timed, see time_launch.h: those whose records have not come, and the times of those that have
 * ended.
 *
 * Threads: inside the gate's exclusive section.
 */
#ifndef KP_PRELOAD_MODE_TIMING_RECORDS_H
#define KP_PRELOAD_MODE_TIMING_RECORDS_H

#include "preload/mode/admit.h"

/* Returns true if one more launch can be waited for. */
bool kp_timed_has_room(void);
/* Returns true if a launch waits for its record. */
bool kp_timed_waits(void);
/* Issues a launch, and waits for its record, if there is room for one more. *timed: there is, and it has taken over
 * `r`, the launch's result, to which the time is added. `quiet`: see kp_rotation_times. */
CUresult kp_timed_issue(const struct kp_question *q, const struct kp_launch *l, struct kp_rotation_key *key, bool quiet,
                        struct kp_result *r, bool *timed);
/* Hands on the times of launches that have ended. Forgets those whose context has ended. */
void kp_timed_settle(void);
/* Does so, and gives up the rest: the process ends, or the keys do. */
void kp_timed_end(void);

#endif
