/*
 * What takes long at a first launch, ahead of it: threads open CUPTI's libraries of metrics, in 0.1 to 0.2 s, and
 * plan for the device that programs mostly use, the first one, which takes 0.1 s. Meanwhile the program makes
 * its first context, or launches what is not wanted. Nothing of it calls the driver.
 */
#ifndef KP_PRELOAD_CONTEXTS_WARM_UP_H
#define KP_PRELOAD_CONTEXTS_WARM_UP_H

#include <stdbool.h>

#include "collectors/plan/plan.h"

/* What a plan is made of, as for kp_plan_make. All of it lasts as long as the process. */
struct kp_ahead {
    const struct kp_section *const *sections;
    size_t n_sections;
    const char *metrics;
    unsigned how;
    int major, minor; /* of the device; 0: nothing is planned */
};

/* Has a thread open the library that plans before it is known what to plan, after a short pause. Call it before
 * kp_ahead_begin, for a first launch that is wanted. `c` lasts as long as the process. */
void kp_ahead_open(const struct kp_cupti *c);

/* Has threads do so. Call it once, while nothing else changes `c`; until kp_ahead_wait returns, nothing may. */
void kp_ahead_begin(const struct kp_cupti *c, const struct kp_ahead *wish);

/* Has it give up, as CUDA has not started; waits for its end only while that is near. */
void kp_ahead_give_up(void);

/* Waits until that is done, while it gets on: whoever launches goes on without what stands still. Not `needed`:
 * until the library has answered, and is asked no more. Before exit handlers run: among them are those of the
 * libraries being opened. Any thread. */
void kp_ahead_wait(bool needed);

/* Returns the plan for that chip, if it was made with `how` and all has been available; the caller owns it, and nobody
 * gets it again. NULL where there is none. Any thread. */
struct kp_plan *kp_ahead_take(const char *chip, int major, int minor, unsigned how);

/* In a forked child: the threads do not exist there. */
void kp_ahead_forked(void);

#endif
