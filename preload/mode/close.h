/*
 * Ends every window: closed, given up, or abandoned. window.h declares the functions for other rooms.
 */
#ifndef KP_PRELOAD_MODE_CLOSE_H
#define KP_PRELOAD_MODE_CLOSE_H

#include "preload/mode/window_state.h"

/* Records a launch of the window, with a result if it is wanted: see kp_journal_launch. */
struct kp_entry *kp_window_record(struct kp_launch *l, bool wanted, const struct kp_graph *graph,
                                  struct kp_known_function *f);
/* kp_harvest_settle and kp_harvest_fill, for the window. */
void kp_window_settle_result(struct kp_entry *e);
void kp_window_fill(const struct kp_entry *e, struct kp_result *r);

/* Leaves the journal, and forgets the window. */
void kp_window_forget(enum kp_leave how);

/* Ends the window without waiting for its launches, and reports none of them: the last one waits for the program to
 * go on. */
void kp_window_abandon(void);

#endif
