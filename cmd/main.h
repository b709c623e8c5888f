/* The `kprof` command: its entry point, and those of its sub-commands, which get their name as argv[0]. libkprof.so
 * contains nothing of cmd/. */
#ifndef KP_CMD_MAIN_H
#define KP_CMD_MAIN_H

#include <stddef.h>

#include "cmd/flags.h"

/* main() of the command. Returns the exit status. */
int kp_main(int argc, char **argv);

/* `kprof report FILE...`. Returns the exit status. */
int kp_main_report(int argc, char **argv);

/* Returns the flags that only it has; *n receives their number. */
const struct kp_own_flag *kp_main_report_flags(size_t *n);

/* `kprof diff A B...`. Returns the exit status. */
int kp_main_diff(int argc, char **argv);
/* Returns the flags that only it has; *n receives their number. */
const struct kp_own_flag *kp_main_diff_flags(size_t *n);
/* Returns both. */
static inline struct kp_own_flags kp_main_own_flags(void)
{
    struct kp_own_flags own;
    own.report = kp_main_report_flags(&own.n_report);
    own.diff = kp_main_diff_flags(&own.n_diff);
    return own;
}

/* Prepares `kprof series`: sets in the environment what the user did not give. Returns 0, or an exit status. */
int kp_main_series(void);

/* Prints what would stop profiling here. Returns the exit status: 0 when nothing would. */
int kp_main_doctor(void);

#endif
