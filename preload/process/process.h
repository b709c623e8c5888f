/*
 * The profiled process: its start, its options, its launches and its end. Nothing happens before the program
 * initialises CUDA.
 * Threads: every function may be called from any thread.
 */
#ifndef KP_PRELOAD_PROCESS_PROCESS_H
#define KP_PRELOAD_PROCESS_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "collectors/facts/driver.h"
#include "preload/program/filter.h"
#include "preload/program/launch.h"
#include "preload/contexts/other_cupti.h"
#include "preload/mode/window.h"

/* Returns true if launches are looked at: CUDA runs, the options are valid, this is no forked child, and the program is
 * not ending. */
bool kp_process_active(void);

/* Prepares for forks when the library is loaded: from then on a forked child finds every lock free that it can meet. */
void kp_process_watch_forks(void);

/* Prepare for a cuInit that is being called; start kprof after it has succeeded; or give up what was prepared. */
void kp_process_cuda_starts(void);
void kp_process_cuda_started(void);
void kp_process_cuda_failed(void);

/* Keeps the driver loaded, if it is, before a library is closed: one whose destructor starts CUDA may be about to take
 * the driver with it, and by then the dynamic linker ends a process that wants to keep it. */
void kp_process_library_closes(void);

/* Returns the driver's entry points; NULL before CUDA has started. */
const struct kp_driver *kp_process_driver(void);

/* Runs a launch: profiled, or straight through when not wanted. Returns the driver's result. */
CUresult kp_process_launch(struct kp_launch *l);

/* Starts to watch the images of modules; called before a context is made, or a module loaded. If the first launch may
 * be wanted, makes ready for it, too. */
void kp_process_loads_images(void);
/* Makes ready for a wanted launch that may follow, unless that was done. */
void kp_process_make_ready(void);

/* Detaches CUPTI if nothing has been wanted for a while. */
void kp_process_leave_alone(void);

/* Notes that a library is opened in a separate namespace of the dynamic linker. Any thread. */
void kp_process_namespace(void);
/* Reports once, at the end, if CUDA was used by calls that cannot reach a door. */
void kp_process_tell_past(void);

/* Gives way before the program calls a function of CUPTI that starts something: closes the window, and ends kprof's use
 * of CUPTI. Returns true if it did; no window opens before kp_process_gave_way, which follows each call and notes what
 * the program now uses CUPTI for. `name` is static text. */
bool kp_process_gives_way(enum kp_other_effect effect, const char *name, const uint64_t *args);
void kp_process_gave_way(enum kp_other_effect effect, const void *real, const uint64_t *args, bool begins,
                         bool succeeded);
/* Reports once why launches are not profiled while the program uses CUPTI. */
void kp_process_tell_other(void);

/* Counts launches that ran unprofiled, for `reason`. Close a window that counts everything before making them:
 * kp_process_close_window. */
void kp_process_skip(enum kp_reason reason, unsigned launches);

/* Prepares an operation of class JOIN. The gate has been entered shared if it belongs to the open window; exclusively
 * if its result comes later. KP_JOINED_NOT: no open window would be replayed any more. */
enum kp_joined kp_process_join(const char *symbol, void *real, const uint64_t *args);
/* Logs the result of this thread's last join, before leaving the gate. Returns false if the window cannot stay open:
 * then call kp_process_read after leaving the gate, which closes it. */
bool kp_process_log(void);
void kp_process_read(const char *symbol);
/* Does both for a result that comes later, if the driver accepted the call, and leaves the gate. Also for a host
 * function. */
void kp_process_read_later(const char *symbol, CUresult rc);
/* Notes that the driver refused this thread's last join. Call it before leaving the gate. */
void kp_process_join_failed(void);

/* What a call gives the program: memory, at once, in rows, or in the order of a stream; or a part of virtual memory. */
enum kp_gift { KP_GIFT_MEMORY, KP_GIFT_ROWS, KP_GIFT_MEMORY_LATER, KP_GIFT_HANDLE, KP_GIFT_MAPPING, KP_GIFT_ACCESS };

/* Prepares a call of class ALLOC, ALLOC_PITCH, ALLOC_ASYNC, VIRTUAL, MAP or ACCESS with these arguments. True: the open
 * window will be replayed and can stay, and the gate has been entered exclusively. The caller must then pass the
 * driver's function and answer to kp_process_allocated, which leaves the gate. */
bool kp_process_allocates(enum kp_gift what, const uint64_t *args);
void kp_process_allocated(const char *symbol, enum kp_gift what, CUresult rc);

/* Repeats a call that the driver refused because memory was short: without a window, and without the device memory that
 * kprof keeps between windows. `alone`: the gate has been entered exclusively, and not shared. That does not change.
 * Returns the driver's result. */
