/* The series of a launch that are shown: metrics sampled while it ran. */
#ifndef KP_REPORT_VIEW_SERIES_H
#define KP_REPORT_VIEW_SERIES_H

#include <stddef.h>

#include "report/define/sections.h"
#include "report/model/model.h"

struct kp_series_row {
    const char *label;
    const struct kp_series *series;
};

/* Returns how many samples of the launch were lost; 0 if unknown. */
double kp_view_series_dropped(const struct kp_result *r);
/* Returns the rows first..end-1 of `s` that the launch has series for. *out is malloc'ed, *n may be 0. 0 or -ENOMEM. */
int kp_view_series_of_rows(const struct kp_section *s, size_t first, size_t end, const struct kp_result *r,
                           struct kp_series_row **out, size_t *n);
/* Returns the series of a list's KP_SAMPLED items, under their names, in the same way. */
int kp_view_series_of_list(const char *list, const struct kp_result *r, struct kp_series_row **out, size_t *n);

#endif
