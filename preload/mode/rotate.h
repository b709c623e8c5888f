/* What a rotation does with each launch: see preload/rotation/rotation.h. Inside the gate's exclusive section. */
#ifndef KP_PRELOAD_MODE_ROTATE_H
#define KP_PRELOAD_MODE_ROTATE_H

#include "preload/mode/admit.h"

enum {
    /* The most launches of a window: a step of ResNet-18 has 646, and the fewest windows are those of a whole step.
     * Room for a launch costs 0.85 ms once, and 0.3 ms for each group. */
    KP_ROTATE_ROOM = 704,
};

/* Judges a launch: sets the key in `q`, and takes back in `what` that it is wanted, where its key needs no more. Closes
 * a window whose group no key needs that is expected soon. Returns why a wanted launch has no result, or
 * none. */
enum kp_reason kp_rotate_judge(struct kp_question *q, struct kp_candidate *what);

/* Beside a replay: judges a launch in the same way that must not be repeated, and closes a window that counts other
 * launches. The first of its key stays wanted, with the key in `q`. */
enum kp_reason kp_rotate_beside(struct kp_question *q, struct kp_candidate *what);
/* Does so with a launch of which the window being opened has found that it must not be repeated: sets its key. Returns
 * why it has no result, if there is a reason. */
enum kp_reason kp_rotate_find_turn(struct kp_question *q);

/* Whether a launch passes beside the open window, which counts chosen launches: it is not wanted, or `what` no longer
 * says so, as nothing may wait for it. *why receives the reason of the latter. */
bool kp_rotate_lets_by(struct kp_question *q, struct kp_candidate *what, enum kp_reason *why);

/* Has activity records on while the first launch of a kernel is made whose warps a later one is sampled for, until
 * kp_rotate_end_record: CUPTI would never know its instructions otherwise, as counters are on. Returns whether it has;
 * false where no warps are sampled, or another user holds the records. */
bool kp_rotate_record(const struct kp_context *c);
void kp_rotate_end_record(void);

/* Notes that a launch passes which nothing may wait for: closes a window that counts all it sees, or that is no longer
 * worth it. */
void kp_rotate_pass(const struct kp_question *q);

/* Notes that the launch of `e`, the last entry, counts the window's group; or that the driver refused it. */
void kp_rotate_took(const struct kp_window *w, struct kp_entry *e, struct kp_rotation_key *key);
void kp_rotate_refused(const struct kp_window *w, struct kp_rotation_key *key);

#endif
