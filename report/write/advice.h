/* The advice on a launch as text: the messages of rules, and the verdict. */
#ifndef KP_REPORT_WRITE_ADVICE_H
#define KP_REPORT_WRITE_ADVICE_H

#include "report/judge/rules.h"
#include "report/judge/verdict.h"
#include "report/write/out.h"

/* Prints the messages below a section's tables, and a blank line. Returns o->rc. */
int kp_render_messages(struct kp_out *o, const struct kp_messages *m, const char *section_id);
/* Prints one or two lines; nothing for an unknown verdict. Returns o->rc. */
int kp_render_verdict(struct kp_out *o, const struct kp_verdict *v);

#endif
