#include "base/stripe.h"

#include <stdatomic.h>

__thread unsigned kp_stripe_own __attribute__((tls_model("initial-exec")));

static atomic_uint threads;

unsigned kp_stripe_take(void)
{
    kp_stripe_own = atomic_fetch_add(&threads, 1) % KP_STRIPES + 1;
    return kp_stripe_own - 1;
}

unsigned kp_stripes_used(void)
{
    unsigned n = atomic_load(&threads);
    return n < KP_STRIPES ? n : KP_STRIPES;
}
