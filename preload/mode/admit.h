/*
 * Decides whether a launch is replayed, joins the open window, or gets a window at all. Each decision is a table of
 * predicate and reason, and the first row that holds gives the reason.
 */
#ifndef KP_PRELOAD_MODE_ADMIT_H
#define KP_PRELOAD_MODE_ADMIT_H

#include "base/wait_limits.h"
#include "preload/mode/window.h"

/* The decisions about a launch once its context and function are known. */
struct kp_fit {
    enum kp_range_mode mode;
    enum kp_reason once_reason;  /* why it must not be replayed */
    enum kp_reason alone_reason; /* why it gets a separate window */
    enum kp_reason waits_reason; /* why it must not be waited for */
    bool heap;                   /* it can reach host memory unknown to CUDA */
    bool host;                   /* it can reach host memory, or waits for what others write */
    bool code;                   /* only its code shows that: no argument points there */
    bool quiet;                  /* and no launch of its function was seen to change it */
    bool ends;                   /* earlier launches of its function ended by themselves */
    enum kp_wait patience;       /* how long to wait for it if it may wait for the host */
    bool once;                   /* it must not run again, but does not wait for anything */
};

/* A launch to be admitted. */
struct kp_question {
    const struct kp_window *window; /* the open window, or the one being opened for it */
    const struct kp_context_setup *setup;
    struct kp_context *context;
    const struct kp_launch *launch;
    const struct kp_candidate *what;
    const struct kp_known_function *function; /* NULL for a graph */
    struct kp_fit fit;
    size_t by_node;              /* number of kernels of a graph whose nodes are repeated one by one; else 0 */
    struct kp_rotation_key *key; /* what the launch counts for; NULL = for itself */
    /* In a bounded mode, the launch's kernel and shape, NULL = not known; and why it is not worth a replay. */
    struct kp_rotation_key *kind;
    enum kp_reason turns_reason;
};

/* Sets `fit`. */
void kp_admit_judge(struct kp_question *q);

/* Returns true if launches of the function (NULL for a graph) were seen to end by themselves often enough. */
bool kp_admit_ends(const struct kp_known_function *f);

/* Returns true if its context can count, and there is something to count. Closing a window may change that. */
bool kp_admit_counters(const struct kp_question *q);

/* Returns the most launches that `w`, open or being opened, may hold. */
size_t kp_admit_room(const struct kp_window *w);

/* Returns why the open window does not accept the launch, if there is a reason. */
enum kp_reason kp_admit_join_reason(const struct kp_question *q);

/* Returns why no window can be opened for it, if there is a reason. */
enum kp_reason kp_admit_open_reason(const struct kp_question *q);

/* Returns true if counting it may hang. Counting blocks until the kernel is done, and a kernel that can reach host
 * memory may wait for the host's next action. An earlier launch must have been seen to end. */
bool kp_admit_may_hang(const struct kp_question *q);

#endif
