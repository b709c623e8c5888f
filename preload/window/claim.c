#include "preload/window/claim.h"

#include "preload/gate/gate.h"
#include "preload/program/ctx_wait.h"
#include "preload/window/waits.h"

static const struct kp_driver *driver; /* of the claim under way */

/* Waits for the context's work. Where it outlasted several waits, there is none until the last of these has ended. */
static bool may_rest(struct kp_context *c)
{
    enum { MOST_WAITS = 3 };
    if (c->unended >= MOST_WAITS && kp_patience_goes_on(c->ctx))
        return false;
    bool rests = kp_wait_context(driver, c->ctx, KP_SHORT_MS, KP_SHORT_MS) == CUDA_SUCCESS;
    c->unended = rests ? 0 : c->unended + 1;
    return rests;
}

void kp_claim_counters(const struct kp_driver *d, const struct kp_context *c)
{
    driver = d;
    kp_context_claim(d, c, kp_gate_captures() > 0 ? NULL : may_rest);
}
