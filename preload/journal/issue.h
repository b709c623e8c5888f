/*
 * Issues a recorded launch through the driver: the program's own execution, or a further one.
 */
#ifndef KP_PRELOAD_JOURNAL_ISSUE_H
#define KP_PRELOAD_JOURNAL_ISSUE_H

#include "preload/journal/state.h"

/* Waits for copies and memsets that may still run, and must not overlap the next kernel. */
CUresult kp_issue_settle(struct kp_journal *j);

/* Issues the launch again, between the hooks (may be NULL) if it has a result. Returns the driver's code. */
CUresult kp_issue_again(struct kp_journal *j, struct kp_entry *e, const struct kp_issue_hooks *hooks);

#endif
