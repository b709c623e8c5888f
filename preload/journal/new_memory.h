/*
 * Memory that is new in the window, as the program's own execution left it. A save by change lacks it, because it has
 * only the memory that existed when the window opened. Use in the window's context, when its launches have ended.
 */
#ifndef KP_PRELOAD_JOURNAL_NEW_MEMORY_H
#define KP_PRELOAD_JOURNAL_NEW_MEMORY_H

#include "preload/journal/state.h"

/* Copies it aside, on the device. Returns false if there is no room. */
bool kp_new_memory_keep(struct kp_journal *j);

/* Puts it back. Returns the driver's code. */
CUresult kp_new_memory_put_back(const struct kp_journal *j);

/* Leaves the copies to kp_defer_free. */
void kp_new_memory_leave(const struct kp_journal *j);

#endif