CUresult kp_process_calls_again(const char *symbol, void *real, const uint64_t *args, bool alone);

/* Frees device memory that kprof keeps between windows, if an allocation of `bytes` would lack it. Closes an open
 * window first. */
void kp_process_gives_room(uint64_t bytes);

/* Returns true if asking for the function of `kernel` may load its library, and with it variables that an open window's
 * saved memory lacks. True once for each library and context. */
bool kp_process_loads(CUkernel kernel);

/* Call it before a module is loaded while a window watches: enters the gate shared and leaves the window open, which
 * finds out at the next launch what the module brought along. Returns false if the window has to be closed first. */
bool kp_process_takes_load(void);

/* Records an attribute that is about to be set: kp_window_sets. True: the gate has been entered shared, and a refusal
 * is for kp_process_join_failed. */
bool kp_process_sets(void *real, const uint64_t *before, const uint64_t *after);

/* Enters the gate shared while a window watches. Returns false if it has to be closed first. */
bool kp_process_goes_beside(void);
/* The same for a call that says how a function is to be launched. False also if the window launches it. */
bool kp_process_prefers(CUfunction f);
/* The same for a call that instantiates a graph, for which the driver needs memory. */
bool kp_process_makes_graph(void);
/* The same for the end of a graph. False also if the window has launched one that allocates memory. */
bool kp_process_ends_graph(void);
/* The same for a call that changes an executable graph, or ends it. False also if the window repeats the graph by its
 * handle. */
bool kp_process_changes_graph(CUgraphExec exec);

/* Enters the gate shared while a window watches, for a query of free memory: *more bytes above what the driver reports.
 * The second is for a query of a pool. Return false if the window has to be closed first. */
bool kp_process_tells_free(uint64_t *more);
bool kp_process_tells_pool(CUmemPool_attribute what);

/* Enters the gate shared while a window watches, to release memory of cuMemCreate that is mapped. Returns false if the
 * window has to be closed first. */
bool kp_process_releases(CUmemGenericAllocationHandle memory);

/* Returns true if the window that watches keeps what the program destroys by its handle; *answer is then what the
 * driver's function returns. */
bool kp_process_ends(enum kp_ended kind, uint64_t handle, CUresult *answer);

/* Returns true if the window that watches keeps memory that the program frees (`later`: in the order of a stream);
 * *answer is then what the driver's function would return. */
bool kp_process_frees(CUdeviceptr memory, bool later, CUresult *answer);

/* Returns true if launches are replayed, which rewinds memory. */
bool kp_process_replays(void);

/* Returns true if graphs are profiled node by node. Any thread. */
bool kp_process_by_node(void);

/* Closes the open window, if any, once no other thread is in a driver call; `why` is as for kp_gate_enter_shared.
 * Returns false if it stays open, see kp_window_may_close. */
bool kp_process_close_window(const char *symbol);
bool kp_process_close_window_for(enum kp_reason why);

/* Open what the session needs: its log, before the first launch; and its file, which takes some ms, before the first
 * launch that is wanted, or range. They do nothing when already done. */
void kp_process_connect(void);
void kp_process_begin(void);

/* Watches for the start and end of ranges, if the options make them the workloads. */
void kp_process_prepare_ranges(void);

/* Returns why a range that starts where `at` would be launched is not counted, if there is a reason; counts it for the
 * filters. `inside`: the NVTX filters accept it. */
enum kp_reason kp_process_unwanted_range(const struct kp_launch *at, bool inside);

/* Notes cu(da)ProfilerStart and Stop. */
void kp_process_profile(bool on);

/* The contexts that a driver call ends, by its first argument. */
enum kp_ends { KP_ENDS_NONE, KP_ENDS_CONTEXT, KP_ENDS_DEVICE, KP_ENDS_ALL };

/* Prepares for the call `symbol`, which ends contexts. */
void kp_process_context_ends(enum kp_ends which, uint64_t first, const char *symbol);

/* The cached data that a call invalidates: launch settings of functions; also handles, because contexts end; also the
 * module in its first argument, which is gone. */
enum kp_stale { KP_STALE_NOTHING, KP_STALE_SETTINGS, KP_STALE_HANDLES, KP_STALE_MODULE };

void kp_process_forget(enum kp_stale what, uint64_t first);

/* Elects the thread that runs exit handlers, and returns on that thread. Any other thread waits until the process
 * ends, or until the elected one seems to wait for it. */
void kp_process_exits(void);
/* Writes the report now if the program calls exit() from an exit handler or a destructor. */
void kp_process_exit_called(void);

/* Ends profiling: writes the report, once. */
void kp_process_finish(void);

#endif
