#include "preload/window/claim.h"

#include "preload/gate/gate.h"
#include "preload/window/waits.h"

static const struct kp_driver *driver; /* of the claim under way */

static bool may_rest(CUcontext ctx)
{
    return kp_wait_context(driver, ctx, KP_SHORT_MS, KP_SHORT_MS) == CUDA_SUCCESS;
}

void kp_claim_counters(const struct kp_driver *d, const struct kp_context *c)
{
    if (kp_gate_captures() > 0)
        return;
    driver = d;
    kp_context_claim(d, c, may_rest);
}
