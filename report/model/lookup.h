/*
 * How a page gets at the call stacks and the code that launches name by id. Ids count within one session, so each
 * session has a look-up of its own, beside its launches (struct kp_launches).
 * Threads: those of the store, or of whatever else is behind it.
 */
#ifndef KP_REPORT_MODEL_LOOKUP_H
#define KP_REPORT_MODEL_LOOKUP_H

#include <stdint.h>

#include "report/model/model.h"

/* Each fills *out, which the caller frees with kp_code_free or kp_stack_free. 0, -ENOENT when there is none of that
 * id, -EIO when it cannot be read, -ENOMEM; *out is then empty. They may be called for a launch that is being shown.
 * One that is NULL has nothing. Call them through the functions below. */
struct kp_lookup {
    int (*code)(void *arg, uint64_t id, struct kp_code *out);
    int (*stack)(void *arg, uint64_t id, struct kp_stack *out);
    void *arg;
};

/* The same, also where `l` is NULL, or the id is 0: -ENOENT. */
int kp_lookup_code(const struct kp_lookup *l, uint64_t id, struct kp_code *out);
int kp_lookup_stack(const struct kp_lookup *l, uint64_t id, struct kp_stack *out);

#endif
