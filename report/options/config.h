/*
 * A file of options, KPROF_CONFIG: lines of NAME = VALUE, by the names of the environment (KPROF_LAUNCH_SKIP) or of the
 * flags (launch-skip). What the environment sets goes before the file.
 */
#ifndef KP_REPORT_OPTIONS_CONFIG_H
#define KP_REPORT_OPTIONS_CONFIG_H

#include <stddef.h>

struct kp_config_file {
    char **entries; /* KPROF_NAME=value, as in an environment; owned */
    size_t *lines;  /* where each stands, from 1 on */
    size_t n;
    char *path;
};

/* Reads `path`. Blanks around name and value do not count; empty lines, and lines that begin with #, say nothing. A
 * name that is given twice has the last value. Whether the names are options is not looked at. 0; -EINVAL with *err
 * (malloc'ed line) for a file that cannot be read, a pipe, more than 1 MiB, a line that is no NAME = VALUE, or one that
 * names another file of options; -ENOMEM. *out to kp_config_file_free, whatever is returned. */
int kp_config_file_read(const char *path, struct kp_config_file *out, char **err);
void kp_config_file_free(struct kp_config_file *c);

/* The `environ`-like array that holds what `env` sets, and what the file sets besides; its entries are those of both,
 * the array is malloc'ed. NULL without memory. */
char **kp_config_file_over(const struct kp_config_file *c, char *const *env);

/* The line of the file that `entry` of such an array is of; 0 = none. */
size_t kp_config_file_line(const struct kp_config_file *c, const char *entry);

#endif
