/* The report as text: ASCII, KP_LINE_WIDTH wide, in ncu's layout. */
#ifndef KP_REPORT_WRITE_TEXT_WRITER_H
#define KP_REPORT_WRITE_TEXT_WRITER_H

#include "report/write/columns.h"
#include "report/write/writer.h"

struct kp_text_writer {
    struct kp_writer base;
    const struct kp_table *table; /* the one being written */
    struct kp_columns cells;      /* of that table, unless streamed */
    const char **headings;
    bool *to_the_left;
};

/* Initialises the writer; end it with kp_write_end(&t->base). */
void kp_write_text_writer_init(struct kp_text_writer *t, const struct kp_sink *sink, const struct kp_display *d);

#endif
