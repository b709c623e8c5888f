/*
 * A window: the launches, memsets and copies that share one series of counter passes. It opens at the first wanted
 * launch. Later operations run as the program issues them and are recorded. When the window closes, it passes its
 * results on. The strategy decides how launches are counted in between: strategy.h.
 *
 * A launch is judged (admit.c), may close the window (close.c) or open one (open.c), is recorded (record.c) and
 * issued by the strategy (launches.c). A window that closes ends its strategy's work and passes its results on
 * (harvest.c).
 *
 * Between launches, operations join the window (calls.c) through its journal (preload/journal).
 *
 * At most one window is open in a process. Call all functions inside the gate's exclusive section, under kp_guard,
 * unless stated otherwise; preload/gate/window_facts.h has functions for any thread.
 */
#ifndef KP_PRELOAD_MODE_WINDOW_H
#define KP_PRELOAD_MODE_WINDOW_H

#include "preload/contexts/context.h"
#include "preload/graphs/graphs.h"
#include "preload/journal/journal.h"
#include "preload/program/launch.h"

/* Facts of a launch before it is made. */
struct kp_candidate {
    bool wanted;                  /* it gets a result; else it only takes part in the open window */
    bool last;                    /* the last wanted one: the window need not stay open after it */
    const struct kp_graph *graph; /* of a graph launch, else NULL */
    enum kp_reason once_reason;   /* why it must not be replayed */
    bool outside;                 /* it waits for the host, other processes or devices */
};

/* A kernel of a graph that is launched. */
struct kp_node_launch {
    struct kp_launch launch; /* its arguments are the graph's; the ranges are its own */
    struct kp_candidate what;
    enum kp_reason unwanted;    /* why it is not wanted */
    enum kp_reason skip_reason; /* why it gets no result although it is wanted */
};

/* The launch of a graph, kernel by kernel in the order of kp_graph_nodes_each. */
struct kp_node_launches {
    const struct kp_graph_content *content;
    struct kp_node_launch *kernels;
    size_t n;
    bool named;           /* kernels are chosen by name or kernel-id: the graph as a whole is not wanted */
    enum kp_reason whole; /* receives why the graph was one workload; none = it was not */
};

/* Runs `l`, exactly once in effect: in the open window, in a new one, or outside any window. Returns the driver's
 * result. *skip_reason is set to why a wanted launch gets no result. *bad_input is set to a malloc'ed line when the
 * device lacks something that the user asked for. */
CUresult kp_window_launch(const struct kp_context_setup *setup, struct kp_launch *l, const struct kp_candidate *what,
                          enum kp_reason *skip_reason, char **bad_input);

/* Runs the graph `l`, whose kernels are launches of the report. If that cannot be, it is one workload as in
 * kp_window_launch, and `what` describes the graph. *skip_reason: why none of its kernels has a result. */
CUresult kp_window_launch_graph(const struct kp_context_setup *setup, struct kp_launch *l,
                                const struct kp_candidate *what, struct kp_node_launches *of,
                                enum kp_reason *skip_reason, char **bad_input);

/* ---- operations between launches: as kp_journal_*; they close the window if it cannot go on ---- */

enum kp_joined kp_window_join(const struct kp_context_setup *setup, const char *symbol, void *real,
                              const uint64_t *args, uint64_t *ticket);
/* Closes the window after the read that `symbol` has made, if it is still open, and its launches have ended. */
void kp_window_read(uint64_t ticket, const char *symbol);
void kp_window_allocated(const struct kp_context_setup *setup, const char *symbol, CUdeviceptr memory, size_t bytes,
                         bool later);
void kp_window_mapped(const char *symbol, CUdeviceptr at, size_t bytes);
void kp_window_granted(const struct kp_context_setup *setup, const char *symbol, CUdeviceptr at, size_t bytes);
/* Call it before a module is loaded. Closes the window if device memory is scarce, because its copies hold some. */
void kp_window_makes_room(const struct kp_context_setup *setup);

/* Returns the context of the open window; NULL: none is open. */
const struct kp_context *kp_window_context(void);

/* Returns true if the open window, if any, may close now. One that lets launches by may not until those have ended,
 * because they may wait for what the program does next. Waits half a second at most. */
bool kp_window_may_close(void);

/* Close the open window, if any: run its passes and pass its results on. For a reason, or by a call of the driver's
 * function `symbol` (static). */
void kp_window_close(enum kp_reason why);
void kp_window_close_by(const char *symbol);

/* Closes it without any driver call, when the driver must not be called any more: its launches are reported without
 * counters. */
void kp_window_give_up(void);

/* Forgets the window in a forked child. */
void kp_window_forked(void);

#endif
