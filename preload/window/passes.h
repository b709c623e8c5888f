/*
 * What strategies that count have in common when their windows close. As strategy.h says.
 */
#ifndef KP_PRELOAD_WINDOW_PASSES_H
#define KP_PRELOAD_WINDOW_PASSES_H

#include "collectors/run/collector.h"

/* Ends the count of the window, or repeats it; `run` calls the collector. Out of memory is told in out->note, and
 * `run` gets a job without `wanted`. */
void kp_passes_run(void (*run)(struct kp_window_job *job, struct kp_window_outcome *out),
                   struct kp_window_outcome *out);

/* A kernel of the window failed, by the program's own fault, which its next call tells it. */
void kp_passes_failed(struct kp_window_outcome *out);

#endif
