/* The chosen metrics of a launch, for what shows metrics without their sections: the page raw and the JSON. */
#ifndef KP_REPORT_VIEW_NARROW_H
#define KP_REPORT_VIEW_NARROW_H

#include "report/view/display.h"

/* Makes *out a copy of the launch that has the metrics the display chooses, all if it chooses none: those of its list,
 * and those that its sections and their rules have. Frees with free(out->metrics); all else stays owned by `r`, which
 * must outlive the copy. 0, or -ENOMEM with nothing to free. */
int kp_narrow(const struct kp_display *d, const struct kp_session *s, const struct kp_result *r, struct kp_result *out);

#endif
