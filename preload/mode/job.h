/*
 * Describes a window that closes to the collector: for the strategies that count.
 */
#ifndef KP_PRELOAD_MODE_JOB_H
#define KP_PRELOAD_MODE_JOB_H

#include "preload/mode/window_state.h"

struct kp_job {
    struct kp_window_job job; /* but for the functions that issue it */
    bool *wanted;             /* NULL: memory was short, no launch of the job has a result */
};

/* kp_job_free is owed in any case. */
struct kp_job kp_job_make(const struct kp_window *w);
/* The same, of the whole window as one launch. */
struct kp_job kp_job_of_whole(const struct kp_window *w);
void kp_job_free(struct kp_job *j);

/* Leaves the counters of a window on, as their end would wait for work that may not end: nothing more is counted in the
 * context. */
void kp_job_unended(struct kp_window *w, enum kp_reason why);

/* Ends a window of which a launch has faulted. The program's next call tells it of its fault. */
void kp_job_failed(struct kp_window *w, struct kp_window_outcome *out);

#endif
