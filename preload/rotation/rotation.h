/*
 * The rotation of one context: each launch of a kernel and shape counts another group of counters, a list of the plan,
 * until every group has been counted often enough. Their counts become one result of the report.
 *
 * If launches are replayed, a rotation counts those that must not be. The first launch of a key counts something else,
 * and is an entry of the report at once; the lists start with the second. Each list is counted once before any is
 * counted again. Then the counts of all launches of the key replace the entry.
 *
 * After the lists come groups for providers other than the counters, each in its own pass, without duration and cycles:
 * samples of warps, which add up over the launches, and data for which one launch is enough.
 *
 * Threads: the first part is for the gate's exclusive section, kp_rotation_passes for any thread. The last part is for
 * one thread at a time, not necessarily that of the first part.
 */
#ifndef KP_PRELOAD_ROTATION_ROTATION_H
#define KP_PRELOAD_ROTATION_ROTATION_H

#include "collectors/plan/plan.h"
#include "preload/gate/fast_path.h"
#include "preload/program/launch.h"
#include "preload/session/session.h"

enum {
    /* A window waits so many launches for one that needs its group, and looks so far ahead for it. For the launches of
     * ResNet-18 no other number gives a shorter rotation. */
    KP_ROTATE_PATIENCE = 72,
    /* The maximum for a window that leaves other launches alone: launches that pass it cost nothing, and a window 30
     * ms. */
    KP_ROTATE_FAR = 1024,
};

struct kp_rotation;

/* A kernel and the shape of its launches: grid, block, dynamic shared memory, cluster; and their NVTX path, if
 * requested. */
struct kp_rotation_key;

/* The groups after the lists. Functions that return int return 0 or -ENOMEM, and any thread calls them. */
struct kp_rotation_extras {
    size_t n;
    bool (*adds_up)(void *of, size_t i); /* launches of a key add up in group `i`; otherwise one is enough */
    /* Marks what the group would have given, and `r` lacks, as missing for `why`. */
    int (*missing)(void *of, size_t i, struct kp_why why, struct kp_result *r);
    int (*derive)(void *of, struct kp_result *r); /* sets values derived from counts and samples by instruction */
    void *of;
};

/* Starts the rotation through the lists of `plan`, which must outlive it, and `extras` (copied; NULL = none); `each`:
 * launches of a key that count a list. NULL if memory is short. */
struct kp_rotation *kp_rotation_new(const struct kp_plan *plan, const struct kp_rotation_extras *extras, uint64_t each);
/* Starts one for launches that must not be replayed: without lists, and without a time limit. NULL if memory is
 * short. */
struct kp_rotation *kp_rotation_new_beside(uint64_t each);
/* Gives it both, once. Returns 0 or -ENOMEM. Nothing may be collected meanwhile. */
int kp_rotation_set_plan(struct kp_rotation *r, const struct kp_plan *plan, const struct kp_rotation_extras *extras);
/* Says which context's it is, as CUPTI numbers them: activity records name it. */
void kp_rotation_of_context(struct kp_rotation *r, uint64_t id);
bool kp_rotation_has_plan(const struct kp_rotation *r);
/* Makes NVTX paths part of the key, or not: the push-pop ranges of the launching thread, ignoring numbers in their
 * names. Alongside a replay they never are. Call it before the first launch. */
void kp_rotation_by_path(bool on);
/* Passes on what incomplete keys have counted. Nothing may be collected any more. */
void kp_rotation_pass_on(struct kp_rotation *r);
/* Does the same, and frees the rotation. */
void kp_rotation_end(struct kp_rotation *r);

/* Finds the key of a launch of kernel `f`, and counts the launch for it. NULL if memory is short, or if there are 4096
 * keys already. Valid as long as the rotation. */
