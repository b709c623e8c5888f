/*
 * The path of a launch: judged, added to the open window or a new one, issued by the strategy.
 *
 * Threads: inside the gate's exclusive section, under kp_guard.
 */
#ifndef KP_PRELOAD_MODE_LAUNCHES_H
#define KP_PRELOAD_MODE_LAUNCHES_H

#include "preload/mode/window.h"

/* What is done with a launch, in its context. */
struct kp_launches_way {
    CUresult (*run)(void *arg, const struct kp_context_setup *setup, struct kp_context *c, struct kp_launch *l,
                    enum kp_reason *skip_reason);
    void *arg;
};

/* Runs `l` by `way`, with its context current; bypasses it if the context cannot be profiled. Frees what `l` holds. */
CUresult kp_launches_in_context(const struct kp_context_setup *setup, struct kp_launch *l,
                                const struct kp_launches_way *way, enum kp_reason *skip_reason, char **bad_input);

/* Makes `l` as the program does, without a result, and says why. */
CUresult kp_launches_pass(struct kp_launch *l, enum kp_reason why, enum kp_reason *skip_reason);

/* Finds the function of a launch. Closes the window if its module may bring variables that the window lacks. NULL: the
 * driver gives no facts about it. */
struct kp_known_function *kp_launches_function(const struct kp_context_setup *setup, struct kp_context *c,
                                               const struct kp_launch *l);

/* Runs `l`, whose context is current. */
CUresult kp_launches_run(const struct kp_context_setup *setup, struct kp_context *c, struct kp_launch *l,
                         const struct kp_candidate *what, enum kp_reason *skip_reason);

#endif
