/*
 * Reads a value of the open window again, in pieces, and compares it with what the program has seen. The pieces share a
 * buffer, which is pinned if they are large: the device fills it faster, and its pages are resident.
 */
#ifndef KP_PRELOAD_JOURNAL_REREAD_H
#define KP_PRELOAD_JOURNAL_REREAD_H

#include "preload/journal/state.h"

/* Reads the item's value again, once earlier work is done; *same: whether it is, byte for byte, the one seen. In the
 * window's context. */
CUresult kp_again_read(struct kp_journal *j, const struct kp_item *i, bool *same);

/* Makes the buffer pinned if large values were read. In the context of a window that has closed: memory must not come
 * and go between a save and its restore. */
void kp_again_prepare(const struct kp_driver *d);

/* Allocates room for a value to be kept, for free(). NULL: memory is short. */
void *kp_again_room(size_t bytes);

#endif
