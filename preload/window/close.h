/*
 * Closes windows: the one place where that happens. window.h declares what others call.
 */
#ifndef KP_PRELOAD_WINDOW_CLOSE_H
#define KP_PRELOAD_WINDOW_CLOSE_H

#include "preload/window/state.h"

/* Lets go of the window without waiting for its launches: the program goes on to what the last one waits for. Nothing
 * of it is reported. */
void kp_window_abandon(struct kp_window *w);

#endif
