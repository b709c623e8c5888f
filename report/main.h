/* The `kprof` command. Nothing of it is part of libkprof.so: here, and only here, may code print and exit. */
#ifndef KP_REPORT_MAIN_H
#define KP_REPORT_MAIN_H

#include <stdio.h>

#include "report/render.h"

/* Exit statuses; those of a program that cannot be started are the shell's. */
enum {
    KP_EXIT_FAILED = 1,
    KP_EXIT_USAGE = 2,
    KP_EXIT_NOT_EXECUTABLE = 126,
    KP_EXIT_NOT_FOUND = 127,
    KP_EXIT_SIGNAL = 128, /* plus the signal's number */
};

/* Prints `==ERROR== text` to stderr and returns `status`. */
int kp_main_error(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Text into a stdio stream. */
struct kp_sink kp_main_sink(FILE *stream);

/* Prints what --help says to stdout. Returns the exit status. */
int kp_main_help(void);

/* The sub-command. */
#define KP_MAIN_REPORT "report"

/* `kprof report FILE`; argv[0] is KP_MAIN_REPORT. Returns the exit status. */
int kp_main_report(int argc, char **argv);

/* Runs argv[0] with libkprof.so preloaded, as the KPROF_ variables of the environment say. Returns its exit status; if
 * a signal killed it, kills the command with the same signal. */
int kp_main_run(char **argv);

#endif
