/*
 * POSIX extended regular expressions that report only a match or none, in bounded memory and in time linear in the
 * text.
 *
 * The C library's do not suit. Their compiler recurses, copies repeated parts and can use all memory; their matcher is
 * exponential with back-references. Both would run inside the profiled program, in its locale and on its stack. TRE has
 * the same faults for nested repetitions; RE2 needs C++. A yes or no needs no positions of parts, which are most of a
 * library. This is the rest: each character advances each state of the expression once.
 *
 * The syntax is POSIX's with GNU's \w \W \s \S \b \B \< \> \` \', as in the C library's locale "C": a character is a
 * byte. There are no back-references.
 */
#ifndef KP_BASE_REGEX_H
#define KP_BASE_REGEX_H

#include <stdbool.h>

struct kp_regex;
/* Compiles an expression. `whole`: it must match all of the text, else any part. 0; -ENOMEM; -EINVAL with *err
 * (malloc'ed line) for a bad expression. More than 2048 steps, copies made for repetitions included, are bad, too. */
int kp_regex_new(const char *expr, bool whole, struct kp_regex **out, char **err);
/* Thread-safe; uses 9 KB of stack and no other memory. */
bool kp_regex_match(const struct kp_regex *r, const char *text);
void kp_regex_free(struct kp_regex *r); /* does nothing for NULL */

#endif
