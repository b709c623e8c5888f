/*
 * The open window, for the files of this room: which part of a journal is counted, and how. A process has at most one.
 * Only the gate's exclusive section touches it.
 */
#ifndef KP_PRELOAD_MODE_WINDOW_STATE_H
#define KP_PRELOAD_MODE_WINDOW_STATE_H

#include "preload/journal/journal.h"

struct kp_strategy;

struct kp_window {
    bool open;
    const struct kp_context_setup *setup;
    struct kp_context *context;
    const struct kp_strategy *strategy;
    enum kp_range_mode mode;
    enum kp_reason once_reason;  /* why it is counted instead of replayed */
    enum kp_reason close_reason; /* why it closes; its text, or the driver's function: */
    const char *closed_by;
    size_t most; /* most launches; 0: as many as the context's collector has room for */
    size_t unwanted_in_a_row;
    long wanted_ms; /* the clock's time at the last wanted launch */
    double opened_ns, ours_ns;
    long ran_ms;   /* from its opening until its launches had ended, rounded up: none ran longer; 0 = not yet known */
    bool unending; /* its last launch waits for the host */
    bool left;     /* the call that closes it is in another context of the device */
    enum kp_reason alone_reason; /* why it closes after its first launch */
};

/* The window of the process; valid while `open`. */
extern struct kp_window kp_window_now;

#endif
