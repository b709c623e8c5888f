/*
 * The providers count and sample launches, each in passes of its own. They are rows of one table; whoever runs a window
 * knows none of them by name. A window is for the counters of the range profiler. Beside them stand warp states by PC
 * sampling, counts by instruction from patched code (SASS metrics), and counters over time (PM sampling).
 *
 * A pass issues the window once more, from restored memory; the providers do what surrounds its launches. A failure of
 * those beside costs their values and a note, never the window.
 * Threads: as collector.h has it; what was gathered may be evaluated and freed by any thread.
 */
#ifndef KP_COLLECTORS_PROVIDERS_PROVIDERS_H
#define KP_COLLECTORS_PROVIDERS_PROVIDERS_H

#include <cuda.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collectors/code/codes.h"
#include "collectors/facts/driver.h"
#include "collectors/model/launches.h"
#include "collectors/model/metrics.h"
#include "report/define/sections.h"
#include "report/model/model.h"

struct kp_cupti;

/* Those that are asked for, as a sum. */
enum { KP_PROVIDER_PCSAMP = 1, KP_PROVIDER_SASS = 2, KP_PROVIDER_PM = 4 };

/* In the place of a compute capability that is not known yet: rows of all of them count. */
enum { KP_ANY_CC = -1 };

/* ---- which metrics are whose ---- */

/* Those that rows of the sections need on compute capability major.minor, or items of the comma list: names,
 * expressions and groups as kp_plan_make takes them. With KP_ANY_CC only those that count by instruction are told. */
unsigned kp_providers_wanted(const struct kp_section *const *sections, size_t n, const char *metrics, int major,
                             int minor);

/* Whether the metric is counted by instruction, so that a list may name it. */
bool kp_providers_is_metric(const char *name);

/* Calls `fn` for each such metric of compute capability major.minor, or of KP_ANY_CC, once; `unit` is the base unit. A
 * non-zero return of it ends the call and is returned. */
int kp_providers_metrics(int major, int minor, int (*fn)(const char *name, const char *unit, void *arg), void *arg);

/* A chip, and what is asked for of it. */
struct kp_providers_query {
    const struct kp_cupti *cupti;
    const char *chip;
    int major, minor;
    const struct kp_section *const *sections;
    size_t n_sections;
};

/* Adds the passes that the sections take beside those of the plan, and metrics that no plan counts. Needs no GPU. */
int kp_providers_cost(const struct kp_providers_query *q, size_t *metrics, size_t *passes);

/* The interval of PC sampling for KP_OPTION_AUTO, or for what the exponent has beyond the lowest. ncu takes more than
 * CUPTI does: what is beyond is sampled as rarely as can be, and the report tells the interval in use. */
int kp_providers_pcsamp_interval(int option);

/* ---- collecting ---- */

/* Lists of counters that were scheduled, and who stores the values of list `i` into a result. */
struct kp_lists {
    const struct kp_config *at;
    size_t n;
    int (*store)(const void *of, size_t i, const double *values, struct kp_result *r);
    const void *of;
};

struct kp_providers_setup {
    const struct kp_driver *driver;
    const struct kp_cupti *cupti;
    CUcontext ctx;
    const char *chip;
    const uint8_t *availability;
    int ordinal;
    int cc_major, cc_minor;
    unsigned kinds; /* asked for beside the counters */
    /* Counters. What the lists point to outlives all that was gathered. */
    struct kp_lists replayed, one_pass;
    size_t window;        /* the most launches a window may hold */
    uint64_t memory;      /* byte that counter data may take */
    void (*settle)(void); /* waits until all kp_counters handed out have been freed */
    bool (*start)(void *(*fn)(void *arg), void *arg, pthread_t *thread);
    void (*join)(pthread_t thread);
    /* Counts by instruction. */
    struct kp_codes *codes; /* where functions get their ids; outlives all that was gathered */
    int pcsamp_interval;    /* of kp_providers_pcsamp_interval */
    size_t pcsamp_buffer;   /* byte; 0 = automatic */
    /* Counters over time. */
    const struct kp_section *const *sections; /* whose series are sampled */
    size_t n_sections;
    const char *metrics;  /* kp_plan.listed, which may ask for more */
    uint64_t pm_interval; /* ns, or cycles where the chip has no timer; 0 = automatic */
    size_t pm_buffer;     /* byte; 0 = automatic */
    uint64_t pm_most_passes;
};

/* A window, as providers see it. */
struct kp_providers_window {
    enum kp_range_mode mode;
    bool counted;       /* as the program launches, without replay */
    const bool *wanted; /* for each launch of the window, in order, whether it has a result */
    size_t n_launches;
};

struct kp_providers;

/* What the passes of a window gathered, not yet evaluated. */
struct kp_counters;

