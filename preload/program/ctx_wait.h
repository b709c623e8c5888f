/*
 * Waiting for the GPU with a limit. A kernel may wait for something that the program does only later; whoever waits for
 * such a kernel on the program's own thread waits for ever. The driver's wait has no limit, so a thread of ours waits.
 *
 * Inside the gate's exclusive section.
 */
#ifndef KP_PRELOAD_PROGRAM_CTX_WAIT_H
#define KP_PRELOAD_PROGRAM_CTX_WAIT_H

#include <cuda.h>

#include "collectors/facts/driver.h"

/* Waits until all work of `ctx`, which is current, is done, at most `ms`. CUDA_SUCCESS, an error of the context, or
 * CUDA_ERROR_NOT_READY: it is not done. The waiting goes on, and later calls for this context take part in it. */
CUresult kp_patience_wait(const struct kp_driver *d, CUcontext ctx, long ms);

/* Before the process ends: waits that have ended since nobody asked again leave nothing behind. */
void kp_patience_reap(void);

/* In a forked child, where the waiting threads do not exist. */
void kp_patience_forked(void);

#endif
