/*
 * A strategy decides how the launches of a window are counted. Each is a row of kp_strategies; the other files of this
 * room know none by name.
 *
 * Threads: the room calls all functions inside the gate's exclusive section, with the window's context current.
 */
#ifndef KP_PRELOAD_WINDOW_STRATEGY_H
#define KP_PRELOAD_WINDOW_STRATEGY_H

#include "preload/window/admit.h"
#include "preload/window/state.h"

struct kp_strategy {
    const char *name; /* that KPROF_DEBUG=window prints */

    /* It issues the window's operations again when the window closes, from the memory of the opening. So operations on
     * memory join the window or close it, and unwanted launches may be of another kind than the wanted ones. Otherwise
     * each launch is done with when its call returns. */
    bool rewinds;

    /* Why its launches lack what only an activity record tells (static text); NULL: no such record is to be had. */
    const char *no_config;

    /* Whether it may count the window that opens for this launch. */
    bool (*suits)(const struct kp_question *q);

    /* Says why the open window does not take the launch (static text), or NULL. The reasons that hold for every
     * strategy come before (admit.c). May be NULL. */
    const char *(*admit)(const struct kp_question *q);

    /* Prepares the window; may set its `obstacle`, and its `most`, to at most kp_admit_room(w). False: the next
     * strategy that suits is asked. *why (malloc'ed, may be NULL) then tells the user. With *refusal (static text)
     * nobody else is asked: the launch runs outside of any window. */
    bool (*open)(struct kp_window *w, const struct kp_question *q, char **why, const char **refusal);

    /* Makes the program's own launch; its record is the window's last. Returns what the driver says. */
    CUresult (*issue)(struct kp_window *w, struct kp_item *i);

    /* Ends the window and fills in *out, which is all 0. NULL: nothing is counted, and nothing needs to end. */
    void (*close)(struct kp_window *w, struct kp_window_outcome *out);

    /* Lets go of the window without a driver call, which would wait for a launch that does not end. May be NULL. */
    void (*abandon)(struct kp_window *w);
};

/* The first row that suits, and opens, counts the window. The last one takes every launch without an obstacle; NULL
 * ends the table. */
extern const struct kp_strategy *const kp_strategies[];

extern const struct kp_strategy kp_strategy_replay, kp_strategy_count, kp_strategy_plain;

#endif
