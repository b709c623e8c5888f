/*
 * Finds the call stacks and code that launches name by id. Ids count within one session, so each session has a look-up
 * along with its launches (struct kp_launches).
 *
 * Threads: those of the store, or of any other source of the look-up.
 */
#ifndef KP_REPORT_MODEL_LOOKUP_H
#define KP_REPORT_MODEL_LOOKUP_H

#include <stdint.h>

#include "report/model/model.h"
#include "report/model/timeline.h"

/* Each function fills *out, which the caller frees with kp_code_free or kp_frames_free. Returns 0, -ENOENT without
 * such an id, -EIO when unreadable, -ENOMEM; *out is then empty. Pages may call them while they show a launch. NULL
 * means there are none. Call them through the functions below. */
struct kp_lookup {
    int (*code)(void *arg, uint64_t id, struct kp_code *out);
    int (*stack)(void *arg, uint64_t id, struct kp_stack *out);
    /* The timeline of the session, sorted; to be freed with kp_timeline_free. -ENOENT: none was recorded. */
    int (*timeline)(void *arg, struct kp_timeline *out);
    void *arg;
};

/* Do the same, also if `l` is NULL, or the id is 0: -ENOENT. */
int kp_lookup_code(const struct kp_lookup *l, uint64_t id, struct kp_code *out);
int kp_lookup_stack(const struct kp_lookup *l, uint64_t id, struct kp_stack *out);
int kp_lookup_timeline(const struct kp_lookup *l, struct kp_timeline *out);

#endif
