#include "collectors/facts/settle.h"

#include <limits.h>

#include "base/lock.h"
#include "base/work.h"

CUresult kp_settle(const struct kp_driver *d, CUstream stream)
{
    enum { SPINS = 100 };
    long start = kp_now_ms(), waited = 0;
    for (int spins = 0; d->cuStreamQuery(stream) == CUDA_ERROR_NOT_READY; spins++) {
        if (spins > SPINS)
            kp_nap(waited);
        waited = kp_now_ms() - start;
        if (waited > kp_work_patience(LONG_MAX))
            return CUDA_ERROR_NOT_READY;
    }
    return d->cuCtxSynchronize();
}
