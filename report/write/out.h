/*
 * Writes text in ASCII, at the display's width.
 * Errors: the first one, of the sink or of memory, stays in kp_out.rc; from then on nothing is written.
 */
#ifndef KP_REPORT_WRITE_OUT_H
#define KP_REPORT_WRITE_OUT_H

#include <errno.h>

#include "base/sink.h"
#include "report/view/display.h"
#include "report/view/lines.h"

enum {
    KP_LINE_WIDTH = 120,      /* that files are laid out for */
    KP_LINE_WIDTH_LEAST = 80, /* that drawings are laid out for */
    KP_LINE_NARROWEST = 40,   /* that anything is */
    KP_INDENT = 4,
    KP_DRAWING_WIDTH = KP_LINE_WIDTH - KP_INDENT,
};

struct kp_out {
    const struct kp_sink *sink;
    const struct kp_display *display; /* NULL: as a file without colours */
    int rc;
};

/* The colours of text. */
enum kp_paint {
    KP_PAINT_NONE, /* ends the others */
    KP_PAINT_LAUNCH,
    KP_PAINT_SECTION,
    KP_PAINT_LABEL,
    KP_PAINTS,
};

/* Returns the characters that begin a colour; "" if the display has none. Static text. */
const char *kp_paint(const struct kp_out *o, enum kp_paint paint);
/* Begins a colour. */
void kp_out_paint(struct kp_out *o, enum kp_paint paint);
/* Returns the width that drawings are laid out for: that of the display, from KP_LINE_WIDTH_LEAST to KP_LINE_WIDTH. */
size_t kp_out_width(const struct kp_out *o);
/* Returns true if lines are broken at the display's width. In files and pipes they are not: readers expect a header, or
 * a row of three columns, on one line. */
static inline bool kp_out_breaks(const struct kp_out *o)
{
    return o->display && o->display->width;
}
/* Returns the width for tables of names, which gain by room: that of the display, KP_LINE_NARROWEST or more. */
size_t kp_out_wide(const struct kp_out *o);
/* Returns the same up to KP_LINE_WIDTH, without an indent, for prose after it. */
size_t kp_out_prose(const struct kp_out *o, size_t indent);

void kp_out_text(struct kp_out *o, const char *text, size_t len);
/* Does the same, with blanks for line ends and tabs, too. */
void kp_out_one_line(struct kp_out *o, const char *text, size_t len);
void kp_out_print(struct kp_out *o, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Prints `prefix` and `text`, with further lines indented to the text. */
void kp_out_wrapped(struct kp_out *o, const char *prefix, const char *text);
/* Prints `c` `n` times. */
void kp_out_repeat(struct kp_out *o, char c, size_t n);
/* Returns true if `p` is not NULL; NULL is noted as -ENOMEM. */
static inline bool kp_out_has(struct kp_out *o, const void *p)
{
    if (!p && !o->rc)
        o->rc = -ENOMEM;
    return p != NULL;
}

/* Returns kp_line_title for the display; NULL without memory, which is noted. */
char *kp_out_title(struct kp_out *o, const struct kp_line *l);

#endif
