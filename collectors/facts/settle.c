#include "collectors/facts/settle.h"

#include <stdatomic.h>

#include "base/lock.h"
#include "base/wait_limits.h"
#include "base/work.h"

CUresult kp_settle_stream(const struct kp_driver *d, CUstream stream)
{
    enum { SPINS = 100 };
    static atomic_bool ran_out;
    long start = kp_now_ms(), waited = 0;
    const long most = atomic_load(&ran_out) ? kp_limit_next(KP_WAIT_PASS) : kp_limit_first(KP_WAIT_PASS);
    CUresult rc = d->cuStreamQuery(stream);
    for (int spins = 0; rc == CUDA_ERROR_NOT_READY; spins++, rc = d->cuStreamQuery(stream)) {
        if (spins > SPINS)
            kp_nap(waited);
        waited = kp_now_ms() - start;
        if (waited >= kp_work_patience(most)) {
            atomic_store(&ran_out, true);
            return CUDA_ERROR_NOT_READY;
        }
    }
    return rc;
}

CUresult kp_settle(const struct kp_driver *d, CUstream stream)
{
    CUresult rc = kp_settle_stream(d, stream);
    return rc == CUDA_ERROR_NOT_READY ? rc : d->cuCtxSynchronize();
}
