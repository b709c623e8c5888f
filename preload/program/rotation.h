/*
 * The rotation of one context: each launch of a kernel and shape counts another group of counters, a list of the plan,
 * until every group has been counted often enough. What they counted becomes one result of the report.
 *
 * Threads: the first part is for the gate's exclusive section, kp_rotation_passes for any thread, and the last part for
 * one thread at a time, which may be another than that of the first.
 */
#ifndef KP_PRELOAD_PROGRAM_ROTATION_H
#define KP_PRELOAD_PROGRAM_ROTATION_H

#include "collectors/plan/plan.h"
#include "preload/program/launch.h"

struct kp_rotation;

/* A kernel and the shape of its launches: grid, block, dynamic shared memory, cluster. */
struct kp_rotation_key;

/* Begins the rotation through the lists of `plan`, which must outlive it; `each`: launches of a key that count a list;
 * `time`: how long launches are counted, from the first one on, ns; 0 = until all keys are complete. NULL without
 * memory.
 */
struct kp_rotation *kp_rotation_new(const struct kp_plan *plan, uint64_t each, uint64_t time);
/* Whether that time is over; says so once. */
bool kp_rotation_is_over(struct kp_rotation *r);
/* Passes on what keys have counted that are incomplete. Nothing may be collected any more. */
void kp_rotation_pass_on(struct kp_rotation *r);
/* Does the same, and frees the rotation. */
void kp_rotation_end(struct kp_rotation *r);

/* Finds the key of a launch of kernel `mangled`, and counts the launch as one of it. NULL without memory, or for a new
 * one beyond the most that there may be, 4096. Valid as long as the rotation. */
struct kp_rotation_key *kp_rotation_find(struct kp_rotation *r, const struct kp_launch *l, const char *mangled);
/* Whether the key lacks the group, or any. */
bool kp_rotation_lacks(const struct kp_rotation_key *k, size_t group);
bool kp_rotation_lacks_any(const struct kp_rotation_key *k);
/* Chooses a group for a window that a launch of the key opens: of those that the key lacks, one that most keys lack
 * which are expected within so many launches. Among equals the walk begins at the group of the process's rank. */
size_t kp_rotation_choose(const struct kp_rotation *r, const struct kp_rotation_key *k, uint64_t within);
/* Whether a key that lacks the group is expected within so many launches: keys come again as they came before. */
bool kp_rotation_expects(const struct kp_rotation *r, size_t group, uint64_t within);
/* Notes that a launch of the key counts the group, or was refused after all. */
void kp_rotation_take(struct kp_rotation_key *k, size_t group);
void kp_rotation_untake(struct kp_rotation_key *k, size_t group);
/* Notes that a window of the group gave no counters. A group that fails again and again is given up. */
void kp_rotation_failed(struct kp_rotation *r, size_t group);

/* Returns why a launch is not counted (static text): its key is complete, or the time is over; it is counted as one of
 * the key then. NULL: it is for the gate. Costs a look-up without a lock. */
const char *kp_rotation_passes(const struct kp_launch *l);
/* Forgets which functions have which names, as modules are unloaded. Any thread. */
void kp_rotation_forget(void);

/* Takes over what a launch of the key has counted for the group; `why`: the reason why it counted nothing, or NULL. The
 * last one of a key passes its result on to the session. */
void kp_rotation_collect(struct kp_rotation_key *k, size_t group, struct kp_result *counted, const char *why);

#endif
