/*
 * Passes the results of a window to the worker, which evaluates and stores them, and reports failures.
 */
#ifndef KP_PRELOAD_RESULTS_HARVEST_H
#define KP_PRELOAD_RESULTS_HARVEST_H

#include "preload/journal/journal.h"

/* What the results belong to. */
struct kp_harvest {
    const struct kp_context_setup *setup;
    struct kp_context *context;
    enum kp_reason no_config;   /* why launches lack facts of activity records; none: these are unavailable */
    enum kp_reason once_reason; /* why the launches were counted instead of replayed */
    bool repeated;              /* each launch was repeated by itself */
    bool rotates;               /* they have counted this group of the context's rotation */
    size_t group;
    bool hands_off; /* the driver must not be called */
    double opened_ns, ours_ns;
};

/* Reports failures of the passes, and marks the context accordingly. */
void kp_harvest_judge(const struct kp_harvest *h, const struct kp_window_outcome *out);
/* Reads what the result needs from the launch's function, after the launch, so that the function may change before the
 * window closes. */
void kp_harvest_settle(const struct kp_harvest *h, struct kp_entry *e);
/* Sets the values of `e` in `r` that need no counter: its result, or that of a variant, whose shape `e` then has.
 * Attributes of the launch override those of the function. */
void kp_harvest_fill(const struct kp_harvest *h, const struct kp_entry *e, struct kp_result *r);
/* Passes on the results of the journal, with the counters of *out. */
void kp_harvest_hand_on(const struct kp_harvest *h, struct kp_window_outcome *out);

#endif
