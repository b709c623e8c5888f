#include "preload/mode/counter_owner.h"

#include "preload/gate/gate.h"
#include "preload/program/waits.h"

static const struct kp_driver *driver; /* of the claim under way */

static bool may_rest(struct kp_context *c)
{
    return kp_wait_again(driver, c->ctx, kp_limit_first(KP_WAIT_COUNTERS), &c->unended) == CUDA_SUCCESS;
}

void kp_claim_counters(const struct kp_driver *d, const struct kp_context *c)
{
    driver = d;
    kp_context_claim(d, c, kp_gate_captures() > 0 ? NULL : may_rest);
}
