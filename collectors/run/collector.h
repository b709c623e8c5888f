/*
 * The collector of one context. It saves memory before a window, and afterwards runs the window through the passes of
 * the plan. It returns raw counters; kp_counters_evaluate (providers.h) turns these into results.
 *
 * The caller serialises calls for one collector, with the context current and no other work of the program running on
 * it. Only kp_counters_* may be called from another thread.
 */
#ifndef KP_COLLECTORS_RUN_COLLECTOR_H
#define KP_COLLECTORS_RUN_COLLECTOR_H

#include <pthread.h>

#include "collectors/facts/device.h"
#include "collectors/model/launches.h"
#include "collectors/plan/plan.h"
#include "collectors/providers/providers.h"
#include "collectors/replay/flush.h"
#include "collectors/replay/replay.h"
#include "collectors/replay/shadow.h"
#include "collectors/replay/taken.h"
#include "report/model/model.h"
#include "report/options/options.h"

struct kp_collector;

struct kp_collector_setup {
    const struct kp_driver *driver;
    const struct kp_cupti *cupti;
    const struct kp_device *device;
    CUcontext ctx;
    const char *chip;
    const uint8_t *availability;
    struct kp_taken *taken;         /* notes the device memory used for collecting; NULL = nobody does */
    const struct kp_plan *plan;     /* must outlive the collector */
    const struct kp_plan *one_pass; /* for launches that must not be replayed; may be the same; NULL = none */
    bool unwatched;     /* nothing may watch the program's own execution, which activity records are read from */
    bool flush;         /* cold caches before each launch of a replayed pass, or of one run of several */
    bool runs;          /* the program runs once per pass: nothing is replayed */
    size_t beside;      /* with `runs`: the group of kp_collector_beside that this run is for, from 1 on */
    size_t window;      /* the most launches a window may hold */
    uint64_t memory;    /* bytes that counter data may use */
    uint64_t save_time; /* ns: how long saving memory may last by estimate; 0 = no limit */
    enum kp_save save;  /* all: by the checkpoint; by change: with a shadow (shadow.h) */
    /* Lists the program's memory on the device, sorted (*parts malloc'ed). False: some cannot be listed, and *why says
     * which. NULL = none can. */
    bool (*owned)(void *arg, struct kp_part **parts, size_t *n, enum kp_reason *why);
    void *owned_arg;
    void (*settle)(void); /* waits until all kp_counters in use have been freed */
    /* Starts a thread that runs fn(arg) with all signals blocked; false if that fails. NULL = never */
    bool (*start)(void *(*fn)(void *arg), void *arg, pthread_t *thread);
    void (*join)(pthread_t thread);
    /* Receives the next step; `takes_long`: it may last seconds. NULL = no receiver. */
    void (*progress)(const char *text, bool takes_long);
    const struct kp_providers_setup
        *providers; /* additional settings of the caller; the rest is filled in; NULL = none */
};

enum { KP_MOST_PAGES = 32 };

/* Called around each launch with a result, while a pass runs. `stream` is that of the launch. A code other than
 * CUDA_SUCCESS ends the issue. */
struct kp_issue_hooks {
    /* Called ahead of `before` with the pages that the launch can reach, KP_MOST_PAGES at most; NULL: not needed. */
    void (*reaches)(void *arg, const struct kp_pages *pages, size_t n);
    CUresult (*before)(void *arg, CUstream stream);
    CUresult (*after)(void *arg);
    void *arg;
};

/* One window. `issue` passes its operations to the driver, in order, without waiting, and returns the driver's code, or
 * KP_ISSUE_CUT of replay.h; `hooks` may be NULL. `rehearse` runs the operations one by one, and returns 0 or a code of
 * replay.h. */
struct kp_window_job {
    CUresult (*issue)(void *arg, const struct kp_issue_hooks *hooks);
    int (*rehearse)(void *arg);
    CUresult (*settle)(
        void *arg); /* waits for what `issue` has issued, with a limit; NULL: its stream is the default */
    void *arg;
    enum kp_range_mode mode;
    const bool *wanted; /* per launch of the window, in order: true if it has a result */
    size_t n_launches;
    struct kp_executed *executed; /* filled if `probe` is set; n_launches entries */
    size_t n_executed;            /* out */
    bool probe;                   /* read facts that only activity records have */
    bool stays; /* counted in one pass: another list follows. Launches of new functions come elsewhere */
};

struct kp_window_outcome {
    struct kp_replay_outcome replay;
    struct kp_why why;            /* why counters are missing, for kp_why_free; or why they were read otherwise */
    struct kp_counters *counters; /* NULL = none */
};

/* Opens a collector, but nothing on the GPU yet. 0, -ENOMEM, or a CUPTI code. */
int kp_collector_open(const struct kp_collector_setup *setup, struct kp_collector **out);
/* Closes it. `context_alive` false: the context is gone, so only host memory is freed. No kp_counters may be in use. */
void kp_collector_close(struct kp_collector *c, bool context_alive);

