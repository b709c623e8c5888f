/* Waits for a context's work, in which the program's signals are let in. */
#ifndef KP_COLLECTORS_FACTS_SETTLE_H
#define KP_COLLECTORS_FACTS_SETTLE_H

#include <cuda.h>

#include "collectors/facts/driver.h"

/* Waits for the current context's work, as cuCtxSynchronize does, and returns what that does; CUDA_ERROR_NOT_READY if
 * `stream`, of the context, is busy for longer than KP_WAIT_PASS. That is asked first: while it is busy there are safe
 * points (base/work.h). The caller knows that work of other streams ends. */
CUresult kp_settle(const struct kp_driver *d, CUstream stream);
/* Waits for the stream alone, with that limit. */
CUresult kp_settle_stream(const struct kp_driver *d, CUstream stream);

#endif
