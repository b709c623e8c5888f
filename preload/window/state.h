/*
 * The open window, shared by the files of this room. A process has at most one. Only the gate's exclusive section
 * touches it; kp_window_log, inside the shared gate, touches the record of its own thread's read.
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
struct kp_rotation_key;

/* The most operations of a window, launches included: each is issued again for every pass. */
enum { KP_MOST_ITEMS = 1 << 16 };

/* The most host memory copied for the operations of one window, byte. */
enum { KP_MOST_COPIED = 256 << 20 };

/* A read of the window (reads.h): what the program saw, byte for byte, in host memory; or where that is kept on the
 * device until the window's work is done. */
struct kp_read {
    struct kp_read_site *site;
    void *seen;
    CUdeviceptr behind;
};

/* A mapping that the window has seen being made, and that nobody has access to yet. */
struct kp_fresh_map {
    CUdeviceptr at;
    size_t bytes;
};

/* Device memory for values that come later; `room` byte from `next` on are free. */
struct kp_read_log {
    CUdeviceptr memory, next;
    size_t bytes, room;
};

/* Events of ours around a host function in its stream; NULL: there are none. */
struct kp_host_call {
    CUevent reached, done;
};

/* An operation of the window: a launch or another one. */
struct kp_item {
    bool is_launch;
    unsigned epoch;  /* counts the program's waits */
    struct kp_op op; /* real NULL: the driver refused it */
    uint64_t ticket;
    bool sets;                   /* an attribute: no stream's operation */
    uint64_t before[KP_OP_ARGS]; /* the arguments that set what it was before */
    CUdeviceptr backup;          /* of new memory, from which the operation restores it */
    CUdeviceptr own;             /* a copy of it as the program's own execution left it; 0: none is needed */
    struct kp_read read;
    struct kp_host_call call; /* of a host function (host_calls.h) */
    struct kp_launch launch;
    struct kp_graph graph;
    struct kp_known_function *function; /* NULL for a graph */
    struct kp_known_config config;      /* all 0 = not known */
    bool reaches_host;                  /* an argument points into host memory, or may do so */
    bool as_graph;                      /* its next execution is that of a graph, for the probe */
    struct kp_result *result;           /* NULL: not wanted */
    struct kp_rotation_key *key;        /* what it counts for; NULL = for itself */
};

/* A program's event, and its replacement when records and waits are issued again. */
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
    const char *closer;   /* what closes it, as kp_window_close is told */
    size_t most;          /* most launches; 0: as many as the context's collector has room for */
    bool rotates;         /* it counts this group of counters of the context's rotation, */
    bool chooses;         /* for launches with a result alone: it has no record of the others, which pass beside it */
    size_t group;
    struct kp_item *items;
    size_t n, cap;
    uint64_t serial;    /* of no other window */
    uint64_t variables; /* kp_variables_count() when it opened: the saved memory holds those */
    uint64_t questions; /* kp_variables_questions() when it opened */
    size_t settled;     /* operations that were waited for */
    size_t launches, wanted, unwanted_in_a_row, copied;
    uint64_t begin_ns;       /* what it took to begin it, where it rotates */
    long wanted_ms;          /* the clock's time at the last wanted launch */
    struct kp_snapshot host; /* host memory that its launches can reach */
    double opened_ns, ours_ns;
    long ran_ms; /* from when it was open until its launches had ended, rounded up: none took longer; 0 = not yet known
                  */
    bool has_per_thread;
    pthread_t per_thread;     /* thread whose default stream launches used */
    bool hands_off;           /* the driver must not be called */
    bool unending;            /* its last launch waits for the host */
    bool left;                /* what closes it is made in another context of the device */
    bool hangs;               /* its launches did not end in time: no wait for the driver is allowed */
    bool unsettled;           /* an operation was issued that may still run */
    bool has_stream, several; /* operations used one stream; used several */
    CUstream stream;          /* the first */
    struct kp_twin *twins;
    size_t n_twins;
    size_t stuck;              /* index + 1 of the launch that did not end in the rehearsal, 0 = none */
    uint64_t aside;            /* byte of new memory that were copied aside, */
    bool aside_in_part;        /* not all of them in whole blocks of the driver's: see kp_defer_whole */
    struct kp_fresh_map *maps; /* that nobody has access to yet */
    size_t n_maps;
    size_t settings;       /* operations that set attributes */
    size_t reads;          /* operations that gave the host a result */
    size_t logged;         /* byte that they read */
    size_t most_logged;    /* the most of that, beyond what is always logged; 0: not asked yet */
    bool keeps_host;       /* it ends with the program's own memory, pinned memory included that a restore rewinds */
    const char *alone;     /* why it closes behind its first launch, or NULL */
    CUgraphExec allocates; /* the one graph of it that allocates memory; NULL = there is none */
    cuuint64_t mapped;     /* byte that the device had for memory of graphs behind its launch */
    bool goes_on;          /* a launch had not ended when the program had read: the window does not close for a read */
    bool pending;          /* a value may still be on its way to pinned memory */
    bool calls_host;       /* a host function may still run, or have yet to: it may write any memory of the host */
    size_t called_at;      /* operations before the first such function */
    struct kp_read_log *logs;
    size_t n_logs;
    size_t end; /* operations that are issued again: up to the first read that cannot be compared */
    size_t cut; /* index + 1 of a read that came out differently, 0 = none */
};

/* The window of the process; valid while `open`. */
extern struct kp_window kp_window_now;

#endif
