#include "collectors/facts/settle.h"

#include "base/lock.h"

CUresult kp_settle(const struct kp_driver *d, CUstream stream)
{
    enum { SPINS = 100 };
    long start = kp_now_ms();
    for (int spins = 0; d->cuStreamQuery(stream) == CUDA_ERROR_NOT_READY; spins++)
        if (spins > SPINS)
            kp_nap(kp_now_ms() - start);
    return d->cuCtxSynchronize();
}
