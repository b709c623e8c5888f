/* The `kprof` command: its entry, and those of its sub-commands, each with argv[0] the sub-command's name. Nothing of
 * cmd/ is part of libkprof.so. */
#ifndef KP_CMD_MAIN_H
#define KP_CMD_MAIN_H

#include <stddef.h>

#include "cmd/flags.h"

/* main() of the command. Returns the exit status. */
int kp_main(int argc, char **argv);

/* `kprof report FILE...`. Returns the exit status. */
int kp_main_report(int argc, char **argv);

/* `kprof diff A B`. Returns the exit status. */
int kp_main_diff(int argc, char **argv);
/* The flags that only it has; *n receives their number. */
const struct kp_own_flag *kp_main_diff_flags(size_t *n);

/* Prints what would stop profiling here. Returns the exit status: 0 when nothing does. */
int kp_main_doctor(void);

#endif
