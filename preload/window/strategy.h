/*
 * A strategy: how the launches of a window are counted. One is a row of kp_strategies; the rest of this room knows none
 * by name.
 *
 * Threads: all functions are called inside the gate's exclusive section, with the window's context current.
 */
#ifndef KP_PRELOAD_WINDOW_STRATEGY_H
#define KP_PRELOAD_WINDOW_STRATEGY_H

#include "preload/window/admit.h"
#include "preload/window/state.h"

struct kp_strategy {
    /* The window's memory was saved when it opened, and its operations are issued again when it closes. So operations
     * on memory join or close it, and launches between the wanted ones may be of another kind. Otherwise launches
     * are done with as they come. */
    bool rewinds;

    /* Why its launches lack what only an activity record tells (static text); NULL = there is no such record. */
    const char *no_config;

    /* Whether it may count the window that opens for this launch. */
    bool (*suits)(const struct kp_question *q);

    /* Why the open window does not take the launch (static text), or NULL: what holds for this strategy alone, after
     * the reasons that hold for all (admit.c). May be NULL. */
    const char *(*admit)(const struct kp_question *q);

    /* Prepares the window, may set `most` and `obstacle`. False: *why (malloc'ed, may be NULL) tells the user; the next
     * strategy that suits is asked, unless *refusal (static text) is set: then the launch runs outside of any. */
    bool (*open)(struct kp_window *w, const struct kp_question *q, char **why, const char **refusal);

    /* The program's own launch, whose record is the window's last. Returns what the driver says. */
    CUresult (*issue)(struct kp_window *w, struct kp_item *i);

    /* Ends the window, whose launches have all been issued: fills in *out, which is all 0. NULL = nothing is counted,
     * and nothing needs to end. */
    void (*close)(struct kp_window *w, struct kp_window_outcome *out);
};

/* In order, NULL at the end: the first that suits is the window's. */
extern const struct kp_strategy *const kp_strategies[];

extern const struct kp_strategy kp_strategy_replay, kp_strategy_count, kp_strategy_plain;

#endif
