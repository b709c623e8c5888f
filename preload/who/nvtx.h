/*
 * The program's NVTX ranges: which are open, in which thread, and what a launch is therefore inside of. Collected by
 * NVTX's own injection interface, which needs no CUPTI and leaves its one subscriber to others; not at all unless the
 * options ask for it.
 *
 * Memory is bounded: stacks deeper than KP_NVTX_DEPTH, threads, open start-end ranges and names beyond a number of
 * thousands are not seen, and names are cut at KP_NVTX_NAME byte.
 *
 * Threads: any. A push or a pop takes a lock of its thread's own, which only a launch in process scope contends for. In
 * a signal handler that interrupted a function of this file on its thread, these do nothing.
 */
#ifndef KP_PRELOAD_WHO_NVTX_H
#define KP_PRELOAD_WHO_NVTX_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

#include "preload/who/nvtx_abi.h"
#include "report/model/model.h"
#include "report/options/options.h"

enum { KP_NVTX_NAME = 512 };

/* ---- injection (nvtx_offer.c) ---- */

/* When the library is loaded: where the environment asks for NVTX, names this library as the one to inject, unless
 * another one is named already. */
void kp_nvtx_offer(void);
/* Whether it did ask for NVTX. */
bool kp_nvtx_wanted(void);

/* A copy of NVTX in the program reports to us from now on. */
void kp_nvtx_attached(void);

/* In a forked child, where this thread is the only one. */
void kp_nvtx_forked(void);

/* The other library that takes the program's NVTX calls, as the environment named it; else NULL. */
const char *kp_nvtx_other(void);

/* ---- choosing ---- */

/* Takes the options over, before there are launches; they must have been checked. Returns 0 or -ENOMEM. */
int kp_nvtx_configure(const struct kp_options *o);

/* What a launch of this thread into `stream` is inside of; *out is to be freed with kp_nvtx_free. Returns whether the
 * options want it. Without NVTX *out stays untouched, and any launch is wanted. */
bool kp_nvtx_judge(CUstream stream, struct kp_nvtx *out);

/* The ranges that were opened so far, those of one name together, in the order in which the first of them came. */
void kp_nvtx_each_seen(void (*fn)(const struct kp_nvtx_range *r, uint64_t times));

/* ---- what NVTX reports ---- */

/* A handle of a domain; NULL is the default one. */
struct kp_nvtx_domain;

struct kp_nvtx_event {
    const char *text;
    uint32_t category; /* 0 = none */
    int32_t payload_type;
    union kp_nvtx_payload payload;
};

/* The level, from 0, that the range has in its domain, or a negative number. Where there is no memory, or no room, for
 * a thread's ranges it is for all of them KP_NVTX_NOT_TRACKED, as without a tool. */
int kp_nvtx_push(const struct kp_nvtx_domain *d, const struct kp_nvtx_event *e);
int kp_nvtx_pop(const struct kp_nvtx_domain *d);
/* An id, never 0; a range that is not kept has one that no other range has. */
uint64_t kp_nvtx_start(const struct kp_nvtx_domain *d, const struct kp_nvtx_event *e);
void kp_nvtx_end(uint64_t id);

/* The domain of that name, for good; without memory one whose ranges are not tracked. */
const struct kp_nvtx_domain *kp_nvtx_domain_named(const char *name);
/* A copy, for good: the same one for the same text. */
const char *kp_nvtx_register(const char *text);

enum kp_nvtx_named { KP_NVTX_CATEGORY, KP_NVTX_THREAD, KP_NVTX_STREAM };
/* Names a category of domain `d`, a thread by its system id, or a stream by its handle; the last name given counts. */
void kp_nvtx_name(enum kp_nvtx_named what, const struct kp_nvtx_domain *d, uint64_t id, const char *name);

#endif
