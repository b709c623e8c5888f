/* Roofs and points of a roofline, computed from the lines of its body: see KP_ROW_WORK. Threads: pure functions. */
#ifndef KP_REPORT_VIEW_ROOFS_H
#define KP_REPORT_VIEW_ROOFS_H

#include "report/view/lines.h"

/* A roof or a point: work and traffic per second. NaN: not known. */
struct kp_rates {
    const char *name; /* valid as long as the lines */
    bool is_point;
    double work, traffic;
    const struct kp_rates *roof; /* of a point */
};

struct kp_roofs {
    struct kp_rates *all;
    size_t n, points;
    const char *operation; /* the counted work: FLOP or op */
};

/* Computes all roofs and points. 0, or -ENOMEM with nothing to free. */
int kp_roofs_of(const struct kp_lines *l, struct kp_roofs *out);
void kp_roofs_free(struct kp_roofs *r);
/* Returns the roof or the point that a line's group names; it must have been computed. */
struct kp_rates *kp_roofs_find(const struct kp_roofs *r, const char *group);

/* Returns work per byte. */
double kp_rates_intensity(const struct kp_rates *r);
/* Returns the limit of the point's roof at the point's intensity; without traffic, the peak of work. */
double kp_rates_limit(const struct kp_rates *point);

#endif
