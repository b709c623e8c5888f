/*
 * Data of each CUDA context: its device, its plan of metrics, the collector, and its kernels. Used only inside the
 * gate's exclusive section, unless noted.
 */
#ifndef KP_PRELOAD_CONTEXTS_CONTEXT_H
#define KP_PRELOAD_CONTEXTS_CONTEXT_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

#include "collectors/facts/device.h"
#include "collectors/plan/plan.h"
#include "collectors/run/collector.h"
#include "preload/contexts/mode.h"
#include "preload/gate/handle_set.h"
#include "report/define/sections.h"
#include "report/options/options.h"

/* Cached facts of one way of launching a kernel. */
struct kp_known_config {
    uint32_t threads;
    uint64_t dynamic_shared;
    uint64_t shared_config; /* bytes */
    uint32_t registers;     /* per thread */
};

/* So many launches of a function whose code may wait for the host must be seen to end before one is counted: the first
 * may have found a flag set that later ones wait for. */
enum { KP_ENDS_ENOUGH = 2 };

struct kp_known_function {
    CUfunction key; /* as the program passes it */
    struct kp_function facts;
    char *demangled, *base;
    struct kp_known_config *configs;
    size_t n_configs;
    enum kp_reason waits_reason; /* a launch of it did not end by itself: why kprof never waits for it again */
    unsigned ends;               /* launches that were seen to end by themselves, up to KP_ENDS_ENOUGH */
    bool loud;                   /* host memory that a launch of it can reach changed meanwhile */
    bool writes_host;            /* it writes host memory that no argument points into (host_writes.h) */
    bool watched;                /* a launch of it was counted that could show this */
    bool launched;               /* a launch of it was made inside the gate */
    unsigned once;               /* of enum kp_once: why it must not run a second time */
    struct kp_known_function *next;
};

enum { KP_FUNCTION_BUCKETS = 256 };

struct kp_context {
    CUcontext ctx;
    CUdevice device_ordinal;
    uint32_t id;
    struct kp_device device;
    struct kp_context_facts facts;
    const char *chip; /* CUPTI's name, "" without CUPTI */
    uint8_t *availability;
    const struct kp_mode *mode; /* that it was planned for */
    struct kp_plan *plan;
    size_t
        beside; /* application replay: the group of kp_collector_beside that this run measures, from 1 on; 0 = none */
    unsigned extras;              /* bits of the requested providers other than the counters, see providers.h */
    bool curves;                  /* the occupancy curves are shown */
    struct kp_result machine;     /* metrics of the device and the machine, the same for each launch */
    struct kp_rotation *rotation; /* made by the first launch that takes part */
    struct kp_plan *one_pass;     /* for launches that must not be replayed; made when first needed */
    bool no_one_pass;             /* making it failed */
    struct kp_plan *turns;        /* the lists of the rotation alongside a replay; made when first needed */
    bool no_turns;                /* making them failed, or there are none */
    struct kp_collector *collector;
    struct kp_taken taken;     /* device memory that kprof uses */
    struct kp_why no_counters; /* why there are no counters */
    bool unsaved;              /* its memory could not be saved when a window was about to open */
    bool unsavable;       /* nor can it ever be: it is for a part of the device, whose memory CUPTI does not save */
    bool dead;            /* it has ended, or a kernel faulted: every later call fails, as it would without kprof */
    bool ended;           /* while the gate could not be entered: its handle may have been reused */
    bool stalled;         /* at the last wait, other work did not end in time, or may not end by itself */
    unsigned outlasted;   /* waits in a row for other contexts (unending.h) that its work outlasted */
    bool calls_wait;      /* a host function did not end in time: later ones close windows (host_calls.h) */
    unsigned unended;     /* waits in a row for its counters that its work outlasted (counter_owner.h), */
    enum kp_reason keeps; /* and why it keeps them */
    unsigned cuts;        /* repetitions that ended early because a value came out differently (reads.h) */
    unsigned generation;
    const struct kp_driver *driver;
    struct kp_seen listed; /* modules whose variables are noted as the program's memory */
    bool unlisted;         /* the variables of one could not be noted */
    const void **modules;  /* modules that had a function loaded */
    size_t n_modules;
    size_t gone_seen; /* unloads processed so far */
    struct kp_known_function *functions[KP_FUNCTION_BUCKETS];
    struct kp_known_function *forgotten; /* launches of the open window may still have these */
    struct kp_context *next;
};

/* Settings shared by all contexts of the process. */
struct kp_context_setup {
    const struct kp_driver *driver;
    const struct kp_options *options;
    const struct kp_mode *_Atomic mode; /* kp_context_change_mode changes it */
    const struct kp_section *const *sections;
    size_t n_sections;
    bool configs; /* a shown metric needs the configuration that a launch ran with */
};

