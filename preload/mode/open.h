/*
 * Opens every window.
 */
#ifndef KP_PRELOAD_MODE_OPEN_H
#define KP_PRELOAD_MODE_OPEN_H

#include "preload/mode/admit.h"

/* The reason of launches in a context that a fault has ended. */
extern const char kp_after_failure[];

/* Opens `w` for the launch of `q`, which has been judged; the launch's context is current, and no window is open.
 * False: the launch runs outside of any window; *refusal (static text) tells why. */
bool kp_window_open(struct kp_window *w, struct kp_question *q, const char **refusal);

#endif
