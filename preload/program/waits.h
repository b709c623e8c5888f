/*
 * Waits for the program's work, with a limit: a launch may wait for something that the program does only later.
 * Waits that time out share a budget (KP_SPAN_BUDGET); once it is spent, each is short. All return CUDA_ERROR_NOT_READY
 * after the time limit. The limits are rows of base/waits.def.
 */
#ifndef KP_PRELOAD_PROGRAM_WAITS_H
#define KP_PRELOAD_PROGRAM_WAITS_H

#include <cuda.h>

#include "base/wait_limits.h"
#include "collectors/facts/driver.h"
#include "preload/program/ctx_wait.h"

/* Waits for a rehearsed launch: how long is known from the program's own, so that no budget makes it shorter. */
CUresult kp_wait_rehearsed(const struct kp_driver *d, CUstream stream, long ms);
/* Waits for a copy, or another short operation, on the default stream of the current context, whatever other streams
 * do: KP_WAIT_WORK. */
CUresult kp_wait_copy(const struct kp_driver *d);
/* Waits for a context, which must be current, at least `least` ms. */
CUresult kp_wait_context(const struct kp_driver *d, CUcontext ctx, long ms, long least);
/* Waits `ms` for a context, which must be current. *outlasted counts the waits in a row that its work has outlasted:
 * from three on, the function returns at once until the work of the last wait has ended. */
CUresult kp_wait_again(const struct kp_driver *d, CUcontext ctx, long ms, unsigned *outlasted);
/* Waits as kp_wait_context does, without a step of its own in lines of progress: it is short, or another step tells
 * more. */
CUresult kp_wait_briefly(const struct kp_driver *d, CUcontext ctx, long ms, long least);
/* Do the same with the limits of a row: `first`, and at least `next`. */
CUresult kp_wait_for(const struct kp_driver *d, CUcontext ctx, enum kp_wait w);
CUresult kp_wait_quietly(const struct kp_driver *d, CUcontext ctx, enum kp_wait w);

#endif
