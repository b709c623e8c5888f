/*
 * A mode: what one entry of the report is, how the same work comes again for another pass, and which counters a pass
 * has. The rows are in preload/mode/modes.c, and one is chosen when kprof starts. Files of any room read its data; none
 * asks which mode it is.
 */
#ifndef KP_PRELOAD_CONTEXTS_MODE_H
#define KP_PRELOAD_CONTEXTS_MODE_H

#include <stdbool.h>

#include "report/options/options.h"

struct kp_strategy;

enum kp_mode_workload {
    KP_MODE_LAUNCHES, /* a launch, or a node of a graph */
    KP_MODE_RANGES,   /* all that is made between two points of the program */
};

enum kp_mode_again {
    KP_AGAIN_REPLAY, /* it is repeated within the program, from saved memory */
    KP_AGAIN_RECUR,  /* the program launches the same kernel again */
    KP_AGAIN_RERUN,  /* the program runs again, and this process is one of the runs: options->replay_run, from 1 on */
    KP_AGAIN_NEVER,
};

/* What the plan of a context has, and which part of it a pass counts. */
enum kp_mode_lists {
    KP_LISTS_ALL,   /* all lists of counters, a pass each */
    KP_LISTS_FIRST, /* what fits into one pass */
    KP_LISTS_TURNS, /* one of the lists, which take turns */
    KP_LISTS_RUN,   /* the list of this run of the program */
};

struct kp_mode {
    const char *name;
    /* The mode of processes with this option for which `asked` holds (NULL: for all). `quick`: everything to be shown
     * fits into one pass. */
    enum kp_replay_mode option;
    bool (*asked)(const struct kp_options *o, bool quick);

    enum kp_mode_workload workload;
    enum kp_mode_again again;
    enum kp_mode_lists lists;
    bool bounded; /* what it adds to the program is bounded: options->budget */
    bool varies;  /* variants of the launch are repeated, too, so its writes are not watched */
    bool aside;   /* a workload is counted as the program makes it: its launches and calls pass as if there were no
                     window, only the end of its context closes it, and nothing waits before it */

    /* How a window of it is counted: the first that suits, and opens, has it. NULL ends the list. */
    const struct kp_strategy *const *strategies;
    /* The mode of launches that must not be repeated; NULL: no separate one. */
    const struct kp_mode *otherwise;
    /* Of a bounded mode: the one that takes over for good when launches are too dear; NULL: none does. */
    const struct kp_mode *next;
};

static inline bool kp_mode_repeats(const struct kp_mode *m)
{
    return m->again == KP_AGAIN_REPLAY;
}

static inline bool kp_mode_recurs(const struct kp_mode *m)
{
    return m->again == KP_AGAIN_RECUR;
}

static inline bool kp_mode_reruns(const struct kp_mode *m)
{
    return m->again == KP_AGAIN_RERUN;
}

static inline bool kp_mode_has_ranges(const struct kp_mode *m)
{
    return m->workload == KP_MODE_RANGES;
}

/* Returns true if launches that must not be repeated count in turns, alongside the repeated ones. */
static inline bool kp_mode_recurs_beside(const struct kp_mode *m)
{
    return m->otherwise && kp_mode_recurs(m->otherwise);
}

#endif
