/*
 * Waits for the GPU with a limit. A kernel may wait for something that the program does only later, so waiting on
 * the program's own thread might never end. The driver's wait has no limit, so a thread of ours waits. Use inside
 * the gate's exclusive section.
 */
#ifndef KP_PRELOAD_PROGRAM_CTX_WAIT_H
#define KP_PRELOAD_PROGRAM_CTX_WAIT_H

#include <cuda.h>
#include <stdbool.h>

#include "collectors/facts/driver.h"

/* Waits until all work of `ctx`, which must be current, is done, at most `ms`. Returns CUDA_SUCCESS, an error of the
 * context, or CUDA_ERROR_NOT_READY after the time limit, or at once where no thread can be had for it. The wait goes on
 * in the background after its limit, and later calls for this context join it. */
CUresult kp_patience_wait(const struct kp_driver *d, CUcontext ctx, long ms);

/* Returns true if a wait for `ctx` goes on in the background: work that it had then has not ended. */
bool kp_patience_goes_on(CUcontext ctx);
/* Waits at most `ms` for such a wait to end. Returns true if none goes on. */
bool kp_patience_ends(CUcontext ctx, long ms);

/* Frees ended waits that nobody asked about again, before the process ends. */
void kp_patience_reap(void);

/* Forgets the waits in a forked child, where the waiting threads do not exist. */
void kp_patience_forked(void);

/* Waits for a stream, at most `ms`, on this thread; does not use the budget of waits.h. */
CUresult kp_wait_stream(const struct kp_driver *d, CUstream stream, long ms);

#endif
