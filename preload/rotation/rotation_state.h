/*
 * The parts of a rotation, only for the files rotation*.c: keys, and their launches as found without a lock.
 */
#ifndef KP_PRELOAD_ROTATION_ROTATION_STATE_H
#define KP_PRELOAD_ROTATION_ROTATION_STATE_H

#include <math.h>
#include <stdatomic.h>

#include "preload/rotation/rotation.h"

enum {
    KP_ROTATION_BUCKETS = 256,
    KP_ROTATION_CANARIES = 2,
    KP_ROTATION_KEYS = 4096, /* a program whose grids keep changing must not be counted forever */
};

/* What distinguishes launches of a kernel: the driver's parameters, and NVTX; padding is 0. */
struct kp_rotation_shape {
    uint32_t grid[3], block[3], cluster[3], unused;
    uint64_t dynamic_shared;
    uint64_t path; /* kp_rotation_path, if it is part of the key; else 0 */
};

/* A function handle with a shape, for kp_rotation_passes. Never freed: other threads may be reading it. */
struct kp_rotation_place {
    CUfunction function;
    uint64_t generation;
    struct kp_rotation_shape shape;
    atomic_bool complete; /* the key is closed */
    atomic_uint_fast64_t launches;
    struct kp_rotation_place *next;        /* in its bucket */
    struct kp_rotation_place *next_of_key; /* never changes, like `next` */
};

struct kp_rotation_key {
    struct kp_rotation *of;
    uint64_t context; /* as CUPTI numbers them */
    char *mangled;
    struct kp_rotation_shape shape;
    uint64_t path;                            /* of its first launch; 0 = not known */
    atomic_bool has_paths;                    /* its launches had several paths */
    struct kp_rotation_place *_Atomic places; /* added to inside the gate, read by the collecting thread, too; so is: */
    atomic_uint_fast64_t others;              /* launches without a place */
    uint64_t born_at;                         /* the clock at the first launch that came by the gate, */
    uint64_t seen_at;                         /* at the last one, */
    uint64_t gap;                             /* and its distance from the one before; 0 = there was none */
    uint64_t seen;                            /* how many came through it */
    bool is_fleeting;                         /* its kernel's shapes occur only a few times */
    bool quiet;                               /* its times are those of quiet launches; see kp_rotation_times */
    enum kp_reason apart;                     /* why its launches are only timed; none = they are counted */
    uint64_t *taken;                          /* of each group: launches that count it */
    size_t lacking;                           /* groups that lack launches, */
    size_t untaken;                           /* and groups that no launch counts */
    enum kp_reason once_reason;               /* why its first launch was not replayed; none = there was none */
    uint64_t served;                          /* launches with a result of their own: see struct kp_rotation_served */
    atomic_uint_fast64_t measured, uncounted; /* of these */
    uint64_t served_id;                       /* number of the first that was measured */
    uint64_t *collected;                      /* of each group, by the collecting thread: launches that counted it, */
    uint64_t received;                        /* all that ended, */
    uint64_t due;                             /* of the number wanted, */
    struct kp_result result;
    atomic_uint_fast64_t longest;           /* duration that was counted, ns */
    double *canaries[KP_ROTATION_CANARIES]; /* their values, of `n_canaries` launches each */
    size_t n_canaries[KP_ROTATION_CANARIES];
    struct kp_why lost; /* why the last launch that counted nothing did not */
    atomic_bool closed; /* no more launches are counted */
    bool is_begun;      /* `result` has a launch */
    bool is_over;       /* it has been passed on, */
    uint64_t id;        /* under this number */
    bool has_entry;     /* its first launch has one, under that number; what it was told: */
    uint64_t first;     /* 1: the first launch has counters */
    uint64_t entered;   /* of those received, the ones in the entry */
    struct kp_session_told told;
    struct kp_rotation_key *next;
};

struct kp_rotation {
    const struct kp_plan *plan;
    bool beside;      /* the replay of others */
    uint64_t context; /* as CUPTI numbers them */
    uint64_t each;
    struct kp_rotation_extras extras;
    size_t groups, lists; /* all, and those of the plan, which come first */
    size_t first;         /* list at which the walk starts */
    size_t at;            /* group of the last window; SIZE_MAX = there was none */
    bool chooses;         /* the last window that counted a list left uncounted launches alone */
    uint64_t rests_until; /* ns, of kp_clock_ns: before, no window opens for a few keys */
    uint64_t needed;      /* launches of a key, for all groups */
    size_t *failures;     /* of each group */
    bool *given_up;
    struct kp_why *_Atomic *why_given_up; /* NULL = it is not, or the reason is not known */
    size_t n_given_up;
    atomic_size_t n_keys;
    struct kp_rotation_key *keys[KP_ROTATION_BUCKETS];
};

/* Returns what a launch has counted, or NAN. */
static inline double kp_rotation_value(const struct kp_result *counted, const char *metric)
{
    const struct kp_metric *m = kp_result_find(counted, metric);
    return m && m->kind == KP_VALUE_REAL ? m->real : NAN;
}

/* ---- rotation_path.c ---- */

/* Returns a number for the NVTX path around a launch, shared by all launches in such a path; 0 = NVTX is not
 * collected. */
uint64_t kp_rotation_path(const struct kp_nvtx *n);
/* Leaves the path of the ranges, with names in which numbers do not count. 0 or -ENOMEM. */
int kp_rotation_keep_path(struct kp_nvtx *n);
/* Writes that path as a clause that follows "launches": "in the NVTX range step # (#: any number)". malloc'ed, or NULL.
 */
char *kp_rotation_say_path(const struct kp_nvtx *n);

/* ---- rotation_keys.c ---- */

/* Returns true if keys have a path. */
bool kp_rotation_has_path(const struct kp_rotation *r);
extern atomic_uint_fast64_t kp_rotation_clock; /* launches of all keys, except those that pass unseen */
/* Returns how many launches of keys there were so far. */
uint64_t kp_rotation_now(void);
extern atomic_int kp_rotation_contexts; /* with several, a function handle does not determine which */

/* Makes a key that nobody finds yet. NULL if memory is short. */
struct kp_rotation_key *kp_rotation_new_key(struct kp_rotation *r, const struct kp_rotation_shape *s,
                                            const char *mangled);
void kp_rotation_free_key(struct kp_rotation_key *k);
/* Adds a key to a rotation that has none of its kernel and shape. */
void kp_rotation_add_key(struct kp_rotation *r, struct kp_rotation_key *k);
/* Counts launches of the key again: the reverse of kp_rotation_close. */
void kp_rotation_reopen(struct kp_rotation_key *k);
/* Returns how many launches of a key should count a group in the end. */
uint64_t kp_rotation_each_of(const struct kp_rotation *r, size_t group);
void kp_rotation_note_taken(struct kp_rotation_key *k, size_t group);
/* Writes how many launches the key had, counted or not, and the recorded times, into the head of its result. */
void kp_rotation_stands_for(const struct kp_rotation_key *k, struct kp_launch_info *l);

/* ---- rotation_results.c: for the collecting thread ---- */

/* Returns how many groups of the key have been counted. */
uint32_t kp_rotation_groups_counted(const struct kp_rotation_key *k);
/* Passes the result on to the session. */
void kp_rotation_tell_key(struct kp_rotation_key *k);
/* Puts what has been counted so far into the entry of the first launch. A value that a launch has counted stays if it
 * cannot be composed of others. */
void kp_rotation_enter(struct kp_rotation_key *k);

#endif
