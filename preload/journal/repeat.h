/*
 * Issues the operations of a window again, from the memory at its opening.
 */
#ifndef KP_PRELOAD_JOURNAL_REPEAT_H
#define KP_PRELOAD_JOURNAL_REPEAT_H

#include "preload/journal/state.h"

/* Restores host memory to its state at the start of the window. */
void kp_repeat_begin(struct kp_journal *j);
/* Issues an operation again, without a wait for the one before it. */
CUresult kp_repeat_one(struct kp_journal *j, struct kp_item *i);
/* Sets the attributes that the program has set in the window, also after a repetition that ended early. */
void kp_repeat_set_all(const struct kp_journal *j);

#endif
