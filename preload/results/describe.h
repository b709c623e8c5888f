/*
 * Makes the result of a launch, with what is known before it has run: its name, size and place, its NVTX ranges and its
 * call stack.
 */
#ifndef KP_PRELOAD_RESULTS_DESCRIBE_H
#define KP_PRELOAD_RESULTS_DESCRIBE_H

#include "preload/contexts/context.h"
#include "preload/graphs/graphs.h"
#include "preload/program/launch.h"

/* Returns the result of a launch of `f`, or of graph `g` (`f` NULL); takes over its ranges. The caller frees it. NULL
 * if memory is short. */
struct kp_result *kp_describe_launch(const struct kp_context_setup *setup, const struct kp_context *c,
                                     struct kp_launch *l, const struct kp_graph *g, const struct kp_known_function *f);

/* Sets the context, device and chip of a result, and that nothing is wrong with it. Returns false if memory is
 * short. */
bool kp_describe_place(const struct kp_context *c, struct kp_launch_info *i);

#endif
