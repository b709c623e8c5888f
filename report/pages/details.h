/* The page details. The same in the profiled process at exit and in `kprof report`. */
#ifndef KP_REPORT_PAGES_DETAILS_H
#define KP_REPORT_PAGES_DETAILS_H

#include "report/write/writer.h"

/* One launch of the writer's session: header, note, verdict, sections, each with the advice of its rules. It is added
 * to `summary`, unless that is NULL. The sections and metrics are those the session asked for, or the display chooses,
 * and of the sections that which the display wants; a section that has nothing to show is left out. Of a metric list,
 * "regex:EXPR" means those of the launch and "breakdown:X" the constituents on its device. Before them
 * comes the section of one pass (kp_section_quick) where the launch has its counters instead. What is missing for the
 * reason that the note gives is left out, so a launch without counters has no section of counters only. Returns what
 * failed, of the writer, too. */
int kp_details_launch(struct kp_writer *w, const struct kp_result *r, struct kp_summary *summary);
/* What the launch has of one section. A section that nobody `asked_for` shows only what was collected. 0 or -ENOMEM;
 * errors of the writer stay there. */
int kp_details_section(struct kp_writer *w, const struct kp_section *s, const struct kp_view *v, bool asked_for);

#endif
