/*
 * Joins the sessions of one process's runs, which counted one pass each, into one session.
 *
 * Threads: one; no function prints.
 */
#ifndef KP_CMD_JOIN_H
#define KP_CMD_JOIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "report/options/options.h"

struct kp_join {
    bool ranges; /* ranges of the program are the workloads, not launches */
    enum kp_app_match by;
    enum kp_app_mode mode;
    const char *folder;       /* has the files of preload/contexts/program_runs.h, which say what each run counts */
    const char *const *paths; /* the session of the process in each run; NULL if it has none */
    size_t runs;              /* that were made; paths[0] is not NULL */
    size_t wanted;            /* that all metrics need */
};

/* Writes the joined session to the new file `to`, over an old one if `overwrite`. It has the launches of the first run.
 * If a launch has no partner in a run, what that run counts is n/a, with the reason. Lines for the user about such
 * launches go to `notes`, without a line end after the last. 0 or a negative errno with *err, a malloc'ed line or
 * NULL. */
int kp_application_join(const struct kp_join *j, const char *to, bool overwrite, FILE *notes, char **err);

#endif
