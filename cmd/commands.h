/* The sub-commands of `kprof`: their table, which the parsing, --help and completions read, and their entry points,
 * which get the sub-command's name as argv[0]. One thread. */
#ifndef KP_CMD_COMMANDS_H
#define KP_CMD_COMMANDS_H

#include <stdbool.h>
#include <stddef.h>

#include "cmd/flags.h"

struct kp_query;

/* What --help says of a sub-command. */
struct kp_command_topic {
    const char *usage, *text;
    const char
        *beside; /* of one with flags of its own: names the options that it accepts, for the list of `kprof --help` */
};

/* Those with neither `own` nor `answer` run a program. */
struct kp_command {
    const char *name;
    int (*prepare)(void);              /* sets what was not given, before the program runs; 0, or an exit status */
    int (*own)(int argc, char **argv); /* parses its own flags; returns the exit status */
    int (*answer)(const struct kp_query *q);       /* accepts the flags of a run, but no program */
    const struct kp_own_flag *(*flags)(size_t *n); /* returns the flags that only it has; NULL: none */
    const struct kp_command_topic *topic;          /* NULL: those of a run, or what the flag of the query says */
    enum kp_option_group least;                    /* accepts the options of this group and of later ones */
    /* Flags, NULL at the end: all that has an effect on an answer, and what is listed by --help. NULL: those of the
     * group. */
    const char *const *heeds;
    enum kp_face face; /* that it begins */
};

/* Returns all of them; *n receives their number. Static data. */
const struct kp_command *kp_commands(size_t *n);
/* Returns the one of that name, or NULL. */
const struct kp_command *kp_command_find(const char *name);
/* Returns the names of all, NULL at the end. Static data. */
const char *const *kp_command_names(void);
/* Returns true if the sub-command uses a flag: an option, or one of the queries. */
bool kp_command_heeds(const struct kp_command *command, const char *flag);
/* Registers the flags that are not options (kp_cli_know). */
void kp_commands_know_flags(void);

/* `kprof report FILE...`. Returns the exit status. */
int kp_main_report(int argc, char **argv);
int kp_main_stats(int argc, char **argv);
const struct kp_own_flag *kp_main_stats_flags(size_t *n);
/* Returns the flags that only it has; *n receives their number. */
const struct kp_own_flag *kp_main_report_flags(size_t *n);

/* `kprof diff A B...`. Returns the exit status. */
int kp_main_diff(int argc, char **argv);
/* Returns the flags that only it has; *n receives their number. */
const struct kp_own_flag *kp_main_diff_flags(size_t *n);

/* Prepares `kprof series`: sets in the environment what the user did not give. Returns 0, or an exit status. */
int kp_main_series(void);

/* Prints what would stop profiling here. Returns the exit status: 0 when nothing would. */
int kp_main_doctor(void);

#endif
