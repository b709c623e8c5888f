/* What opens a report, and the account that closes it. */
#ifndef KP_REPORT_WRITE_ACCOUNT_H
#define KP_REPORT_WRITE_ACCOUNT_H

#include "report/write/out.h"

/* `[pid] program@host` line that opens the report. */
int kp_render_process(const struct kp_sink *out, const struct kp_session *s);
/* Of the launches of a stored session, those that were chosen to be shown. */
struct kp_choice {
    uint64_t shown, stored;
};
/* The closing account: launches seen, profiled, skipped and why, passes, time; and, where nothing was profiled, why.
 * With `choice` (else NULL) it is called that of the whole session, and a last line counts what is shown. */
int kp_render_account(const struct kp_sink *out, const struct kp_session *s, const struct kp_choice *choice);
/* Where none of the launches is shown: why, with the kernel `near` (or NULL) whose name comes nearest to `kernel_name`,
 * and the kernels of `seen`. `matched`: launches that the name takes. */
int kp_render_unmatched(const struct kp_sink *out, const char *kernel_name, const char *near, uint64_t matched,
                        const struct kp_session *seen);
/* The kernels that the session says were seen, a line for each of the first ones and one for the others. */
void kp_render_kernels(struct kp_out *o, const struct kp_session *s);

#endif
