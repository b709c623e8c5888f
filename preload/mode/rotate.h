/* What a rotation does with each launch: see preload/rotation/rotation.h. Inside the gate's exclusive section. */
#ifndef KP_PRELOAD_MODE_ROTATE_H
#define KP_PRELOAD_MODE_ROTATE_H

#include "preload/mode/admit.h"

enum {
    /* The most launches of a window: a step of ResNet-18 has 646, and the fewest windows are those of a whole step.
     * Room for a launch costs 0.85 ms once, and 0.3 ms for each group. */
    KP_ROTATE_ROOM = 704,
};

/* Judges a launch: sets the key in `q`, and clears `wanted` in `what` if its key needs no more. Closes a window whose
 * group is needed by no key that is expected soon. Returns why a wanted launch has no result, or none. */
enum kp_reason kp_rotate_judge(struct kp_question *q, struct kp_candidate *what);

/* Alongside a replay: judges a launch that must not be repeated in the same way, and closes a window that counts other
 * launches. The first of its key stays wanted, with the key in `q`. */
enum kp_reason kp_rotate_beside(struct kp_question *q, struct kp_candidate *what);
/* The same if opening the window has shown that the launch must not be repeated: sets its key. Returns why it has no
 * result, if there is a reason. */
enum kp_reason kp_rotate_find_turn(struct kp_question *q);

/* Returns true if a launch passes the open window, which counts chosen launches: it is not wanted, or is wanted no
 * longer because nothing may wait for it; *why then receives the reason. */
bool kp_rotate_lets_by(struct kp_question *q, struct kp_candidate *what, enum kp_reason *why);

/* Turns activity records on during the first launch of a kernel whose warps a later launch samples, until
 * kp_rotate_end_record: while counters are on, CUPTI would not learn its instructions otherwise. Returns true if it
 * did; false if no warps are sampled, or if another user holds the records. */
bool kp_rotate_record(const struct kp_context *c);
void kp_rotate_end_record(void);

/* Notes that a launch passes that nothing may wait for: closes a window that counts all it sees, or is no longer worth
 * keeping open. */
void kp_rotate_pass(const struct kp_question *q);

/* Notes that the launch of `e`, the last entry, counts the window's group; or that the driver refused it. */
void kp_rotate_took(const struct kp_window *w, struct kp_entry *e, struct kp_rotation_key *key);
void kp_rotate_refused(const struct kp_window *w, struct kp_rotation_key *key);

#endif
