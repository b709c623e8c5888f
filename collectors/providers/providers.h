/*
 * Providers count and sample launches, each in its own passes. They are rows of one table; the code that runs a window
 * knows none of them by name. A window is for the counters of the range profiler. In addition there are warp states
 * from PC sampling, counts by instruction from patched code (SASS metrics), and counters over time (PM sampling). A
 * pass issues the window once more, from restored memory; the providers act around its launches. A failure of the
 * additional providers costs their values and a note, never the window.
 *
 * Threads: see collector.h; any thread may evaluate and free the results.
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
struct kp_taken;

/* Bits of providers that can be asked for. */
enum { KP_PROVIDER_PCSAMP = 1, KP_PROVIDER_SASS = 2, KP_PROVIDER_PM = 4 };

/* Replaces a compute capability that is not known yet: rows for any of them count. */
enum { KP_ANY_CC = -1 };

/* ---- providers of metrics ---- */

/* Returns the providers that rows of the sections need on compute capability major.minor, or items of the comma list:
 * names, expressions and groups as for kp_plan_make. With KP_ANY_CC, returns only those that count by instruction. */
unsigned kp_providers_wanted(const struct kp_section *const *sections, size_t n, const char *metrics, int major,
                             int minor);

/* Returns true if the metric is counted by instruction, so that a list may name it. */
bool kp_providers_is_metric(const char *name);

/* Calls `fn` for each such metric of compute capability major.minor, or of KP_ANY_CC, once; `unit` is the base unit.
 * A non-zero return of `fn` ends the call and is returned. */
int kp_providers_metrics(int major, int minor, int (*fn)(const char *name, const char *unit, void *arg), void *arg);

/* A chip and a selection for it. */
struct kp_providers_query {
    const struct kp_cupti *cupti;
    const char *chip;
    int major, minor;
    const struct kp_section *const *sections;
    size_t n_sections;
};

/* Adds the sections' passes to those of the plan, and metrics that no plan counts. Needs no GPU. */
int kp_providers_cost(const struct kp_providers_query *q, size_t *metrics, size_t *passes);

/* Returns the interval of PC sampling for KP_OPTION_AUTO, or for an exponent above the lowest. ncu accepts more than
 * CUPTI: larger exponents give the longest interval, and the report prints the interval in use. */
int kp_providers_pcsamp_interval(int option);

/* ---- collecting ---- */

/* Scheduled lists of counters, the groups of a plan, and the function that stores the values of list `i` in a
 * result. */
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
    struct kp_taken *taken; /* receives the memory that the profiler allocates, or NULL */
    int ordinal;
    int cc_major, cc_minor;
    unsigned kinds; /* requested in addition to the counters */
    /* Counters. The data of the lists must outlive all results. */
    struct kp_lists replayed, one_pass;
    bool chooses;         /* few launches count a `one_pass` list; others should be left alone if possible */
    size_t window;        /* the most launches a window may hold */
    uint64_t memory;      /* bytes that counter data may use */
    void (*settle)(void); /* waits until all kp_counters in use have been freed */
    bool (*start)(void *(*fn)(void *arg), void *arg, pthread_t *thread);
    void (*join)(pthread_t thread);
    /* Returns who in this process holds the counters of the device, and why: malloc'ed; NULL = nobody does. */
    char *(*holder)(void *arg);
    void *holder_arg;
    /* Counts by instruction. */
    struct kp_codes *codes; /* assigns ids to functions; must outlive all results */
    int pcsamp_interval;    /* result of kp_providers_pcsamp_interval */
    size_t pcsamp_buffer;   /* bytes; 0 = automatic */
    /* Counters over time. */
    const struct kp_section *const *sections; /* sections whose series are sampled */
    size_t n_sections;
    const char *metrics;  /* kp_plan.listed, which may name more */
    uint64_t pm_interval; /* ns, or cycles if the chip has no timer; 0 = automatic */
    size_t pm_buffer;     /* bytes; 0 = automatic */
    uint64_t pm_most_passes;
};

/* A window for the providers. */
struct kp_providers_window {
    enum kp_range_mode mode;
    bool counted;       /* counted while the program launches, without replay */
    bool swept;         /* a kernel flushes the caches before each launch with a result */
    const bool *wanted; /* per launch of the window, in order: true if it has a result; NULL = all have */
    size_t n_launches;
    bool alone;     /* one provider takes part, without replay */
    size_t chooses; /* counted: only launches with a result are, at most this many; 0 = all are */
    bool last;      /* counted: no other window of chosen launches is expected */
};

