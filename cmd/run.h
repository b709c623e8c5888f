/* `kprof run`: a program with libkprof.so preloaded. */
#ifndef KP_CMD_RUN_H
#define KP_CMD_RUN_H

/* libkprof.so beside the command, or in the lib folder of the prefix it is installed in. malloc'ed, NULL if neither. */
char *kp_run_library(void);

/* Runs argv[0] with libkprof.so preloaded, as the KPROF_ variables of the environment say. Returns its exit status, or
 * with `strict` that of a failure; if a signal killed it, kills the command with the same signal. `commands`: the
 * sub-commands, one of which may be meant where there is no such program; NULL at the end. */
int kp_main_run(char **argv, const char *const *commands);

#endif
