/*
 * The program's NVTX ranges: which are open, in which thread, and so which contain a launch. Collected through NVTX's
 * own injection interface, which needs no CUPTI and leaves CUPTI's single subscriber to others. Nothing is collected
 * unless the options ask for it.
 *
 * Memory is bounded. Stacks deeper than KP_NVTX_DEPTH are not seen, nor are threads, open start-end ranges and names
 * beyond some thousands. Names are cut at KP_NVTX_NAME bytes.
 *
 * Threads: any. A push or a pop uses its thread's own lock; only a launch in process scope competes for it. In a signal
 * handler that interrupted a function of this file on its thread, these functions do nothing.
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

/* Names this library in the environment as the NVTX injection, if the options ask for NVTX and no other library is
 * named. Call it when the library is loaded. */
void kp_nvtx_offer(void);
/* Returns true if the options asked for NVTX at that time. */
bool kp_nvtx_wanted(void);

/* Notes that a copy of NVTX in the program reports to us from now on. */
void kp_nvtx_attached(void);

/* Resets the state in a forked child, where this thread is the only one. */
void kp_nvtx_forked(void);

/* Returns the other library that receives the program's NVTX calls, as named in the environment, or NULL. */
const char *kp_nvtx_other(void);

/* ---- choosing ---- */

/* Applies the options, before the first launch; they must have been checked. Returns 0 or -ENOMEM. */
int kp_nvtx_configure(const struct kp_options *o);

/* Finds the ranges around a launch of this thread into `stream`; free *out with kp_nvtx_free. Returns true if the
 * options want the launch. Without NVTX *out stays untouched, and any launch is wanted. */
bool kp_nvtx_judge(CUstream stream, struct kp_nvtx *out);

/* Calls `edge` at the start and end of each range that is kept, on its thread, with a unique id. Call it before the
 * first launch. */
void kp_nvtx_watch(void (*edge)(uint64_t id, bool begins, const char *name));

/* Lists the ranges opened so far, merged by name, in order of their first opening. */
void kp_nvtx_each_seen(void (*fn)(const struct kp_nvtx_range *r, uint64_t times));

/* Puts the ranges that are still open on the timeline, as if they ended now. Call it once, at the end. */
void kp_nvtx_end_timeline(void);

/* ---- what NVTX reports ---- */

/* A handle of a domain; NULL is the default one. The program may pass any other pointer: one that was never returned is
 * not read, and its ranges and names are ignored. */
struct kp_nvtx_domain;

struct kp_nvtx_event {
    const char *text;
    uint32_t category; /* 0 = none */
    int32_t payload_type;
    union kp_nvtx_payload payload;
};

/* Opens a range. Returns its level in its domain, from 0, or a negative number. If a thread lacks memory or room for
 * its ranges, each gets KP_NVTX_NOT_TRACKED, as without a tool. */
int kp_nvtx_push(const struct kp_nvtx_domain *d, const struct kp_nvtx_event *e);
int kp_nvtx_pop(const struct kp_nvtx_domain *d);
/* Opens a range and returns its id, never 0; even a range that is not kept has a unique id. */
uint64_t kp_nvtx_start(const struct kp_nvtx_domain *d, const struct kp_nvtx_event *e);
void kp_nvtx_end(uint64_t id);

/* Returns the domain of that name, which is never freed; if memory is short, a domain whose ranges are not tracked. */
const struct kp_nvtx_domain *kp_nvtx_domain_named(const char *name);
/* Returns a handle of a copy, which is never freed: the same one for the same text. */
const void *kp_nvtx_register(const char *text);
/* Returns the text of such a handle; "" for any other pointer, which is not read. */
const char *kp_nvtx_registered(const void *handle);

enum kp_nvtx_named { KP_NVTX_CATEGORY, KP_NVTX_THREAD, KP_NVTX_STREAM };
/* Names a category of domain `d`, a thread by its system id, or a stream by its handle; the last name wins. */
void kp_nvtx_name(enum kp_nvtx_named what, const struct kp_nvtx_domain *d, uint64_t id, const char *name);

#endif
