/*
 * A strategy is one way of counting the launches of a window. strategies.c lists them in order; docs/adding.md says how
 * to add one. Each function is called inside the gate's exclusive section, with the window's context current; what they
 * share is in record.h.
 */
#ifndef KP_PRELOAD_WINDOW_STRATEGY_H
#define KP_PRELOAD_WINDOW_STRATEGY_H

#include "collectors/run/collector.h"
#include "preload/window/admit.h"
#include "preload/window/record.h"

struct kp_strategy {
    const char *name;
    bool joins;             /* operations on memory between its launches are recorded, or close the window */
    bool in_account;        /* closers.h accounts for its windows */
    bool counts;            /* it calls the profiler when it closes */
    bool despite_obstacles; /* launches that must not be replayed have windows, too */
    const char *config_why; /* why what only an activity record tells is missing; NULL: the usual reason */

    /* Whether the window that opens for this launch is to be one of it. The first strategy of the list that admits the
     * launch and opens has the window; kp_window.obstacle says why the launch must not be replayed. */
    bool (*admit)(const struct kp_fit *fit);
    /* Begins, before the launch is made. False: it cannot; *why says so (malloc'ed), or stays NULL where the user need
     * not know. NULL: nothing to begin. */
    bool (*open)(const struct kp_fit *fit, char **why);
    /* Prepares for the window's first launch. Why it cannot be in it (static text; then all that `open` began is given
     * back), or NULL. NULL: nothing to prepare. */
    const char *(*prepare)(const struct kp_launch *l, const struct kp_fit *fit);
    /* Whether a launch of this kind may follow in the open window. */
    bool (*takes)(const struct kp_fit *fit);
    /* Why the window holds nothing beside the launch (static text), or NULL. NULL: never. */
    const char *(*alone)(const struct kp_fit *fit);
    /* Makes the program's own launch. Returns the driver's code. */
    CUresult (*issue)(struct kp_item *i);
    /* After a launch that the driver took: why the window is to be forgotten (static text), with all that `open` began
     * let go of, or NULL. NULL: never. */
    const char *(*issued)(struct kp_item *i, const struct kp_fit *fit);
    /* Ends: fills in the outcome, and gives back what `open` began. NULL: nothing to end. */
    void (*close)(struct kp_window_outcome *out);
};

/* The strategies in order, NULL at the end; the last one admits and opens for every launch. */
extern const struct kp_strategy *const kp_strategies[];

extern const struct kp_strategy kp_strategy_replay, kp_strategy_count, kp_strategy_plain;

#endif
