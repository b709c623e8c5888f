/*
 * Finds a launch's device, and the ids of its context and stream as the report prints them. Threads: any, outside
 * the gate; kprof's own calls are guarded here.
 */
#ifndef KP_PRELOAD_CONTEXTS_LAUNCH_IDS_H
#define KP_PRELOAD_CONTEXTS_LAUNCH_IDS_H

#include "preload/contexts/context.h"
#include "preload/program/launch.h"

/* Returns the CUDA ordinal; -1 if the driver does not say. */
int kp_place_device(const struct kp_driver *d, const struct kp_launch *l);

/* Notes that a context may end, so that its handle may return for another device. */
void kp_place_forget(void);

/* Finds ids. The first launch into a stream waits until no other thread is in a driver call. Returns none, or why the
 * ids are unavailable; ids that the driver does not report are 0. *bad_input is set as by kp_context_get. */
enum kp_reason kp_place_ids(const struct kp_context_setup *setup, const struct kp_launch *l, uint64_t *context,
                            uint64_t *stream, char **bad_input);

#endif
