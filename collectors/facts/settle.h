/* Waits for a context's work, and lets the program's signals in meanwhile. */
#ifndef KP_COLLECTORS_FACTS_SETTLE_H
#define KP_COLLECTORS_FACTS_SETTLE_H

#include <cuda.h>

#include "collectors/facts/driver.h"

/* Waits for the current context's work, and returns what cuCtxSynchronize would; CUDA_ERROR_NOT_READY if `stream`, a
 * stream of the context, stays busy for longer than KP_WAIT_PASS. It is polled beforehand: while it is busy there are
 * safe points (base/work.h). The caller knows that work of other streams ends. */
CUresult kp_settle(const struct kp_driver *d, CUstream stream);
/* Waits for the stream alone, with that limit. */
CUresult kp_settle_stream(const struct kp_driver *d, CUstream stream);

#endif
