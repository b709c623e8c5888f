/* The advice on a launch as text: the messages of rules, and the verdict. */
#ifndef KP_REPORT_WRITE_ADVICE_H
#define KP_REPORT_WRITE_ADVICE_H

#include "base/sink.h"
#include "report/judge/rules.h"
#include "report/judge/verdict.h"

/* Prints the messages below a section's tables, and a blank line. */
int kp_render_messages(const struct kp_sink *out, const struct kp_messages *m, const char *section_id);
/* Prints one or two lines, wrapped to the report's width; nothing for an unknown verdict. */
int kp_render_verdict(const struct kp_sink *out, const struct kp_verdict *v);

#endif
