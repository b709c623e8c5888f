/*
 * What is kept of each CUDA context: its device, the plan of what to collect there, the collector, and what was read of
 * its kernels. Used only inside the gate's exclusive section, except where noted.
 */
#ifndef KP_PRELOAD_PROGRAM_CONTEXT_H
#define KP_PRELOAD_PROGRAM_CONTEXT_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

#include "collectors/facts/device.h"
#include "collectors/plan/plan.h"
#include "collectors/run/collector.h"
#include "report/define/sections.h"
#include "report/options/options.h"

/* What was read once for a way of launching a kernel. */
struct kp_known_config {
    uint32_t threads;
    uint64_t dynamic_shared;
    uint64_t shared_config; /* byte */
    uint32_t registers;     /* a thread */
};

struct kp_known_function {
    CUfunction key; /* as the program passes it */
    struct kp_function facts;
    char *demangled, *base;
    struct kp_known_config *configs;
    size_t n_configs;
    const char
        *waits;     /* a launch of it did not end by itself: why it is never waited for again (static text), or NULL */
    bool ends;      /* one was seen to end by itself */
    bool loud;      /* host memory that a launch of it can reach changed meanwhile */
    unsigned quiet; /* launches of it during which that memory stayed as it was */
    unsigned once;  /* of enum kp_once: why it must not be run a second time */
    struct kp_known_function *next;
};

enum { KP_FUNCTION_BUCKETS = 256 };

struct kp_context {
    CUcontext ctx;
    CUdevice device_ordinal;
    uint32_t id;
    struct kp_device device;
    struct kp_context_facts facts;
    const char *chip; /* CUPTI's name, "" when CUPTI is not there */
    uint8_t *availability;
    struct kp_plan *plan;
    unsigned extras;          /* what passes of their own collect, see providers.h */
    bool curves;              /* the occupancy curves are shown */
    struct kp_result machine; /* metrics of the device and the machine that are shown, the same for each launch */
    struct kp_plan *one_pass; /* for what must not be replayed; made when first needed */
    bool no_one_pass;         /* it could not be made */
    struct kp_collector *collector;
    char *no_counters; /* why there are none, or NULL */
    bool dead;         /* a kernel faulted: every later call fails, as it would without kprof */
    bool stalled;      /* other work did not end when it was last waited for */
    unsigned generation;
    const void **modules; /* those of which a function has been loaded */
    size_t n_modules;
    size_t gone_seen; /* unloads taken into account */
    struct kp_known_function *functions[KP_FUNCTION_BUCKETS];
    struct kp_context *next;
};

/* What all contexts of the process share. */
struct kp_context_setup {
    const struct kp_driver *driver;
    const struct kp_options *options;
    const struct kp_section *const *sections;
    size_t n_sections;
    bool configs;  /* something shown needs the configuration that a launch ran with */
    bool one_pass; /* all that was asked for is collected in one pass, nothing is replayed */
};

/* The entry of `ctx`, which is current; made on first use. NULL when the driver does not answer or memory is short.
 * *bad_input is set to a malloc'ed line when a metric asked for does not exist on this device. */
struct kp_context *kp_context_get(const struct kp_context_setup *setup, CUcontext ctx, char **bad_input);

/* The function as known in `c`; read on first use and again after kp_context_forget. NULL when it cannot be read. */
struct kp_known_function *kp_context_function(const struct kp_context_setup *setup, struct kp_context *c, CUfunction f);

/* Whether a function of the module of `f` has been loaded already, and with it the module's variables. */
bool kp_context_module_known(const struct kp_context_setup *setup, struct kp_context *c, CUfunction f);

/* Any thread: whether this is the first time that a function of the kernel's library is asked for in the current
 * context. */
bool kp_context_first_of_library(const struct kp_driver *d, CUkernel kernel);

/* Whether the collector can count in one pass what must not be replayed. */
bool kp_context_one_pass(const struct kp_context_setup *setup, struct kp_context *c);

/* The profiler would not start with a plan made for all counters of the chip: asks the device which of them it has, and
 * plans again. Does so once; later calls do nothing. No kp_counters may be out. */
void kp_context_plan_again(const struct kp_context_setup *setup, struct kp_context *c);

/* Whether the program uses, or may come to use, more than one device: launches on one may wait for those on another. */
bool kp_context_several(const struct kp_context_setup *setup);

/* What is known of this way of launching; NULL = nothing yet. Valid until the next kp_context_learn of `f`. */
const struct kp_known_config *kp_context_config(const struct kp_known_function *f, uint32_t threads,
                                                uint64_t dynamic_shared);
void kp_context_learn(struct kp_known_function *f, const struct kp_known_config *config);

/* Id of a stream as NVIDIA's tools print it. */
uint64_t kp_context_stream_id(const struct kp_context_setup *setup, const struct kp_context *c, CUstream stream,
                              bool ptsz);

/* Closes the profilers of every context for which `match` holds (all when NULL) and drops their entries. The contexts
 * are still alive unless `alive` is false. */
void kp_context_close(const struct kp_context_setup *setup, bool (*match)(const struct kp_context *c, uint64_t arg),
                      uint64_t arg, bool alive);

/* Any thread: what was read of functions and limits is out of date. */
void kp_context_forget(void);
/* Any thread: a module or library goes. */
void kp_context_unloaded(const void *handle);

/* CUPTI, or NULL; loaded on the first kp_context_get. */
const struct kp_cupti *kp_context_cupti(void);

/* Before a module is loaded: its image is kept from then on, which takes CUPTI there and then. The first is to be
 * called when CUDA has been initialised, and keeps all images where something shown counts by instruction; the second,
 * inside the gate's exclusive section, before there is a context or a module, and where launches are replayed keeps
 * those with code that must not be run twice. */
void kp_context_prepare(const struct kp_context_setup *setup);
void kp_context_prepare_images(const struct kp_context_setup *setup);

/* Whether loads of modules are seen as they happen: images are watched, and a function can be loaded before its launch.
 * Any thread. */
bool kp_context_sees_loads(const struct kp_driver *d);

/* Why kernel `mangled` ("" = unknown) must not be run a second time, by its code: of enum kp_once. Any thread. */
unsigned kp_context_once(const char *mangled);
/* The functions that were counted by instruction; NULL before there can be any. Any thread. */
struct kp_codes *kp_context_codes(void);

/* Whether launches may be asked for what only an activity record tells. */
bool kp_context_may_probe(void);

/* Whether a thread plans, which may take seconds where many metrics are asked for. Any thread. */
bool kp_context_is_planning(void);

/* The program itself uses CUPTI's activity API: its buffers must not be taken from it. Any thread. */
void kp_context_foreign_activity(void);

#endif
