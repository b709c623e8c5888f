/* The file of kernels' names that ncu exports, for rename-kernels to read. One thread. */
#ifndef KP_CMD_NAMES_H
#define KP_CMD_NAMES_H

#include <stdbool.h>

/* Writes the names of the session's kernels to the file, each as it is and to be changed. With `force` an existing file
 * is replaced. Returns 0, or an exit status after reporting why not. */
int kp_names_export(const char *session, const char *file, bool force);

#endif
