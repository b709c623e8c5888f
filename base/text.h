/* Small helpers for text: lists, messages, control characters, the hash of names. */
#ifndef KP_BASE_TEXT_H
#define KP_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Takes the next item of the comma list at *cursor into *item, *len: trimmed of blanks, empty items left out. Returns
 * false at the end of the list. The list is not changed; *cursor moves on. */
bool kp_list_next(const char **cursor, const char **item, size_t *len);
/* Whether `word` is an item of the list; NULL is an empty list. */
bool kp_list_has(const char *list, const char *word);
/* The same of a list of metrics, whose items are separated by commas or blanks. */
bool kp_word_next(const char **cursor, const char **word, size_t *len);

/* FNV-1a (http://www.isthe.com/chongo/tech/comp/fnv/) into which `seed` is mixed, folded so that the low bits serve a
 * table of any size. */
uint64_t kp_hash(const void *data, size_t size, uint64_t seed);

/* Of ASCII, ends of lines and tabs too. */
bool kp_is_control(char c);
/* The bytes of the UTF-8 character at `text`, which has `len` > 0 bytes; 0 when there is none. */
size_t kp_utf8_len(const char *text, size_t len);
/* The number of such a character. */
uint32_t kp_utf8_code(const char *text, size_t len);
/* The bytes of the character at `text`; *shown: whether it may be printed. Names come from programs and from files of
 * others: none may steer the terminal, end a line or turn the order of what stands beside it. So controls are not shown
 * (ASCII, U+0080 to U+009F), nor line separators, marks of writing direction and what is no UTF-8. */
size_t kp_shown_len(const char *text, size_t len, bool *shown);
/* Makes one line of text that may hold anything: a blank for each byte that is not to be shown. */
void kp_blank_controls(char *text, size_t len);

/* Closes a stream that open_memstream made for *text. 0, or -ENOMEM: then what *text points to is to be freed all the
 * same. The C library leaves NULL without memory for its last step, and calls that a success. */
int kp_text_end(FILE *f, char *const *text);

/* Formats into a malloc'ed *err, one line whatever is in the arguments, and returns -EINVAL, or -ENOMEM with *err NULL.
 */
int kp_error(char **err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* As kp_error, for a word that is not in `list`: `HEAD 'WORD'; did you mean 'NEAREST'?`, or, where none is near, all
 * that is valid. */
int kp_error_choice(char **err, const char *head, const char *word, const char *const *list);

#endif
