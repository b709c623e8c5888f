/* Source lines and instructions of a launch as text; see out.h for errors and width. */
#ifndef KP_REPORT_WRITE_SOURCE_TABLE_H
#define KP_REPORT_WRITE_SOURCE_TABLE_H

#include "report/define/source.h"
#include "report/view/lines.h"
#include "report/write/out.h"

/* Prints at most `limit` of the hottest lines, below a title. Each has its numbers, its place, the call that it was
 * inlined at, and its text if found. Names missing data, with `help` also how to find files; ends with a blank line. */
void kp_write_source_lines_text(struct kp_out *o, const struct kp_view *v, size_t limit, bool help);
/* Prints a function as the display asks for: all its instructions, below their source lines, or its PTX by line, or the
 * instructions below their lines of PTX, too. */
void kp_write_source_listing(struct kp_out *o, const struct kp_view *v, const struct kp_source_function *f);

enum { KP_SHORT_MAX = 16 };
/* Formats in at most five characters: 9999, 12.3k, 123k, 1.23M. */
void kp_write_short_number(uint64_t value, char out[KP_SHORT_MAX]);

#endif
