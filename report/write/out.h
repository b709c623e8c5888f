/*
 * Writes text in ASCII, KP_LINE_WIDTH wide, as reports go to files.
 * Errors: the first one, of the sink or of memory, stays in kp_out.rc; from then on nothing is written.
 */
#ifndef KP_REPORT_WRITE_OUT_H
#define KP_REPORT_WRITE_OUT_H

#include <errno.h>

#include "base/sink.h"
#include "report/view/display.h"
#include "report/view/lines.h"

enum {
    /* Only unbreakable text is wider: a metric's name, a number of 300 digits, a frame of a call stack. */
    KP_LINE_WIDTH = 120,
    KP_INDENT = 4,
    KP_DRAWING_WIDTH = KP_LINE_WIDTH - KP_INDENT,
};

struct kp_out {
    const struct kp_sink *sink;
    const struct kp_display *display;
    int rc;
};

void kp_out_text(struct kp_out *o, const char *text, size_t len);
/* Does the same, with blanks for line ends and tabs, too. */
void kp_out_one_line(struct kp_out *o, const char *text, size_t len);
void kp_out_print(struct kp_out *o, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Prints `prefix` and `text`, with further lines indented to the text. */
void kp_out_wrapped(struct kp_out *o, const char *prefix, const char *text);
/* Prints `c` `n` times. */
void kp_out_repeat(struct kp_out *o, char c, size_t n);
/* Whether `p` is not NULL; NULL is noted as -ENOMEM. */
static inline bool kp_out_has(struct kp_out *o, const void *p)
{
    if (!p && !o->rc)
        o->rc = -ENOMEM;
    return p != NULL;
}

/* Returns kp_line_title for the display; NULL without memory, which is noted. */
char *kp_out_title(struct kp_out *o, const struct kp_line *l);

#endif
