/*
 * Waits for the work of the window, each with an end: a launch may wait for what the program does only later. What does
 * not end costs the program time, so all such waits together have a budget. Inside the gate's exclusive section.
 *
 * All return the driver's code; CUDA_ERROR_NOT_READY: not done in time.
 */
#ifndef KP_PRELOAD_WINDOW_WAITS_H
#define KP_PRELOAD_WINDOW_WAITS_H

#include "preload/program/context.h"

/* Patience, ms: how long a launch that may wait for the host is given before the program goes on; how long the end of a
 * window's launches is waited for where the program itself would not wait; what a launch that is rehearsed is given on
 * top; how long a window that is to open waits for the work that came before it, and where that has not ended before;
 * how long the program's end waits for the work of the window; how long a copy of new memory may take, which waits for
 * what runs. */
enum {
    KP_ALONE_MS = 2000,
    KP_END_MS = 30000,
    KP_REHEARSAL_MS = 2000,
    KP_OPEN_MS = 5000,
    KP_STALLED_MS = 10,
    KP_EXIT_MS = 2000,
    KP_COPY_MS = 1000
};

/* The least of these waits once the budget is spent, ms. */
enum { KP_SHORT_MS = 200, KP_SHORT_END_MS = 500 };

/* Waits for a stream of the current context; beyond the budget. */
CUresult kp_wait_for_stream(const struct kp_driver *d, CUstream stream, long ms);
/* For a launch that is rehearsed: what it took when the program made it is no waste. */
CUresult kp_wait_rehearsed(const struct kp_driver *d, CUstream stream, long ms);
/* Waits for a context, which is current; for at least `least` ms. */
CUresult kp_wait_for_context(const struct kp_driver *d, CUcontext ctx, long ms, long least);
/* Watches a launch that was just made in the context, which is current. Whether it ends by itself, in reasonable time;
 * noted in `f` (may be NULL) and the context. */
bool kp_wait_watch(const struct kp_driver *d, struct kp_context *c, struct kp_known_function *f);
/* Why one that does not end by itself is not counted. */
extern const char kp_waits_for_host[];

/* How long the end of a window's launches is waited for, ms. */
long kp_wait_end_ms(void);

#endif
