/*
 * How many columns text fills on a terminal; all layout uses these functions. Chinese, Japanese and Korean characters
 * and emoji fill two, combining marks none. A digit of a keycap counts as two although the keycap fills one. The C
 * library's wcwidth would depend on the locale, which belongs to the program. A width may be too large, which leaves a
 * blank, but never too small.
 */
#ifndef KP_BASE_WIDTH_H
#define KP_BASE_WIDTH_H

#include <stddef.h>

/* Returns the columns of the character at `text`, which has `len` > 0 bytes; *bytes receives its length, with the mark
 * that makes it an emoji. What is not shown (text.h) is a blank. */
size_t kp_width_of_char(const char *text, size_t len, size_t *bytes);
/* Returns the columns of the text. */
size_t kp_width(const char *text);
/* Returns the columns of `len` bytes of text. */
size_t kp_width_of(const char *text, size_t len);
/* Returns how many bytes of the text fit into `columns`, without cutting a character. */
size_t kp_width_fit(const char *text, size_t len, size_t columns);
/* Returns the width for printf's `*`, which counts bytes, so that the text fills at least `columns`. */
int kp_width_printf(const char *text, size_t columns);

#endif
