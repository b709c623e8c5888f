/*
 * Reads a file of options, KPROF_CONFIG: lines of NAME = VALUE. Names are those of the environment (KPROF_LAUNCH_SKIP)
 * or of the flags (launch-skip). The environment overrides the file.
 */
#ifndef KP_REPORT_OPTIONS_CONFIG_H
#define KP_REPORT_OPTIONS_CONFIG_H

#include <stddef.h>

struct kp_config_file {
    char **entries; /* KPROF_NAME=value, an entry of an environment; owned */
    size_t *lines;  /* of each entry, from 1 on */
    size_t n;
    char *path;
};

/* Reads `path`. Blanks around name and value are dropped; empty lines, and lines that begin with #, are skipped. A
 * repeated name has the last value. Does not check whether the names are options. Returns 0; -ENOMEM; -EINVAL with
 * *err (malloc'ed line) for a file that is unreadable, a pipe, or over 1 MiB. -EINVAL also for a line without NAME =
 * VALUE, and for one that names another file of options. Free *out with kp_options_file_free, whatever is returned. */
int kp_options_file_read(const char *path, struct kp_config_file *out, char **err);
void kp_options_file_free(struct kp_config_file *c);

/* Returns an `environ`-like array of the entries of `env` and of variables that only the file sets. The array is
 * malloc'ed; its entries belong to `env` and `c`. NULL without memory. */
char **kp_options_file_over(const struct kp_config_file *c, char *const *env);

/* Returns the file's line that set `entry` of such an array; 0 = none. */
size_t kp_options_file_line(const struct kp_config_file *c, const char *entry);

#endif
