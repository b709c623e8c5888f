/* Prints tables of what can be collected: the sub-commands and flags of the queries. */
#ifndef KP_CMD_QUERY_H
#define KP_CMD_QUERY_H

#include <stddef.h>

/* The flags of the queries; NULL: not given. */
struct kp_query {
    const char *command; /* the sub-command */
    const char *chip, *chips, *mode, *collection;
    const char *import; /* of the face ncu: the session to print */
    const char *names;  /* the file for the names of kernels; NULL = none */
};

/* A flag of the command that is not an option of the library. A flag named like a sub-command means that sub-command;
 * the others select its subject. */
struct kp_query_flag {
    const char *flag, *value, *help; /* as in --help; `value` begins with a blank, or is empty */
    size_t offset;                   /* of its field in struct kp_query */
};

/* Returns all of them; *n receives their number. Static data. */
const struct kp_query_flag *kp_query_flags(size_t *n);

/* Prints the answer, under the KPROF_ variables of the environment. Returns the exit status. */
int kp_main_query(const struct kp_query *q);

#endif
