/*
 * Application replay: runs the program once for each pass that the metrics need, and joins what the runs counted.
 *
 * The first run counts nothing: it provides everything that needs no counters, the number of runs, and the command's
 * exit status. Each later run counts one pass of all launches.
 */
#ifndef KP_CMD_APPLICATION_H
#define KP_CMD_APPLICATION_H

#include "cmd/run_outcome.h"
#include "report/options/options.h"
#include "report/store/store.h"

struct kp_application {
    const struct kp_options *o;
    const char *folder, *status_file; /* see make_folder of run.c */
    /* Runs the program to its end. *status as waitpid gives it; *signal_got: a signal that the command got meanwhile
     * and has forwarded, or 0. Returns 0, or an exit status when it could not be started. */
    int (*run)(void *arg, int *status, int *signal_got);
    void *arg;
    /* Prints a joined session; `kept` is its file if it is kept, else NULL. */
    void (*print)(void *print_arg, struct kp_store *store, const struct kp_session *s, const char *kept);
    void *print_arg;
};

/* Runs the series, stores and prints what came of it. *status is that of the first run; *out: the first run's outcome,
 * with the failures of all. Removes what the runs left in the folder. Returns 0, or an exit status when the program
 * could not be started. */
int kp_application_run(const struct kp_application *a, struct kp_run_outcome *out, int *status);

#endif
