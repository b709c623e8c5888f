/* The part of a program's environment that a session keeps. */
#ifndef KP_BASE_ENVIRONMENT_H
#define KP_BASE_ENVIRONMENT_H

#include <stdbool.h>
#include <stddef.h>

/* Returns kprof's own variables of `env` (NULL-terminated, NAME=value), and those of a fixed list of names that
 * configure CUDA, its libraries and frameworks, or give the process's rank. Each is a line NAME=value, in the order of
 * names. All others are left out, because they may be secret. A line end in a value becomes a blank. malloc'ed; NULL
 * without memory. Any thread. */
char *kp_environment_lines(char *const *env);

/* Reads the next line of such a text: *name and *value point into the text, with their lengths. False at the end. */
bool kp_environment_next(const char **cursor, const char **name, size_t *name_len, const char **value,
                         size_t *value_len);

/* Returns the rank from a launcher's variables, with its length; NULL if none sets it. Searches the given text, or for
 * NULL the environment of this process. */
const char *kp_environment_rank(const char *lines, size_t *len);

#endif
