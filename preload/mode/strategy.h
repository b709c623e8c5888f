/*
 * A strategy decides how the launches of a window are counted. Modes list theirs (modes.c); the other files of this
 * room know none of them by name. What else a rotation needs is in rotate.h: launches that have counted enough are no
 * longer wanted, and records and batches carry the key that a launch counts for.
 *
 * Threads: the room calls all functions inside the gate's exclusive section, with the window's context current.
 */
#ifndef KP_PRELOAD_MODE_STRATEGY_H
#define KP_PRELOAD_MODE_STRATEGY_H

#include "preload/mode/admit.h"
#include "preload/mode/window_state.h"

/* The part of a rotation that the open window counts. */
struct kp_turn {
    size_t group; /* of the context's rotation */
    bool chooses; /* it counts only launches with a result: the others pass uncounted and unrecorded */
};

struct kp_strategy {
    const char *name; /* printed by KPROF_DEBUG=window */

    /* It issues the window's operations again when the window closes, from the memory at the opening. So operations
     * on memory join the window or close it, and unwanted launches may be of another kind than the wanted ones.
     * Otherwise each launch has ended when its call returns. */
    bool rewinds;

    /* The window is one workload, from its start to its end: neither age nor a read closes it, and it accepts kernels
     * as well as graphs. */
    bool whole;

    /* Its windows count a group of a rotation, which this names while a window is open; NULL: they do not. */
    const struct kp_turn *turn;

    /* It counts the launches that must not be repeated, alongside others that are. */
    bool beside;

    /* Why its launches lack facts of activity records. None: it reads them (probe.h), so a missing fact means that
     * records are unavailable. */
    enum kp_reason no_config;

    /* Launches in a row that were not asked for, after which the window closes; 0 = the usual number. */
    size_t patience;

    /* Returns true if it may count the window being opened for this launch. NULL: it may count any. */
    bool (*suits)(const struct kp_question *q);

    /* Returns why the open window does not accept the launch, if there is a reason. Reasons of all strategies are
     * checked before (admit.c). May be NULL. */
    enum kp_reason (*admit)(const struct kp_question *q);

    /* Prepares the window; may set its `once_reason`, and its `most`, to at most kp_admit_room(w). If it returns false,
     * the next suitable strategy is asked, and *why (if any, for kp_why_free) is for the user. If it sets *reason, no
     * other strategy is asked: the launch runs outside any window. */
    bool (*open)(struct kp_window *w, const struct kp_question *q, struct kp_why *why, enum kp_reason *reason);

    /* Makes the program's own launch; its record is the window's last. Returns the driver's code. */
    CUresult (*issue)(struct kp_window *w, struct kp_entry *e);

    /* Ends the window and fills *out, which is all 0. NULL: it counts nothing, and has nothing to end. */
    void (*close)(struct kp_window *w, struct kp_window_outcome *out);

    /* Drops the window without a driver call, which would wait for a launch that does not end. May be NULL. */
    void (*abandon)(struct kp_window *w);
};

/* Returns true if launches may pass the strategy's window uncounted. */
static inline bool kp_strategy_chooses(const struct kp_strategy *s)
{
    return s->turn && s->turn->chooses;
}

extern const struct kp_strategy kp_strategy_range, kp_strategy_app_range, kp_strategy_series, kp_strategy_replay,
    kp_strategy_rotate, kp_strategy_turns, kp_strategy_count, kp_strategy_plain;

#endif
