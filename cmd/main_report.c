#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <libgen.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "report/view/listed.h"
#include "cmd/main.h"
#include "report/model/model.h"
#include "report/options/options.h"
#include "report/pages/page.h"
#include "base/pattern.h"
#include "report/define/section_files.h"
#include "report/write/run_summary.h"
#include "base/nearest.h"
#include "base/stream.h"

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
    offsetof(struct kp_options, section_folder),
    offsetof(struct kp_options, set),
    offsetof(struct kp_options, section),
    offsetof(struct kp_options, metrics),
    offsetof(struct kp_options, print_details),
    offsetof(struct kp_options, print_metric_name),
    offsetof(struct kp_options, print_units),
    offsetof(struct kp_options, print_metric_instances),
    offsetof(struct kp_options, apply_rules),
    offsetof(struct kp_options, rule),
    offsetof(struct kp_options, kernel_name),
    offsetof(struct kp_options, launch_skip),
    offsetof(struct kp_options, launch_count),
    offsetof(struct kp_options, page),
    offsetof(struct kp_options, csv),
    offsetof(struct kp_options, csv_defuse),
    offsetof(struct kp_options, json),
    offsetof(struct kp_options, print_summary),
    offsetof(struct kp_options, trace_columns),
    offsetof(struct kp_options, print_nvtx_rename),
    offsetof(struct kp_options, print_source),
    offsetof(struct kp_options, source_folders),
};

enum {
    FOLDER,         /* its place among them */
    FIRST_CHOOSING, /* what is shown, up to … */
    END_CHOOSING = FIRST_CHOOSING + 3,
    N_SHOWING = sizeof showing / sizeof *showing,
    MAX_FLAGS = 64,   /* that a sub-command may have */
    FIRST_FLAG = 256, /* getopt_long's value for the first row: above all letters */
    FIRST_OWN = 512,  /* and for the first flag of the sub-command's own */
};

static const struct kp_option *row_of(size_t offset)
{
    size_t n;
    const struct kp_option *row = kp_option_rows(&n);
    while (row->offset != offset)
        row++;
    return row;
}

static const struct kp_option *row_at(size_t i)
{
    return row_of(showing[i]);
}

/* Which of the rows has the short flag. */
static size_t row_of_letter(const struct kp_main_flags *f, int letter)
{
    size_t i = 0;
    while (row_of(f->rows[i])->letter != letter)
        i++;
    return i;
}

/* getopt's view of the flags; returns the number of the long ones. */
static size_t list_flags(const struct kp_main_flags *f, struct option longs[MAX_FLAGS + 1],
                         char letters[2 * MAX_FLAGS + 2])
{
    size_t n = 0;
    letters = stpcpy(letters, ":");
    for (size_t i = 0; i < f->n_rows; i++) {
        const struct kp_option *row = row_of(f->rows[i]);
        int argument = kp_main_is_plain_switch(row) ? optional_argument : required_argument;
        longs[n++] = (struct option){row->flag, argument, NULL, FIRST_FLAG + (int)i};
        if (row->letter)
            letters = stpcpy(letters, (char[]){row->letter, ':', '\0'});
    }
    for (size_t i = 0; i < f->n_own; i++)
        longs[n++] = (struct option){f->own[i].flag, required_argument, NULL, FIRST_OWN + (int)i};
    longs[n] = (struct option){0};
    return n;
}

static int unknown_flag(const struct kp_main_flags *f, const struct option *longs, size_t n, const char *word)
{
    const char *flags[MAX_FLAGS + 1] = {0};
    for (size_t i = 0; i < n; i++)
        flags[i] = longs[i].name;
    bool is_long = !strncmp(word, "--", 2);
    char *meant = is_long ? kp_main_meant(word + 2, flags) : NULL;
    char *flag = is_long ? strndup(word + 2, strcspn(word + 2, "=")) : NULL, letter[] = {'-', (char)optopt, '\0'};
    /* letters can stand together: of "-ix" the word is the one before */
    const char *instead = flag ? kp_option_instead(flag) : is_long ? NULL : kp_option_instead_of_letter(optopt);
    const char *shown = instead && !is_long ? letter : word, *hint = instead ? instead : meant;
    int status =
        kp_main_error(KP_EXIT_USAGE, hint ? "kprof %s has no option %s; %s" : "kprof %s has no option %s; it takes %s",
                      f->command, shown, hint ? hint : f->takes);
    free(flag);
    free(meant);
    return status;
}

