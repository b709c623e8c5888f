/*
 * The collector of one context. It saves memory before a window, and runs the window through the passes of the plan
 * afterwards. It returns raw counters; kp_counters_evaluate (providers.h) turns these into results.
 *
 * The caller serialises calls for one collector, with the context current and no other work of the program running
 * on it. Only kp_counters_* may be called from another thread.
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
    struct kp_taken *taken;         /* notes the memory of the device that collecting takes; NULL = nobody does */
    const struct kp_plan *plan;     /* must outlive the collector */
    const struct kp_plan *one_pass; /* for launches that must not be replayed; may be the same; NULL = none */
    bool unwatched;                 /* nothing may watch the program's own execution: activity records are read of it */
    bool flush;                     /* cold caches before each launch of a replayed pass, or of one run of several */
    bool runs;                      /* the program runs once for each pass: nothing is replayed */
    size_t beside;                  /* with `runs`: the group of kp_collector_beside that this run is for, from 1 on */
    size_t window;                  /* the most launches a window may hold */
    uint64_t memory;                /* byte that counter data may take */
    uint64_t save_time;             /* ns: how long saving memory may take by estimate; 0 = no limit */
    enum kp_save save;              /* all: by the checkpoint; by change: with a shadow (shadow.h) */
    /* Lists the program's memory on the device, sorted (*parts malloc'ed). False: some cannot be listed, *why (static
     * text) says which. NULL = none can. */
    bool (*owned)(void *arg, struct kp_part **parts, size_t *n, enum kp_reason *why);
    void *owned_arg;
    void (*settle)(void); /* waits until all kp_counters in use have been freed */
    /* Starts a thread that runs fn(arg) with all signals blocked; false if that fails. NULL = never */
    bool (*start)(void *(*fn)(void *arg), void *arg, pthread_t *thread);
    void (*join)(pthread_t thread);
    /* Receives what is done next; `takes_long`: it may take seconds. NULL = no receiver. */
    void (*progress)(const char *text, bool takes_long);
    const struct kp_providers_setup
        *providers; /* the caller's wishes besides the plan; the rest is filled in; NULL = none */
};

enum { KP_MOST_PAGES = 32 };

/* Called around each launch with a result, while a pass runs. `stream` is that of the launch. A code other than
 * CUDA_SUCCESS ends the issue. */
struct kp_issue_hooks {
    /* Called ahead of `before` with the pages that the launch can reach, KP_MOST_PAGES at most; NULL: not wanted. */
    void (*reaches)(void *arg, const struct kp_pages *pages, size_t n);
    CUresult (*before)(void *arg, CUstream stream);
    CUresult (*after)(void *arg);
    void *arg;
};

/* One window. `issue` passes its operations to the driver, in order, without waiting, and returns the driver's code, or
 * KP_ISSUE_CUT of replay.h; `hooks` may be NULL. `rehearse` runs one operation after the other, and returns 0 or a code
 * of replay.h. */
