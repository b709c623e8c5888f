/*
 * Describes a closing window to the collector, for the strategies that count.
 */
#ifndef KP_PRELOAD_MODE_JOB_H
#define KP_PRELOAD_MODE_JOB_H

#include "preload/mode/window_state.h"

struct kp_job {
    struct kp_window_job job; /* without the functions that issue it */
    bool *wanted;             /* NULL: memory was short, and no launch of the job has a result */
};

/* Call kp_job_free in any case. */
struct kp_job kp_job_make(const struct kp_window *w);
/* The same for the whole window as one launch. */
struct kp_job kp_job_of_whole(const struct kp_window *w);
void kp_job_free(struct kp_job *j);

/* Leaves the counters of a window on, because stopping them would wait for work that may not end: nothing more is
 * counted in the context. */
void kp_job_unended(struct kp_window *w, enum kp_reason why);

/* Ends a window in which a launch has faulted. The program's next call reports the fault to it. */
void kp_job_failed(struct kp_window *w, struct kp_window_outcome *out);

#endif
