/* The page details, the same in the profiled process at exit and in `kprof report`. */
#ifndef KP_REPORT_PAGES_DETAILS_H
#define KP_REPORT_PAGES_DETAILS_H

#include "report/write/writer.h"

/* Writes one launch of the writer's session: header, note, verdict, sections, each with the advice of its rules. Adds
 * the launch to `summary`, unless that is NULL. The session or the display chooses sections and metrics; the display
 * chooses the parts of sections. A section with nothing to show is left out. In a metric list, "regex:EXPR" means
 * metrics of the launch and "breakdown:X" the constituents on its device. If the launch has the counters of
 * kp_section_quick instead, that section comes first. Metrics missing for the reason in the note are left out, so a
 * launch without counters has no section of counters only. Returns errors, the writer's included. */
int kp_details_launch(struct kp_writer *w, const struct kp_result *r, struct kp_summary *summary);
/* Writes the variants of a launch that has some as a table, with the best one. In rows, each is a row of the page
 * series. 0 or -ENOMEM; errors of the writer stay there. */
int kp_details_variants(struct kp_writer *w, const struct kp_result *r);
/* Adds a launch to `summary`, and to `also` (NULL: none), like kp_details_launch, without writing it. 0 or -ENOMEM.
 * */
int kp_details_judge(const struct kp_display *d, const struct kp_session *s, const struct kp_result *r,
                     struct kp_summary *summary, struct kp_summary *also);
/* Writes the launch's part of one section. A section that nobody `asked_for` shows only collected metrics. 0 or
 * -ENOMEM; errors of the writer stay there. */
int kp_details_section(struct kp_writer *w, const struct kp_section *s, const struct kp_view *v, bool asked_for);

#endif
