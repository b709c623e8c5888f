/*
 * The memory of a context, saved before a window and restored before each of its passes.
 *
 * Errors: as in library.h. Threads: the caller serialises calls for one context, which must be current.
 */
#ifndef KP_COLLECTORS_PROVIDERS_SAVED_H
#define KP_COLLECTORS_PROVIDERS_SAVED_H

#include <cuda.h>
#include <stdbool.h>

struct kp_cupti;
struct kp_checkpoint;

/* Returns true if the saving library was found. */
bool kp_saved_available(const struct kp_cupti *c);
/* Save all memory of `ctx` that a kernel can write; restore it, as often as needed; free it. */
int kp_saved_make(const struct kp_cupti *c, CUcontext ctx, struct kp_checkpoint **out);
int kp_saved_restore(struct kp_checkpoint *k);
void kp_saved_free(struct kp_checkpoint *k);
/* Frees the host's part only. The device's part goes with the context. */
void kp_saved_leave(struct kp_checkpoint *k);

#endif
