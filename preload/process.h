/*
 * The process kprof lives in: when it wakes up, what it was asked for, what it has seen, and how it ends.
 *
 * Nothing happens before the program initialises CUDA. Threads: every function may be called from any thread.
 */
#ifndef KP_PRELOAD_PROCESS_H
#define KP_PRELOAD_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "collectors/facts/driver.h"
#include "preload/program/launch.h"

/* Whether launches are looked at: CUDA runs, the options are good, this is no forked child, and the end has not come.
 */
bool kp_process_active(void);

/* When the library is loaded: from then on a forked child finds every lock free that it can meet. */
void kp_process_watch_forks(void);

/* cuInit succeeded. */
void kp_process_cuda_started(void);

/* The driver's entry points; NULL before CUDA has started. */
const struct kp_driver *kp_process_driver(void);

/* Runs a launch: profiled, or straight through when it is not wanted. Returns what the driver returned for it. */
CUresult kp_process_launch(struct kp_launch *l);

/* A context is about to be made, or a module to be loaded: what watches their images is started. */
void kp_process_loads_images(void);

/* Counts launches that ran without being looked at, for `reason`. A window in which everything is counted must be
 * closed before they are made: kp_process_close_window. */
void kp_process_skip(const char *reason, unsigned launches);

/* An operation of class JOIN is about to be made. True: it belongs to the open window, and the gate has been entered
 * shared. False: no window that would be replayed is open any more. */
bool kp_process_join(const char *symbol, void *real, const uint64_t *args);
/* The driver refused what this thread joined last. The gate has not been left yet. */
void kp_process_join_failed(void);

/* cuMemAlloc is about to be called with these arguments. True: a window is open that will be replayed, the gate has
 * been entered exclusively, and kp_process_allocated is owed with the driver's function and answer. It returns what the
 * program is to be told: what the open window holds of the memory must not be what the program lacks. */
bool kp_process_allocates(const uint64_t *args);
CUresult kp_process_allocated(void *real, CUresult rc);

/* Whether asking for the function of `kernel` may load its library, and with it variables that an open window's saved
 * memory does not hold: true once for each library and context. */
bool kp_process_loads(CUkernel kernel);

/* A module is about to be loaded beside a window that watches: enters the gate shared and leaves the window open, which
 * sees by the next launch what the module brought along. False: the window has to be closed first. */
bool kp_process_takes_load(void);

/* Whether the window that watches keeps memory that the program frees; *answer is then what cuMemFree returns. */
bool kp_process_frees(CUdeviceptr memory, CUresult *answer);

/* Whether launches are replayed, which rewinds memory. */
bool kp_process_replays(void);

/* Closes the open window, if any, once no other thread is in a driver call; `why` as for kp_gate_enter_shared. */
void kp_process_close_window(const char *why);

/* cu(da)ProfilerStart and Stop. */
void kp_process_profile(bool on);

/* Which contexts a call of the driver's ends, by its first argument. */
enum kp_ends { KP_ENDS_NONE, KP_ENDS_CONTEXT, KP_ENDS_DEVICE, KP_ENDS_ALL };

/* The call `symbol` is about to end contexts. */
void kp_process_context_ends(enum kp_ends which, uint64_t first, const char *symbol);

/* What a call makes out of date of what was read: how functions are launched; handles, too, as contexts end; these, and
 * the module that is its first argument is gone. */
enum kp_stale { KP_STALE_NOTHING, KP_STALE_SETTINGS, KP_STALE_HANDLES, KP_STALE_MODULE };

void kp_process_forget(enum kp_stale what, uint64_t first);

/* A thread is about to run exit handlers: returns where it is the one to do so. Another one waits until the process
 * ends, or until it seems to be waited for itself. */
void kp_process_exits(void);
/* The program calls exit(), perhaps from an exit handler or a destructor, whose report is written now. */
void kp_process_exit_called(void);

/* The program ends: writes the report, once. */
void kp_process_finish(void);

#endif
