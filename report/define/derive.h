/*
 * Derived metrics: computed from other metrics of the same launch. Definitions come from one table (derived.def) and
 * from the user's section files.
 *
 * Threads: definitions are added while the options are read; from then on everything here is read-only.
 */
#ifndef KP_REPORT_DEFINE_DERIVE_H
#define KP_REPORT_DEFINE_DERIVE_H

#include <stdbool.h>
#include <stddef.h>

#include "report/model/model.h"

struct kp_derived {
    const char *name;
    const char *unit;       /* base unit */
    const char *expression; /* metric names, numbers, + - * / and parentheses */
};

/* Returns the definition of `name`, NULL when there is none. */
const struct kp_derived *kp_derived_find(const char *name);
/* Returns all definitions, the user's first; *n receives their number. The array is malloc'ed, to free(); the data it
 * points to is static. NULL without memory. */
const struct kp_derived **kp_derived_all(size_t *n);
/* Adds a copy of a definition, in place of one of the same name. Returns 0, -ENOMEM, or -EINVAL with *err (malloc'ed
 * line) for an unreadable expression. */
int kp_derived_add(const struct kp_derived *d, char **err);

/* Calls `fn` once for every metric that the definition needs and that is not derived itself. A non-zero return ends
 * the walk and is returned. Returns -ELOOP for a definition that needs itself. */
int kp_derived_inputs(const struct kp_derived *d, int (*fn)(const char *metric, void *arg), void *arg);

/* Computes metric `name` of `r` and sets it, unless `r` has it. A missing input makes it n/a, for the reason of that
 * input. Division by zero gives 0 in definitions of the table: it means that nothing happened. In a user's definition
 * it makes the metric n/a. Returns 0, -ENOENT for a name without definition, or -ENOMEM. */
int kp_derive(struct kp_result *r, const char *name);
/* Computes all of the user's definitions in the same way. Returns 0 or -ENOMEM. */
int kp_derive_users(struct kp_result *r);

/* Returns true if the user has defined derived metrics. */
bool kp_derive_has_users(void);

#endif
