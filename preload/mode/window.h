/*
 * A window: the launches, memsets and copies that share one series of counter passes. It opens at the first wanted
 * launch. Later operations run as the program issues them and are recorded. When the window closes, it passes its
 * results on. The strategy decides how launches are counted in between: strategy.h.
 *
 * A launch is judged (admit.c), may close the window (close.c) or open one (open.c), is recorded (record.c) and
 * issued by the strategy (launches.c). A window that closes ends its strategy's work and passes its results on
 * (harvest.c).
 *
 * Between launches, operations join the window (joins.c); those that give the host a result are logged (reads.c).
 * Memory that the program frees meanwhile is kept (defer.c). Queries of memory are told as without all that (told.c).
 *
 * At most one window is open in a process. Call all functions inside the gate's exclusive section, under kp_guard,
 * unless told otherwise; flags.h has those for any thread.
 */
#ifndef KP_PRELOAD_MODE_WINDOW_H
#define KP_PRELOAD_MODE_WINDOW_H

#include "preload/contexts/context.h"
#include "preload/graphs/graphs.h"
#include "preload/program/launch.h"

/* Facts of a launch before it is made. */
struct kp_candidate {
    bool wanted;                  /* it gets a result; else it only takes part in the open window */
    bool last;                    /* the last wanted one: the window need not stay open after it */
    const struct kp_graph *graph; /* of a graph launch, else NULL */
    const char *obstacle;         /* why it must not be replayed, or NULL */
    bool outside;                 /* it waits for the host, other processes or devices */
};

/* A kernel of a graph that is launched. */
struct kp_node_launch {
    struct kp_launch launch; /* its arguments are the graph's; the ranges are its own */
    struct kp_candidate what;
    const char *unwanted; /* why it is not wanted, or NULL */
    const char *skipped;  /* why it gets no result although it is wanted, or NULL */
};

/* The launch of a graph, kernel by kernel in the order of kp_graph_nodes_each. */
struct kp_node_launches {
    const struct kp_graph_content *content;
    struct kp_node_launch *kernels;
    size_t n;
    bool named;        /* kernels are chosen by name or kernel-id: the graph as a whole is not wanted */
    const char *whole; /* receives why the graph was one workload (static text); NULL = it was not */
};

/* Runs `l`, exactly once in effect: in the open window, in a new one, or outside of any. Returns the driver's
 * result. *skipped is set to why a wanted launch gets no result (static text). *bad_input is set to a malloc'ed line
 * when the device lacks something that the user asked for. */
CUresult kp_window_launch(const struct kp_context_setup *setup, struct kp_launch *l, const struct kp_candidate *what,
                          const char **skipped, char **bad_input);

/* Runs the graph `l`, whose kernels are launches of the report. Where that cannot be, it is one workload as in
 * kp_window_launch: `what` is of the graph. *skipped: why none of its kernels has a result. */
CUresult kp_window_launch_graph(const struct kp_context_setup *setup, struct kp_launch *l,
                                const struct kp_candidate *what, struct kp_node_launches *of, const char **skipped,
                                char **bad_input);

/* The effect of an operation on the open window. KP_JOINED_READ: also recorded, and the call returns with a result, for
 * kp_window_log. KP_JOINED_LATER: the same, but the result comes later, or a host function is called later; no other
 * thread may issue anything before kp_window_log. */
enum kp_joined {
    KP_JOINED_NOT, /* the window has been closed */
    KP_JOINED,     /* it is recorded */
    KP_JOINED_READ,
    KP_JOINED_LATER
};

/* Records an operation of class JOIN, about to be made with these arguments. *ticket identifies the record for
 * kp_window_refused, should the driver refuse the operation, and for kp_window_log and kp_window_read. */
enum kp_joined kp_window_join(const struct kp_context_setup *setup, const char *symbol, void *real,
                              const uint64_t *args, uint64_t *ticket);

