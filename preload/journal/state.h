/*
 * The journal, for the files of this room. A process has at most one that is open. Only the gate's exclusive section
 * touches it; kp_journal_log, inside the shared gate, touches the record of its own thread's read.
 */
#ifndef KP_PRELOAD_JOURNAL_STATE_H
#define KP_PRELOAD_JOURNAL_STATE_H

#include <pthread.h>

#include "preload/journal/journal.h"
#include "preload/journal/op_encode.h"
#include "preload/program/host_snapshot.h"

/* A read of the journal (reads.h): what the program saw, byte for byte, in host memory; or its place on the device
 * until the journal's work is done. */
struct kp_read {
    struct kp_read_site *site;
    void *seen;
    CUdeviceptr behind;
};

/* A mapping that the journal has seen being made, and that nobody has access to yet. */
struct kp_fresh_map {
    CUdeviceptr at;
    size_t bytes;
};

/* Device memory for values that come later; `room` bytes from `next` on are free. */
struct kp_read_log {
    CUdeviceptr memory, next;
    size_t bytes, room;
};

/* Our events around a host function in its stream; NULL: there are none. */
struct kp_host_call {
    CUevent reached, done;
};

/* An operation of the journal: a launch or another one. */
struct kp_item {
    struct kp_entry entry; /* the first member: kp_item_of. All 0 except for launches and ranges */
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
};

/* A program's event, and its replacement when records and waits are issued again. */
struct kp_twin {
    CUevent of, event;
};

struct kp_journal {
    bool open;
    bool rewinds, whole; /* as passed to kp_journal_open */
    const struct kp_context_setup *setup;
    struct kp_context *context;
    struct kp_item *items;
    size_t n, cap;
    uint64_t serial;    /* unique to this journal */
    uint64_t variables; /* kp_variables_count() when it opened: the saved memory holds those */
    uint64_t questions; /* kp_variables_questions() when it opened */
    size_t settled;     /* operations that were waited for */
    size_t launches, wanted, copied;
    struct kp_snapshot host; /* host memory that its launches can reach */
    bool has_per_thread;
    pthread_t per_thread;     /* thread whose default stream launches used */
    bool hangs;               /* its launches did not end in time: no wait for the driver is allowed */
    bool unsettled;           /* an operation was issued that may still run */
    bool has_stream, several; /* operations used one stream; used several */
    CUstream stream;          /* the first */
    struct kp_twin *twins;
    size_t n_twins;
    size_t stuck;              /* index + 1 of the launch that did not end in the rehearsal, 0 = none */
    uint64_t aside;            /* bytes of new memory that were copied aside, */
    bool aside_in_part;        /* not all of them in whole blocks of the driver's: see kp_defer_whole */
    struct kp_fresh_map *maps; /* that nobody has access to yet */
    size_t n_maps;
    size_t settings;       /* operations that set attributes */
    size_t reads;          /* operations that gave the host a result */
    size_t logged;         /* bytes that they read */
    size_t most_logged;    /* the most of that, beyond what is always logged; 0: not asked yet */
    bool keeps_host;       /* see kp_journal_keeps_host */
    CUgraphExec allocates; /* the one graph of it that allocates memory; NULL = there is none */
    cuuint64_t mapped;     /* bytes that graphs' allocations reserved on the device after its launch */
    bool goes_on;          /* a launch had not ended when the program had read: no read closes the window */
    bool pending;          /* a value may still be on its way to pinned memory */
    bool calls_host;       /* a host function may still run or be pending: it may write any host memory */
    size_t called_at;      /* number of operations before the first such function */
    struct kp_read_log *logs;
    size_t n_logs;
    size_t end; /* operations that are issued again: up to the first read that cannot be compared */
    size_t cut; /* index + 1 of a read that came out differently, 0 = none */
};

/* The journal of the process. */
extern struct kp_journal kp_journal_now;

/* Returns the item of an entry that kp_journal_launch or kp_journal_entry returned. */
static inline struct kp_item *kp_item_of(struct kp_entry *e)
{
    return (struct kp_item *)e;
}

#endif
