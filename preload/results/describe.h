/*
 * Makes the result of a launch, with what is known before it has run: its name, size and place, its NVTX ranges, and
 * where it was made.
 */
#ifndef KP_PRELOAD_RESULTS_DESCRIBE_H
#define KP_PRELOAD_RESULTS_DESCRIBE_H

#include "preload/contexts/context.h"
#include "preload/graphs/graphs.h"
#include "preload/program/launch.h"

/* Returns the result of a launch of `f`, or of graph `g` (`f` NULL); takes over its ranges. The caller's to free. NULL
 * without memory. */
struct kp_result *kp_describe_launch(const struct kp_context_setup *setup, const struct kp_context *c,
                                     struct kp_launch *l, const struct kp_graph *g, const struct kp_known_function *f);

/* Sets where a result is of: context, device and chip; and that nothing is wrong with it. False without memory. */
bool kp_describe_place(const struct kp_context *c, struct kp_launch_info *i);

#endif
