/*
 * What strategies share when a window closes: the window as the collector takes it.
 */
#ifndef KP_PRELOAD_WINDOW_JOB_H
#define KP_PRELOAD_WINDOW_JOB_H

#include "preload/window/state.h"

struct kp_job {
    struct kp_window_job job; /* without what issues the window */
    bool *wanted;             /* NULL: memory was short, no launch of the job has a result */
};

/* kp_job_free is owed in any case. */
struct kp_job kp_job_make(struct kp_window *w);
void kp_job_free(struct kp_job *j);

/* A launch of the window has faulted. That is the program's own fault, which its next call tells it. */
void kp_job_failed(struct kp_window *w, struct kp_window_outcome *out);

#endif
