/*
 * Records the launches of the open window and the operations between them, in order.
 */
#ifndef KP_PRELOAD_JOURNAL_RECORD_H
#define KP_PRELOAD_JOURNAL_RECORD_H

#include "preload/journal/state.h"

/* Appends a record, all 0. NULL without memory. */
struct kp_item *kp_record_new(struct kp_window *w);

/* Whether the window records operations of the current context, and has room for one. */
bool kp_record_is_here(const struct kp_window *w, const struct kp_driver *d);

/* Sets where a result is of: context, device and chip; and that nothing is wrong with it. False without memory. */
bool kp_record_place(const struct kp_window *w, struct kp_launch_info *i);

/* Takes over `l`, with the copy of its arguments, its ranges and its call stack; a wanted launch gets a result.
 * False without memory: `l` stays the caller's. */
bool kp_record_launch(struct kp_window *w, struct kp_launch *l, bool wanted, const struct kp_graph *graph,
                      struct kp_known_function *f);

/* Makes the new record `i` the operation `op`, which it takes over. Returns its ticket, never 0. */
uint64_t kp_record_op(struct kp_window *w, struct kp_item *i, const struct kp_op *op);

/* Makes the new record `i` a setting, of no stream, from `before` to `after`. Returns its ticket, never 0. */
uint64_t kp_record_setting(struct kp_window *w, struct kp_item *i, void *real, const uint64_t *before,
                           const uint64_t *after);

/* Finds the operation of a ticket; NULL if there is none. The pointer is valid until the next record. */
struct kp_item *kp_record_find(struct kp_window *w, uint64_t ticket);

/* Drops the last record. */
void kp_record_drop_last(struct kp_window *w);
/* Drops the operations that the driver refused, once all calls of the program have returned. */
void kp_record_drop_refused(struct kp_window *w);
/* Drops all records and the window's data: no window is open any more. */
void kp_record_reset(struct kp_window *w);

#endif
