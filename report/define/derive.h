/*
 * Derived metrics: computed from other metrics of the same launch. One table (derived.def), and the definitions of the
 * user's section files.
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

/* The definition of `name`, NULL when there is none. */
const struct kp_derived *kp_derived_find(const char *name);
/* All definitions, the user's first; *n receives their number. malloc'ed array of pointers to static data, to free();
 * NULL without memory. */
const struct kp_derived **kp_derived_all(size_t *n);
/* Adds one, copied; it takes the place of one of the same name. 0, -EINVAL with *err (malloc'ed line) for an expression
 * that cannot be read, -ENOMEM. */
int kp_derived_add(const struct kp_derived *d, char **err);

/* Calls `fn` for every metric that the definition needs and that is not derived itself, once each; a non-zero return
 * ends it and is returned. A definition that needs itself is -ELOOP. */
int kp_derived_inputs(const struct kp_derived *d, int (*fn)(const char *metric, void *arg), void *arg);

/* Computes metric `name` of `r` and sets it, unless it is there; where an input is missing it is set to n/a for the
 * reason of that input. A division by zero gives 0 in the table, as there it is one by what did not happen; in a
 * definition of the user's it is such a reason. 0, -ENOENT for a name without definition, -ENOMEM. */
int kp_derive(struct kp_result *r, const char *name);
/* The same for all definitions of the user's. 0 or -ENOMEM. */
int kp_derive_users(struct kp_result *r);

#endif