struct kp_rotation_key *kp_rotation_find(struct kp_rotation *r, const struct kp_launch *l, const struct kp_function *f);
/* Times ten launches of the key (or the group size) instead of counting them; `why` is the reason. The key then lacks
 * only the last group, which kp_rotation_timed returns. Call it before any launch was counted. */
void kp_rotation_apart(struct kp_rotation_key *k, enum kp_reason why);
size_t kp_rotation_timed(const struct kp_rotation *r);
/* Returns true if the last found launch of such a key is timed. While other launches are counted, here or by a rank
 * that the kernel waits for, it takes longer than usual: so only a few are timed until no other key lacks anything,
 * which sets *quiet. Times of quiet launches replace earlier ones. */
bool kp_rotation_times(const struct kp_rotation_key *k, bool *quiet);
/* Return true if the key lacks the group, or any; and if a launch of it has counted any. */
bool kp_rotation_lacks(const struct kp_rotation_key *k, size_t group);
bool kp_rotation_lacks_any(const struct kp_rotation_key *k);
bool kp_rotation_has_any(const struct kp_rotation_key *k);
/* Returns true if the key is not worth a window of its own, because shapes of its kernel occur only a few times. A key
 * that has occurred as often as there are groups is worth one. */
bool kp_rotation_is_fleeting(const struct kp_rotation_key *k);
/* Chooses a group for a window of so many launches that a launch of the key opens: among those that the key lacks, the
 * one that counts the most expected keys per time. All launches of the window cost time, or only the counted ones if
 * the previous window chose them. Lists of one image come in turn, and skipping one costs time. Among equals the walk
 * starts at the group of the process's rank. */
size_t kp_rotation_choose(const struct kp_rotation *r, const struct kp_rotation_key *k, uint64_t within);
/* Notes that a window counts the group; `chooses`: it leaves uncounted launches alone. The second returns true if the
 * last window did. */
void kp_rotation_counts(struct kp_rotation *r, size_t group, bool chooses);
bool kp_rotation_chooses(const struct kp_rotation *r);
/* Notes how long the start and the end of a window took together, ns, when it ends. */
void kp_rotation_spent(struct kp_rotation *r, uint64_t ns);
/* Returns true if no window should open for a key that lacks a group, because few keys do: starting and ending windows
 * for latecomers may cost a tenth of the time. Applies if launches are chosen, because then the others run at native
 * speed. */
bool kp_rotation_rests(const struct kp_rotation *r);
/* Returns true if a key that lacks any group is expected within so many launches, or came within as many. */
bool kp_rotation_goes_on(const struct kp_rotation *r, uint64_t within);
/* Returns how many keys that lack the group are expected within so many launches: keys recur as they came before. */
size_t kp_rotation_demand(const struct kp_rotation *r, size_t group, uint64_t within);
/* Writes which group of how many a window counts, and how many keys are complete, for a line of progress. */
void kp_rotation_tell(const struct kp_rotation *r, size_t group, char *text, size_t size);
/* Returns true if such a key exists. The second also requires that it has occurred twice, so its period is known. */
bool kp_rotation_expects(const struct kp_rotation *r, size_t group, uint64_t within);
bool kp_rotation_awaits(const struct kp_rotation *r, size_t group, uint64_t within);
/* Returns which of the extras a group is; SIZE_MAX: it is a list. */
size_t kp_rotation_extra_of(const struct kp_rotation *r, size_t group);
/* Returns the longest counted duration of keys that lack the group, ns; 0 = none was counted. */
uint64_t kp_rotation_longest(const struct kp_rotation *r, size_t group);
/* Note that the last found launch of the key counts the group, or was refused after all. */
void kp_rotation_take(struct kp_rotation_key *k, size_t group);
void kp_rotation_untake(struct kp_rotation_key *k, size_t group);
/* Returns true if the launch is the key's first, which does not count for a group. Note that it is counted, and why
 * (static text) it is not replayed; or that it was refused after all. */
