/* Reads a small file that a user names, which may be anything. Threads: any. */
#ifndef KP_BASE_SMALL_FILE_H
#define KP_BASE_SMALL_FILE_H

#include <stddef.h>

/* Reads at most 1 MiB: a file may have no end. Never blocks, and refuses a pipe: each process reads the file, more than
 * once. *text is malloc'ed, with a '\0' after its `len` bytes. Returns 0, -ENOMEM, or -EINVAL with *err a malloc'ed
 * line such as "cannot read the options in FILE: why", by `what` the file has. */
int kp_small_file_read(const char *path, const char *what, char **text, size_t *len, char **err);

#endif
