/*
 * How long the program's kernels took, from CUPTI's activity records: for launches that pass unmeasured once a budget
 * is spent on others. Their times are summed up by kernel and shape, and no record is kept. A program that fits into
 * its budget has none of it, and pays nothing.
 *
 * Bounded: after KP_DURATIONS_MOST records, and beyond 8192 kernels and shapes, nothing is added. A launch that was not
 * recorded is taken to be like the others of its kernel and shape. What kprof itself makes a device do is left out,
 * like on a timeline.
 *
 * Threads: any; a lock inside serialises. Begin, pause, resume, flush and end call CUPTI: inside the gate's exclusive
 * section.
 */
#ifndef KP_PRELOAD_WHO_DURATIONS_H
#define KP_PRELOAD_WHO_DURATIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kp_cupti;
struct kp_device_record;

/* A record costs a launch up to 1.2 us, and CUPTI a launch 0.9 us as long as it is attached (H200): 2 s in all. */
enum { KP_DURATIONS_MOST = 1 << 20 };

/* What launches of a kernel and shape have in common. */
struct kp_duration_of {
    const char *mangled;
    uint64_t context; /* as CUPTI numbers them */
    const uint32_t *grid, *block;
    uint64_t dynamic_shared;
};

/* Starts summing up, once in a process. `beside`: a timeline has the records, and hands them to kp_durations_add.
 * `on_full` is called, on any thread, when there are enough. Returns 0, -ENOMEM, -ENOTSUP, or a code of
 * kp_library_explain. */
int kp_durations_begin(const struct kp_cupti *c, bool beside, void (*on_full)(void));
bool kp_durations_are_on(void);
/* Returns true if no more records are needed. */
bool kp_durations_are_full(void);
void kp_durations_add(const struct kp_device_record *r);
/* Leave out what runs meanwhile. */
void kp_durations_pause(void);
void kp_durations_resume(void);
/* Collects records of kernels that have ended; `all`: gives the others up. */
void kp_durations_flush(bool all);
/* Ends recording, permanently. The second calls no function of CUPTI: its buffers have other users from now on, or this
 * is a forked child. */
void kp_durations_end(void);
void kp_durations_stop(void);

/* Returns how many launches of a kernel and shape were recorded; *ns: how long they took together. */
uint64_t kp_durations_of(const struct kp_duration_of *what, double *ns);

#endif
