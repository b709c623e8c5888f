/*
 * A visit to another context: it is made current, and captures of other threads are kept from noticing what kprof does
 * there. Threads: any, each for itself.
 */
#ifndef KP_PRELOAD_WINDOW_VISIT_H
#define KP_PRELOAD_WINDOW_VISIT_H

#include <stdbool.h>

#include "collectors/facts/driver.h"

struct kp_visit {
    bool pushed, relaxed;
    CUstreamCaptureMode mode;
};

struct kp_visit kp_visit_begin(const struct kp_driver *d, CUcontext ctx);
void kp_visit_end(const struct kp_driver *d, struct kp_visit *v);

#endif