bool kp_rotation_is_first(const struct kp_rotation_key *k);
void kp_rotation_take_first(struct kp_rotation_key *k, enum kp_reason once_reason);
void kp_rotation_untake_first(struct kp_rotation_key *k);
/* Notes that a window of the group gave no counters, for `why` (no reason: not known). A group that fails again and
 * again is given up. */
void kp_rotation_failed(struct kp_rotation *r, size_t group, struct kp_why why);

/* What is known of a key whose launches are replayed, or counted in full by themselves: each gets a result of its own,
 * and those that pass are counted for the first result. */
struct kp_rotation_served {
    uint64_t taken;    /* launches recorded for a window: */
    uint64_t measured; /* with counters, */
    uint64_t lost;     /* without; the rest are not evaluated yet */
    bool passes;       /* later launches pass: kp_rotation_close */
};
struct kp_rotation_served kp_rotation_served(const struct kp_rotation_key *k);
/* Note that the last found launch of the key is recorded for such a window; that it was refused after all; and, on the
 * collecting thread, that its result was stored under that number: with counters, or without. */
void kp_rotation_serve(struct kp_rotation_key *k);
void kp_rotation_unserve(struct kp_rotation_key *k);
void kp_rotation_was_served(struct kp_rotation_key *k, uint64_t id, bool counted);
/* Takes the keys with such results out of a rotation that ends; and gives them to another (NULL: there is none, they
 * end), where they pass. */
struct kp_rotation_key *kp_rotation_take_served(struct kp_rotation *r);
void kp_rotation_give_served(struct kp_rotation *r, struct kp_rotation_key *keys);
/* Lets launches of the key pass from now on. */
void kp_rotation_close(struct kp_rotation_key *k);
/* Returns true if a launch of the key was counted although it must not be replayed, so that later ones take turns. */
bool kp_rotation_takes_turns(const struct kp_rotation_key *k);
/* Keys: all, and those with a result. */
struct kp_rotation_tally {
    size_t keys, with_results, in_part; /* in_part: these lack groups of counters */
};
/* Adds the keys of a rotation, and tells the session which lack anything. The second adds them for good, as its context
 * ends; the third returns these. */
void kp_rotation_count(const struct kp_rotation *r, struct kp_rotation_tally *t);
void kp_rotation_count_ended(const struct kp_rotation *r);
struct kp_rotation_tally kp_rotation_ended(void);
/* Calls `fn` for each key. */
void kp_rotation_each_key(const struct kp_rotation *r, void (*fn)(struct kp_rotation_key *k, void *arg), void *arg);

/* Returns why a launch is not counted: its key is complete, or the budget is `spent`; then it is counted for the key.
 * None: it has no key, or must go through the gate. Costs a lookup without a lock. */
enum kp_reason kp_rotation_passes(const struct kp_launch *l, bool spent);
/* Returns true if a launch is one of a key that no rotation has. Any thread; false where it cannot be told. */
bool kp_rotation_is_new(const struct kp_launch *l);
/* Sets *known if launches like this one pass until kp_passing_outdate. Any thread. */
void kp_rotation_passing(const struct kp_launch *l, bool spent, struct kp_pass_known *known);
/* Forgets the names of functions, because modules are unloaded. Any thread. */
void kp_rotation_forget(void);

/* Copies what the key's first launch has counted, by a list of `plan`, and notes its entry in the session if it has
 * counters. */
void kp_rotation_begin(struct kp_rotation_key *k, const struct kp_plan *plan, const struct kp_result *first);
void kp_rotation_begun(struct kp_rotation_key *k, const struct kp_session_entry *entry);
/* Takes over what a launch of the key has counted for the group; `quiet`: see kp_rotation_times; `why`: why it counted
 * nothing, or NULL. The last one of a key passes its result on to the session. */
void kp_rotation_collect(struct kp_rotation_key *k, size_t group, bool quiet, struct kp_result *counted,
                         struct kp_why why);

#endif
