/* What a rotation counts in each list. */
#include <string.h>

#include "collectors/plan/plan_internal.h"

/* In each list that has room: their spread shows whether the launches of a kernel are alike. */
const char *const kp_plan_canaries[] = {"gpu__time_duration.sum", "sm__cycles_elapsed.max", NULL};
_Static_assert(sizeof(kp_plan_canaries) / sizeof(*kp_plan_canaries) == KP_CANARIES + 1, "their number");

bool kp_plan_is_canary(const char *name)
{
    for (size_t i = 0; kp_plan_canaries[i]; i++)
        if (!strcmp(name, kp_plan_canaries[i]))
            return true;
    return false;
}

size_t kp_plan_canaries_of(const struct kp_plan *p, const char **names)
{
    size_t n = 0;
    for (size_t i = 0; kp_plan_canaries[i]; i++) {
        const struct kp_planned *m = kp_plan_find(p, kp_plan_canaries[i]);
        if (m)
            names[n++] = m->name;
    }
    return n;
}
