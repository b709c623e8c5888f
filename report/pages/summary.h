/*
 * The summary over a run: kernels by their time, with what bounds them and what would help most. Fed launch by launch;
 * it keeps a fixed amount of memory for each kernel name, whatever the number of launches.
 * Threads: one at a time for each summary.
 */
#ifndef KP_REPORT_PAGES_SUMMARY_H
#define KP_REPORT_PAGES_SUMMARY_H

#include "report/judge/rules.h"

struct kp_summary;
struct kp_summary *kp_summary_new(void); /* NULL without memory */
void kp_summary_free(struct kp_summary *s);

/* Adds one launch with its messages (kp_rules_apply); nothing of them is kept but which
 * sections they are in, which must outlive the summary. 0 or -ENOMEM, with the summary as it
 * was. */
int kp_summary_add(struct kp_summary *s, const struct kp_session *session, const struct kp_result *r,
                   const struct kp_messages *m);
/* What to fix first, then the kernels by time, the longest first. Nothing without launches. 0, -ENOMEM, or what the
 * sink returned. */
int kp_summary_render(const struct kp_summary *s, const struct kp_sink *out);

#endif
