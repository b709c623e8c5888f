/*
 * The process kprof lives in: when it wakes up, what it was asked for, what it has seen, and how it ends.
 *
 * Nothing happens before the program initialises CUDA. Threads: every function may be called from any thread.
 */
#ifndef KP_PRELOAD_PROCESS_H
#define KP_PRELOAD_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "collectors/driver.h"
#include "preload/launch.h"

/* Why a launch was not profiled; skip_reasons in process.c words them. */
enum kp_skip_reason {
    KP_SKIP_NAME,
    KP_SKIP_BEFORE,
    KP_SKIP_AFTER,
    KP_SKIP_PROFILER_OFF,
    KP_SKIP_CAPTURE,
    KP_SKIP_BUSY,
    KP_SKIP_MULTI_DEVICE,
    KP_SKIP_WAITS_OUTSIDE,
    KP_SKIP_UNREADABLE,
    KP_SKIP_CONTEXT_DEAD,
    KP_SKIP_LATE,
    KP_SKIP_REASONS,
};

/* Whether launches are looked at: CUDA runs, the options are good, this is no forked child, and the end has not come.
 */
bool kp_process_active(void);

/* cuInit succeeded. */
void kp_process_cuda_started(void);

/* The driver's entry points; NULL before CUDA has started. */
const struct kp_driver *kp_process_driver(void);

/* Runs a launch: profiled, or straight through when it is not wanted. Returns what the driver returned for it. */
CUresult kp_process_launch(struct kp_launch *l);

/* Whether kernel `f` waits for other processes or devices, by its name. */
bool kp_process_waits_outside(CUfunction f);

void kp_process_skip(enum kp_skip_reason reason, unsigned launches);

/* cu(da)ProfilerStart and Stop. */
void kp_process_profile(bool on);

/* The call `symbol` with first argument `first` is about to end one or more contexts. */
void kp_process_context_ends(const char *symbol, uint64_t first);

/* What was read of functions and contexts may be out of date. */
void kp_process_forget(void);

/* The program ends: writes the report, once. */
void kp_process_finish(void);

#endif
