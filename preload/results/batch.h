/*
 * The results of one window on their way to the session: evaluated and stored by the worker while the program goes on.
 */
#ifndef KP_PRELOAD_RESULTS_BATCH_H
#define KP_PRELOAD_RESULTS_BATCH_H

#include "preload/contexts/context.h"

struct kp_batch;
struct kp_rotation_key;

/* Makes room for `n` results; NULL if memory is short. */
struct kp_batch *kp_batch_new(size_t n);
/* Adds the next result and takes it over; there must be room. `key`: what it counts for, with the batch's group, as
 * launch `number` of the key; NULL = for itself. */
void kp_batch_add(struct kp_batch *b, struct kp_result *r, const char *base, struct kp_rotation_key *key, bool quiet);
/* Notes the kind of the launch added last: kp_rotation_was_served is called for it once the result is stored. */
void kp_batch_kind(struct kp_batch *b, struct kp_rotation_key *kind);
/* Checks, once the counters are there, if the launch added last has written host memory: it was repeated, and is not
 * known to reach any. `first`: no launch of its kernel was checked before. */
void kp_batch_watch(struct kp_batch *b, bool first);
/* Sets the group of counters of a rotation that the results have counted. Without it, a result with a key is the first
 * of that key, to which later ones are added. */
void kp_batch_group(struct kp_batch *b, size_t group);
/* Notes that results added from now on were not counted, for that reason. */
void kp_batch_cut(struct kp_batch *b, enum kp_reason why);
/* Takes over `counters` and `b` (each may be NULL): evaluates, marks missing values for `why` (copied), stores. `c`
 * must live until the worker was drained. */
void kp_batch_finish(struct kp_batch *b, const struct kp_context_setup *setup, const struct kp_context *c,
                     struct kp_counters *counters, struct kp_why why);

/* If the worker has first launches of kernels, waits until they show which kernels write host memory: no further window
 * may repeat such a kernel. */
void kp_batch_settle(void);

#endif
