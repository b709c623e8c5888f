/*
 * The replay loop. The program has run the window's operations once already. For each pass: restore the memory as it
 * was before the window, start, issue the operations again, stop. Knows nothing of CUDA or CUPTI: it works on a table
 * of operations, so tests can prove its promise.
 *
 * The promise: whatever fails, when kp_passes_run returns, memory is as after exactly one execution of the window. With
 * `own`, that is the program's own execution, whose results the host has seen. The exceptions are `damaged` (a restore
 * failed, or the operations were refused twice) and `dead` (they faulted).
 */
#ifndef KP_COLLECTORS_REPLAY_REPLAY_H
#define KP_COLLECTORS_REPLAY_REPLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All return 0 or a code of their own kind, which the outcome reports with the stage. */
struct kp_replay_ops {
    int (*restore)(void *arg);
    int (*rehearse)(void *arg); /* issues the window without counters, each launch alone, with a time limit */
    int (*begin)(void *arg, size_t group); /* begins the passes of a group of counters */
    int (*start)(void *arg);
    int (*issue)(void *arg); /* runs the window's operations in order and waits for their end */
    int (*stop)(void *arg, bool *last);
    int (*decode)(void *arg, size_t group);
    int (*plain)(void *arg);    /* issues the window without counters and waits for its end */
    int (*put_back)(void *arg); /* restores memory as the program's own execution left it; only for `own` */
};

/* Results of `rehearse`, `issue` and `plain` other than 0; any other code is a fault, which breaks the context. */
enum {
    KP_ISSUE_REFUSED = 0x5efu,  /* an operation was refused; earlier ones may have run */
    KP_ISSUE_TOO_LONG = 0x5f0u, /* everything has run, but a launch did not end alone in time */
    KP_ISSUE_GIVEN_UP = 0x5f1u, /* only from `issue`: like refused, but only this pass is given up */
    KP_ISSUE_UNENDED = 0x5f4u,  /* a launch has not ended in time: any call of the context might wait for it */
    KP_ISSUE_LEFT = 0x5f3u,     /* never issued: the program ends, and nothing more is to be counted */
    KP_ISSUE_CUT = 0x5f2u, /* ended early: the host would have read another value than in the program's own execution */
};

enum kp_stage {
    KP_STAGE_NONE,
    KP_STAGE_SAVE, /* before the window: outside this loop, but with the same outcome */
    KP_STAGE_RESTORE,
    KP_STAGE_FLUSH,
    KP_STAGE_REHEARSE,
    KP_STAGE_BEGIN,
    KP_STAGE_START,
    KP_STAGE_ISSUE,
    KP_STAGE_STOP,
    KP_STAGE_DECODE,
    KP_STAGE_PASSES, /* the profiler needed more passes than announced */
    KP_STAGES
};

struct kp_replay_request {
    const size_t *passes; /* passes announced per group */
    size_t groups;
    unsigned rehearsals; /* how often to issue the window without counters first */
    bool own;            /* the program has read results of its own execution, so memory must match that */
};

struct kp_replay_outcome {
    enum kp_stage failed;   /* KP_STAGE_NONE if everything went well */
    int code;               /* of the operation that failed */
    size_t passes;          /* passes run */
    bool damaged;           /* memory is neither before nor after the window */
    bool dead;              /* the issue faulted: nothing was tried after it */
    uint64_t ns[KP_STAGES]; /* spent in each stage */
};

void kp_passes_run(const struct kp_replay_ops *ops, void *arg, const struct kp_replay_request *request,
                   struct kp_replay_outcome *out);

#endif
