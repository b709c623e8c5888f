#include "report/view/variants.h"

const char kp_variants_own[] = "the program's own";

const char kp_variants_unchecked[] =
    "The results of variants are not checked. A kernel whose indices, loops or shared memory depend on the block size "
    "may compute something else, or less. Each variant was measured once.";

const struct kp_result *kp_variants_at(const struct kp_result *r, size_t i)
{
    return i ? r->variants[i - 1].of : r;
}

const char *kp_variants_name(const struct kp_result *r, size_t i)
{
    return i ? r->variants[i - 1].name : kp_variants_own;
}

bool kp_variants_time(const struct kp_result *r, size_t i, double *ns)
{
    const struct kp_result *one = kp_variants_at(r, i);
    return (!i || !one->launch.note) && kp_result_duration(one, ns) && *ns > 0;
}

bool kp_variants_change(const struct kp_result *r, size_t i, double *percent)
{
    double own, ns;
    if (!kp_variants_time(r, 0, &own) || !kp_variants_time(r, i, &ns))
        return false;
    *percent = 100 * (ns - own) / own;
    return true;
}

bool kp_variants_best(const struct kp_result *r, size_t *best)
{
    double ns, least = 0;
    bool found = false;
    for (size_t i = 0; i <= r->n_variants; i++) {
        if (!kp_variants_time(r, i, &ns) || (found && ns >= least))
            continue;
        found = true;
        least = ns;
        *best = i;
    }
    return found;
}