/* Sets the plan for launches that must not be replayed, if made later. It must outlive the collector. */
void kp_collector_one_pass(struct kp_collector *c, const struct kp_plan *one_pass);

/* Returns the most launches a window may hold, by number and by memory for their counters; at least 1. */
size_t kp_collector_room(struct kp_collector *c);

/* Saves all memory of the context that a kernel can write. No work of the program may run. 0, or -1 with *why
 * (malloc'ed): too much memory in use, or the library refused. */
int kp_collector_save(struct kp_collector *c, struct kp_why *why);

/* Returns true if saving can be tried: the memory fits, and so does the time. A negative answer is remembered for a
 * second, or until the device has more memory free. */
bool kp_collector_can_save(struct kp_collector *c);

/* Returns true if the device has room for a second copy of its memory, after kp_collector_save, and for `more`
 * bytes. */
bool kp_collector_has_room(const struct kp_collector *c, size_t more);
/* Saves memory a second time, as the program's own execution left it: kp_collector_replay ends with that state. No work
 * of the program may run. 0, or -1 with *why (malloc'ed). */
int kp_collector_keep(struct kp_collector *c, struct kp_why *why);
/* Returns true if what is kept lacks memory that was allocated since kp_collector_save. */
bool kp_collector_lacks_new(const struct kp_collector *c);

/* Returns how much device memory the copy uses in addition to kp_collector_held, in bytes: measured when the memory was
 * saved. */
uint64_t kp_collector_copied(const struct kp_collector *c);

/* Frees the saved states, except what a save by change may use again. */
void kp_collector_drop(struct kp_collector *c);
/* Return how much device memory stays in use between windows, in bytes; free `bytes` of it or slightly more. No window
 * may be open. */
uint64_t kp_collector_held(const struct kp_collector *c);
void kp_collector_give(struct kp_collector *c, uint64_t bytes);
/* Lets nothing watch the program's own execution from now on: activity records are read from it. */
void kp_collector_unwatch(struct kp_collector *c);
/* Disables the profiler, which frees its device memory. No window may be open, and the context must be idle. */
void kp_collector_rest(struct kp_collector *c);
/* Forgets the saved state without a driver call, which would wait for a kernel that does not end. The context's end
 * frees it. */
void kp_collector_leave(struct kp_collector *c);

/* Runs the passes, after kp_collector_save and one execution by the program. Memory is then as after one execution,
 * unless the outcome says damaged. The saved state is kept. */
void kp_collector_replay(struct kp_collector *c, struct kp_window_job *job, struct kp_window_outcome *out);

/* Sets the files of the launch that kp_collector_count_begin counts next, if the list of this run needs several passes:
 * see struct kp_carry. Copies nothing: all must live until kp_collector_count_end. NULL = the list needs one. */
void kp_collector_carry(struct kp_collector *c, const struct kp_carry *carry);
/* Returns the number of additional groups of passes: if nothing is replayed, each needs a run of the program, or
 * launches of its own. */
size_t kp_collector_beside(struct kp_collector *c);
/* Like kp_providers_beside_at and kp_providers_beside_missing, which any thread may call. */
struct kp_beside kp_collector_beside_at(struct kp_collector *c, size_t group);
int kp_collector_beside_missing(struct kp_collector *c, size_t group, struct kp_why why, struct kp_result *r);

/* Returns the loss of additional passes since the last call, see kp_providers_complaint. */
char *kp_collector_complaint(struct kp_collector *c);

/* Counts in one pass, without replay: between begin and end every launch of the context is counted as it comes, with
 * the hooks around it. `room`: the most launches; `list`: which list of the plan for such launches. 0, or -1 with *why
 * (malloc'ed). */
int kp_collector_count_begin(struct kp_collector *c, enum kp_range_mode mode, size_t room, size_t list,
                             struct kp_why *why);
/* The same for such a group, of kernels alone. `longest_ns`: approximate duration of the longest launch; 0 =
 * unknown. */
int kp_collector_beside_begin(struct kp_collector *c, size_t group, size_t room, uint64_t longest_ns,
                              struct kp_why *why);
/* Returns how many launches the started count has room for, if it counts only those with a result: other launches are
 * not part of its job. 0: it counts all. */
size_t kp_collector_chooses(const struct kp_collector *c);
/* Returns true if it has failed at a launch: later launches count nothing. */
bool kp_collector_count_failed(const struct kp_collector *c);
/* Notes that the driver has refused the launch that its hooks were called for. */
void kp_collector_count_refused(struct kp_collector *c);
const struct kp_issue_hooks *kp_collector_count_hooks(struct kp_collector *c);
void kp_collector_count_end(struct kp_collector *c, const struct kp_window_job *job, struct kp_window_outcome *out);

#endif
