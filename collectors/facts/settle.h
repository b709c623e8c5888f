/* Waits for a context's work, and lets the program's signals in meanwhile. */
#ifndef KP_COLLECTORS_FACTS_SETTLE_H
#define KP_COLLECTORS_FACTS_SETTLE_H

#include <cuda.h>

#include "collectors/facts/driver.h"

/* Waits for the current context's work, and returns what cuCtxSynchronize would; CUDA_ERROR_NOT_READY if the process
 * ends first. Polls `stream`, a stream of the context, beforehand: while it is busy there are safe points
 * (base/work.h). */
CUresult kp_settle(const struct kp_driver *d, CUstream stream);

#endif
