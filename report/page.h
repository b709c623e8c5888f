/* A whole stored session as text: what the library prints at the end and what `kprof report` prints later. */
#ifndef KP_REPORT_PAGE_H
#define KP_REPORT_PAGE_H

#include "report/render.h"
#include "report/store.h"

/* Process line, every launch, account; then, for a session that is not complete, a line that says so. Returns 0, what
 * `out` returned, or an error of the store; *err is a malloc'ed line or NULL. */
int kp_page_details(const struct kp_sink *out, const struct kp_display *d, struct kp_store *store, char **err);

#endif
