/* `kprof run`: runs a program with libkprof.so preloaded. */
#ifndef KP_CMD_RUN_H
#define KP_CMD_RUN_H

/* Returns libkprof.so from the command's folder, or from the lib folder of its prefix. malloc'ed, NULL if neither
 * exists. */
char *kp_run_library(void);

/* Runs argv[0] with libkprof.so preloaded and the environment's KPROF_ variables. Returns its exit status, or with
 * `strict` that of a failure. If a signal killed the program, kills the command with the same signal. `commands`: the
 * sub-commands, NULL at the end; one may be suggested for a program that does not exist. */
int kp_main_run(char **argv, const char *const *commands);

#endif
