/*
 * The window's operations issued through the driver: its launches for the first time, and all of it again for a
 * repetition. Inside the gate's exclusive section, with the window's context current.
 */
#ifndef KP_PRELOAD_WINDOW_ISSUE_H
#define KP_PRELOAD_WINDOW_ISSUE_H

#include "collectors/run/collector.h"
#include "preload/window/record.h"

/* A launch between the hooks, where it has a result and there are any. Returns the driver's code. */
CUresult kp_issue_launch(struct kp_item *i, const struct kp_issue_hooks *hooks);

/* Makes the events that stand for the program's in repetitions. The caller destroys them. */
void kp_issue_make_twins(void);

/* As issue and rehearse of struct kp_window_job; the argument of the latter is a `const long *`, the time that each
 * launch is given, ms. */
CUresult kp_issue_all(void *arg, const struct kp_issue_hooks *hooks);
int kp_issue_rehearse(void *limit);

/* Why a launch is not to be waited for (static text), or NULL. */
const char *kp_issue_known_to_wait(const struct kp_launch *l, const struct kp_known_function *f);
/* The reason of a kernel that did not end by itself. */
extern const char kp_waits_for_more[];

#endif
