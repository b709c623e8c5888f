/*
 * Which launches are wanted: by device, name, kernel-id, and by how many have come before. A launch passes these in
 * turn: delay and duration, launch-skip-before-match, devices, kernel-name, kernel-id, launch-skip and launch-count;
 * each counts only what reached it.
 *
 * Made for launches that are not wanted: a name is judged once, then it takes one lock and a look-up.
 */
#ifndef KP_PRELOAD_PROGRAM_FILTER_H
#define KP_PRELOAD_PROGRAM_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/program/launch.h"
#include "report/options/options.h"

/* How the filter learns what it is not told. The first two are called with its lock held, and must not come back. */
struct kp_filter_source {
    char *(*mangled)(CUfunction f);           /* the symbol, malloc'ed; NULL = not known */
    int (*device)(const struct kp_launch *l); /* CUDA ordinal; -1 = not known */
    uint64_t (*now)(void);                    /* ns, of a clock that only goes on */
    /* The ids that the report prints. NULL, or why they are not to be had (static text). Only asked when kernel-id has
     * one of them, for each launch that kernel-name takes, in launch order, as they may be given in that order. */
    const char *(*place)(const struct kp_launch *l, uint64_t *context, uint64_t *stream);
    /* Whether it was made inside the NVTX ranges that are wanted, which it is given. NULL = always. */
    bool (*inside)(struct kp_launch *l);
};

struct kp_filter;

/* `o` stays with the caller and must outlive the filter. Time counts from here on. 0; -EINVAL with *err (malloc'ed
 * line) where an option does not hold what kp_options_from_env takes; -ENOMEM. */
int kp_filter_new(const struct kp_options *o, const struct kp_filter_source *source, struct kp_filter **out,
                  char **err);
void kp_filter_free(struct kp_filter *f); /* no other thread may use it */

struct kp_filter_choice {
    const char *unwanted; /* one of KP_SKIP_..., or what `place` said; NULL = wanted */
    int other_device;     /* the one that devices did not take; else -1 */
    bool outside;         /* wanted; by its name, it waits for other processes or devices */
    bool last;            /* wanted, and nothing will be after it */
};

/* Any thread. Counts the launch. */
void kp_filter_choose(struct kp_filter *f, struct kp_launch *l, struct kp_filter_choice *out);

/* Any thread: whether a kernel waits for other processes or devices, by its name. */
bool kp_filter_outside(struct kp_filter *f, CUfunction function);

/* Any thread: functions may have gone, and their handles may come again for others. */
void kp_filter_forget(struct kp_filter *f);

/* Calls fn(arg, name, launches) for each kernel of which kernel-name or kernel-id did not take launches; the name is
 * that which they looked at, with the ids where those mattered. In the order in which they came. */
void kp_filter_unwanted(struct kp_filter *f, void (*fn)(void *arg, const char *name, uint64_t launches), void *arg);

/* The same by the symbol. Run again, such a kernel would wait for a partner that has moved on. */
bool kp_filter_waits_outside(const char *mangled);

/* Whether `name` is in, or matches, the comma list; an empty list has all names. */
bool kp_filter_process(const char *list, const char *name);

#endif
