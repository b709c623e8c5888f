#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <libgen.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "report/listed.h"
#include "report/main.h"
#include "report/model.h"
#include "report/options.h"
#include "report/page.h"
#include "report/pattern.h"
#include "report/section_files.h"

/* The name in the folder of `path` that is nearest to `path`'s; malloc'ed, NULL when none is near. */
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

static int cannot_open(const char *path, int rc, const char *err)
{
    char *near = rc == -ENOENT ? nearest_file(path) : NULL;
    if (near)
        kp_main_error(0, "%s; did you mean '%s'?", err, near);
    else
        kp_main_error(0, "%s", err ? err : strerror(-rc));
    free(near);
    return rc == -ENOENT || rc == -EINVAL ? KP_EXIT_USAGE : KP_EXIT_FAILED;
}

/* --- options: those that say what is shown of a session, and how --- */

/* What others may name depends on the section folder, so it comes first. */
static const size_t showing[] = {
    offsetof(struct kp_options, section_folder), offsetof(struct kp_options, set),
    offsetof(struct kp_options, section),        offsetof(struct kp_options, metrics),
    offsetof(struct kp_options, print_details),  offsetof(struct kp_options, print_metric_name),
    offsetof(struct kp_options, print_units),    offsetof(struct kp_options, print_metric_instances),
    offsetof(struct kp_options, apply_rules),    offsetof(struct kp_options, rule),
    offsetof(struct kp_options, kernel_name),    offsetof(struct kp_options, launch_skip),
    offsetof(struct kp_options, launch_count),
    offsetof(struct kp_options, page),           offsetof(struct kp_options, csv),
    offsetof(struct kp_options, json),           offsetof(struct kp_options, print_summary),
    offsetof(struct kp_options, trace_columns),
};

enum {
    FOLDER,         /* its place among them */
    FIRST_CHOOSING, /* what is shown, up to … */
    END_CHOOSING = FIRST_CHOOSING + 3,
    N_SHOWING = sizeof showing / sizeof *showing,
    FIRST_FLAG = 256, /* getopt_long's value for the first of them: above all letters */
};

static const struct kp_option *row_at(size_t i)
{
    size_t n;
    const struct kp_option *row = kp_option_rows(&n);
    while (row->offset != showing[i])
        row++;
    return row;
}

static size_t row_of_letter(int letter)
{
    size_t i = 0;
    while (row_at(i)->letter != letter)
        i++;
    return i;
}

static int unknown_flag(const char *word)
{
    const char *flags[N_SHOWING + 1] = {0}, *near = NULL;
    for (size_t i = 0; i < N_SHOWING; i++)
        flags[i] = row_at(i)->flag;
    char *name = strncmp(word, "--", 2) ? NULL : strndup(word + 2, strcspn(word + 2, "="));
    if (name)
        near = kp_nearest(name, flags);
    free(name);
    if (near)
        return kp_main_error(KP_EXIT_USAGE, "kprof report has no option %s; did you mean --%s?", word, near);
    return kp_main_error(KP_EXIT_USAGE, "kprof report has no option %s; it takes a session file", word);
}

/* The flag's value, else that of the environment, is checked; the flag's goes into the environment. 0 or an exit
 * status. */
static int take_option(const struct kp_option *row, const char *flag)
{
    char name[KP_OPTION_NAME_MAX], shown[KP_OPTION_NAME_MAX], *err = NULL;
    kp_option_env_name(row, name);
    snprintf(shown, sizeof shown, flag ? "--%s" : "%s", flag ? row->flag : name);
    const char *value = flag ? flag : getenv(name);
    int rc = value ? kp_option_check(row, shown, value, &err) : 0;
    if (rc == -EINVAL)
        kp_main_error(0, "%s", err);
    free(err);
    if (rc || (flag && setenv(name, flag, 1)))
        return rc == -EINVAL ? KP_EXIT_USAGE : KP_EXIT_FAILED;
    return 0;
}

