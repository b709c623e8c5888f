/*
 * Name patterns: "exact name", or "regex:EXPR", which is found anywhere in the name.
 *
 * An expression is one of PCRE2 over bytes: `.` is any of them, `$` the very end, and an unknown escape an error.
 * Limits on matching bound its time and memory, whatever it is; neither the locale nor the stack of the calling thread
 * matters. Names without `regex:` never come to PCRE2.
 */
#ifndef KP_BASE_PATTERN_H
#define KP_BASE_PATTERN_H

#include <stdbool.h>

#define KP_REGEX "regex:"

struct kp_pattern;
/* Returns 0; -EINVAL with *err (malloc'ed line) for a bad expression; -ENOMEM. Empty text matches everything. Compiling
 * takes up to 100 KB of stack. */
int kp_pattern_new(const char *text, struct kp_pattern **out, char **err);
/* Does the same for an expression without "regex:", which must match a whole name. */
int kp_pattern_whole(const char *expr, struct kp_pattern **out, char **err);
/* Thread-safe. Takes less than 2 KB of stack; an expression keeps 20 KB of memory for it, and up to 8 MB where a name
 * asks for that. Returns false, too, where the limits end it: after about 50 ms, and once that has happened after a
 * thousandth of it. */
bool kp_pattern_match(const struct kp_pattern *p, const char *name);
/* Returns true if the limits have ended a match. */
bool kp_pattern_gave_up(const struct kp_pattern *p);
void kp_pattern_free(struct kp_pattern *p);

#endif
