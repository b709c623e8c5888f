/*
 * The counters of a device belong to one context at a time. A window takes them from the others before its passes.
 *
 * Threads: inside the gate's exclusive section.
 */
#ifndef KP_PRELOAD_MODE_COUNTER_OWNER_H
#define KP_PRELOAD_MODE_COUNTER_OWNER_H

#include "preload/contexts/context.h"

/* Takes the counters of its device for a context. A context that does not become idle within 0.2 s keeps them, and
 * every context does while a stream is captured: the window then reports which has them. After three waits for a
 * context there are no more until its work has ended. */
void kp_claim_counters(const struct kp_driver *d, const struct kp_context *c);

#endif
