#include "report/view/order.h"

#include <string.h>

static double by_none(const struct kp_ordered *k)
{
    (void)k;
    return 0;
}

static double by_time(const struct kp_ordered *k)
{
    return k->ns;
}

static double by_gain(const struct kp_ordered *k)
{
    return k->saved_ns;
}

static double by_duration(const struct kp_ordered *k)
{
    return k->launches ? k->ns / (double)k->launches : 0;
}

/* What comes first has the highest of these numbers. */
static double (*const weights[kp_sort_values])(const struct kp_ordered *k) = {
    [KP_SORT_TIME] = by_time,
    [KP_SORT_GAIN] = by_gain,
    [KP_SORT_DURATION] = by_duration,
    [KP_SORT_NAME] = by_none,
};

int kp_order(const struct kp_ordered *a, const struct kp_ordered *b, enum kp_sort by)
{
    double x = weights[by](a), y = weights[by](b);
    if (x == y && by == KP_SORT_GAIN) { /* kernels without a gain */
        x = a->ns;
        y = b->ns;
    }
    return x != y ? (x < y) - (x > y) : strcmp(a->name, b->name);
}