/* Returns the entry of `ctx`, which must be current; made on first use. NULL if the driver does not answer or memory is
 * short. *bad_input is set to a malloc'ed line if the device lacks a requested metric. */
struct kp_context *kp_context_get(const struct kp_context_setup *setup, CUcontext ctx, char **bad_input);

/* Returns the function as known in `c`; read on first use and again after kp_context_forget. NULL if unreadable. */
struct kp_known_function *kp_context_function(const struct kp_context_setup *setup, struct kp_context *c, CUfunction f);

/* Returns true if a function of the module of `f`, and so the module's variables, have been loaded already. */
bool kp_context_module_known(const struct kp_context_setup *setup, struct kp_context *c, CUfunction f);

/* Frees `bytes` of the device memory that contexts keep between windows, and the memory of enabled profilers in
 * contexts for which `rests` returns true (NULL: in none). No window may be open. */
void kp_context_give(const struct kp_driver *d, uint64_t bytes, bool (*rests)(CUcontext ctx));

/* Returns the next context after `before` (NULL: the first one) that is on the device of `c`, but is not `c`; NULL:
 * there is none. Contexts that have ended, or failed, are left out. */
struct kp_context *kp_context_beside(const struct kp_context *c, const struct kp_context *before);

/* Disables the profilers of the other contexts on the device of `c` for which `rests` returns true, called with the
 * context current (NULL: for none, because a stream is captured): then `c` has the counters. KP_VENDOR (CUPTI 13.0):
 * one context of a device at a time; a second one gets HARDWARE_BUSY. */
void kp_context_claim(const struct kp_driver *d, const struct kp_context *c, bool (*rests)(struct kp_context *other));

/* Returns true if a function of the kernel's library is looked up for the first time in the current context. Any
 * thread. */
bool kp_context_first_of_library(const struct kp_driver *d, CUkernel kernel);

/* Returns the rotation of the context; NULL without counters or memory. */
struct kp_rotation *kp_context_rotation(const struct kp_context_setup *setup, struct kp_context *c);

/* Calls `fn` for the rotation of each context that has one. */
void kp_context_each_rotation(void (*fn)(struct kp_rotation *r, void *arg), void *arg);

/* Passes on what rotations have counted, if the process ends with its contexts. No kp_counters may be in use. */
void kp_context_pass_on(void);

/* Returns true if launches alongside a replay can take turns, with the context's rotation: has the collector count its
 * lists. */
bool kp_context_turns(const struct kp_context_setup *setup, struct kp_context *c);

/* Returns true if launches that take turns are sampled by a provider that must see the first launch of each
 * function. */
bool kp_context_samples(const struct kp_context *c);

/* Returns true if the collector can count, in one pass, launches that must not be replayed; has it do so. */
bool kp_context_one_pass(const struct kp_context_setup *setup, struct kp_context *c);

/* Plans again, for the counters that the device has, after the profiler refused a plan for all counters of the chip.
 * Does so once; later calls do nothing. No kp_counters may be in use. */
void kp_context_plan_again(const struct kp_context_setup *setup, struct kp_context *c);

/* Has the process go on in another mode: each context plans again at its next launch. */
void kp_context_change_mode(const struct kp_context_setup *setup, const struct kp_mode *mode);
/* Plans anew, as the mode has changed since the context was planned. Kinds that have results of their own
 * (kp_rotation_served) pass in its new rotation. The context is current and idle, no window is open, and no kp_counters
 * are in use. */
void kp_context_follow_mode(const struct kp_context_setup *setup, struct kp_context *c);

/* Returns true if the program uses, or may come to use, several devices: launches on one may wait for those on
 * another. */
bool kp_context_several(const struct kp_context_setup *setup);

/* Returns the facts of this way of launching; NULL = nothing yet. Valid until the next kp_context_learn of `f`. */
const struct kp_known_config *kp_context_config(const struct kp_known_function *f, uint32_t threads,
                                                uint64_t dynamic_shared);
void kp_context_learn(struct kp_known_function *f, const struct kp_known_config *config);
/* Forgets them all, because functions are about to be launched with other settings. */
void kp_context_forget_configs(struct kp_context *c);

/* Returns the id of a stream as NVIDIA's tools print it. */
uint64_t kp_context_stream_id(const struct kp_context_setup *setup, const struct kp_context *c, CUstream stream,
                              bool ptsz);

/* Notes that the contexts for which `match` holds (all if NULL) end while the gate cannot be entered. Any thread. */
void kp_context_ends_unseen(bool (*match)(const struct kp_context *c, uint64_t arg), uint64_t arg);
/* Gives up those contexts. Inside the gate, before contexts are used. */
void kp_context_settle_ends(void);