/* Puts the flags into the environment. Returns 0, or an exit status; optind is then that of the file. */
static int take_options(int argc, char **argv)
{
    struct option longs[N_SHOWING + 1] = {0};
    char letters[2 * N_SHOWING + 2] = ":", *letter = letters + 1;
    const char *flags[N_SHOWING] = {0};
    int c, status = 0;
    for (size_t i = 0; i < N_SHOWING; i++) {
        int argument = kp_main_is_plain_switch(row_at(i)) ? optional_argument : required_argument;
        longs[i] = (struct option){row_at(i)->flag, argument, NULL, FIRST_FLAG + (int)i};
        if (row_at(i)->letter)
            letter = stpcpy(letter, (char[]){row_at(i)->letter, ':', '\0'});
    }
    optind = 0; /* begins anew, after the command's own flags */
    opterr = 0;
    while ((c = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
        if (c == ':')
            return kp_main_error(KP_EXIT_USAGE, "option %s needs a value; `kprof --help` lists the options",
                                 argv[optind - 1]);
        if (c == '?')
            return unknown_flag(argv[optind - 1]);
        flags[c < FIRST_FLAG ? row_of_letter(c) : (size_t)(c - FIRST_FLAG)] = optarg ? optarg : "on";
    }
    for (size_t i = 0; !status && i < N_SHOWING; i++)
        status = take_option(row_at(i), flags[i]);
    return status;
}

/* Whether something else is to be shown than what the session was made for. */
static bool is_chosen(void)
{
    char name[KP_OPTION_NAME_MAX];
    for (size_t i = FIRST_CHOOSING; i < END_CHOOSING; i++) {
        kp_option_env_name(row_at(i), name);
        const char *value = getenv(name);
        if (value && *value)
            return true;
    }
    return false;
}

/* --- the session --- */

/* Sections of the session may come from a folder of its own. Where that is gone, all others are shown. */
static void load_folder_of(struct kp_store *store)
{
    struct kp_session s = {0};
    char *err = NULL;
    if (!kp_store_get_session(store, &s, &err) && s.section_folder && *s.section_folder) {
        free(err);
        if (kp_option_check(row_at(FOLDER), row_at(FOLDER)->flag, s.section_folder, &err))
            kp_main_error(0, "%s; sections of the session that are in no other folder are left out", err ? err : "");
    }
    kp_session_free(&s);
    free(err);
}

/* What is chosen and not in the session. */
static int check_chosen(struct kp_store *store, const struct kp_display *d, char **warnings, char **err)
{
    const struct kp_section **sections = NULL;
    size_t n;
    int rc = kp_sections_select(d->set, d->sections, &sections, &n, err);
    if (!rc)
        rc = kp_listed_check(store, d->metrics, *d->set ? NULL : sections, *d->set ? 0 : n, warnings, err);
    free(sections);
    return rc;
}

static int print_file(const char *path, const struct kp_options *o, const struct kp_display *d)
{
    struct kp_store *store = NULL;
    char *err = NULL, *warnings = NULL;
    int status = EXIT_SUCCESS;
    int rc = kp_store_open(path, &store, &err);
    if (rc) {
        status = cannot_open(path, rc, err);
        goto out;
    }
    if (!*o->section_folder)
        load_folder_of(store);
    kp_main_warn(kp_sections_note());
    if (d->choose)
        rc = check_chosen(store, d, &warnings, &err);
    if (!rc && warnings)
        kp_main_warn(warnings);
    struct kp_sink out = kp_main_sink(stdout);
    rc = rc ? rc : kp_page_print_store(&out, d, store, &err);
    if (fflush(stdout) && !rc)
        rc = -errno;
    if (rc)
        status = kp_main_error(KP_EXIT_FAILED, "%s", err ? err : strerror(-rc));
out:
    kp_store_close(store);
    free(warnings);
    free(err);
    return status;
}

static int report(const char *path)
{
    struct kp_options o;
    struct kp_pattern *kernel = NULL;
    char *err = NULL;
    int rc = kp_options_from_env(&o, environ, &err);
    if (rc) {
        kp_main_error(0, "%s", err ? err : strerror(-rc));
        free(err);
        return rc == -EINVAL ? KP_EXIT_USAGE : KP_EXIT_FAILED;
    }
    struct kp_display d = kp_display_of(&o);
    d.choose = is_chosen();
    d.set = o.set;
    d.sections = o.section;
    d.metrics = o.metrics;
    d.launch_skip = o.launch_skip;
    d.launch_count = o.launch_count;
    rc = *o.kernel_name ? kp_pattern_new(o.kernel_name, &kernel, &err) : 0; /* was checked: memory alone may lack */
    d.kernel = kernel;
    int status = rc ? kp_main_error(KP_EXIT_FAILED, "%s", strerror(-rc)) : print_file(path, &o, &d);
    kp_pattern_free(kernel);
    free(err);
    kp_options_free(&o);
    return status;
}

int kp_main_report(int argc, char **argv)
{
    if (argc == 2 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")))
        return kp_main_help();
    int status = take_options(argc, argv);
    if (status)
        return status;
    if (argc - optind != 1)
        return kp_main_error(KP_EXIT_USAGE, "kprof report takes one session file");
    return report(argv[optind]);
}
