/* The line that opens a report, and the account that closes it. */
#ifndef KP_REPORT_WRITE_ACCOUNT_H
#define KP_REPORT_WRITE_ACCOUNT_H

#include <stdbool.h>

#include "report/write/out.h"

/* Prints the line `[pid] program@host` that opens the report. */
int kp_render_process(const struct kp_sink *out, const struct kp_session *s);
/* The launches of a stored session that the display chose. */
struct kp_choice {
    uint64_t shown, stored;
    uint64_t graphs; /* left out, as they have no name of a kernel */
};
/* Prints the closing account: launches seen, profiled, skipped and why, passes, time; and, where nothing was
 * profiled, why. With `choice` (else NULL) the account names the whole session, and a last line counts the launches
 * shown. */
int kp_render_account(const struct kp_sink *out, const struct kp_session *s, const struct kp_choice *choice);
/* Whether nothing was profiled, as the timeline alone was asked for. */
bool kp_account_of_timeline(const struct kp_session *s);
/* Reports that no launch is shown, and why. Names the kernel `near` (or NULL), the nearest to the name asked for, and
 * the kernels of `seen`. `kernel_name`: where it alone chooses, else ""; `filters`: all that choose. `matched`:
 * launches that all but their number lets pass; `graphs`: those that have no name of a kernel. */
int kp_render_unmatched(const struct kp_sink *out, const char *kernel_name, const char *filters, const char *near,
                        uint64_t matched, uint64_t graphs, const struct kp_session *seen);
/* Prints the kernels that the session saw: a line for each of the first ones and one line for the others. */
void kp_render_kernels(struct kp_out *o, const struct kp_session *s);

#endif