/* Opens nothing on the GPU yet. 0, -ENOMEM, or a code of the library. */
int kp_providers_open(const struct kp_providers_setup *setup, struct kp_providers **out);
/* `alive` false: the context is gone. No kp_counters may be out. */
void kp_providers_close(struct kp_providers *x, bool alive);

/* The lists for what must not be replayed, when they were made later. */
void kp_providers_one_pass(struct kp_providers *x, const struct kp_lists *lists);

/* The most launches a window may hold, by number and by memory for their counters; at least 1. */
size_t kp_providers_room(struct kp_providers *x);

/* Enables what has to see the program's own launches: before those of a window, until its first pass. */
void kp_providers_watch(struct kp_providers *x);
/* Disables it again: the window has no passes, or somebody else must have the hardware. */
void kp_providers_unwatch(struct kp_providers *x);

/* The groups of passes that the next window takes; may be fewer than the last time, as what failed for good is not
 * tried again. */
size_t kp_providers_groups(struct kp_providers *x, enum kp_range_mode mode);
/* The passes of a group. */
size_t kp_providers_repeats(const struct kp_providers *x, size_t group);
/* Whether one of the groups takes over what watched the program. */
bool kp_providers_watched(const struct kp_providers *x);

/* A window begins. 0 or a code; without it nothing is gathered. */
int kp_providers_window(struct kp_providers *x, const struct kp_providers_window *w);
/* Whether some pass wants to know how long the longest launch took, at most. The second tells it, before such a
 * pass. */
bool kp_providers_want_longest(const struct kp_providers *x);
void kp_providers_longest(struct kp_providers *x, uint64_t ns);

/* Whether the window is for the counters of the group: what fails in its passes fails the window. Whether its launches
 * need cold caches. */
bool kp_providers_carries(const struct kp_providers *x, size_t group);
bool kp_providers_flushes(const struct kp_providers *x, size_t group);

/* A group of passes, and a pass. `swept`: a kernel flushes the caches before each launch that has a result. All return
 * 0 or a code, which fails the window. */
int kp_providers_begin(struct kp_providers *x, size_t group, bool swept);
int kp_providers_start(struct kp_providers *x);
int kp_providers_stop(struct kp_providers *x, bool *last);
int kp_providers_decode(struct kp_providers *x);

/* Around each launch that has a result, in order; the first after what comes before the launch was issued. They wait
 * for the context where that is needed, or `timed`, and return what the driver then says. *failed: the counters of the
 * launch cannot be told from others. */
CUresult kp_providers_before(struct kp_providers *x, bool timed, bool *failed);
CUresult kp_providers_after(struct kp_providers *x, bool timed, bool *failed);
/* The driver refused an operation of the pass under way, for `why`. The launches from there on lack the values of
 * this pass. */
void kp_providers_refused(struct kp_providers *x, const char *why);

/* Counting in one pass, without replay: begins and starts it, for at most `room` launches. kp_providers_window is
 * called at its end. */
int kp_providers_count(struct kp_providers *x, enum kp_range_mode mode, size_t room);

/* The window is over: what its passes gathered, to be freed; NULL without memory. */
struct kp_counters *kp_providers_take(struct kp_providers *x);
/* Where there are several providers, makes each let go of hardware that only one can have. */
void kp_providers_release(struct kp_providers *x);
/* Whether a provider could not let go, once and for all. */
bool kp_providers_stuck(const struct kp_providers *x);

/* The reason of code `code` of a pass, where the code does not tell it: malloc'ed line, or NULL. */
char *kp_providers_explain(const struct kp_providers *x, int code);
/* Why a provider failed since the last call, for the user: malloc'ed line, or NULL. To be called until it is NULL. */
char *kp_providers_complaint(struct kp_providers *x);

/* ---- what was gathered ---- */

/* Whether there is anything to evaluate. */
bool kp_counters_any(const struct kp_counters *g);
/* Evaluates into results[i], one for each launch that is wanted, all different. Slow (0.5 to 1.6 ms a launch and
 * thread), so the launches of a large window are shared with up to three threads of `setup.start`, all of which have
 * been joined when it returns. One call at a time for a context, from any thread. Returns NULL, or why values are
 * missing (malloc'ed): what went wrong with the first launch that lacks any. */
char *kp_counters_evaluate(struct kp_counters *g, struct kp_result *const *results);
/* Puts what launch `result` of the window did into `r`, but for what is evaluated; what was lost of it is marked as
 * missing, with the reason. While the collection that gathered it is open. 0 or -ENOMEM. */
int kp_counters_store(const struct kp_counters *g, size_t result, struct kp_result *r);
void kp_counters_free(struct kp_counters *g);

#endif
