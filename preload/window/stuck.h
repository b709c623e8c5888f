/*
 * Launches that do not end by themselves: they wait for the host, or for a launch that comes later. Once seen, nothing
 * waits for them again.
 */
#ifndef KP_PRELOAD_WINDOW_STUCK_H
#define KP_PRELOAD_WINDOW_STUCK_H

#include "preload/window/state.h"

/* The reason of a launch that waits for the host. */
extern const char kp_waits_for_host[];

/* Why a launch of function `f` (NULL for a graph) is not to be waited for (static text), or NULL. */
const char *kp_stuck_known(const struct kp_launch *l, const struct kp_known_function *f);

/* The launch at index `at` did not end when it was rehearsed. */
void kp_stuck_note(struct kp_window *w, size_t at);

/* The window's launches have not ended: the first of each stream that is not done waits, or what it waits behind. */
void kp_stuck_note_unended(struct kp_window *w);

/* Waits for a launch of `f` (NULL for a graph) in the current context, in reasonable time. Whether it ends by itself.
 */
bool kp_stuck_watch(const struct kp_driver *d, struct kp_context *c, struct kp_known_function *f);

#endif
