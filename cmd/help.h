/* Prints --help, and the table from which documents and completions are made. */
#ifndef KP_CMD_HELP_H
#define KP_CMD_HELP_H

struct kp_command;

/* Prints the usage line to stderr. */
void kp_help_usage(void);

/* Prints --help to stdout. Returns the exit status. */
int kp_help(void);
/* Does the same for a sub-command that does more than run a program, with its own flags. */
int kp_help_of(const struct kp_command *command);

/* Prints the source of the man pages and the completions (tools/gen_docs.sh), which completions also read at run
 * time. A line each, tabs between the fields. Returns the exit status. */
int kp_help_words(void);

#endif
