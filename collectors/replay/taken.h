/*
 * How much device memory kprof and the vendor's library use, apart from copies of the program's memory: buffers of the
 * profiler, code, and what the driver needs for both. The driver is asked before and after kprof's work, while the
 * program cannot allocate.
 *
 * Memory that other processes allocate or free in these moments looks like ours, but the error does not add up. What
 * lasts is measured once per context. What the enabled profiler uses is measured each time that it is enabled, and
 * replaces the previous measure. The answer is thus wrong by what others changed in three moments: while the context
 * was prepared, in its first window, and in the first one since the profiler was last enabled.
 *
 * Threads: see collector.h; any thread may ask for sums.
 */
#ifndef KP_COLLECTORS_REPLAY_TAKEN_H
#define KP_COLLECTORS_REPLAY_TAKEN_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

#include "collectors/facts/driver.h"

/* For one context, which is current when the driver is asked. All functions do nothing with NULL. */
struct kp_taken {
    const struct kp_driver *driver; /* NULL until opened */
    CUdevice device;
    uint64_t lasting;  /* bytes, whether or not the profiler is enabled */
    uint64_t counting; /* additional bytes until it is disabled */
    uint64_t copied;   /* by the checkpoint; shadow.h and flush.h know what they hold */
    uint64_t told;     /* part of the sums */
    bool enabled, started, left_over;
    bool open;      /* a window has yet to end, since the context came or the profiler was enabled */
    unsigned depth; /* of kp_taken_begin */
    bool known;     /* the driver's answer, and copies then: */
    uint64_t left, copies;
};

void kp_taken_open(struct kp_taken *t, const struct kp_driver *d, CUdevice device);
/* Ends the part that the context has in the sums. */
void kp_taken_close(struct kp_taken *t);

/* Around work of kprof's that may allocate memory; may be nested. With `looks` the driver is asked before and after,
 * until a window has ended; otherwise only when the profiler is enabled or disabled. */
void kp_taken_begin(struct kp_taken *t, bool looks);
void kp_taken_end(struct kp_taken *t);
/* A window has ended, and its copies are gone. */
void kp_taken_window_over(struct kp_taken *t);

/* Notes how much of the device's memory the checkpoint uses, in bytes. */
void kp_taken_copied(struct kp_taken *t, uint64_t bytes);

/* Call these before the profiler is enabled, before and after it is disabled, and when a pass has started. */
void kp_taken_enables(struct kp_taken *t);
void kp_taken_disables(struct kp_taken *t);
void kp_taken_disabled(struct kp_taken *t);
void kp_taken_started(struct kp_taken *t);

/* Return what all contexts use of a device (-1: of all devices), and what disabling the profilers would free, in
 * bytes. */
uint64_t kp_taken_on(CUdevice device);
uint64_t kp_taken_gives(void);

#endif
