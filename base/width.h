/*
 * How many columns of a terminal text takes: all that lays text out asks here. Chinese, Japanese and Korean characters
 * and emoji take two, marks that join the character before take none. A digit in a key is counted as two: the key takes
 * one. The C library's wcwidth would depend on the locale, which belongs to the program. What is counted too wide
 * leaves a blank; nothing is counted too narrow.
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
/* Returns the width for printf's `*`, which counts bytes, so that the text takes at least `columns`. */
int kp_width_printf(const char *text, size_t columns);

#endif