/* The flag's value, else that of the environment, is checked; the flag's goes into the environment. 0 or an exit
 * status. */
static int take_option(const struct kp_option *row, const char *flag)
{
    char name[KP_OPTION_NAME_MAX], shown[KP_OPTION_NAME_MAX], *err = NULL;
    if (!flag && row->kind == KP_OPT_FOLDER)
        return kp_main_check_folder(row);
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

int kp_main_take_flags(const struct kp_main_flags *f, int argc, char **argv)
{
    struct option longs[MAX_FLAGS + 1];
    char letters[2 * MAX_FLAGS + 2];
    const char *values[MAX_FLAGS] = {0};
    size_t n = list_flags(f, longs, letters);
    int c, status = 0;
    optind = 0; /* begins anew, after the command's own flags */
    opterr = 0;
    for (int at = -1; !status && (c = getopt_long(argc, argv, letters, longs, &at)) != -1; at = -1) {
        const char *word;
        if (c == ':')
            return kp_main_error(KP_EXIT_USAGE, "option %s needs a value; `kprof --help` lists the options",
                                 argv[optind - 1]);
        if (c == '?')
            return unknown_flag(f, longs, n, argv[optind - 1]);
        if (at >= 0 && kp_main_is_abbreviated(&longs[at], &word, argv))
            return unknown_flag(f, longs, n, word);
        if (c >= FIRST_OWN)
            status = f->own[c - FIRST_OWN].take(optarg, f->arg);
        else
            values[c < FIRST_FLAG ? row_of_letter(f, c) : (size_t)(c - FIRST_FLAG)] = optarg ? optarg : "on";
    }
    for (size_t i = 0; !status && i < f->n_rows; i++)
        status = take_option(row_of(f->rows[i]), values[i]);
    return status;
}

/* Whether something else is to be shown than what the session was made for. */
static bool is_chosen(void)
{
    char name[KP_OPTION_NAME_MAX];
    for (size_t i = FIRST_CHOOSING; i < END_CHOOSING; i++) {
        kp_option_env_name(row_at(i), name);
        char *value = kp_options_value(environ, name);
        free(value);
        if (value)
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

/* What of section files is not used. What was told for one session is not told again for the next. */
static void tell_note(void)
{
    static char *told;
    const char *note = kp_sections_note();
    if (told && !strcmp(told, note))
        return;
    kp_main_warn(note);
    free(told);
    told = strdup(note);
}

int kp_main_open(const char *path, bool load_folder, struct kp_store **out)
{
    char *err = NULL;
    int rc = kp_store_open(path, out, &err);
    int status = rc ? cannot_open(path, rc, err) : EXIT_SUCCESS;
    if (!rc && load_folder)
        load_folder_of(*out);
    tell_note();
    free(err);
    return status;
}

int kp_main_display(struct kp_options *o, struct kp_display *d)
{
    char *err = NULL;
    int rc = kp_options_from_env(o, environ, &err);
    if (rc) {
        kp_main_error(0, "%s", err ? err : strerror(-rc));
        free(err);
        return rc == -EINVAL ? KP_EXIT_USAGE : KP_EXIT_FAILED;
    }
    *d = kp_display_of(o);
    d->choose = is_chosen();
    d->set = o->set;
    d->sections = o->section;
    d->metrics = o->metrics;
    return 0;
}

/* What is chosen and not in the session. */
static int check_chosen(struct kp_store *store, const struct kp_display *d, char **warnings, enum kp_missing *missing,
                        char **err)
{
    const struct kp_section **sections = NULL;
    size_t n;
    int rc = kp_sections_select(d->set, d->sections, &sections, &n, err);
    if (!rc)
        rc = kp_listed_check(store, d->metrics, *d->set ? NULL : sections, *d->set ? 0 : n, warnings, missing, err);
    free(sections);
    return rc;
}

static bool has_page(const struct kp_display *d, enum kp_page_id page)
{
    bool found = !d->n_pages && page == KP_PAGE_DETAILS;
    for (size_t i = 0; i < d->n_pages; i++)
        found |= d->pages[i] == page;
    return found;
}

/* What is chosen for the page trace and not in the session. JSON has all of it, whatever the page. */
static int check_columns(struct kp_store *store, const struct kp_display *d, char **warnings, char **err)
{
    bool shown = d->format != KP_FORMAT_JSON && has_page(d, KP_PAGE_TRACE);
    return shown ? kp_listed_check_columns(store, d->trace_columns, warnings, err) : 0;
}

/* A session that is shown. */
struct opened {
    struct kp_store *store;
    int status; /* of the command, once it is shown: none of the metrics asked for may be in it */
};

static void close_opened(struct opened *o)
{
    kp_store_close(o->store);
    o->store = NULL;
}

/* Says what is chosen and not in the session. Returns 0, or an exit status where nothing of it is. */
static int tell_missing(const char *path, struct opened *out, enum kp_missing missing, const char *warnings)
{
    kp_main_warn(warnings);
    out->status = missing == KP_MISSING_NOT_ALL ? EXIT_SUCCESS : KP_EXIT_USAGE;
    return missing == KP_MISSING_ALL
               ? kp_main_error(KP_EXIT_USAGE, "%s has nothing of what was chosen; nothing is shown of it", path)
               : EXIT_SUCCESS;
}

/* Opens a session, and warns of what is chosen and not in it. Returns 0, or an exit status after having said why. */
static int open_file(const char *path, const struct kp_options *o, const struct kp_display *d, struct opened *out)
{
    char *err = NULL, *warnings = NULL, *of_columns = NULL;
    enum kp_missing missing = KP_MISSING_NOT_ALL;
    *out = (struct opened){.store = NULL};
    int status = kp_main_open(path, !*o->section_folder, &out->store);
    if (status)
        return status;
    int rc = d->choose ? check_chosen(out->store, d, &warnings, &missing, &err) : 0;
    if (!rc)
        rc = check_columns(out->store, d, &of_columns, &err);
    if (!rc) {
        status = tell_missing(path, out, missing, warnings ? warnings : "");
        kp_main_warn(of_columns ? of_columns : "");
    } else {
        status = kp_main_error(KP_EXIT_FAILED, "%s", err ? err : strerror(-rc));
    }
    if (status)
        close_opened(out);
    free(warnings);
    free(of_columns);
    free(err);
    return status;
}

/* What is chosen and in no launch of the session: behind its text, or, where that is data, beside it. */
static int tell_unmatched(struct kp_store *store, const struct kp_options *o, const struct kp_display *d, char **err)
{
    struct kp_sink sink = kp_stream_sink(d->format == KP_FORMAT_TEXT ? stdout : stderr);
    return kp_page_tell_unmatched(&sink, d, o->kernel_name, store, err);
}

static void warn_missing(const struct kp_store *store)
{
    char *missing = kp_store_missing(store);
    kp_main_warn(missing ? missing : "");
    free(missing);
}

/* `summary` as in kp_page_part; *printed counts one more where the session is shown. */
static int print_file(const char *path, const struct kp_options *o, const struct kp_display *d,
                      struct kp_summary *summary, size_t *printed)
{
    struct kp_sink out = kp_stream_sink(stdout);
    struct opened file;
    char *err = NULL;
    int status = open_file(path, o, d, &file);
    if (!status) {
        int rc = kp_page_part(&out, d, file.store, summary, &err);
        if (!rc)
            rc = tell_unmatched(file.store, o, d, &err);
        status = kp_main_end(rc, err);
        warn_missing(file.store);
        *printed += !status;
        status = status ? status : file.status;
    }
    close_opened(&file);
    free(err);
    return status;
}

/* Whether the details page adds launches to the summary. */
static bool has_details(const struct kp_display *d)
{
    return has_page(d, KP_PAGE_DETAILS) && d->rules && !d->grouping;
}

/* Several files, as the ranks of a program leave them: one that cannot be read is told of, and the others are printed.
 * Returns the status of the first that failed. */
static int print_files(char *const *paths, const struct kp_options *o, const struct kp_display *d)
{
    struct kp_summary *summary = kp_summary_new();
    struct kp_sink out = kp_stream_sink(stdout);
    int status = summary ? EXIT_SUCCESS : kp_main_error(KP_EXIT_FAILED, "%s", strerror(ENOMEM));
    size_t printed = 0;
    for (; summary && *paths; paths++) {
        int one = print_file(*paths, o, d, summary, &printed);
        status = status ? status : one;
    }
    if (has_details(d) && printed > 1)
        printf("==KPROF== All %zu processes together:\n", printed);
    int rc = summary ? kp_run_summary_print(summary, &out) : 0;
    if (fflush(stdout) && !rc)
        rc = -errno;
    if (rc && !status)
        status = kp_main_error(KP_EXIT_FAILED, "%s", strerror(-rc));
    kp_summary_free(summary);
    return status;
}

/* The same as one table or document. */
static int print_together(char *const *paths, size_t n, const struct kp_options *o, const struct kp_display *d)
{
    struct kp_sink out = kp_stream_sink(stdout);
    struct kp_store **stores = calloc(n, sizeof *stores);
    char *err = NULL;
    size_t opened = 0;
    int status = stores ? EXIT_SUCCESS : kp_main_error(KP_EXIT_FAILED, "%s", strerror(ENOMEM));
    for (size_t i = 0; stores && i < n; i++) {
        struct opened file;
        int one = open_file(paths[i], o, d, &file);
        stores[opened] = file.store;
        status = status ? status : one ? one : file.status;
        opened += !one;
    }
    if (opened) {
        int rc = kp_page_print_stores(&out, d, stores, opened, &err);
        for (size_t i = 0; !rc && i < opened; i++)
            rc = tell_unmatched(stores[i], o, d, &err);
        int one = kp_main_end(rc, err);
        status = status ? status : one;
    }
    for (size_t i = 0; i < opened; i++)
        warn_missing(stores[i]);
    for (size_t i = 0; i < opened; i++)
        kp_store_close(stores[i]);
    free(stores);
    free(err);
    return status;
}

/* The launches that are shown of each session. */
static int print_chosen(char *const *paths, size_t n, const struct kp_options *o, struct kp_display *d)
{
    struct kp_pattern *kernel = NULL;
    char *err = NULL;
    size_t printed = 0;
    d->launch_skip = o->launch_skip;
    d->launch_count = o->launch_count;
    int rc =
        *o->kernel_name ? kp_pattern_new(o->kernel_name, &kernel, &err) : 0; /* was checked: memory alone may lack */
    d->kernel = kernel;
    int status = rc                            ? kp_main_error(KP_EXIT_FAILED, "%s", strerror(-rc))
                 : n == 1                      ? print_file(*paths, o, d, NULL, &printed)
                 : d->format != KP_FORMAT_TEXT ? print_together(paths, n, o, d)
                                               : print_files(paths, o, d);
    kp_pattern_free(kernel);
    free(err);
    return status;
}

int kp_main_report(int argc, char **argv)
{
    static const struct kp_main_flags flags = {"report", "session files", showing, N_SHOWING, NULL, 0, NULL};
    struct kp_options o;
    struct kp_display d;
    if (argc == 2 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")))
        return kp_main_help();
    int status = kp_main_take_flags(&flags, argc, argv);
    if (status)
        return status;
    if (argc == optind)
        return kp_main_error(KP_EXIT_USAGE, "kprof report takes one or more session files");
    status = kp_main_display(&o, &d);
    if (status)
        return status;
    status = print_chosen(argv + optind, (size_t)(argc - optind), &o, &d);
    kp_options_free(&o);
    return status;
}
