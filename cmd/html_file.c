#include "cmd/html_file.h"

#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/path.h"
#include "base/room.h"
#include "cmd/console.h"
#include "cmd/whole_file.h"
#include "report/pages/page.h"

/* Prints, and returns the errno of a failed write; `print` itself only knows that one failed. */
static int print_to(int (*print)(void *arg, FILE *to), void *arg, FILE *to)
{
    errno = 0;
    int rc = print(arg, to);
    return rc == -EIO && errno ? -errno : rc;
}

/* Returns why the file must not be written; NULL if it may. */
static const char *why_kept(const char *path, bool force)
{
    struct stat st;
    if (!kp_target_is_stdout(path) && !stat(path, &st) && S_ISDIR(st.st_mode))
        return "it is a folder; name a file in it";
    if (kp_target_is_database(path))
        return "it is a session, which would be overwritten; name another file";
    if (kp_target_lacks_folder(path))
        return "No such file or directory; make its folder, or choose another path";
    return !force && kp_target_replaces(path) ? "the file exists; use --force-overwrite, or name another file" : NULL;
}

int kp_file_check(const char *path, bool force)
{
    const char *why = why_kept(path, force);
    if (why)
        return kp_console_error(KP_EXIT_USAGE, "cannot write %s: %s", path, why);
    int rc = kp_target_try(path);
    return rc ? kp_console_error(KP_EXIT_FAILED, "cannot write %s: %s", path, strerror(-rc)) : 0;
}

int kp_file_save(int (*print)(void *arg, FILE *to), void *arg, const char *path, bool force, mode_t mode)
{
    struct kp_target target;
    const char *why = why_kept(path, force);
    if (why)
        return kp_console_error(KP_EXIT_FAILED, "cannot write %s: %s", path, why);
    int rc = kp_target_open(&target, path, mode);
    if (!rc)
        rc = kp_target_end(&target, print_to(print, arg, target.to));
    const char *shown = kp_target_is_stdout(path) ? "stdout" : path;
    return rc ? kp_console_error(KP_EXIT_FAILED, "cannot write %s: %s", shown, strerror(-rc)) : EXIT_SUCCESS;
}

struct html_print {
    const struct kp_html *html;
    bool compare;
};

static int print_html(void *arg, FILE *to)
{
    const struct html_print *p = arg;
    return kp_html_print(p->html, p->compare, to);
}

int kp_file_save_html(const struct kp_html *h, bool compare, const char *path, bool force, mode_t mode)
{
    struct html_print p = {h, compare};
    return kp_file_save(print_html, &p, path, force, mode);
}

int kp_file_take(const char *flag, const char *value, const char **out)
{
    *out = value;
    if (!*value)
        return kp_console_error(KP_EXIT_USAGE, "--%s needs the name of a file", flag);
    return kp_target_is_database(value)
               ? kp_console_error(
                     KP_EXIT_USAGE,
                     "--%s needs the name of the file to write, but %s is a session: write --%s NEW-FILE %s", flag,
                     value, flag, value)
               : 0;
}

/* --- files of several sessions --- */

/* Finds the file of a path, or adds it. NULL without memory. Takes over the path. */
static struct kp_html_file *file_of(struct kp_html_files *f, char *path)
{
    for (size_t i = 0; i < f->n; i++)
        if (!strcmp(f->at[i].path, path)) {
            free(path);
            return &f->at[i];
        }
    struct kp_html *html = KP_ROOM(f->at, f->n) ? kp_html_new() : NULL;
    if (!html) {
        free(path);
        return NULL;
    }
    f->at[f->n] = (struct kp_html_file){path, html, 0666};
    return &f->at[f->n++];
}

int kp_file_add_html(struct kp_html_files *f, struct kp_store *store, const struct kp_options *o, const char *name)
{
    struct kp_session s = {0};
    struct kp_display d = kp_display_of(o);
    char *path = NULL, *err = NULL;
    kp_html_display(&d, o->brief_above);
    int rc = kp_store_get_session(store, &s, &err);
    if (!rc)
        rc = kp_expand_path(name, s.pid, s.host, &path, &err);
    struct kp_html_file *file = rc ? NULL : file_of(f, path);
    if (file)
        file->mode &= kp_store_mode(store);
    if (!rc)
        rc = file ? kp_page_write_store(kp_html_writer(file->html), &d, store, &err) : -ENOMEM;
    int status = rc ? kp_console_error(KP_EXIT_FAILED, "no HTML is written: %s", err ? err : strerror(-rc)) : 0;
    kp_session_free(&s);
    free(err);
    return status;
}

int kp_file_save_all_html(struct kp_html_files *f, bool force)
{
    int status = 0;
    for (size_t i = 0; i < f->n; i++) {
        int one = kp_file_save_html(f->at[i].html, false, f->at[i].path, force, f->at[i].mode);
        status = status ? status : one;
        kp_html_free(f->at[i].html);
        free(f->at[i].path);
    }
    free(f->at);
    *f = (struct kp_html_files){.n = 0};
    return status;
}

/* --- the browser --- */

/* Returns true if there is a desktop with a browser, or a browser is named. */
static bool has_display(void)
{
    static const char *const names[] = {"DISPLAY", "WAYLAND_DISPLAY", "BROWSER"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]);
        if (value && *value)
            return true;
    }
    return false;
}

int kp_file_open_html(const char *path)
{
    char opener[] = "xdg-open", *whole = realpath(path, NULL), *argv[] = {opener, whole ? whole : (char *)path, NULL};
    pid_t child;
    int status = 0;
    int rc = has_display() ? posix_spawnp(&child, opener, NULL, NULL, argv, environ) : ENODEV;
    if (!rc)
        while (waitpid(child, &status, 0) < 0 && errno == EINTR)
            ;
    bool shown = !rc && WIFEXITED(status) && !WEXITSTATUS(status);
    const char *why = rc == ENODEV ? "there is no desktop here" : rc ? "xdg-open is missing" : "xdg-open found none";
    if (!shown)
        kp_console_error(0, "no browser to show the report in, %s; the report is %s", why, argv[1]);
    free(whole);
    return shown ? EXIT_SUCCESS : KP_EXIT_FAILED;
}
