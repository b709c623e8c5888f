/*
 * The replay loop. The program has run the window's operations once already. For each pass: restore the memory as it
 * was before the window, start, issue the operations again, stop. Knows nothing of CUDA or CUPTI: it runs over a table
 * of operations, so its promise can be proven by tests.
 *
 * The promise: whatever fails, when kp_replay_run returns, memory is what exactly one execution of the window leaves,
 * unless `damaged` is set (a restore failed, or the operations were refused twice) or `dead` (they faulted).
 */
#ifndef KP_COLLECTORS_REPLAY_REPLAY_H
#define KP_COLLECTORS_REPLAY_REPLAY_H

#include <stdbool.h>
#include <stddef.h>

/* All return 0 or a code of their own kind, which is handed back with the stage. */
struct kp_replay_ops {
    int (*restore)(void *arg);
    int (*rehearse)(void *arg);            /* issues the window without counters, each launch alone, in limited time */
    int (*begin)(void *arg, size_t group); /* the passes of a group of counters follow */
    int (*start)(void *arg);
    int (*issue)(void *arg); /* runs the window's operations in order and waits for their end */
    int (*stop)(void *arg, bool *last);
    int (*decode)(void *arg, size_t group);
    int (*plain)(void *arg); /* issues the window without counters and waits for its end */
};

/* What `rehearse`, `issue` and `plain` return beside 0; any other code is a fault, which the context does not survive.
 */
enum {
    KP_ISSUE_REFUSED = 0x5efu,  /* an operation was not taken; those before it may have run */
    KP_ISSUE_TOO_LONG = 0x5f0u, /* all has run, but a launch did not end alone in the time allowed */
    KP_ISSUE_GIVEN_UP = 0x5f1u, /* of `issue` alone: as refused, but the pass does without, and all goes on */
};

enum kp_stage {
    KP_STAGE_NONE,
    KP_STAGE_SAVE, /* before the window: not of this loop, but of the same outcome */
    KP_STAGE_RESTORE,
    KP_STAGE_FLUSH,
    KP_STAGE_REHEARSE,
    KP_STAGE_BEGIN,
    KP_STAGE_START,
    KP_STAGE_ISSUE,
    KP_STAGE_STOP,
    KP_STAGE_DECODE,
    KP_STAGE_PASSES, /* the profiler did not finish within the passes it had announced */
};

struct kp_replay_request {
    const size_t *passes; /* passes announced for each group */
    size_t groups;
    unsigned rehearsals; /* how often the window is issued without counters first */
};

struct kp_replay_outcome {
    enum kp_stage failed; /* KP_STAGE_NONE when all went well */
    int code;             /* of the operation that failed */
    size_t passes;        /* passes run */
    bool damaged;         /* memory is neither before nor after the window */
    bool dead;            /* the issue faulted: nothing was tried after it */
};

void kp_replay_run(const struct kp_replay_ops *ops, void *arg, const struct kp_replay_request *request,
                   struct kp_replay_outcome *out);

#endif
