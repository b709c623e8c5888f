/* Prints --help, and the table from which documents and completions are made. */
#ifndef KP_CMD_HELP_H
#define KP_CMD_HELP_H

/* Prints the usage line to stderr. */
void kp_help_usage(void);

/* Prints --help to stdout. Returns the exit status. */
int kp_help(void);
/* Does the same for `kprof report` or `kprof diff`, as argv[0] names it, with what it takes alone. */
int kp_help_of(const char *command);

/* Prints the source of the man pages and the completions (tools/gen_docs.sh), which completions also read at run
 * time. A line each, tabs between the fields. `commands`: the sub-commands, NULL at the end. Returns the exit
 * status. */
int kp_help_words(const char *const *commands);

#endif
