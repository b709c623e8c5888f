/*
 * The start and the end of a range, which is one window of strategy_range.c or strategy_app_range.c. Call these inside
 * the gate's exclusive section, under kp_guard.
 */
#ifndef KP_PRELOAD_MODE_RANGE_WINDOW_H
#define KP_PRELOAD_MODE_RANGE_WINDOW_H

#include "preload/contexts/context.h"
#include "preload/program/launch.h"

/* Opens the window of the range that is open: in the context of `l`, a launch about to be made, or in the current one,
 * if there is one (NULL). Does nothing if it is open, or if the range is not counted. A window that the first launch of
 * a module closes, while it has no launch, is opened anew. *bad_input is set as by kp_window_launch. */
void kp_range_open_window(const struct kp_context_setup *setup, const struct kp_launch *l, char **bad_input);

/* Returns true if the work of the open range's context, or of the current one, has ended, within `ms`. False also while
 * a stream is being captured, when nothing may be waited for. */
bool kp_range_is_idle(const struct kp_context_setup *setup, long ms);

/* Ends the open range, and counts it. */
void kp_range_end(void);

#endif
