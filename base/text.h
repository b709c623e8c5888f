/* Small helpers for text: lists, messages, control characters, the hash of names. */
#ifndef KP_BASE_TEXT_H
#define KP_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Returns the text, "" for NULL. */
static inline const char *kp_or_empty(const char *text)
{
    return text ? text : "";
}
/* Returns the part of a path after its last slash. */
static inline const char *kp_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}
/* Formats as asprintf does, into malloc'ed memory. NULL without memory. */
char *kp_asprintf(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Reads the next item of the comma list at *cursor into *item, *len: trimmed of blanks, empty items left out. Returns
 * false at the end of the list. The list is not changed; *cursor moves on. */
bool kp_list_next(const char **cursor, const char **item, size_t *len);
/* Returns true if `word` is an item of the list; NULL is an empty list. */
bool kp_list_has(const char *list, const char *word);
/* Stand between the names of a list of metrics, which scripts also write over several lines. */
#define KP_BETWEEN_NAMES ", \t\r\n"
/* Does as kp_list_next for a list of metrics: any of KP_BETWEEN_NAMES separate its items. */
bool kp_word_next(const char **cursor, const char **word, size_t *len);

/* Returns FNV-1a (http://www.isthe.com/chongo/tech/comp/fnv/) of the data and `seed`, folded so that the low bits
 * suit a table of any size. */
uint64_t kp_hash(const void *data, size_t size, uint64_t seed);

/* Returns true if `c` is a control character of ASCII, including line ends and tabs. */
bool kp_text_is_control(char c);
/* Returns the length of the UTF-8 character at `text`, which has `len` > 0 bytes; 0 when there is none. */
size_t kp_utf8_len(const char *text, size_t len);
/* Returns the code point of such a character. */
uint32_t kp_utf8_code(const char *text, size_t len);
/* Returns the length of the character at `text`; *shown: it may be printed. Names come from programs and from other
 * people's files. They must not control the terminal, end a line or reorder the text around them. So controls (ASCII,
 * U+0080 to U+009F), line separators, marks of writing direction, and invalid UTF-8 are not shown. */
size_t kp_text_shown_len(const char *text, size_t len, bool *shown);
/* Returns how many characters `text` begins with that are printable ASCII: each is shown, and a column wide. It may
 * return up to 7 less. Nearly all text is such, and this is many times as fast as a look at each. */
size_t kp_plain_len(const char *text, size_t len);
/* Makes one line of any text: replaces each byte that is not shown by a blank. */
void kp_blank_controls(char *text, size_t len);

/* Closes a stream that open_memstream made for *text. 0 or -ENOMEM; the caller frees *text in both cases. Without
 * memory for its last step the C library leaves NULL, and reports success. */
int kp_text_end(FILE *f, char *const *text);

/* Formats one line into a malloc'ed *err, whatever the arguments contain. Returns -EINVAL, or -ENOMEM with *err
 * NULL. */
int kp_error(char **err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Reports, like kp_error, a word that is not in `list`: `HEAD 'WORD'; did you mean 'NEAREST'?`, or, if none is near,
 * all valid words. */
int kp_error_choice(char **err, const char *head, const char *word, const char *const *list);

#endif
