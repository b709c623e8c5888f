/* How the command writes HTML, and other files that are not pages. */
#ifndef KP_CMD_HTML_FILE_H
#define KP_CMD_HTML_FILE_H

#include <stdbool.h>
#include <stdio.h>

#include "report/html/html.h"
#include "report/options/options.h"
#include "report/store/store.h"

/* Reads the value of a flag that names a file to write. A session is refused: the name of the file was forgotten.
 * Returns 0, or an exit status after reporting why not. */
int kp_file_take(const char *flag, const char *value, const char **out);
/* Refuses to write over a session, to a place where no file can be created, or, without `force`, over any other file.
 * Call it before the work whose result is written. Returns 0, or an exit status after reporting why. */
int kp_file_check(const char *path, bool force);
/* Shows a file in the browser of this desktop. Returns 0, or an exit status after reporting why not. */
int kp_file_open_html(const char *path);
/* Writes the file; `compare` as in kp_html_print. With `force` an existing file is replaced, when the new one is
 * complete; a session never is. For links, pipes and devices see kp_target_open. Returns 0, or an exit status after
 * reporting why. `mode` is that of a new file, before the umask: that of the sessions (kp_store_mode). */
int kp_file_save_html(const struct kp_html *h, bool compare, const char *path, bool force, mode_t mode);
/* HTML files that are made of several sessions; zero-initialised. */
struct kp_html_files {
    struct kp_html_file {
        char *path;
        struct kp_html *html;
        mode_t mode; /* what all its sessions allow */
    } * at;
    size_t n;
};
/* Adds a session to the file of that path, which `name` is for its process (kp_expand_path). Returns 0, or an exit
 * status after reporting why not. */
int kp_file_add_html(struct kp_html_files *f, struct kp_store *store, const struct kp_options *o, const char *name);
/* Writes all files, and frees them. Returns 0, or the exit status of the first that failed. */
int kp_file_save_all_html(struct kp_html_files *f, bool force);

/* Writes a file as kp_file_save_html does, with what `print` prints; that returns 0 or a negative errno. */
int kp_file_save(int (*print)(void *arg, FILE *to), void *arg, const char *path, bool force, mode_t mode);

#endif
