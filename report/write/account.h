/* The line that opens a report, and the account that closes it. */
#ifndef KP_REPORT_WRITE_ACCOUNT_H
#define KP_REPORT_WRITE_ACCOUNT_H

#include <stdbool.h>

#include "report/view/display.h"
#include "report/write/out.h"

/* Prints the line `[pid] program@host` that opens the report. */
int kp_render_process(const struct kp_sink *out, const struct kp_display *d, const struct kp_session *s);
/* The launches of a stored session that the display chose. */
struct kp_choice {
    uint64_t shown, stored;
    uint64_t graphs; /* left out because they have no kernel name */
};
/* Prints the closing account: launches seen, profiled, skipped and why, passes, time; and, if nothing was profiled,
 * why. With `choice` (else NULL) the account names the whole session, and a last line counts the launches shown. */
int kp_render_account(const struct kp_sink *out, const struct kp_session *s, const struct kp_choice *choice);
/* Returns true if nothing was profiled because only the timeline was asked for. */
bool kp_account_of_timeline(const struct kp_session *s);
/* A choice of launches that no launch of a session passes. */
struct kp_unmatched {
    const char *kernel_name; /* if it alone chooses, else "" */
    const char *range;       /* nvtx-include if it alone chooses, else "" */
    const char *filters;     /* the options that choose */
    const char *near;        /* the kernel nearest to kernel-name, or NULL */
    uint64_t matched;        /* launches that all but their number lets pass */
    uint64_t graphs;         /* launches without a name of a kernel */
    struct kp_session seen;  /* kernels, and the ranges around launches */
};
/* Reports that no launch is shown, why, and what there is to choose from. */
int kp_render_unmatched(const struct kp_sink *out, const struct kp_unmatched *u);

#endif
