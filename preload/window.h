/*
 * A window: the launches that share one series of replay passes. The loop issues and evaluates any number of them; how
 * many join before it closes is the caller's choice, and the caller closes it after each launch.
 */
#ifndef KP_PRELOAD_WINDOW_H
#define KP_PRELOAD_WINDOW_H

#include "preload/context.h"
#include "preload/graphs.h"
#include "preload/launch.h"
#include "preload/process.h"

/* Runs `l` as a window, profiled where that is possible, exactly once in effect. `graph` describes a graph launch, else
 * NULL. Returns what the driver returned for the launch. *reason is set when it was not profiled; *bad_input to a
 * malloc'ed line when what the user asked for does not exist on this device. Inside the gate's exclusive section, under
 * kp_guard. */
CUresult kp_window_run(const struct kp_context_setup *setup, struct kp_launch *l, const struct kp_graph *graph,
                       enum kp_skip_reason *reason, char **bad_input);

#endif
