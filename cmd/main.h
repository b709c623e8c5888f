/* The entry point of the `kprof` command. libkprof.so contains nothing of cmd/. */
#ifndef KP_CMD_MAIN_H
#define KP_CMD_MAIN_H

/* main() of the command. Returns the exit status. */
int kp_main(int argc, char **argv);

#endif
