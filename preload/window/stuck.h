/*
 * Launches that do not end by themselves: they wait for the host, or for a launch that comes later. Once seen, nothing
 * waits for them again.
 */
#ifndef KP_PRELOAD_WINDOW_STUCK_H
#define KP_PRELOAD_WINDOW_STUCK_H

#include "preload/window/state.h"

/* The reason of a launch that waits for the host. */
extern const char kp_waits_for_host[];

/* Says why nothing may wait for a launch of function `f` (NULL for a graph): static text, or NULL. */
const char *kp_stuck_known(const struct kp_launch *l, const struct kp_known_function *f);

/* Notes that the launch at index `at` did not end when it was rehearsed. */
void kp_stuck_note(struct kp_window *w, size_t at);

/* Notes of a window that did not end the first launch of each stream that is not done. */
void kp_stuck_note_unended(struct kp_window *w);

/* Waits up to 2 s for a launch of `f` (NULL for a graph) in the current context. Whether it ends by itself. */
bool kp_stuck_watch(const struct kp_driver *d, struct kp_context *c, struct kp_known_function *f);

#endif
