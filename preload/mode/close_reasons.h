/*
 * Counts what closed the windows that were replayed, and warns if that made profiling slow. Use inside the gate's
 * exclusive section.
 */
#ifndef KP_PRELOAD_MODE_CLOSE_REASONS_H
#define KP_PRELOAD_MODE_CLOSE_REASONS_H

#include <stddef.h>

#include "report/model/reasons.h"

/* Counts a window of so many launches, which closed for that reason; `what` is its text, or the driver's function of
 * KP_REASON_CALL, static. */
void kp_close_reasons_note(enum kp_reason reason, const char *what, size_t launches);

/* Call it after each window with the time that it cost, ns. Prints once, early enough to help, what the run costs:
 * after 5 s, or after 2 s if windows hold about one launch each. Names what closes them, and cheaper choices. */
void kp_close_reasons_tell_early(double took_ns);

/* Prints one line on what closed the windows, if they held so few launches that profiling took much longer than
 * necessary. Call it once, at the end. */
void kp_close_reasons_tell(void);

#endif
