/*
 * What is known of the profiled process, for the files of this folder: how far kprof is, its options, and which thread
 * ends it. Threads: any; fields that are not atomic are set before the phase is KP_PHASE_AWAKE.
 */
#ifndef KP_PRELOAD_PROCESS_PHASE_H
#define KP_PRELOAD_PROCESS_PHASE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/lock.h"
#include "preload/os/outcome.h"
#include "preload/contexts/context.h"
#include "preload/program/filter.h"
#include "report/options/options.h"

enum kp_phase { KP_PHASE_ASLEEP, KP_PHASE_AWAKE, KP_PHASE_UNPROFILED, KP_PHASE_FORKED, KP_PHASE_FINISHED };

struct kp_process {
    struct kp_lock *lock; /* for start and finish */
    _Atomic(enum kp_phase) phase;
    struct kp_driver driver;
    struct kp_options options;
    const struct kp_section **sections;
    size_t n_sections;
    struct kp_filter *filter;
    struct kp_context_setup setup;
    atomic_bool images;    /* images of modules are watched, if needed */
    atomic_bool ahead;     /* slow parts are made ready ahead of the first wanted launch */
    atomic_bool begun;     /* the session's log is open, since the first launch */
    atomic_bool stores;    /* its file, too */
    atomic_bool profiling; /* between cuProfilerStart and Stop, when asked for */
    atomic_bool ending;    /* exit handlers run: the driver may be unloaded at any time */
    atomic_int exiter;     /* id of the thread that called exit(), or runs the exit handlers; 0 = none yet */
    atomic_int finisher;   /* id of the thread that writes the report; 0 = none yet */
    atomic_int finished;   /* the report is written; threads wait for it in the kernel */
    atomic_uint late;      /* launches after it: by exit handlers, destructors, and threads that go on */
    atomic_int leaving;    /* 1: the exit handlers after ours run, and the driver's ends the driver */
    atomic_uint_fast64_t devices_seen; /* devices that were not wanted, a bit each */
    pid_t loaded;                      /* the process that the library was loaded into */
    pid_t pid;
    pid_t forked; /* in a forked child: its own id, until reported */
};

extern struct kp_process kp_process_now;

/* Enters a phase; the gate is armed only in KP_PHASE_AWAKE. */
void kp_phase_go(enum kp_phase p);

/* Notes an unexamined launch, for the line on launches after the report. Any thread. */
void kp_phase_launched(void);

/* Holds a thread once, for a limited time, while the exit handlers after ours run. Its calls would fail, because the
 * driver has ended; without kprof these handlers are over at once. One of them may wait for the thread. */
void kp_phase_hold(void);

/* Stops profiling, and prints why: `owned`, which it frees, or else `why`. `kind`: KP_FAILURES if the failure has been
 * noted. */
void kp_phase_unprofiled(enum kp_failure kind, const char *why, char *owned);

#endif
