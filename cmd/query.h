/* What can be collected, as tables: the sub-commands and flags of the queries. */
#ifndef KP_CMD_QUERY_H
#define KP_CMD_QUERY_H

#include <stddef.h>

/* What the flags of the queries say; NULL: not given. */
struct kp_query {
    const char *command; /* the sub-command */
    const char *chip, *mode;
};

/* A flag that is the command's own, and no option of the library. One whose name is a sub-command's is as good as that;
 * the others say what it is about. */
struct kp_query_flag {
    const char *flag, *value, *help; /* as in --help; `value` begins with a blank, or is empty */
    size_t offset;                   /* of its field in struct kp_query */
};

/* All of them; *n receives their number. Static data. */
const struct kp_query_flag *kp_query_flags(size_t *n);

/* Prints what is asked for, for the KPROF_ variables of the environment. Returns the exit status. */
int kp_main_query(const struct kp_query *q);

#endif
