/*
 * Operations that join a window: memsets, copies, event records and waits, host functions. Each is kept with everything
 * needed to issue it again: its arguments, and a copy of the host memory it reads, made at the call. All arguments are
 * integers or pointers, at most six, so one record fits all functions. op_encode.def describes the arguments of each
 * function.
 */
#ifndef KP_PRELOAD_JOURNAL_OP_ENCODE_H
#define KP_PRELOAD_JOURNAL_OP_ENCODE_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collectors/facts/driver.h"

enum { KP_OP_ARGS = 6 };

struct kp_op {
    void *real;                /* the driver's function */
    uint64_t args[KP_OP_ARGS]; /* as the program passed them, except for pointers into `copy` */
    void *copy;                /* memory copied at the call; NULL for none */
    size_t copied;             /* bytes */
    CUstream stream;           /* its stream; NULL: the legacy default stream */
    unsigned event;            /* which argument is an event, from 1; 0 = none */
    bool waits;                /* the program's call returned after its end */
    unsigned result;           /* which argument is host memory that receives a result, from 1; 0 = none */
    bool rows;                 /* it is the CUDA_MEMCPY2D of one */
    size_t result_bytes;
    bool later;       /* the result may come only after the call has returned */
    bool from_host;   /* it copied from host memory, which a host function may write */
    bool from_pinned; /* from pinned memory, which may receive a result */
    bool calls_host;  /* it calls a host function: repetitions leave it out */
};

/* The effect of a call on an open window. */
enum kp_join {
    KP_JOIN_YES,   /* recorded in *op: part of the window */
    KP_JOIN_CLOSE, /* the window must be closed first: the call cannot be repeated */
};

/* Judges the call of `symbol` (an exported symbol or a base name, of class JOIN) with integer arguments `args` and
 * records it. `reaches_host(address)` returns true if an address is host memory that the device can reach, or managed
 * memory. Copies at most `most` bytes: a call that reads more closes the window. Only YES leaves something to free. The
 * context of the call must be current. */
enum kp_join kp_join_record(const struct kp_driver *d, const char *symbol, void *real, const uint64_t args[KP_OP_ARGS],
                            bool (*reaches_host)(uint64_t address), size_t most, struct kp_op *op);

/* Issues the operation again. Returns the driver's code. */
CUresult kp_op_issue(const struct kp_op *op);
void kp_op_free(struct kp_op *op);

/* Returns true if op_encode.def has a row for `symbol`. */
bool kp_join_known(const char *symbol);

#endif
