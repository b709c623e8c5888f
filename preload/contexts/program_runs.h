/*
 * Application replay: the program runs once for each pass, and this process is one of these runs. How the counters are
 * shared among them is kept in a file of the folder that all runs share, one for each chip.
 *
 * Threads: as context.h.
 */
#ifndef KP_PRELOAD_CONTEXTS_PROGRAM_RUNS_H
#define KP_PRELOAD_CONTEXTS_PROGRAM_RUNS_H

#include "collectors/facts/launch.h"
#include "preload/contexts/context.h"

/* The files of one launch, for a list of several passes; see struct kp_carry. */
struct kp_carried {
    struct kp_carry carry;
    char *from, *to;
};

/* Counts the launch, and names its files: those of the n-th launch of the kernel with that shape in each run. Returns
 * 0, -ENOMEM, -ENOENT if the run before has left nothing for it, or another negative errno. */
int kp_runs_carry(const struct kp_context_setup *setup, const struct kp_context *c, const char *mangled,
                  const struct kp_shape *shape, struct kp_carried *out);
/* Frees it, and removes the file that the launch has read, if it was `counted`. */
void kp_runs_carried(struct kp_carried *carried, bool counted);

/* Returns how an earlier process has shared the counters; malloc'ed, NULL if none has. */
char *kp_runs_read(const struct kp_context_setup *setup, const char *chip);

/* Leaves only what this run counts in the context's plan. `shared` (may be NULL; changed) is what kp_runs_read has
 * returned; without it, the plan must be a KP_PLAN_RUNS plan, and is written for later processes. Returns 0, or a
 * negative errno with *err, which is malloc'ed or NULL. */
int kp_runs_share(const struct kp_context_setup *setup, struct kp_context *c, const struct kp_cupti *cupti,
                  char *shared, char **err);

#endif
