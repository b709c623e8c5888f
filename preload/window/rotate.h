/* What a rotation does with each launch: see preload/program/rotation.h. Inside the gate's exclusive section. */
#ifndef KP_PRELOAD_WINDOW_ROTATE_H
#define KP_PRELOAD_WINDOW_ROTATE_H

#include "preload/window/admit.h"

/* Judges a wanted launch: sets the key in `q`, and takes back in `what` that it is wanted, where its key needs no more.
 * Closes a window whose group no key needs any more. Returns why the launch has no result (static text), or NULL. */
const char *kp_rotate_judge(struct kp_question *q, struct kp_candidate *what);

/* Notes that the launch, the last record of the window, counts the window's group; or that the driver refused it. */
void kp_rotate_took(struct kp_window *w, struct kp_rotation_key *key);
void kp_rotate_refused(struct kp_window *w, struct kp_rotation_key *key);

#endif
