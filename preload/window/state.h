/*
 * The open window, as the files of this room share it.
 *
 * A process has at most one. Only the gate's exclusive section touches it.
 */
#ifndef KP_PRELOAD_WINDOW_STATE_H
#define KP_PRELOAD_WINDOW_STATE_H

#include <pthread.h>

#include "preload/program/context.h"
#include "preload/program/graphs.h"
#include "preload/program/launch.h"
#include "preload/window/join.h"
#include "preload/window/snapshot.h"

struct kp_strategy;

/* The most operations of a window, launches included: each is issued again for every pass. */
enum { KP_MOST_ITEMS = 1 << 16 };

/* The most host memory copied for the operations of one window, byte. */
enum { KP_MOST_COPIED = 256 << 20 };

/* An operation of the window: a launch, or one of another kind. */
struct kp_item {
    bool is_launch;
    unsigned epoch;  /* changes where the program has waited for something */
    struct kp_op op; /* real NULL: the driver refused it */
    uint64_t ticket;
    CUdeviceptr backup; /* of new memory, which the operation copies back */
    struct kp_launch launch;
    struct kp_graph graph;
    struct kp_known_function *function; /* NULL for a graph */
    struct kp_known_config config;      /* all 0 = not known */
    struct kp_result *result;           /* NULL: not wanted */
};

/* An event of the program's, and the one that stands for it when its records and waits are issued again. */
struct kp_twin {
    CUevent of, event;
};

struct kp_window {
    bool open;
    const struct kp_context_setup *setup;
    struct kp_context *context;
    const struct kp_strategy *strategy;
    enum kp_range_mode mode;
    const char *obstacle; /* why it is counted instead of replayed */
    size_t most;          /* launches that it may hold; 0: as many as the context's collector has room for */
    struct kp_item *items;
    size_t n, cap;
    uint64_t variables; /* kp_variables_count() when it opened: the saved memory holds those */
    size_t launches, wanted, unwanted_in_a_row, copied;
    struct kp_snapshot host; /* host memory that its launches can reach */
    double opened_ns, ours_ns;
    bool has_per_thread;
    pthread_t per_thread;     /* whose default stream launches went to */
    bool hands_off;           /* the driver must not be called */
    bool hangs;               /* its launches did not end in time: nothing of the driver may be waited for */
    bool unsettled;           /* an operation was issued that may still run */
    bool has_stream, several; /* operations were issued into one stream; into more than one */
    CUstream stream;          /* the first */
    struct kp_twin *twins;
    size_t n_twins;
    size_t stuck; /* index + 1 of the launch that did not end when it was rehearsed, 0 = none */
};

/* The window of the process; see `open`. */
extern struct kp_window kp_window_now;

#endif