struct kp_window_job {
    CUresult (*issue)(void *arg, const struct kp_issue_hooks *hooks);
    int (*rehearse)(void *arg);
    CUresult (*settle)(
        void *arg); /* waits for what `issue` has issued, with a limit; NULL: its stream is the default */
    void *arg;
    enum kp_range_mode mode;
    const bool *wanted; /* for each launch of the window, in order, whether it has a result */
    size_t n_launches;
    struct kp_executed *executed; /* filled when `probe` is set; n_launches entries */
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
/* Closes it. `context_alive` false: the context is gone, so only memory of the host is freed. No kp_counters may be
 * in use. */
void kp_collector_close(struct kp_collector *c, bool context_alive);

/* Sets the plan for launches that must not be replayed, if made later. It must outlive the collector. */
void kp_collector_one_pass(struct kp_collector *c, const struct kp_plan *one_pass);

/* Returns the most launches a window may hold, by number and by memory for their counters; at least 1. */
size_t kp_collector_room(struct kp_collector *c);

/* Saves all memory of the context that a kernel can write. No work of the program may run. 0, or -1 with *why
 * (malloc'ed): too much memory in use, or the library refused. */
int kp_collector_save(struct kp_collector *c, struct kp_why *why);

/* Whether it can be tried: the memory fits, and the time that it would take. An answer that it cannot is remembered for
 * a second, or until the device has more memory left. */
bool kp_collector_can_save(struct kp_collector *c);

/* Whether the device has room for a second copy of its memory, behind kp_collector_save, and for `more` byte. */
bool kp_collector_has_room(const struct kp_collector *c, size_t more);
/* Saves memory a second time, as the program's own execution left it: kp_collector_replay ends with that state. No work
 * of the program may run. 0, or -1 with *why (malloc'ed). */
int kp_collector_keep(struct kp_collector *c, struct kp_why *why);
/* Whether what is kept lacks memory that was made since kp_collector_save. */
bool kp_collector_lacks_new(const struct kp_collector *c);

/* Returns how much of the device's memory the copy takes beside kp_collector_held, byte: as it was measured when the
 * memory was saved. */
uint64_t kp_collector_copied(const struct kp_collector *c);

/* Frees the saved states. What a save by change may use again stays. */
void kp_collector_drop(struct kp_collector *c);
/* Returns how much of the device's memory stays in use between windows, byte; gives back `bytes` of it or a little
 * more. No window may be open. */
uint64_t kp_collector_held(const struct kp_collector *c);
void kp_collector_give(struct kp_collector *c, uint64_t bytes);
/* Disables the profiler, which gives back the memory of the device that it takes. No window may be open, and the
 * context must be idle. */
void kp_collector_rest(struct kp_collector *c);
/* Forgets the saved state without a driver call, which would wait for a kernel that does not end. The context's end
 * frees it. */
void kp_collector_leave(struct kp_collector *c);

/* Runs the passes, after kp_collector_save and one execution by the program. Memory is then as after one execution,
 * unless the outcome says damaged. The saved state is kept. */
void kp_collector_replay(struct kp_collector *c, struct kp_window_job *job, struct kp_window_outcome *out);

/* Sets the files of the launch that kp_collector_count_begin counts next, where the list of this run takes several
 * passes: see struct kp_carry. Copies nothing: all must live until kp_collector_count_end. NULL = the list takes one.
 */
void kp_collector_carry(struct kp_collector *c, const struct kp_carry *carry);
/* Returns the groups of passes besides the counters: where nothing is replayed, each takes a run of the program, or
 * launches of its own.
 */
size_t kp_collector_beside(struct kp_collector *c);
/* As kp_providers_beside_at and kp_providers_beside_missing, which any thread may call. */
struct kp_beside kp_collector_beside_at(struct kp_collector *c, size_t group);
int kp_collector_beside_missing(struct kp_collector *c, size_t group, struct kp_why why, struct kp_result *r);

/* Returns the loss of additional passes since the last call, as kp_providers_complaint. */
char *kp_collector_complaint(struct kp_collector *c);

/* Counts in one pass, without replay: between begin and end every launch of the context is counted as it comes, with
 * the hooks around it. `room`: the most launches; `list`: which list of the plan for such launches. 0, or -1 with *why
 * (malloc'ed). */
int kp_collector_count_begin(struct kp_collector *c, enum kp_range_mode mode, size_t room, size_t list,
                             struct kp_why *why);
/* Does so for such a group, of kernels alone. `longest_ns`: about how long the longest launch takes; 0 = not known. */
int kp_collector_beside_begin(struct kp_collector *c, size_t group, size_t room, uint64_t longest_ns,
                              struct kp_why *why);
/* Returns how many launches the count that has begun has room for, where it is of those with a result alone: others
 * pass beside it, and are not part of its job. 0: it is of all. */
size_t kp_collector_chooses(const struct kp_collector *c);
/* Whether it has failed at a launch: those that follow count nothing. */
bool kp_collector_count_failed(const struct kp_collector *c);
/* Notes that the driver has refused the launch that its hooks were called for. */
void kp_collector_count_refused(struct kp_collector *c);
const struct kp_issue_hooks *kp_collector_count_hooks(struct kp_collector *c);
void kp_collector_count_end(struct kp_collector *c, const struct kp_window_job *job, struct kp_window_outcome *out);

#endif
