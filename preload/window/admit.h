/*
 * Admission: what is decided of a launch before it is made, and why it does not fit into the window that is open. Each
 * decision is a table of predicates with their reasons, in order. Inside the gate's exclusive section.
 */
#ifndef KP_PRELOAD_WINDOW_ADMIT_H
#define KP_PRELOAD_WINDOW_ADMIT_H

#include "collectors/model/metrics.h"
#include "preload/window/snapshot.h"
#include "preload/window/window.h"

/* What is decided of a launch once its context and function are known. Texts are static. */
struct kp_fit {
    enum kp_range_mode mode;
    bool wanted;
    bool host;            /* it can reach host memory */
    bool ends;            /* and is known to end by itself */
    bool once;            /* the obstacle is that it must not be run again: it waits for nobody */
    const char *obstacle; /* why it must not be replayed, or NULL */
    const char *alone;    /* why a replayed window holds nothing beside it, or NULL */
};

struct kp_fit kp_admit_judge(const struct kp_context_setup *setup, const struct kp_context *c,
                             const struct kp_launch *l, const struct kp_candidate *what,
                             const struct kp_known_function *f);

/* Why the window that is open does not take the launch (static text), or NULL. */
const char *kp_admit_misfit(const struct kp_context *c, const struct kp_launch *l, const struct kp_fit *fit);

/* Why no window can be opened for a launch (static text), or NULL. */
const char *kp_admit_hindrance(const struct kp_context_setup *setup, const struct kp_fit *fit);

/* Whether a launch that is counted at once may never end: such a call blocks until the kernel is done, and one that can
 * reach host memory may wait for what the host does after the launch. That it does not has to be seen first. */
bool kp_admit_may_hang(const struct kp_context_setup *setup, const struct kp_fit *fit);

/* Whether there is anything to count with. */
bool kp_admit_has_counters(const struct kp_context_setup *setup, const struct kp_context *c);
/* The most launches a window of this context may hold. */
size_t kp_admit_room(const struct kp_context_setup *setup, const struct kp_context *c);

/* Whether a word of the copied arguments is an address of host memory that the device can reach. Such memory is added
 * to `into` (may be NULL); *kept becomes false where not all of it could be. */
bool kp_admit_reaches_host(const struct kp_driver *d, const struct kp_launch *l, struct kp_snapshot *into, bool *kept);

#endif
