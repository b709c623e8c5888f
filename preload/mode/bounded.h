/*
 * Modes whose cost is bounded: each kernel and shape (a *kind*, a key of the context's rotation) is measured, and
 * further launches of it as far as the budget goes. budget.h decides; this file tells it what windows cost, and does
 * what it says. Kinds that are let through pass without a lock (kp_rotation_passes). In modes that are not bounded,
 * nothing here has an effect.
 *
 * Threads: inside the gate's exclusive section, unless stated otherwise.
 */
#ifndef KP_PRELOAD_MODE_BOUNDED_H
#define KP_PRELOAD_MODE_BOUNDED_H

#include "preload/mode/admit.h"

/* The time between the two is kprof's, and is spent; calls nest. */
void kp_bounded_enter(const struct kp_context_setup *setup);
void kp_bounded_leave(const struct kp_context_setup *setup);

/* Returns the most launches that a window opened for `q` may hold; 0 = as many as its context has room for. */
size_t kp_bounded_room(const struct kp_question *q);

/* Notes that a window of `launches` launches with a result has cost `ns`, and lets the kinds pass that are not worth
 * more. Returns true if the mode is bounded. */
bool kp_bounded_closed(const struct kp_context_setup *setup, double ns, size_t launches);

/* Goes on in the next mode if launches are too dear, and has the context of a launch follow. The context is current,
 * and no window is open. Returns why it cannot follow yet, if there is a reason: the launch passes. */
enum kp_reason kp_bounded_follow(const struct kp_context_setup *setup, struct kp_context *c);

/* Judges a wanted launch whose function is known: finds its kind, clears `wanted` in `what` if it passes, and notes in
 * `q` if it is not worth a replay. Returns why it has no result, or none. */
enum kp_reason kp_bounded_judge(struct kp_question *q, struct kp_candidate *what);

/* Forgets the kind of a judged launch if closing a window has ended it: the context has planned again. */
void kp_bounded_forget_ended(struct kp_question *q);

/* Notes the kind of a launch that was recorded with a result: the window's last entry. kp_bounded_refused: the driver
 * refused it. */
void kp_bounded_took(const struct kp_window *w, struct kp_entry *e, struct kp_rotation_key *kind);
void kp_bounded_refused(const struct kp_entry *e);
/* The same for a kernel of a graph, which is not judged by itself: finds its kind first. */
void kp_bounded_took_node(const struct kp_window *w, struct kp_entry *e);

/* Returns true if the budget is spent: no launch is wanted any more. Any thread. */
bool kp_bounded_is_spent(void);

/* Writes how many kinds have results, if launches have passed. Call it at the end of the process. */
void kp_bounded_tell(void);

#endif
