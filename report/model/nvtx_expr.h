/*
 * Filters over NVTX ranges, in ncu's syntax. A filter is one or more expressions, separated by ';' or a line break; it
 * matches a launch when one of them does.
 *
 *   A/        inside the push-pop range A, anywhere in its thread's stack
 *   A/B       inside A with B directly in it; with /+/ between them, one range; with / * / (no blanks), any number
 *   [A  A]    A is the outermost range of the stack; the innermost one. [A] is the only one.
 *   A         inside the start-end range A;  A,B: inside both
 *   D@...     of the domain D, else of the default domain; a stack has one domain's ranges
 *   regex:... domain and names are expressions, found anywhere in the name (base/pattern.h). A '[' that begins the part
 *             after '@', or a ']' that ends it, needs a '/' before it: it would mean the end of a stack
 *
 * In a name, the characters @ , [ ] / * + ; and \ need a '\' before them. In an expression only @ , / and ; need one;
 * any other '\' is part of the expression. Blanks around an expression do not count, unless a '\' is before them.
 *
 * Pure functions. Threads: a filter may be used by any number at a time.
 */
#ifndef KP_REPORT_MODEL_NVTX_EXPR_H
#define KP_REPORT_MODEL_NVTX_EXPR_H

#include <stdbool.h>

#include "report/model/model.h"

/* The number of push-pop ranges of one thread that count, from the outermost on. */
enum { KP_NVTX_DEPTH = 128 };

struct kp_nvtx_filter;

/* Parses a filter. Returns 0; -EINVAL with *err (malloc'ed line) for a wrong expression; -ENOMEM. Text without an
 * expression makes a filter that matches nothing. */
int kp_nvtx_filter_new(const char *text, struct kp_nvtx_filter **out, char **err);
bool kp_nvtx_filter_empty(const struct kp_nvtx_filter *f);
/* Returns true if the filter matches `ranges`: those of each thread from the outermost to the innermost, threads and
 * kinds in any order. */
bool kp_nvtx_filter_match(const struct kp_nvtx_filter *f, const struct kp_nvtx_range *ranges, size_t n);
void kp_nvtx_filter_free(struct kp_nvtx_filter *f);

/* Returns the expression that matches this range; malloc'ed, NULL without memory. */
char *kp_nvtx_expression(const struct kp_nvtx_range *r);

#endif
