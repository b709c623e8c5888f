/*
 * Opens every window.
 */
#ifndef KP_PRELOAD_MODE_OPEN_H
#define KP_PRELOAD_MODE_OPEN_H

#include "preload/mode/admit.h"

/* Opens `w` for the launch of `q`, which has been judged; the launch's context is current, and no window is open.
 * Returns false if the launch runs outside any window, with why in *reason. */
bool kp_window_open(struct kp_window *w, struct kp_question *q, enum kp_reason *reason);

#endif
