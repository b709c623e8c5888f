/*
 * Writes time on the GPU by call stack or by NVTX range as folded stacks, a line each: frames from the outermost to the
 * kernel, separated by semicolons, a blank, and nanoseconds. Tools that draw flame graphs read it.
 *
 * Part of the command, like the HTML file. Threads: one at a time.
 */
#ifndef KP_REPORT_HTML_FOLDED_H
#define KP_REPORT_HTML_FOLDED_H

#include <stdio.h>

#include "report/write/writer.h"

enum kp_folded_by { KP_FOLDED_STACK, KP_FOLDED_NVTX /* push-pop ranges of the launching thread */ };

struct kp_folded;
struct kp_folded *kp_folded_new(enum kp_folded_by by); /* NULL without memory */
void kp_folded_free(struct kp_folded *f);
/* Makes a display print what the lines need. */
void kp_folded_display(struct kp_display *d);
/* Returns the writer, which collects what kp_page_write_store writes; call that for each session. Lasts as long as `f`.
 */
struct kp_writer *kp_folded_writer(struct kp_folded *f);
/* Returns what the user can do if stacks are kernels alone because nothing else was collected; else NULL. Call it after
 * the session was written. */
const char *kp_folded_lacks(const struct kp_folded *f);
/* Prints the lines in the order of first launches. They add up to the time of all launches. 0 or -EIO. */
int kp_folded_print(const struct kp_folded *f, FILE *to);

#endif
