/*
 * Launches that do not end by themselves: they wait for the host, or for a later launch. Once one is seen, nothing
 * waits for it again.
 */
#ifndef KP_PRELOAD_CONTEXTS_UNENDING_H
#define KP_PRELOAD_CONTEXTS_UNENDING_H

#include "base/wait_limits.h"
#include "preload/contexts/context.h"
#include "preload/program/launch.h"

/* Returns why nothing may wait for a launch of function `f` (none for a graph), if there is a reason. */
enum kp_reason kp_stuck_known(const struct kp_launch *l, const struct kp_known_function *f);

/* Notes that a launch of `f` (NULL: a graph) does not end by itself. */
void kp_stuck_note(const struct kp_launch *l, struct kp_known_function *f);

/* Waits for the work of context `c`, which is current, before a launch gets a window or the context plans anew. One
 * long wait is enough: while that work goes on, later ones are short. `quiet`: another step of progress tells more.
 * Returns why the launch must do without, if there is a reason. */
enum kp_reason kp_stuck_before(const struct kp_driver *d, struct kp_context *c, bool quiet);

/* Waits for all work of the current context, for at most KP_WAIT_SETTLE: kp_stuck_watch then waits only for the launch.
 * Returns false if it has not ended. */
bool kp_stuck_settle(const struct kp_driver *d, struct kp_context *c);

/* Waits for a launch of `f` (NULL for a graph) in the current context. Returns true if it ended by itself. If not,
 * nothing waits for a launch of `f` again: each such wait would keep the program from what the launch waits for. A
 * kernel that runs for longer than the limit loses its counters this way. */
bool kp_stuck_watch(const struct kp_driver *d, struct kp_context *c, struct kp_known_function *f, enum kp_wait w);

/* Notes whether a launch of `f` ended by itself, as kp_stuck_watch does. */
void kp_stuck_learn(struct kp_known_function *f, bool ended);

/* Returns why a launch in context `c` gets no window while another context of its device has work that does not end, if
 * there is a reason: that work may wait for this launch, and what a window does, up to saving memory, waits for all
 * work of the device. Asks only for contexts that are known to have such work, a moment each, and no longer after
 * several such waits in a row have timed out. */
enum kp_reason kp_stuck_elsewhere(const struct kp_driver *d, const struct kp_context *c);

#endif
