/*
 * Records launches and the operations between them, in order.
 */
#ifndef KP_PRELOAD_JOURNAL_RECORD_H
#define KP_PRELOAD_JOURNAL_RECORD_H

#include "preload/journal/state.h"

/* Appends a record, all 0. NULL if memory is short. */
struct kp_item *kp_record_new(struct kp_journal *j);

/* Returns true if the journal records operations of the current context, and has room for one. */
bool kp_record_is_here(const struct kp_journal *j, const struct kp_driver *d);

/* Makes the new record `i` the operation `op`, which it takes over. Returns its ticket, never 0. */
uint64_t kp_record_op(struct kp_journal *j, struct kp_item *i, const struct kp_op *op);

/* Makes the new record `i` a setting, without a stream, from `before` to `after`. Returns its ticket, never 0. */
uint64_t kp_record_setting(struct kp_journal *j, struct kp_item *i, void *real, const uint64_t *before,
                           const uint64_t *after);

/* Finds the operation of a ticket; NULL if there is none. The pointer is valid until the next record. */
struct kp_item *kp_record_find(struct kp_journal *j, uint64_t ticket);

/* Drops all records, and what else the journal knows: it is not open. */
void kp_record_drop_all(struct kp_journal *j);

#endif