/* Closes the profilers of the contexts for which `match` holds (all if NULL) and drops their entries. Each context
 * still exists. If its work does not end soon, as `ends` reports, it is left as it is, because CUPTI would wait for the
 * work. */
void kp_context_close(const struct kp_context_setup *setup, bool (*match)(const struct kp_context *c, uint64_t arg),
                      uint64_t arg, bool (*ends)(CUcontext ctx));

/* Returns true if there is an entry of the context. */
bool kp_context_is_known(CUcontext ctx);
/* Returns the entry with that id, which is never reused; NULL: its context has ended. */
struct kp_context *kp_context_of(uint32_t id);

/* Invalidates cached data of functions and limits. Any thread. */
void kp_context_forget(void);
/* Notes that a module or library is unloaded. Any thread. */
void kp_context_unloaded(const void *handle);

/* Returns CUPTI, or NULL; loaded on the first kp_context_get. */
const struct kp_cupti *kp_context_cupti(void);

/* Start to keep the images of modules loaded from now on; this loads CUPTI at once. Call the first when CUDA has been
 * initialised: it keeps all images if shown metrics count by instruction. Call the second inside the gate's exclusive
 * section, before the first context or module. If launches are replayed, it keeps images with code that must not run
 * twice. */
void kp_context_prepare(const struct kp_context_setup *setup);
void kp_context_prepare_images(const struct kp_context_setup *setup);

/* Has a thread open CUPTI's planning library early. Call it before CUDA is initialised, for a program whose first
 * launch is wanted. */
void kp_context_open_early(const char *cupti_dir);

/* Has threads prepare what the first launch needs, see warm_up.h. Call it once, inside the gate's exclusive section. */
void kp_context_make_ready(const struct kp_context_setup *setup);

/* Returns true if module loads are seen as they happen, because images are watched. Any thread. */
bool kp_context_sees_loads(void);

/* Returns the functions counted by instruction; NULL before there can be any. Any thread. */
struct kp_codes *kp_context_codes(void);

/* Returns true if launches may use activity records, for facts that have no other source. */
bool kp_context_may_probe(void);

/* Returns true if a thread is planning, or prepares for it, which may take seconds for many metrics. Any thread. */
bool kp_context_is_planning(void);

/* Notes that the program itself uses CUPTI's activity API, whose buffers it must keep. Any thread. */
void kp_context_foreign_activity(void);

/* Returns kprof's copy of a function of CUPTI that the program has found in another copy, `of`; NULL: the program may
 * use its own. The driver accepts one copy in a process, the first that is attached, and cuptiFinalize does not change
 * that (seen with CUPTI 13.0 and 12.8, driver 580). Any thread. */
void *kp_context_instead(const char *function, const void *of);
/* Returns true if `function` belongs to a copy of CUPTI other than kprof's. Any thread. */
bool kp_context_is_beside(const void *function);
/* Ends what CUPTI does for kprof, so that the program can use it: counters, the timeline permanently, and all of CUPTI
 * unless that would end what the program uses of it, or lose what a context collects. Contexts that `rests` refuses
 * stay as they are. The caller is alone inside the gate, and under the guard; no window is open. */
void kp_context_give_way(const struct kp_driver *d, bool (*rests)(CUcontext ctx));
/* Notes that the program has ended kprof's copy of CUPTI. Any thread. */
void kp_context_finalized(void);

/* Starts to record how long kernels take, see durations.h, where nobody else has the activity records. Call it once, in
 * the gate's exclusive section, when no window is open. */
void kp_context_begin_durations(const struct kp_context_setup *setup);
/* Starts the timeline if the options ask for it. Call it once, before the program makes a context. */
void kp_context_begin_timeline(const struct kp_context_setup *setup);

/* Note that CUPTI is about to be used; call it inside the gate. */
void kp_context_uses_cupti(void);
/* Returns true if CUPTI may be in the driver's way, and has not been used for a while: longer each time that it was
 * used again after kp_context_leave_alone. True for one caller per second. Any thread. */
bool kp_context_is_in_the_way(void);
/* Returns true if no rotation expects a launch that it would count. Inside the gate. */
bool kp_context_rotations_rest(void);
/* Detaches CUPTI from the driver, unless something else uses it, so that launches are as fast as without kprof. It is
 * attached again at its next use. Does nothing if anything but counters is collected, and nothing for now if `rests`
 * reports a context that is not idle. The caller is alone inside the gate, and under the guard; no window is open. */
void kp_context_leave_alone(const struct kp_driver *d, bool (*rests)(CUcontext ctx));

#endif
