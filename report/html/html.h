/*
 * Writes sessions as one HTML file, which needs nothing else: a writer over the blocks of the pages collects data, and
 * a script in the file (script/) shows them. No text of a session is markup or script there.
 *
 * Part of the command, not of libkprof.so. Threads: one at a time.
 */
#ifndef KP_REPORT_HTML_HTML_H
#define KP_REPORT_HTML_HTML_H

#include <stdio.h>

#include "report/write/writer.h"

struct kp_html;
struct kp_html *kp_html_new(void); /* NULL without memory */
void kp_html_free(struct kp_html *h);
/* Makes a display print what the file shows. `brief_above`: as in kp_display. */
void kp_html_display(struct kp_display *d, uint64_t brief_above);
/* Returns the writer, which collects what kp_page_write_store writes; call that for each session. Lasts as long as `h`.
 */
struct kp_writer *kp_html_writer(struct kp_html *h);
/* Prints the file. `compare`: its first page sets the first session against the others. 0 or an error. */
int kp_html_print(const struct kp_html *h, bool compare, FILE *to);

#endif
