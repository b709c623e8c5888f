/* Where the command writes HTML, and other files that are no pages. */
#ifndef KP_CMD_HTML_FILE_H
#define KP_CMD_HTML_FILE_H

#include <stdio.h>

#include "report/html/html.h"

/* Takes the value of --html. Returns 0, or an exit status after reporting why not. */
int kp_html_take(const char *value, const char **out);
/* Shows a file in the browser of this desktop. Returns 0, or an exit status after reporting why not. */
int kp_html_open(const char *path);
/* Names a new file in the folder of temporary files, malloc'ed; NULL with errno. */
char *kp_html_temporary(void);
/* Writes the file; `compare` as in kp_html_print. A file that is there is replaced only when the new one is complete.
 * Returns 0, or an exit status after reporting why. */
int kp_html_save(const struct kp_html *h, bool compare, const char *path);
/* Does the same with what `print` prints; that returns 0 or a negative errno. */
int kp_file_save(int (*print)(void *arg, FILE *to), void *arg, const char *path);

#endif
