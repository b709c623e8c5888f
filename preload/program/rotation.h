/*
 * The rotation of one context: each launch of a kernel and shape counts another group of counters, a list of the plan,
 * until every group has been counted often enough. What they counted becomes one result of the report.
 *
 * Where launches are replayed, a rotation takes those that must not be. The first one of a key counts something else,
 * and is an entry of the report at once; the lists come when a key comes a second time. Each list is counted once
 * before any is counted again. The entry is then replaced by what all launches of the key have counted.
 *
 * Behind the lists come groups of what is collected besides the counters, each in a pass of its own, without duration
 * and cycles: samples of warps, which add up over the launches, and what one launch is enough for.
 *
 * Threads: the first part is for the gate's exclusive section, kp_rotation_passes for any thread. The last part is for
 * one thread at a time, which may be another than that of the first.
 */
#ifndef KP_PRELOAD_PROGRAM_ROTATION_H
#define KP_PRELOAD_PROGRAM_ROTATION_H

#include "collectors/plan/plan.h"
#include "preload/gate/passing.h"
#include "preload/program/launch.h"
#include "preload/session/session.h"

enum {
    /* A window waits so many launches for one that needs its group, and looks so far ahead for it. A walk through the
     * launches of ResNet-18 shows no shorter way with other numbers. */
    KP_ROTATE_PATIENCE = 72,
    /* The most for a window that leaves the others alone: launches that pass it cost nothing, and a window 30 ms. */
    KP_ROTATE_FAR = 1024,
};

struct kp_rotation;

/* A kernel and the shape of its launches: grid, block, dynamic shared memory, cluster; and their NVTX path, if asked.
 */
struct kp_rotation_key;

/* The groups behind the lists. Functions that return int return 0 or -ENOMEM, and any thread calls them. */
struct kp_rotation_extras {
    size_t n;
    bool (*adds_up)(void *of, size_t i); /* launches of a key add up in group `i` of them; else one is enough */
    /* Marks what it would have given, and `r` lacks, as missing for `why`. */
    int (*missing)(void *of, size_t i, const char *why, struct kp_result *r);
    int (*derive)(void *of, struct kp_result *r); /* sets what follows from counts and samples by instruction */
    void *of;
};

/* Begins the rotation through the lists of `plan`, which must outlive it, and `extras` (copied; NULL = none); `each`:
 * launches of a key that count a list. NULL without memory. */
struct kp_rotation *kp_rotation_new(const struct kp_plan *plan, const struct kp_rotation_extras *extras, uint64_t each);
/* Begins one for launches that must not be replayed: without lists, and without a bound in time. NULL without memory.
 */
struct kp_rotation *kp_rotation_new_beside(uint64_t each);
/* Gives it both, once. 0 or -ENOMEM. Nothing may be collected meanwhile. */
int kp_rotation_set_plan(struct kp_rotation *r, const struct kp_plan *plan, const struct kp_rotation_extras *extras);
bool kp_rotation_has_plan(const struct kp_rotation *r);
/* Has launches told apart by their NVTX paths, too, or not: the push-pop ranges of their threads, in whose names
 * numbers do not count. Beside a replay they never are. Call it before the first launch. */
void kp_rotation_by_path(bool on);
/* Passes on what keys have counted that are incomplete. Nothing may be collected any more. */
void kp_rotation_pass_on(struct kp_rotation *r);
/* Does the same, and frees the rotation. */
void kp_rotation_end(struct kp_rotation *r);

/* Finds the key of a launch of kernel `f`, and counts the launch as one of it. NULL without memory, or for a new one
 * beyond the most that there may be, 4096. Valid as long as the rotation. */
struct kp_rotation_key *kp_rotation_find(struct kp_rotation *r, const struct kp_launch *l, const struct kp_function *f);
/* Has ten launches of the key timed, or as many as count a group, and none counted, for `why` (static text): then it
 * lacks the group behind all others alone, which kp_rotation_timed returns. Call it before any was counted. */
void kp_rotation_apart(struct kp_rotation_key *k, const char *why);
size_t kp_rotation_timed(const struct kp_rotation *r);
/* Whether the launch of such a key that was found last is timed. While other launches are counted, here or by a rank
 * that the kernel waits for, it takes longer than it does: so few are until no other key lacks anything, when *quiet is
 * set. Times of quiet launches take the place of the others. */
