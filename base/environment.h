/* The part of a program's environment that a session keeps. */
#ifndef KP_BASE_ENVIRONMENT_H
#define KP_BASE_ENVIRONMENT_H

#include <stdbool.h>
#include <stddef.h>

/* The variables of `env` (NULL-terminated, NAME=value) that say how the program, CUDA and kprof were to behave, or
 * which rank the process is, as lines NAME=value in the order of their names. All others are left out, as they may
 * be secret. A line end in a value becomes a blank. malloc'ed; NULL without memory. Any thread. */
char *kp_environment_lines(char *const *env);

/* The next line of such a text: *name and *value point into it, with their lengths. False at the end. */
bool kp_environment_next(const char **cursor, const char **name, size_t *name_len, const char **value,
                         size_t *value_len);

#endif
