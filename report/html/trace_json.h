/*
 * Writes timelines as trace events (Chrome's trace event format), which Perfetto and chrome://tracing load. A device is
 * a process there, a stream a thread; NVTX ranges have a process with a thread for each of the program's. Samples over
 * time of profiled launches become counters of their device.
 *
 * Part of the command, like the HTML file. Threads: one at a time.
 */
#ifndef KP_REPORT_HTML_TRACE_JSON_H
#define KP_REPORT_HTML_TRACE_JSON_H

#include <stdio.h>

#include "report/store/store.h"

/* Prints the timelines of `n` sessions as one trace. Times count from the first activity of them all, which
 * otherData.base_ns names. *found: activities in total; without any, the trace is empty. 0, -ENOMEM, -EIO, or an error
 * of a store with *err. */
int kp_html_trace_print(struct kp_store *const *stores, size_t n, FILE *to, uint64_t *found, char **err);

#endif
