/*
 * The replay loop: save once, then for each pass restore, flush the caches, start, re-issue the window, stop. Knows
 * nothing of CUDA or CUPTI: it runs over a table of operations, so its promise can be proven by tests.
 *
 * The promise: whatever fails, when kp_replay_run returns, memory is what exactly one execution of the window leaves,
 * unless `damaged` is set (a restore failed half-way) or `dead` (the window itself failed; it was not run again).
 */
#ifndef KP_COLLECTORS_REPLAY_H
#define KP_COLLECTORS_REPLAY_H

#include <stdbool.h>
#include <stddef.h>

/* All return 0 or a code of their own kind, which is handed back with the stage. */
struct kp_replay_ops {
    int (*save)(void *arg);
    int (*restore)(void *arg);
    void (*drop)(void *arg); /* gives the saved state back; called once after each successful save */
    int (*flush)(void *arg);
    int (*probe_begin)(void *arg); /* the facts that need a launch of their own, outside of the passes */
    int (*probe_end)(void *arg);
    int (*begin)(void *arg, size_t group); /* the passes of a group of counters follow */
    int (*start)(void *arg);
    int (*issue)(void *arg); /* runs the window's operations in order and waits for their end */
    int (*stop)(void *arg, bool *last);
    int (*decode)(void *arg, size_t group);
};

/* What `issue` returns when nothing was executed: the window is then run once more, without counters, and that run
 * decides what the program is told. */
enum { KP_ISSUE_REFUSED = 0x5efu };

enum kp_stage {
    KP_STAGE_NONE,
    KP_STAGE_SAVE,
    KP_STAGE_RESTORE,
    KP_STAGE_FLUSH,
    KP_STAGE_PROBE,
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
    bool flush, probe;
};

struct kp_replay_outcome {
    enum kp_stage failed; /* KP_STAGE_NONE when all went well */
    int code;             /* of the operation that failed */
    size_t passes;        /* passes run */
    bool damaged;         /* a restore failed: memory is neither before nor after the window */
    bool dead;            /* the issue failed: nothing was tried after it */
};

void kp_replay_run(const struct kp_replay_ops *ops, void *arg, const struct kp_replay_request *request,
                   struct kp_replay_outcome *out);

#endif
