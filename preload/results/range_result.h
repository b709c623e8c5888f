/*
 * The result of a range that is one window: carried by the window's first record, which issues nothing.
 */
#ifndef KP_PRELOAD_RESULTS_RANGE_RESULT_H
#define KP_PRELOAD_RESULTS_RANGE_RESULT_H

#include "preload/journal/journal.h"

/* Makes it, with the header of the range that is open. Returns false if memory is short. */
bool kp_range_result_make(const struct kp_context *c);
/* Drops it: the range has no launch. */
void kp_range_result_drop(void);
/* Sets and reports that the range ends before the program has ended it, because of `closed_by`, with `launches`.
 * `what`: what that means. */
void kp_range_result_cut(const char *closed_by, const char *what, uint64_t launches);

#endif
