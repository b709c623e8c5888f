/*
 * Issues the operations of a window again, from the memory at its opening.
 */
#ifndef KP_PRELOAD_JOURNAL_REPEAT_H
#define KP_PRELOAD_JOURNAL_REPEAT_H

#include "preload/journal/state.h"

struct kp_repeat {
    struct kp_window *w;
    long limit_ms; /* the longest that one rehearsed launch may take */
};

/* The callbacks of struct kp_window_job; `arg` is a struct kp_repeat. */
CUresult kp_repeat_issue(void *arg, const struct kp_issue_hooks *hooks);
int kp_repeat_rehearse(void *arg);

/* ---- for other ways to repeat a window ---- */

/* Restores what the host has of the window's begin. */
void kp_repeat_begin(struct kp_window *w);
/* Issues an operation again, without a wait for the one before it. */
CUresult kp_repeat_one(struct kp_window *w, struct kp_item *i);
/* Sets the attributes that the program has set in the window, also after a repetition that ended early. */
void kp_repeat_set_all(const struct kp_window *w);

/* Make events that replace the program's when records and waits are issued again, and destroy them. Call them in the
 * window's context. False: an event lacks one that several streams need. */
bool kp_repeat_make_twins(struct kp_window *w);
void kp_repeat_free_twins(struct kp_window *w);

/* Puts such events in the place of those that a launch records by its attributes, once the program's own launch has
 * been made: the program may destroy its events from then on. Without such an event the launch records none. Call it in
 * the window's context, on the record's launch. */
void kp_repeat_take_events(struct kp_window *w, struct kp_launch *l);

#endif
