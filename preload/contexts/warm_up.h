/*
 * Does the slow parts of a first launch ahead of it: threads open CUPTI's metric libraries, in 0.1 to 0.2 s, and plan
 * for the first device, which most programs use, in 0.1 s. Meanwhile the program makes its first context, or makes
 * unwanted launches. None of this calls the driver.
 */
#ifndef KP_PRELOAD_CONTEXTS_WARM_UP_H
#define KP_PRELOAD_CONTEXTS_WARM_UP_H

#include <stdbool.h>

#include "collectors/plan/plan.h"

/* The input of a plan, as for kp_plan_make. All of it lasts as long as the process. */
struct kp_ahead {
    const struct kp_section *const *sections;
    size_t n_sections;
    const char *metrics;
    unsigned how;
    int major, minor; /* of the device; 0: nothing is planned */
};

/* Has a thread open the planning library before the plan is known, after a short pause. Call it before kp_ahead_begin,
 * for a first launch that is wanted. `c` lasts as long as the process. */
void kp_ahead_open(const struct kp_cupti *c);

/* Makes threads do so. Call it once, while nothing else changes `c`; until kp_ahead_wait returns, nothing may. */
void kp_ahead_begin(const struct kp_cupti *c, const struct kp_ahead *wish);

/* Makes it give up, because CUDA has not started; waits for its end only if that is near. */
void kp_ahead_give_up(void);

/* Waits until that is done, as long as it makes progress; if not, the launch goes on without it. Not `needed`: waits
 * only until the library has answered, and asks no more of it. Call it before exit handlers run: among them are those
 * of the libraries being opened. Any thread. */
void kp_ahead_wait(bool needed);

/* Returns the plan for that chip, if it was made with `how` and all has been available; the caller owns it, and nobody
 * gets it again. NULL if there is none. Any thread. */
struct kp_plan *kp_ahead_take(const char *chip, int major, int minor, unsigned how);

/* In a forked child: the threads do not exist there. */
void kp_ahead_forked(void);

#endif
