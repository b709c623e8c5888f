#include "report/model/lookup.h"

#include <errno.h>

int kp_lookup_code(const struct kp_lookup *l, uint64_t id, struct kp_code *out)
{
    *out = (struct kp_code){0};
    return l && l->code && id ? l->code(l->arg, id, out) : -ENOENT;
}

int kp_lookup_stack(const struct kp_lookup *l, uint64_t id, struct kp_stack *out)
{
    *out = (struct kp_stack){0};
    return l && l->stack && id ? l->stack(l->arg, id, out) : -ENOENT;
}

int kp_lookup_timeline(const struct kp_lookup *l, struct kp_timeline *out)
{
    *out = (struct kp_timeline){.n = 0};
    return l && l->timeline ? l->timeline(l->arg, out) : -ENOENT;
}
