#include "collectors/providers/provider.h"

/* Warp states come first, before the counters: see kp_pcsamp_open. */
const struct kp_provider *const kp_provider_table[] = {&kp_provider_pcsamp, &kp_provider_range, &kp_provider_sass,
                                                       &kp_provider_pm, NULL};

_Static_assert(sizeof(kp_provider_table) / sizeof(*kp_provider_table) <= KP_PROVIDERS_MOST + 1, "KP_PROVIDERS_MOST");
