#include "base/wait_limits.h"

static const struct limits {
    unsigned first, next, at_exit; /* ms */
} limits[KP_WAITS] = {
#define KP_WAIT(id, first, next, at_exit, who, what) {first, next, at_exit},
#include "base/waits.def"
};

static const unsigned spans[KP_SPANS] = {
#define KP_SPAN(id, ms, what) ms,
#include "base/waits.def"
};

long kp_limit_first(enum kp_wait w)
{
    return limits[w].first;
}

long kp_limit_next(enum kp_wait w)
{
    return limits[w].next;
}

long kp_limit_at_exit(enum kp_wait w)
{
    return limits[w].at_exit;
}

long kp_span_ms(enum kp_span s)
{
    return spans[s];
}
