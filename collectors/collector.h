/*
 * The collector of one context: runs a window of operations through the passes of the plan and turns the counters into
 * results. Calls for one collector are serialised by the caller, with the context current and no other work of the
 * program running on it.
 */
#ifndef KP_COLLECTORS_COLLECTOR_H
#define KP_COLLECTORS_COLLECTOR_H

#include "collectors/device.h"
#include "collectors/flush.h"
#include "collectors/plan.h"
#include "collectors/replay.h"
#include "cupti/target.h"
#include "report/model.h"

struct kp_collector;

struct kp_collector_setup {
    const struct kp_driver *driver;
    const struct kp_cupti *cupti;
    const struct kp_device *device;
    CUcontext ctx;
    const char *chip;
    const uint8_t *availability;
    const struct kp_plan *plan; /* outlives the collector */
    bool flush;                 /* cold caches before each pass */
};

/* One window. `issue` runs its operations through the driver, in order, without waiting; it returns the driver's code.
 * `results` has one entry a profiled launch, in order; a graph is one launch in user-range mode. */
struct kp_window_job {
    CUresult (*issue)(void *arg);
    void *arg;
    enum kp_range_mode mode;
    struct kp_result **results;
    size_t n_results;
    struct kp_executed *executed; /* filled by a probe when `probe` is set; n_results entries */
    size_t n_executed;            /* out */
    bool probe;
    bool count; /* collect the plan's counters; else the window is only run */
};

struct kp_window_outcome {
    struct kp_replay_outcome replay;
    CUresult launch;  /* what the window's first execution returned at the launch */
    CUresult context; /* what the context said when waiting for it; an error here is sticky */
    char *note;       /* why counters are missing, malloc'ed, or NULL */
};

/* Opens nothing on the GPU yet. 0, -ENOMEM, or a CUPTI code. */
int kp_collector_open(const struct kp_collector_setup *setup, struct kp_collector **out);
/* `context_alive` false: the context is gone, only memory of the host is released. */
void kp_collector_close(struct kp_collector *c, bool context_alive);

/* Runs the window. It has been executed exactly once in effect when this returns, unless the outcome says damaged. */
void kp_collector_run(struct kp_collector *c, struct kp_window_job *job, struct kp_window_outcome *out);

#endif
