/*
 * Stripes: slots of one cache line, one for each thread, so that counting launches does not bounce a line between
 * processors. Threads beyond KP_STRIPES share one with others: what is there is atomic.
 *
 * Threads: any.
 */
#ifndef KP_BASE_STRIPE_H
#define KP_BASE_STRIPE_H

enum { KP_STRIPES = 64, KP_STRIPE_BYTES = 64 };

/* Place of a thread's stripe, from 1; 0: it has none yet. */
extern __thread unsigned kp_stripe_own __attribute__((tls_model("initial-exec")));

/* Gives this thread a stripe. */
unsigned kp_stripe_take(void);

/* Returns the number of this thread's stripe, from 0. */
static inline unsigned kp_stripe(void)
{
    return kp_stripe_own ? kp_stripe_own - 1 : kp_stripe_take();
}

/* Returns the number of stripes that threads have had: those from there on were never written. */
unsigned kp_stripes_used(void);

#endif
