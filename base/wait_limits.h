/*
 * How long kprof waits for what: the rows of waits.def.
 *
 * Threads: any.
 */
#ifndef KP_BASE_WAIT_LIMITS_H
#define KP_BASE_WAIT_LIMITS_H

enum kp_wait {
#define KP_WAIT(id, first, next, at_exit, who, what) KP_WAIT_##id,
#include "base/waits.def"
    KP_WAITS
};

enum kp_span {
#define KP_SPAN(id, ms, what) KP_SPAN_##id,
#include "base/waits.def"
    KP_SPANS
};

/* Return the limits of a wait, ms: the first one; after a wait of the kind has run out; and while the program ends. */
long kp_limit_first(enum kp_wait w);
long kp_limit_next(enum kp_wait w);
long kp_limit_at_exit(enum kp_wait w);

/* Returns a time, ms. */
long kp_span_ms(enum kp_span s);

#endif
