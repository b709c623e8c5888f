/*
 * Makes one of the program's contexts current for a while, and hides our calls in it from other threads' captures.
 */
#ifndef KP_PRELOAD_CONTEXTS_CONTEXT_SCOPE_H
#define KP_PRELOAD_CONTEXTS_CONTEXT_SCOPE_H

#include <cuda.h>
#include <stdbool.h>

#include "collectors/facts/driver.h"

struct kp_visit {
    bool here; /* the context is current */
    bool pushed, relaxed;
    CUstreamCaptureMode mode;
};

/* Calls to begin and end come in pairs, on one thread. */
struct kp_visit kp_visit_begin(const struct kp_driver *d, CUcontext ctx);
void kp_visit_end(const struct kp_driver *d, struct kp_visit *v);

#endif
