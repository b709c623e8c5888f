/* Flags that are given several times with different values: the last one counts. */
#ifndef KP_CMD_REPEATED_H
#define KP_CMD_REPEATED_H

#include "report/options/options.h"

enum { KP_REPEATED_MAX = 8 };

/* The values of one flag; all zero: it was not given. */
struct kp_repeated {
    unsigned times;
    const char *last, *values[KP_REPEATED_MAX]; /* the first ones, each once */
    unsigned n_values;                          /* with those that found no room */
};

/* Notes a value, which must last. */
void kp_repeated_note(struct kp_repeated *r, const char *value);
/* Warns if the values differ: only the last one holds. `row`: of the option; NULL: a flag of the sub-command's own. */
void kp_repeated_tell(const struct kp_repeated *r, const char *flag, const struct kp_option *row);

#endif
