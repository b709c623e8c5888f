/*
 * Issues a recorded launch through the driver: the program's own execution, or a further one.
 */
#ifndef KP_PRELOAD_JOURNAL_ISSUE_H
#define KP_PRELOAD_JOURNAL_ISSUE_H

#include "preload/journal/state.h"

/* Waits for each stream of a window that is repeated, including those that the program has destroyed since. Returns
 * CUDA_ERROR_NOT_READY if one is busy for longer than KP_WAIT_PASS; other errors are left to the wait for the context.
 */
CUresult kp_issue_end_streams(const struct kp_journal *j);
/* Does the same, and then waits as kp_settle does. */
CUresult kp_issue_end(const struct kp_journal *j);
/* Waits for copies and memsets that may still run, and must not overlap the next kernel. */
CUresult kp_issue_settle(struct kp_journal *j);

/* Issues the launch again, between the hooks (may be NULL) if it has a result. Returns the driver's code. */
CUresult kp_issue_again(struct kp_journal *j, struct kp_entry *e, const struct kp_issue_hooks *hooks);

#endif