bool kp_rotation_times(const struct kp_rotation_key *k, bool *quiet);
/* Whether the key lacks the group, or any; and whether a launch of it has counted any. */
bool kp_rotation_lacks(const struct kp_rotation_key *k, size_t group);
bool kp_rotation_lacks_any(const struct kp_rotation_key *k);
bool kp_rotation_has_any(const struct kp_rotation_key *k);
/* Whether the key is not worth a window of its own, as shapes of its kernel come a few times and no more. One that has
 * come as often as there are groups is. */
bool kp_rotation_is_fleeting(const struct kp_rotation_key *k);
/* Chooses a group for a window of so many launches that a launch of the key opens: of those that the key lacks, one for
 * which most expected keys are counted in a time. All launches of the window take time, or those that count alone where
 * the window before chose them. Lists of one image come in turn, and to pass one over takes time. Among equals the walk
 * begins at the group of the process's rank. */
size_t kp_rotation_choose(const struct kp_rotation *r, const struct kp_rotation_key *k, uint64_t within);
/* Notes that a window counts the group; `chooses`: it leaves launches alone that do not count. Whether the last one
 * did. */
void kp_rotation_counts(struct kp_rotation *r, size_t group, bool chooses);
bool kp_rotation_chooses(const struct kp_rotation *r);
/* Notes how long the begin and the end of a window took together, ns, as it ends. */
void kp_rotation_spent(struct kp_rotation *r, uint64_t ns);
/* Whether no window is to open for a key that lacks a group, as few do: begins and ends of windows for latecomers take
 * a tenth of the time. Applies where launches are chosen, since there the others go on as natively. */
bool kp_rotation_rests(const struct kp_rotation *r);
/* Whether a key lacks any group that is expected within so many launches, or came within as many. */
bool kp_rotation_goes_on(const struct kp_rotation *r, uint64_t within);
/* Returns how many keys lack the group that are expected within so many launches: keys come again as they came before.
 */
size_t kp_rotation_demand(const struct kp_rotation *r, size_t group, uint64_t within);
/* Writes which group of how many a window counts, and how many keys are complete, for a line of progress. */
void kp_rotation_tell(const struct kp_rotation *r, size_t group, char *text, size_t size);
/* Whether there is one. Whether there is one that came twice, so that it is known when. */
bool kp_rotation_expects(const struct kp_rotation *r, size_t group, uint64_t within);
bool kp_rotation_awaits(const struct kp_rotation *r, size_t group, uint64_t within);
/* Returns which of the extras a group is; SIZE_MAX: it is a list. */
size_t kp_rotation_extra_of(const struct kp_rotation *r, size_t group);
/* Returns the longest duration that was counted of keys that lack the group, ns; 0 = none was. */
uint64_t kp_rotation_longest(const struct kp_rotation *r, size_t group);
/* Notes that the launch of the key that was found last counts the group, or was refused after all. */
void kp_rotation_take(struct kp_rotation_key *k, size_t group);
void kp_rotation_untake(struct kp_rotation_key *k, size_t group);
/* Whether the launch is the key's first, which does not count for a group. Note that it is counted, and why (static
 * text) it is not replayed; or that it was refused after all. */
bool kp_rotation_is_first(const struct kp_rotation_key *k);
void kp_rotation_take_first(struct kp_rotation_key *k, const char *obstacle);
void kp_rotation_untake_first(struct kp_rotation_key *k);
/* Notes that a window of the group gave no counters, for `why` (NULL = not known). A group that fails again and again
 * is given up. */
void kp_rotation_failed(struct kp_rotation *r, size_t group, const char *why);

/* Returns why a launch is not counted (static text): its key is complete, or the time is over; it is counted as one of
 * the key then. NULL: it is for the gate. Costs a look-up without a lock. */
const char *kp_rotation_passes(const struct kp_launch *l);
/* Sets *known where launches like this one pass until kp_passing_outdate. Any thread. */
void kp_rotation_passing(const struct kp_launch *l, struct kp_pass_known *known);
/* Forgets which functions have which names, as modules are unloaded. Any thread. */
void kp_rotation_forget(void);

/* Copies what the key's first launch has counted, by a list of `plan`; and notes which entry of the session it became,
 * where it has counters. */
void kp_rotation_begin(struct kp_rotation_key *k, const struct kp_plan *plan, const struct kp_result *first);
void kp_rotation_begun(struct kp_rotation_key *k, const struct kp_session_entry *entry);
/* Takes over what a launch of the key has counted for the group; `quiet`: see kp_rotation_times; `why`: the reason why
 * it counted nothing, or NULL. The last one of a key passes its result on to the session. */
void kp_rotation_collect(struct kp_rotation_key *k, size_t group, bool quiet, struct kp_result *counted,
                         const char *why);

#endif
