/*
 * Chooses launches: by device, name, kernel-id, and number. A launch passes these in turn: delay and duration,
 * launch-skip-before-match, devices, kernel-name, kernel-id, NVTX ranges, launch-skip and launch-count; each counts
 * only launches that reached it. The same applies to ranges that are workloads. Optimised for unwanted launches: a name
 * is judged once; after that a launch of a kernel that is never wanted needs one lookup and no lock.
 */
#ifndef KP_PRELOAD_PROGRAM_FILTER_H
#define KP_PRELOAD_PROGRAM_FILTER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "preload/gate/fast_path.h"
#include "preload/program/launch.h"
#include "preload/session/session.h"
#include "report/options/options.h"

/* Functions that inform the filter about launches. The first two are called with its lock held, and must not call the
 * filter. */
struct kp_filter_source {
    char *(*mangled)(CUfunction f);           /* the symbol, malloc'ed; NULL = not known */
    int (*device)(const struct kp_launch *l); /* CUDA ordinal; -1 = not known */
    uint64_t (*now)(void);                    /* ns, of a monotonic clock */
    /* Finds the ids that the report prints. Returns none, or why they are unavailable. Called only if kernel-id uses an
     * id, for each launch that kernel-name accepts, in launch order, because ids may be assigned in that order. */
    enum kp_reason (*place)(const struct kp_launch *l, uint64_t *context, uint64_t *stream);
    /* Returns true if the launch, which receives its NVTX ranges, is inside the wanted ones. NULL = always. */
    bool (*inside)(struct kp_launch *l);
};

struct kp_filter;

/* Makes a filter. `o` stays the caller's and must outlive the filter. Time counts from here on. Returns 0, -EINVAL with
 * *err (malloc'ed line) for values that kp_options_from_env would refuse, or -ENOMEM. */
int kp_filter_new(const struct kp_options *o, const struct kp_filter_source *source, struct kp_filter **out,
                  char **err);
void kp_filter_free(struct kp_filter *f); /* no other thread may use it */

/* The counters of a launch, so that it can be taken back. */
struct kp_filter_counted {
    uint64_t *in[4];
    unsigned n;
};

struct kp_filter_choice {
    enum kp_reason unwanted; /* why not, from `place`, too; none = wanted */
    int other_device;        /* the device that the filter rejected, or -1 */
    bool outside;            /* wanted, but by its name it waits for the host, other processes or devices */
    bool last;               /* wanted, and no later launch will be */
    bool may_follow;         /* unwanted, but a later launch of the kernel may be wanted */
    struct kp_filter_counted counted;
};

/* Returns why no launch of the function is wanted from now on, regardless of its other properties; KP_PASS_NOT if some
 * may be, or if kp_filter_choose must find out. Uses no lock, and counts nothing: add launches that are not given to
 * kp_filter_choose to **also, unless it is NULL. It lives until the filter is freed. Any thread. */
enum kp_pass_why kp_filter_passes(struct kp_filter *f, CUfunction function, atomic_uint_fast64_t **also);
/* Returns true if all launches of the function are wanted from now on, and the filter counts none of them. Any
 * thread. */
bool kp_filter_takes_all(struct kp_filter *f, CUfunction function);

/* Chooses, and counts the launch. Any thread. */
void kp_filter_choose(struct kp_filter *f, struct kp_launch *l, struct kp_filter_choice *out);
/* Undoes the counts of a launch that the driver has refused: later ones are chosen as without it. Empties `c`. Any
 * thread. */
void kp_filter_refused(struct kp_filter *f, struct kp_filter_counted *c);

/* Does the same for a range of launches that is one workload, and that starts where `at`, a graph, would be launched.
 * Names and kernel-id choose no ranges. `inside`: the NVTX filters accept it. */
void kp_filter_choose_range(struct kp_filter *f, const struct kp_launch *at, bool inside, struct kp_filter_choice *out);
/* Returns true if such a range would be chosen now; counts nothing. */
bool kp_filter_wants_range(struct kp_filter *f, const struct kp_launch *at);
/* Returns true if the first launch of a program may be wanted, whatever it is. */
bool kp_filter_takes_first(const struct kp_options *o);
/* Returns true if the device decides which ranges are chosen. */
bool kp_filter_asks_device(const struct kp_options *o);

/* Returns true if a kernel, by its name, waits for the host, other processes or devices. Any thread. */
bool kp_filter_outside(struct kp_filter *f, CUfunction function);
/* Does the same by the symbol. If run again, such a kernel would wait for a partner that has moved on. */
bool kp_filter_waits_outside(const char *mangled);

/* Forgets functions, because their handles may be reused. Any thread. */
void kp_filter_forget(struct kp_filter *f);

/* Calls fn(arg, name, launches) for each kernel with launches that kernel-name or kernel-id rejected, in order of
 * appearance. The name is the one they compared, with the ids if those mattered. */
void kp_filter_unwanted(struct kp_filter *f, void (*fn)(void *arg, const char *name, uint64_t launches), void *arg);

/* Returns true if the comma list of target-processes-filter chooses the process of one of these names: the first item
 * that fits holds, else those without an item of a name do. *tree: it is left out with all that it starts. */
bool kp_filter_process(const char *list, const char *name, const char *short_name, bool *tree);

#endif
