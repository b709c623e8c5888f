/* Command-line flags: the parsing that sub-commands share. */
#ifndef KP_CMD_FLAGS_H
#define KP_CMD_FLAGS_H

#include <stdbool.h>
#include <stddef.h>

#include "report/options/options.h"

struct kp_repeated;
struct option;

/* Returns true if the option is a switch that needs no value. */
bool kp_cli_is_plain_switch(const struct kp_option *row);
/* Returns the value that a flag without one means; NULL: it needs one. */
const char *kp_cli_meant_alone(const struct kp_option *row);

/* Loads the section folder that option `row` has in the environment, or in its file of options. Returns 0, or an
 * exit status after reporting why. */
int kp_cli_check_folder(const struct kp_option *row);

/* Returns "did you mean --x?" for a word without its dashes and value: the flags that begin with the word, else the
 * nearest. malloc'ed; NULL when there is none. */
char *kp_cli_meant(const char *word, const char *const *names);

/* Returns what separates the items of a row's value, if a flag that is given again adds to it; else NULL: the last one
 * holds. */
const char *kp_cli_separator(const struct kp_option *row);
/* Adds to the value of an earlier flag of such a row, like ncu. malloc'ed; NULL without memory. */
char *kp_cli_joined(const struct kp_option *row, const char *before, const char *value);

/* Warns of options that were given several times with different values; the last one counts. `given`: what each row of
 * the options was given. */
void kp_cli_tell_repeated(const struct kp_repeated *given);

/* A flag of one sub-command that is not an option of the library. */
struct kp_own_flag {
    const char *flag, *value, *help; /* as in --help; value "" = a switch */
    /* Receives the value, NULL for a switch; returns 0, or an exit status after reporting why. */
    int (*take)(const char *value, void *arg);
    bool adds; /* given again, it adds to what it was given before */
};

/* The flags of one sub-command that are not options of the library. */
struct kp_own_flags {
    const char *command;
    const struct kp_own_flag *at;
    size_t n;
};

/* The flags of a sub-command. */
struct kp_cli_of {
    const char *command, *takes; /* "report", "session files" */
    enum kp_option_group least;  /* accepts the options of this group and of later ones */
    const struct kp_own_flag *own;
    size_t n_own;
    void *arg; /* for `take` of the flags */
};

/* Finds the value of a flag in `choices` (NULL-terminated); *out receives its index. 0, or an exit status after
 * reporting that there is none. */
int kp_cli_take_choice(const char *flag, const char *value, const char *const choices[], size_t *out);
/* Registers the flags of `n` sub-commands that are not options. The table must last. */
void kp_cli_know(const struct kp_own_flags *owners, size_t n);
/* Returns the sub-commands that a flag (without its dashes) belongs to: the end of a sentence; NULL for an unknown
 * flag. Static text, which the next call may overwrite. */
const char *kp_cli_home(const char *flag);

/* Checks the options and puts them into the environment; passes the sub-command's own flags to their `take`. Returns
 * 0, or an exit status; optind is then that of the first file. */
int kp_cli_take(const struct kp_cli_of *f, int argc, char **argv);

#endif
