/*
 * Handles driver calls: each class (cuda_api.def) has actions before and after the call. Each call through a
 * trampoline comes here.
 *
 * Threads: any.
 */
#ifndef KP_PRELOAD_DOORS_CALLS_H
#define KP_PRELOAD_DOORS_CALLS_H

#include <cuda.h>
#include <stdint.h>

#include "preload/doors/api.h"
#include "preload/program/device_memory.h"

/* The target of a trampoline, the state entered, and how many words of 8 bytes the target expects on the stack.
 * Returned in two registers. */
struct kp_call_entry {
    void *real;
    uint32_t entered, stack_words;
};

/* Called from trampolines.S with the slot number of the trampoline. Slots of exported symbols come first, in the
 * order of cuda_api.def. */
struct kp_call_entry kp_call_enter(uint64_t slot, const uint64_t *args);
CUresult kp_call_leave(uint64_t slot, CUresult result, uint32_t entered);

/* Returns the pool's trampoline that leads to `real`, made on first use. Negative: none is left. `words`: from
 * kp_api_stack_words or kp_api_base_words. */
int kp_call_pool_slot(enum kp_api_class class, const char *symbol, const struct kp_owning *owns, unsigned words,
                      void *real);

#endif
