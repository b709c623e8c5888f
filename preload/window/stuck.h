/*
 * Launches that do not end by themselves: they wait for the host, or for a later launch. Once one is seen, nothing
 * waits for it again.
 */
#ifndef KP_PRELOAD_WINDOW_STUCK_H
#define KP_PRELOAD_WINDOW_STUCK_H

#include "preload/window/state.h"

/* The reason of a launch that waits for the host. */
extern const char kp_waits_for_host[];

/* Returns why nothing may wait for a launch of function `f` (NULL for a graph): static text, or NULL. */
const char *kp_stuck_known(const struct kp_launch *l, const struct kp_known_function *f);

/* Notes that the launch at index `at` did not end in the rehearsal. */
void kp_stuck_note(struct kp_window *w, size_t at);

/* Notes, for a window that did not end, the first unfinished launch of each stream. */
void kp_stuck_note_unended(struct kp_window *w);

/* Returns true if a launch of the window may wait for the host or for a later launch, as its code or its arguments
 * tell: the window's end is waited for with a short limit. */
bool kp_stuck_may_wait(const struct kp_window *w);

/* Waits for all work of the current context, for at most 5 s: what kp_stuck_watch waits for is then the launch alone.
 * Returns false if it has not ended. */
bool kp_stuck_settle(const struct kp_driver *d, struct kp_context *c);

/* Waits up to `ms` for a launch of `f` (NULL for a graph) in the current context. Returns whether it ended by itself.
 * If not, nothing waits for a launch of `f` again: each such wait would keep the program from what the launch waits
 * for. A kernel that works for longer than `ms` loses its counters by that. */
bool kp_stuck_watch(const struct kp_driver *d, struct kp_context *c, struct kp_known_function *f, long ms);

/* Returns why a launch in context `c` gets no window while another context of its device has work that does not end
 * (static text), or NULL: that work may wait for this launch, and what a window does, up to saving memory, waits for
 * all work of the device. Asks only for contexts that are known to have such work, 10 ms each, and not again where
 * several such waits in a row were in vain. */
const char *kp_stuck_elsewhere(const struct kp_driver *d, const struct kp_context *c);

#endif