struct kp_providers;

/* The results of a window's passes, not yet evaluated. */
struct kp_counters;

/* Opens the providers, but nothing on the GPU yet. 0, -ENOMEM, or a code of the library. */
int kp_providers_open(const struct kp_providers_setup *setup, struct kp_providers **out);
/* Closes them. `alive` false: the context is gone. No kp_counters may be in use. */
void kp_providers_close(struct kp_providers *x, bool alive);

/* Sets the lists for launches that must not be replayed, if they were made later. */
void kp_providers_one_pass(struct kp_providers *x, const struct kp_lists *lists);

/* Returns the most launches a window may hold, by number and by memory for their counters; at least 1. */
size_t kp_providers_room(struct kp_providers *x);

/* Starts watching the program's own launches: before those of a window, until its first pass. */
void kp_providers_watch(struct kp_providers *x);
/* Stops watching: the window has no passes, or another user needs the hardware. */
void kp_providers_unwatch(struct kp_providers *x);

/* Returns the groups of passes of the next window; may be fewer than before, because providers that failed for good are
 * left out. */
size_t kp_providers_groups(struct kp_providers *x, enum kp_range_mode mode);
/* Returns the passes of a group. */
size_t kp_providers_repeats(const struct kp_providers *x, size_t group);
/* Returns how many further passes the group may need if these do not suffice. */
size_t kp_providers_retries(const struct kp_providers *x, size_t group);
/* Returns true if one of the groups continues what watched the program. */
bool kp_providers_watched(const struct kp_providers *x);

/* Starts a window. 0 or a code; without it nothing is gathered. */
int kp_providers_window(struct kp_providers *x, const struct kp_providers_window *w);
/* Returns true if some pass needs an upper bound of the longest launch's duration. The second function sets it, before
 * such a pass. */
bool kp_providers_want_longest(const struct kp_providers *x);
void kp_providers_longest(struct kp_providers *x, uint64_t ns);

/* Return true if the window exists for the group's counters, so that a failure in its passes fails the window; and if
 * its launches need cold caches. */
bool kp_providers_carries(const struct kp_providers *x, size_t group);
bool kp_providers_flushes(const struct kp_providers *x, size_t group);

/* Run a group of passes, and a pass. `swept`: a kernel flushes the caches before each launch with a result. All
 * return 0 or a code, which fails the window. */
int kp_providers_begin(struct kp_providers *x, size_t group, bool swept);
int kp_providers_start(struct kp_providers *x);
int kp_providers_stop(struct kp_providers *x, bool *last);
int kp_providers_decode(struct kp_providers *x);

/* When to wait for the context at a launch: if the provider needs it; in any case; or not, because it is idle. */
enum kp_providers_wait { KP_WAIT_IF_NEEDED, KP_WAIT_ALWAYS, KP_WAIT_NOT };

/* Surround each launch with a result, in order; call the first after issuing everything before the launch, which goes
 * into `stream`. They return the driver's code if they wait. *failed: the counters of the launch are mixed with
 * others. */
CUresult kp_providers_before(struct kp_providers *x, CUstream stream, enum kp_providers_wait wait, bool *failed);
CUresult kp_providers_after(struct kp_providers *x, enum kp_providers_wait wait, bool *failed);
/* Notes that the driver refused an operation of the current pass, for `why`. Launches from there on lack the values of
 * this pass. */
void kp_providers_refused(struct kp_providers *x, struct kp_why why);

/* Starts counting a list of `one_pass`, without replay, for at most `room` launches. Call kp_providers_window at its
 * end, with the same `swept`. */
int kp_providers_count(struct kp_providers *x, enum kp_range_mode mode, size_t room, bool swept, size_t list);
/* The most launches of a pass that counts chosen ones: each costs 2 to 5 ms once, and 1.1 MB of device memory. */
enum { KP_CHOSEN_ROOM = 192 };
/* Returns how many launches the started pass has room for, if it counts only those with a result; 0 = it counts all.
 * The second function: the driver has refused such a launch. */
size_t kp_providers_chooses(const struct kp_providers *x);
void kp_providers_count_refused(struct kp_providers *x);
/* Returns true if the current pass has failed: launches continue, but nothing is counted. */
bool kp_providers_count_failed(const struct kp_providers *x);

