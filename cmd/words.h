/* Command lines that stand in files, as ncu has them: response files (@FILE), and its file of options. One thread. */
#ifndef KP_CMD_WORDS_H
#define KP_CMD_WORDS_H

#include <stdbool.h>

/* A command line; at[n] is NULL. */
struct kp_words {
    char **at;
    int n;
};

/* Replaces the word `at`, which is @FILE, by those of the file: blanks separate them, quotes keep them together, and a
 * backslash takes the next character as it is. Returns 0, or an exit status after reporting why not. The words stay to
 * the end of the process. */
int kp_words_take_response(struct kp_words *w, int at);
/* Adds the options of a file in the form of ncu's config.ncu-cfg after the first word: `--option = value` or an option
 * alone in a line; below [Launch-and-attach] those of a run, below [Import] those of an import, elsewhere of both.
 * NULL: the one in this folder, else in $HOME/.config/NVIDIA Corporation, if there is one. Returns as above. */
int kp_words_take_config(struct kp_words *w, const char *path, bool imports);
/* Replaces a word by a copy of `text`. 0 or -ENOMEM. */
int kp_words_put(struct kp_words *w, int at, const char *text);

/* Returns the folders of files, as a list separated by commas like the files; malloc'ed, NULL without memory. */
char *kp_words_folders_of(const char *files);
/* Returns a folder, and those in it that have section files, at any depth, separated by ':'; malloc'ed, NULL without
 * memory. */
char *kp_words_folders_in(const char *folder);

#endif
