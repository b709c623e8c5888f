/*
 * The memory of a context, saved before a window and restored before each of its passes.
 *
 * Errors: as library.h has them. Threads: calls for one context are serialised by the caller, with it current.
 */
#ifndef KP_COLLECTORS_PROVIDERS_SAVED_H
#define KP_COLLECTORS_PROVIDERS_SAVED_H

#include <cuda.h>
#include <stdbool.h>

struct kp_cupti;
struct kp_checkpoint;

/* Whether the library that saves is there. */
bool kp_saved_available(const struct kp_cupti *c);
/* Saves all memory of `ctx` that a kernel can write. Restores it as often as wanted; the last call frees. */
int kp_saved_make(const struct kp_cupti *c, CUcontext ctx, struct kp_checkpoint **out);
int kp_saved_restore(struct kp_checkpoint *k);
void kp_saved_free(struct kp_checkpoint *k);
/* Releases the host's part only. What it holds of the device goes with the context. */
void kp_saved_leave(struct kp_checkpoint *k);

#endif