/* If nothing is replayed, each group of the additional providers has a pass of its own: in application replay a run of
 * the program, in a rotation launches of each kernel. Returns the number of groups, which does not change when a
 * provider fails for good. */
size_t kp_providers_beside(struct kp_providers *x);
/* What a rotation needs to know of such a group. */
struct kp_beside {
    bool adds_up; /* values of several launches of a kernel add up; otherwise one launch is enough */
    bool first;   /* it must see the first launch of each function, before anything is counted */
};
struct kp_beside kp_providers_beside_at(struct kp_providers *x, size_t group);
/* Marks metrics that the group would have provided, and `r` lacks, as missing for `why`. 0 or -ENOMEM. Any thread. */
int kp_providers_beside_missing(struct kp_providers *x, size_t group, struct kp_why why, struct kp_result *r);
/* Starts the pass of such a group, for at most `room` launches with a result. `longest_ns`: approximate duration of the
 * longest (0 = unknown). kp_providers_stop ends it. Returns 0, or a code, which kp_providers_why explains. */
int kp_providers_run(struct kp_providers *x, size_t group, size_t room, uint64_t longest_ns, bool swept);
/* Returns why the group's provider last failed, no reason if it has not; valid until it fails again. */
struct kp_why kp_providers_why(struct kp_providers *x, size_t group);
/* A pass of a list that needs several, each in a run of its own: files carry the counter data from run to run. */
struct kp_carry {
    size_t pass;      /* from 0 on */
    bool last;        /* then there is something to evaluate */
    const char *from; /* left by the earlier passes; not for the first */
    const char *to;   /* receives what this pass leaves; not for the last */
};
/* Sets it for the launch that kp_providers_count counts next; NULL = the list needs one pass. `carry` must live until
 * the end of the pass. */
void kp_providers_carry(struct kp_providers *x, const struct kp_carry *carry);
/* Returns true if launches of such a group, or without `beside` those of the counters, need cold caches. */
bool kp_providers_run_flushes(struct kp_providers *x, bool beside, size_t group);

/* Ends the window and returns the results of its passes, to be freed; NULL without memory. */
struct kp_counters *kp_providers_take(struct kp_providers *x);
/* Makes each provider release hardware that only one of them can use. */
void kp_providers_release(struct kp_providers *x);
/* The same even if there is only one provider: it returns the device memory that it uses for that. No pass may be under
 * way. */
void kp_providers_give(struct kp_providers *x);
/* Returns true if a provider failed to release hardware, for good. */
bool kp_providers_stuck(const struct kp_providers *x);

/* Returns the reason for code `code` of a pass, for kp_why_free; none if the code says enough. */
struct kp_why kp_providers_explain(const struct kp_providers *x, int code);
/* Explains a code of what starts counting or sampling, like kp_library_explain_begin; names the holder if one is in
 * this process. */
struct kp_why kp_providers_explain_begin(const struct kp_providers *x, enum kp_reason what, int code);
/* Returns why a provider failed since the last call, for the user: malloc'ed line, or NULL. Call it until it returns
 * NULL. */
char *kp_providers_complaint(struct kp_providers *x);

/* ---- results ---- */

/* Returns why launch `result` lacks everything that a pass of kp_providers_run gathers, or no reason. Valid as long as
 * `g`. */
struct kp_why kp_counters_lost(const struct kp_counters *g, size_t result);
/* Returns true if there is anything to evaluate. */
bool kp_counters_any(const struct kp_counters *g);
/* Evaluates into results[i], one for each wanted launch, all different. It is slow (0.5 to 1.6 ms per launch and
 * thread), so up to three threads of `setup.start` share the launches of a large window; all have been joined on
 * return. One call at a time for a context, from any thread. Returns why values are missing, for kp_why_free, or no
 * reason: the error of the first launch that lacks any. */
struct kp_why kp_counters_evaluate(struct kp_counters *g, struct kp_result *const *results);
/* Stores the unevaluated results of launch `result` of the window in `r`; marks lost ones as missing, with the reason.
 * Call it while the collection that gathered them is open. 0 or -ENOMEM. */
int kp_counters_store(const struct kp_counters *g, size_t result, struct kp_result *r);
void kp_counters_free(struct kp_counters *g);

#endif
