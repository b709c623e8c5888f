/* Paths with %-macros. Any thread; they read the environment. */
#ifndef KP_BASE_PATH_H
#define KP_BASE_PATH_H

#include <stdint.h>

/* Expands %p %h %q{NAME} %i %r %% in a path. %p becomes `pid`, %h `host`. %i is the lowest number from 1 for which the
 * file does not exist yet. %r is the rank that MPI, Slurm or torchrun gave the process, 0 without one. Returns 0 and a
 * malloc'ed path, or -EINVAL with *err (malloc'ed line), -ENOMEM. */
int kp_expand_path(const char *pattern, uint64_t pid, const char *host, char **out, char **err);

/* The ending of session files. */
#define KP_SESSION_ENDING ".kprof"
/* Returns the path, or pattern of one, with that ending if its last part has no extension: a dot, a letter, and then
 * only letters, digits, '-' and '_'. The path of a folder or a device stays, and what ends with a slash. malloc'ed;
 * NULL without memory. */
char *kp_path_with_ending(const char *path);

#endif
