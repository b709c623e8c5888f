/* --help, and the table that documents and completions are made of. */
#ifndef KP_CMD_HELP_H
#define KP_CMD_HELP_H

/* Prints how the command is called to stderr. */
void kp_help_usage(void);

/* Prints what --help says to stdout. Returns the exit status. */
int kp_help(void);

/* What the man pages and the completions are made of (tools/gen_docs.sh) and what completions ask at run time: a line
 * each, tabs between the fields. `commands`: the sub-commands, NULL at the end. Returns the exit status. */
int kp_help_words(const char *const *commands);

#endif
