#include "report/view/series.h"

#include <errno.h>
#include <stdlib.h>

double kp_view_series_dropped(const struct kp_result *r)
{
    double dropped;
    return kp_metric_number(kp_result_find(r, "profiler__pmsampler_dropped_samples"), &dropped) ? dropped : 0;
}

int kp_view_series_of_rows(const struct kp_section *s, size_t first, size_t end, const struct kp_result *r,
                           struct kp_series_row **out, size_t *n)
{
    *n = 0;
    *out = calloc(end > first ? end - first : 1, sizeof **out);
    if (!*out)
        return -ENOMEM;
    for (size_t i = first; i < end; i++) {
        const struct kp_row *row = &s->rows[i];
        const struct kp_series *series = kp_result_find_series(r, row->metric);
        if (series && kp_cc_matches(row->cc, r->launch.cc_major, r->launch.cc_minor))
            (*out)[(*n)++] = (struct kp_series_row){row->label, series};
    }
    return 0;
}
