/* A set of handles of modules and libraries, each in a context. Zeroed it is empty.
 * Threads: under the caller's lock. */
#ifndef KP_PRELOAD_GATE_HANDLE_SET_H
#define KP_PRELOAD_GATE_HANDLE_SET_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>

struct kp_seen {
    struct kp_seen_handle {
        CUcontext ctx;
        const void *handle;
    } * list;
    size_t n;
};

bool kp_seen_has(const struct kp_seen *s, CUcontext ctx, const void *handle);

/* Adds a handle. Returns 0, -EEXIST if already present, or -ENOMEM. */
int kp_seen_add(struct kp_seen *s, CUcontext ctx, const void *handle);

/* Removes the handle, in all contexts. */
void kp_seen_drop(struct kp_seen *s, const void *handle);

/* Empties the set but keeps its memory. */
void kp_seen_empty(struct kp_seen *s);

#endif
