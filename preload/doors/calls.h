/*
 * What a call of the driver's means: what is done before and after it, by its class (cuda_api.def). Each call that
 * passes a trampoline comes through here.
 *
 * Threads: any.
 */
#ifndef KP_PRELOAD_DOORS_CALLS_H
#define KP_PRELOAD_DOORS_CALLS_H

#include <cuda.h>
#include <stdint.h>

#include "preload/doors/api.h"

/* What a trampoline calls, and what it entered. Two words, returned in registers. */
struct kp_call_entry {
    void *real;
    uint64_t entered;
};

/* Called from trampolines.S, with the number of the trampoline's slot. Those of exported symbols come first, in the
 * order of cuda_api.def. */
struct kp_call_entry kp_call_enter(uint64_t slot, const uint64_t *args);
CUresult kp_call_leave(uint64_t slot, CUresult result, uint64_t entered);

/* Which of the pool's trampolines leads to `real`; made where there is none. Negative: none is left. */
int kp_call_pool_slot(enum kp_api_class class, const char *symbol, void *real);

#endif