/* Logs what a read has given, or what it will give later; notes that a host function is in its stream. Call it inside
 * the gate, shared or exclusive, before anything can change the value. Returns whether the window may stay open; if
 * not, call kp_window_read. */
bool kp_window_log(uint64_t ticket);
/* Closes the window behind the read that `symbol` has made, if it is still open, and its launches have ended. */
void kp_window_read(uint64_t ticket, const char *symbol);

/* Handles new device memory of the program, which the saved memory lacks: its contents are saved, and restored in
 * each replay. If that fails, the window is closed, before the program can use the memory. */
void kp_window_allocated(const struct kp_context_setup *setup, const char *symbol, CUdeviceptr memory, size_t bytes,
                         bool later);

/* Whether the open window may stay while the program maps memory, or gives access to it: the arguments are those of
 * cuMemMap and cuMemSetAccess. Memory that was never mapped stays, and becomes new memory as soon as the window's
 * device, and no other, may read and write it. False: the window has to be closed first. */
bool kp_window_takes_mapping(const struct kp_context_setup *setup, const uint64_t *args);
bool kp_window_takes_access(const struct kp_context_setup *setup, const uint64_t *args);
/* Handle what the driver answered: it has mapped the memory, granted access, or refused it. */
void kp_window_mapped(const char *symbol, CUdeviceptr at, size_t bytes);
void kp_window_granted(const struct kp_context_setup *setup, const char *symbol, CUdeviceptr at, size_t bytes);
void kp_window_not_granted(CUdeviceptr at, size_t bytes);

/* Whether the open window keeps device memory that the program frees, for its repetitions; `later`: in the order of a
 * stream. *answer is then what cuMemFree returns. */
bool kp_window_frees(const struct kp_context_setup *setup, CUdeviceptr memory, bool later, CUresult *answer);

/* Records that an attribute of a function is set from `before` to `after`, arguments of the driver's function `real`:
 * repetitions set it in the same order. False: the window cannot hold it. */
bool kp_window_sets(const struct kp_context_setup *setup, void *real, const uint64_t *before, const uint64_t *after,
                    uint64_t *ticket);

/* Whether the open window may stay while the program asks how much memory of the current device is free: *more byte
 * than the driver tells would be without the window. False: that is not known. */
bool kp_window_tells_free(const struct kp_context_setup *setup, uint64_t *more);

/* Whether it may stay while the program asks for an attribute of a pool, which is then as without the window. */
bool kp_window_tells_pool(CUmemPool_attribute what);

/* Returns true if the open window repeats launches of the graph by its handle: what changes the graph must close it. */
bool kp_window_repeats_graph(CUgraphExec exec);

/* Whether the open window keeps a stream that the program destroys; *answer is then what cuStreamDestroy returns. */
bool kp_window_ends_stream(const struct kp_context_setup *setup, CUstream stream, CUresult *answer);

/* Copies the variables of the module of `f`, which is about to be launched for the first time, as the saved memory may
 * lack them. False: the window must be closed. */
bool kp_window_holds_variables(const struct kp_context_setup *setup, CUfunction f, const char *mangled);

/* A module is about to be loaded. Closes the window where device memory is scarce, as its copies hold some. */
void kp_window_makes_room(const struct kp_context_setup *setup);

/* Forgets memory that was kept of contexts that are no longer known: it ended with them. */
void kp_window_contexts_ended(void);

/* Returns the context of the open window; NULL: none is open. */
const struct kp_context *kp_window_context(void);

/* Whether the open window, if any, may close now. One that lets launches by may not while those have not ended, as they
 * may wait for what the program does next. Waits half a second at most. */
bool kp_window_may_close(void);

/* Closes the open window, if any: runs its passes and passes its results on. `why`, static text, is for closers.h: the
 * driver's function that closes it, or a reason. */
void kp_window_close(const char *why);

/* Closes it without any driver call, when the driver must not be called any more: its launches are reported without
 * counters. */
void kp_window_give_up(void);

/* Forgets the window in a forked child. */
void kp_window_forked(void);

#endif
