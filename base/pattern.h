/* Name patterns: "exact name", or "regex:EXPR" (found anywhere in the name; see regex.h). */
#ifndef KP_BASE_PATTERN_H
#define KP_BASE_PATTERN_H

#include <stdbool.h>

struct kp_pattern;
/* Returns 0; -EINVAL with *err (malloc'ed line) for a bad expression; -ENOMEM. Empty text matches everything. */
int kp_pattern_new(const char *text, struct kp_pattern **out, char **err);
bool kp_pattern_match(const struct kp_pattern *p, const char *name); /* thread-safe */
void kp_pattern_free(struct kp_pattern *p);

#endif
