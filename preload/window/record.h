/*
 * What the open window has recorded: its launches and the operations between them, in order.
 */
#ifndef KP_PRELOAD_WINDOW_RECORD_H
#define KP_PRELOAD_WINDOW_RECORD_H

#include "preload/window/state.h"

/* A new record, the last of the window, all 0. NULL without memory. */
struct kp_item *kp_record_new(struct kp_window *w);

/* Takes `l` over, with the copy of its arguments, its ranges and its call stack; a wanted one gets a result. False
 * without memory: it is still the caller's. */
bool kp_record_launch(struct kp_window *w, struct kp_launch *l, bool wanted, const struct kp_graph *graph,
                      struct kp_known_function *f);

/* The record, new and empty, becomes the operation `op`, which is taken over. Returns its ticket, never 0. */
uint64_t kp_record_op(struct kp_window *w, struct kp_item *i, const struct kp_op *op);

/* The last record goes. */
void kp_record_drop_last(struct kp_window *w);
/* So do those that the driver refused; the program's calls have all returned. */
void kp_record_drop_refused(struct kp_window *w);
/* All go, with all that the window knows: none is open any more. */
void kp_record_reset(struct kp_window *w);

#endif
