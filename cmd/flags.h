/* The flags of the command line: what the sub-commands share in taking them. */
#ifndef KP_CMD_FLAGS_H
#define KP_CMD_FLAGS_H

#include <stdbool.h>
#include <stddef.h>

#include "report/options/options.h"

struct option;

/* A switch that is thrown by naming it. */
bool kp_flags_is_plain_switch(const struct kp_option *row);

/* Loads the section folder that the environment, or its file of options, names in option `row`. Returns 0, or an exit
 * status after having said why. */
int kp_flags_check_folder(const struct kp_option *row);

/* Whether getopt_long, which has just found this long flag, took a shorter word for it; *word receives that. */
bool kp_flags_is_abbreviated(const struct option *flag, const char **word, char *const *argv);

/* "did you mean --x?" for a word without its dashes, its value left out: the flags that begin with it, else the
 * nearest. malloc'ed; NULL when there is none. */
char *kp_flags_meant(const char *word, const char *const *names);

/* A flag that only one sub-command has, and no option of the library. */
struct kp_own_flag {
    const char *flag, *value, *help; /* as in --help */
    /* Takes its value; returns 0, or an exit status after having said why. */
    int (*take)(const char *value, void *arg);
};

/* The flags of a sub-command. */
struct kp_flags_of {
    const char *command, *takes; /* "report", "session files" */
    enum kp_option_group least;  /* it takes the options of this group and of those behind it */
    const struct kp_own_flag *own;
    size_t n_own;
    void *arg;                      /* of their take */
    const struct kp_own_flag *diff; /* flags that are those of `kprof diff` alone */
    size_t n_diff;
};

/* The sub-commands that a flag (without its dashes) belongs to, as the end of a sentence; NULL where there is no such
 * flag. `diff`: those of `kprof diff` alone. Static text. */
const char *kp_flags_home(const char *flag, const struct kp_own_flag *diff, size_t n_diff);

/* Puts the options into the environment, having checked them, and hands over the sub-command's own. Returns 0, or an
 * exit status; optind is then that of the first file. */
int kp_flags_take(const struct kp_flags_of *f, int argc, char **argv);

#endif
