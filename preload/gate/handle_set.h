/* Handles of modules and libraries that were met, each in a context. Zeroed it is empty. Threads: by the caller's lock.
 */
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
    size_t n, cap;
};

bool kp_seen_has(const struct kp_seen *s, CUcontext ctx, const void *handle);

/* 0, -EEXIST when it is there already, or -ENOMEM. */
int kp_seen_add(struct kp_seen *s, CUcontext ctx, const void *handle);

/* Takes the handle out, of all contexts. */
void kp_seen_drop(struct kp_seen *s, const void *handle);

/* Takes all out; memory is kept for what comes next. */
void kp_seen_empty(struct kp_seen *s);

#endif
