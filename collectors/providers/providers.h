/*
 * What is collected in passes of its own, beside the counters of the range profiler: warp states by PC sampling, counts
 * by instruction from patched code (SASS metrics), and counters over time (PM sampling).
 *
 * Such a pass is one more issue of the window: memory is restored before it as before every other, and what surrounds
 * its launches is done here. Whatever fails costs the values of that kind and a note, never the window.
 * Threads: as collector.h has it; gathered values may be stored and freed by any thread.
 */
#ifndef KP_COLLECTORS_PROVIDERS_PROVIDERS_H
#define KP_COLLECTORS_PROVIDERS_PROVIDERS_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collectors/code/codes.h"
#include "collectors/facts/driver.h"
#include "cupti/loader.h"
#include "report/model/model.h"
#include "report/define/sections.h"

/* Kinds, as a sum. */
enum { KP_PROVIDER_PCSAMP = 1, KP_PROVIDER_SASS = 2, KP_PROVIDER_PM = 4 };

/* In the place of a compute capability that is not known yet: rows of all of them count. */
enum { KP_ANY_CC = -1 };

/* The kinds that rows of the sections need on compute capability major.minor, or items of the comma list: names,
 * expressions and groups as kp_plan_make takes them. With KP_ANY_CC only those that count by instruction are told. */
unsigned kp_providers_wanted(const struct kp_section *const *sections, size_t n, const char *metrics, int major,
                             int minor);

/* Whether the metric is counted by instruction, so that a list may name it. */
bool kp_providers_is_metric(const char *name);

/* Calls `fn` for each such metric of compute capability major.minor, or of KP_ANY_CC, once; `unit` is the base unit. A
 * non-zero return of it ends the call and is returned. */
int kp_providers_metrics(int major, int minor, int (*fn)(const char *name, const char *unit, void *arg), void *arg);

struct kp_providers_setup {
    const struct kp_driver *driver;
    const struct kp_cupti *cupti;
    CUcontext ctx;
    const char *chip;
    int ordinal;
    int cc_major, cc_minor;
    unsigned kinds;
    struct kp_codes *codes;                   /* where functions get their ids; outlives all that was gathered */
    int pcsamp_interval;                      /* as kp_pcsamp_open */
    size_t pcsamp_buffer;                     /* byte; 0 = automatic */
    const struct kp_section *const *sections; /* whose series are sampled */
    size_t n_sections;
    const char *metrics;  /* kp_plan.listed, which may ask for more */
    uint64_t pm_interval; /* ns, or cycles where the chip has no timer; 0 = automatic */
    size_t pm_buffer;     /* byte; 0 = automatic */
    uint64_t pm_most_passes;
};

struct kp_providers;
struct kp_gathered;

/* Opens nothing on the GPU yet. 0 or -ENOMEM. */
int kp_providers_open(const struct kp_providers_setup *setup, struct kp_providers **out);
/* `alive` false: the context is gone. */
void kp_providers_close(struct kp_providers *x, bool alive);

/* Before the program's own launches of a window, until its first pass: what has to see them is enabled. */
void kp_providers_watch(struct kp_providers *x);
/* It lets go: the window has no passes, or somebody else must have CUPTI. */
void kp_providers_unwatch(struct kp_providers *x);

/* The passes that the next window takes; may be fewer than the last time, as what failed for good is not tried again.
 */
size_t kp_providers_passes(struct kp_providers *x);
/* How many of them, the first ones, have to be run before the range profiler's. */
size_t kp_providers_early(const struct kp_providers *x);
/* A window of so many launches with results begins. */
void kp_providers_window(struct kp_providers *x, size_t results);
/* What the longest of its launches took, at most; before the passes that are not early. Whether any pass wants it. */
void kp_providers_longest(struct kp_providers *x, uint64_t ns);
bool kp_providers_want_longest(struct kp_providers *x);

void kp_providers_begin(struct kp_providers *x, size_t pass);
/* Around each launch that has a result, in order; the first after what comes before the launch was issued. They wait
 * for the context, and return what the driver then says. */
CUresult kp_providers_before(struct kp_providers *x);
CUresult kp_providers_after(struct kp_providers *x);
/* An operation of the pass under way was not taken, for `why`: the launches from there on lack what it would have told.
 */
void kp_providers_refused(struct kp_providers *x, const char *why);
void kp_providers_end(struct kp_providers *x);
/* Whether launches of pass `pass` need cold caches. */
bool kp_providers_flushes(const struct kp_providers *x, size_t pass);

/* What the window's passes gathered; NULL without memory. To be freed. */
struct kp_gathered *kp_providers_take(struct kp_providers *x);
/* Why a kind failed since the last call, for the user: malloc'ed line, or NULL. To be called until it is NULL. */
char *kp_providers_complaint(struct kp_providers *x);

/* Puts what launch `result` of the window did into `r`; what was lost of it is marked as missing, with the reason.
 * While the collection that gathered it is open. 0 or -ENOMEM. */
int kp_gathered_store(const struct kp_gathered *g, size_t result, struct kp_result *r);
void kp_gathered_free(struct kp_gathered *g);

#endif
