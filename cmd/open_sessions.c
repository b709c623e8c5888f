#include "cmd/open_sessions.h"

#include <dirent.h>
#include <errno.h>
#include <libgen.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/nearest.h"
#include "base/path.h"
#include "base/text.h"
#include "cmd/console.h"
#include "cmd/idle.h"
#include "report/define/section_files.h"
#include "report/model/model.h"
#include "report/options/options.h"
#include "report/store/store.h"

/* Returns the file in the folder of `path` with the nearest name; malloc'ed, NULL when none is near. */
static char *nearest_file(const char *path)
{
    char *for_dir = kp_strdup(path), *for_base = kp_strdup(path), *found = NULL;
    struct dirent **entries = NULL;
    const char **names = NULL;
    int n = for_dir && for_base ? scandir(dirname(for_dir), &entries, NULL, alphasort) : -1;
    if (n < 0 || !(names = calloc((size_t)n + 1, sizeof *names)))
        goto out;
    size_t used = 0;
    for (int i = 0; i < n; i++)
        if (entries[i]->d_name[0] != '.')
            names[used++] = entries[i]->d_name;
    const char *near = kp_nearest(basename(for_base), names);
    found = near ? strdup(near) : NULL;
out:
    for (int i = 0; i < n; i++)
        free(entries[i]);
    free(entries);
    free(names);
    free(for_dir);
    free(for_base);
    return found;
}

/* Returns the length of the path's folder with its slash. */
static size_t folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash + 1 - path) : 0;
}

static int cannot_open(const char *path, int rc, const char *err)
{
    char *near = rc == -ENOENT ? nearest_file(path) : NULL;
    if (near)
        kp_console_error(0, "%s; did you mean '%.*s%s'?", err, (int)folder_length(path), path, near);
    else
        kp_console_error(0, "%s", err ? err : strerror(-rc));
    free(near);
    return rc == -ENOENT || rc == -EINVAL ? KP_EXIT_USAGE : KP_EXIT_FAILED;
}

/* Options that select parts of a session. */
static const size_t choosing[] = {
    offsetof(struct kp_options, set),
    offsetof(struct kp_options, section),
    offsetof(struct kp_options, metrics),
};

/* Returns true if the user selected something other than the session was made for. */
static bool is_chosen(void)
{
    char name[KP_OPTION_NAME_MAX];
    for (size_t i = 0; i < sizeof choosing / sizeof *choosing; i++) {
        kp_option_env_name(kp_option_row(choosing[i]), name);
        char *value = kp_options_value(environ, name);
        free(value);
        if (value)
            return true;
    }
    return false;
}

/* --- the session --- */

/* Loads the session's own folder of section files. If it is gone, all other sections are shown. */
static void load_folder_of(struct kp_store *store)
{
    struct kp_session s = {0};
    char *err = NULL;
    if (!kp_store_get_session(store, &s, &err) && s.section_folder && *s.section_folder) {
        free(err);
        const struct kp_option *row = kp_option_row(offsetof(struct kp_options, section_folder));
        if (kp_option_check(row, row->flag, s.section_folder, &err))
            kp_console_error(0, "%s; the session's sections that only that folder has are left out", err ? err : "");
    }
    kp_session_free(&s);
    free(err);
}

/* Reports unused parts of section files, but only once for several sessions. */
static void tell_note(void)
{
    static char *told;
    const char *note = kp_sections_note();
    if (told && !strcmp(told, note))
        return;
    kp_console_warn(note);
    free(told);
    told = strdup(note);
}

int kp_open_session(const char *path, bool load_folder, struct kp_store **out)
{
    char *err = NULL, *with_ending = access(path, F_OK) ? kp_path_with_ending(path) : NULL;
    bool is_there = with_ending && !access(with_ending, F_OK);
    int rc = kp_store_open(is_there ? with_ending : path, out, &err);
    int status = rc ? cannot_open(path, rc, err) : EXIT_SUCCESS;
    if (!rc && load_folder)
        load_folder_of(*out);
    tell_note();
    free(with_ending);
    free(err);
    return status;
}

int kp_open_display(struct kp_options *o, struct kp_display *d)
{
    char *err = NULL;
    int rc = kp_options_from_env(o, environ, &err);
    if (rc) {
        kp_console_error(0, "%s", err ? err : strerror(-rc));
        free(err);
        return rc == -EINVAL ? KP_EXIT_USAGE : KP_EXIT_FAILED;
    }
    kp_idle_tell(o);
    *d = kp_display_of(o);
    d->choose = is_chosen();
    d->set = o->set;
    d->sections = o->section;
    d->metrics = o->metrics;
    return 0;
}

void kp_open_tell_twice(char *const *paths, size_t n, const char *so)
{
    struct stat *files = calloc(n + 1, sizeof *files); /* without memory nothing is reported */
    for (size_t i = 0; files && i < n; i++) {
        size_t k = 0;
        bool is_there = !stat(paths[i], &files[i]);
        while (is_there && k < i && (files[k].st_ino != files[i].st_ino || files[k].st_dev != files[i].st_dev))
            k++;
        char *text = NULL;
        if (is_there && k < i && asprintf(&text, "%s is the same file as %s: %s", paths[i], paths[k], so) >= 0) {
            kp_blank_controls(text, strlen(text)); /* names are the user's: they make no line of their own */
            kp_console_warn(text);
        }
        free(text);
    }
    free(files);
}
