/* `kprof report FILE...`. */
#include <errno.h>
#include <getopt.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/stream.h"
#include "base/temporary.h"
#include "cmd/commands.h"
#include "cmd/console.h"
#include "cmd/html_file.h"
#include "cmd/idle.h"
#include "cmd/keep.h"
#include "cmd/open_sessions.h"
#include "cmd/whole_file.h"
#include "cmd/together.h"
#include "report/html/folded.h"
#include "report/html/html.h"
#include "report/html/trace_json.h"
#include "report/options/options.h"
#include "report/pages/page.h"
#include "report/view/chooser.h"
#include "report/view/listed.h"
#include "report/write/fit.h"
#include "report/write/run_summary.h"

/* The values of the flags. */
struct flags {
    const char *html;  /* the file to write; NULL = none */
    bool open;         /* show it */
    const char *trace; /* the trace to write; NULL = none */
    bool force;        /* an option says so: existing files are replaced */
    bool is_folded;
    bool ranks; /* puts the sessions of ranks together */
    enum kp_folded_by folded;
    const char *keep; /* the session to write, a pattern; NULL = none */
    bool unprinted;   /* which is all */
};

/* Finds chosen metrics and sections that the session lacks. */
static int check_choice(struct kp_store *store, const struct kp_display *d, char **warnings, enum kp_missing *missing,
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

/* Finds chosen columns of the page trace that the session lacks. JSON has all of the session, whatever the page. */
static int check_columns(struct kp_store *store, const struct kp_display *d, char **warnings, char **err)
{
    bool shown = d->format != KP_FORMAT_JSON && kp_display_shows(d, KP_PAGE_TRACE);
    return shown ? kp_listed_check_columns(store, d->trace_columns, warnings, err) : 0;
}

/* An opened session. */
struct opened {
    struct kp_store *store;
    int status; /* the command's status after printing: the session may lack all metrics asked for */
};

static void close_opened(struct opened *o)
{
    kp_store_close(o->store);
    o->store = NULL;
}

/* Reports chosen items that the session lacks. Returns 0, or an exit status if it lacks all. */
static int tell_missing(const char *path, struct opened *out, enum kp_missing missing, const char *warnings)
{
    kp_console_warn(warnings);
    out->status = missing == KP_MISSING_NOT_ALL ? EXIT_SUCCESS : KP_EXIT_USAGE;
    return missing == KP_MISSING_ALL
               ? kp_console_error(KP_EXIT_USAGE, "%s contains none of the requested sections or metrics", path)
               : EXIT_SUCCESS;
}

/* Opens a session, and warns of chosen items that it lacks. Returns 0, or an exit status after reporting why. */
static int open_file(const char *path, const struct kp_options *o, const struct kp_display *d, struct opened *out)
{
    char *err = NULL, *warnings = NULL, *of_columns = NULL;
    enum kp_missing missing = KP_MISSING_NOT_ALL;
    *out = (struct opened){.store = NULL};
    int status = kp_open_session(path, !*o->section_folder, &out->store);
    if (status)
        return status;
    int rc = d->choose ? check_choice(out->store, d, &warnings, &missing, &err) : 0;
    if (!rc)
        rc = check_columns(out->store, d, &of_columns, &err);
    if (!rc) {
        status = tell_missing(path, out, missing, warnings ? warnings : "");
        kp_console_warn(of_columns ? of_columns : "");
    } else {
        status = kp_console_error(KP_EXIT_FAILED, "%s", err ? err : strerror(-rc));
    }
    if (status)
        close_opened(out);
    free(warnings);
    free(of_columns);
    free(err);
    return status;
}

/* Counts over several sessions. */
struct printed {
    size_t n;         /* printed sessions */
    size_t unmatched; /* of these, sessions with launches but none chosen */
    mode_t denied;    /* bits of 0666 that the mode of one of them lacks */
};

/* Reports a choice that matches no launch of the session, after text output, or on stderr if the output is data. */
static int tell_unmatched(struct kp_store *store, const struct kp_options *o, const struct kp_display *d, FILE *to,
                          struct printed *printed, char **err)
{
    struct kp_sink sink = kp_stream_sink(to);
    bool unmatched = false;
    int rc = kp_page_tell_unmatched(&sink, d, o->kernel_name, store, &unmatched, err);
    printed->unmatched += unmatched;
    return rc;
}

static void warn_missing(const struct kp_store *store)
{
    char *missing = kp_store_missing(store);
    kp_console_warn(missing ? missing : "");
    free(missing);
}

/* Prints one file; `summary` as in kp_page_part. Counts the session in *printed. */
static int print_file(const char *path, const struct kp_options *o, const struct kp_display *d,
                      struct kp_summary *summary, struct printed *printed)
{
    struct kp_sink out = kp_stream_sink(stdout);
    struct opened file;
    char *err = NULL;
    int status = open_file(path, o, d, &file);
    if (!status) {
        struct kp_display of_file = *d;
        of_file.file = d->file ? d->file : path;
        int rc = kp_page_part(&out, &of_file, file.store, summary, &err);
        if (!rc)
            rc = tell_unmatched(file.store, o, d, d->format == KP_FORMAT_TEXT ? stdout : stderr, printed, &err);
        status = kp_console_end(rc, err);
        warn_missing(file.store);
        printed->n += !status;
        status = status ? status : file.status;
    }
    close_opened(&file);
    free(err);
    return status;
}

/* Returns true if a page adds launches to the summary. */
static bool sums_up(const struct kp_display *d)
{
    return d->rules && (kp_display_shows(d, KP_PAGE_SUMMARY) || (kp_display_shows(d, KP_PAGE_DETAILS) && !d->grouping));
}

/* Prints the summary of all files in lines as wide as the terminal. */
static int print_sum(const struct kp_summary *summary, const struct kp_display *d)
{
    struct kp_sink out = kp_stream_sink(stdout);
    struct kp_fit fit;
    kp_fit_init(&fit, &out, d->width);
    int rc = kp_write_run_summary(summary, &(struct kp_out){.sink = &fit.sink, .display = d});
    int ended = kp_fit_end(&fit);
    return rc ? rc : ended;
}

/* Prints several files, such as those of a program's ranks. Reports an unreadable file and continues. Returns the
 * status of the first that failed. */
static int print_files(char *const *paths, const struct kp_options *o, const struct kp_display *d,
                       struct printed *printed)
{
    struct kp_summary *summary = kp_summary_new();
    int status = summary ? EXIT_SUCCESS : kp_console_error(KP_EXIT_FAILED, "%s", strerror(ENOMEM));
    for (; summary && *paths; paths++) {
        int one = print_file(*paths, o, d, summary, printed);
        status = status ? status : one;
    }
    if (sums_up(d) && printed->n > 1)
        printf("==KPROF== All %zu processes together:\n", printed->n);
    int rc = summary ? print_sum(summary, d) : 0;
    if (!status)
        status = kp_console_end(rc, NULL);
    kp_summary_free(summary);
    return status;
}

/* Prints them as one table or document. */
static int print_together(char *const *paths, size_t n, const struct kp_options *o, const struct kp_display *d,
                          struct printed *printed)
{
    struct kp_sink out = kp_stream_sink(stdout);
    struct kp_store **stores = calloc(n, sizeof *stores);
    char *err = NULL;
    size_t opened = 0;
    int status = stores ? EXIT_SUCCESS : kp_console_error(KP_EXIT_FAILED, "%s", strerror(ENOMEM));
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
            rc = tell_unmatched(stores[i], o, d, stderr, printed, &err);
        int one = kp_console_end(rc, err);
        status = status ? status : one;
    }
    printed->n = opened;
    for (size_t i = 0; i < opened; i++)
        warn_missing(stores[i]);
    for (size_t i = 0; i < opened; i++)
        kp_store_close(stores[i]);
    free(stores);
    free(err);
    return status;
}

/* --- one HTML file of all sessions --- */

/* Adds a session to what the writer collects; reports what it lacks, like the pages of text. */
static int collect_file(const char *path, const struct kp_options *o, const struct kp_display *d, struct kp_writer *w,
                        struct printed *printed)
{
    struct opened file;
    char *err = NULL;
    int status = open_file(path, o, d, &file);
    if (status)
        return status;
    int rc = kp_page_write_store(w, d, file.store, &err);
    if (!rc)
        rc = tell_unmatched(file.store, o, d, stderr, printed, &err);
    if (rc)
        status = kp_console_error(KP_EXIT_FAILED, "%s", err ? err : strerror(-rc));
    warn_missing(file.store);
    printed->n += !status;
    printed->denied |= 0666 & ~kp_store_mode(file.store);
    close_opened(&file);
    free(err);
    return status ? status : file.status;
}

/* Adds all sessions to what the writer collects. Returns the status of the first that failed. */
static int collect(char *const *paths, const struct kp_options *o, const struct kp_display *d, struct kp_writer *w,
                   struct printed *printed)
{
    int status = EXIT_SUCCESS;
    for (; *paths; paths++) {
        int one = collect_file(*paths, o, d, w, printed);
        status = status ? status : one;
    }
    return status;
}

enum { DAY = 24 * 60 * 60 };

/* Makes a folder among temporary files, and returns the path of a file of that name in it: both malloc'ed, NULL with
 * errno. */
static char *temporary_file(const char *begin, const char *name, char **folder)
{
    char *file;
    *folder = kp_temporary_folder(begin);
    if (!*folder || asprintf(&file, "%s/%s", *folder, name) >= 0)
        return *folder ? file : NULL;
    errno = ENOMEM;
    return NULL;
}

/* Makes the temporary file to show. It must outlast the command because the browser may read it at any time. So each
 * command removes those older than a day. */
static char *file_to_show(void)
{
    static const char begin[] = "kprof-report-", name[] = "report.html";
    char *folder, *file;
    kp_temporary_sweep(begin, name, DAY);
    if ((file = temporary_file(begin, name, &folder)))
        kp_temporary_keep(folder);
    free(folder);
    return file;
}

static int no_temporary_file(void)
{
    return kp_console_error(KP_EXIT_FAILED, "cannot create a temporary file in %s: %s; set TMPDIR to another folder",
                            kp_temporary_base(), strerror(errno));
}

/* Writes the file, in the folder of temporary files if none is named, and shows it. */
static int save_html(const struct kp_html *html, const struct flags *f, mode_t mode)
{
    char *made = f->html ? NULL : file_to_show();
    if (!f->html && !made)
        return no_temporary_file();
    int status = kp_file_save_html(html, false, made ? made : f->html, made || f->force, mode);
    if (!status && f->open)
        status = kp_file_open_html(made ? made : f->html);
    free(made);
    return status;
}

static int write_html(char *const *paths, const struct kp_options *o, const struct kp_display *d, const struct flags *f,
                      struct printed *printed)
{
    struct kp_display of_file = *d;
    struct kp_html *html = kp_html_new();
    if (!html)
        return kp_console_error(KP_EXIT_FAILED, "%s", strerror(ENOMEM));
    kp_html_display(&of_file, o->brief_above);
    int status = collect(paths, o, &of_file, kp_html_writer(html), printed);
    int one = printed->n ? save_html(html, f, 0666 & ~printed->denied) : 0;
    kp_html_free(html);
    return status ? status : one;
}

/* --- the chosen launches as a session --- */

static int keep_files(char *const *paths, const struct flags *f, const struct kp_display *d, struct printed *printed)
{
    int status = EXIT_SUCCESS;
    for (; *paths; paths++) {
        struct kp_store *store = NULL;
        int one = kp_open_session(*paths, false, &store);
        one = one ? one : kp_keep(store, *paths, d->chooser, f->keep, f->force);
        kp_store_close(store);
        printed->n += !one;
        status = status ? status : one;
    }
    return status;
}

/* --- folded stacks --- */

static int print_folded(char *const *paths, const struct kp_options *o, const struct kp_display *d,
                        const struct flags *f, struct printed *printed)
{
    struct kp_display of_stacks = *d;
    struct kp_folded *folded = kp_folded_new(f->folded);
    if (!folded)
        return kp_console_error(KP_EXIT_FAILED, "%s", strerror(ENOMEM));
    kp_folded_display(&of_stacks);
    int status = collect(paths, o, &of_stacks, kp_folded_writer(folded), printed);
    const char *lacks = status ? NULL : kp_folded_lacks(folded);
    if (lacks)
        kp_console_warn(lacks);
    int one = kp_console_end(kp_folded_print(folded, stdout), NULL);
    kp_folded_free(folded);
    return status ? status : one;
}

/* --- timelines as one trace --- */

struct traced {
    struct kp_store **stores;
    size_t n;
    uint64_t found;
    char *err;
};

static int print_trace(void *arg, FILE *to)
{
    struct traced *t = arg;
    free(t->err);
    return kp_html_trace_print(t->stores, t->n, to, &t->found, &t->err);
}

/* Writes the trace of opened sessions. */
static int save_trace(struct traced *t, const char *path, bool force)
{
    mode_t mode = 0666;
    for (size_t i = 0; i < t->n; i++)
        mode &= kp_store_mode(t->stores[i]);
    int status = kp_file_save(print_trace, t, path, force, mode);
    if (t->err)
        status = kp_console_error(KP_EXIT_FAILED, "%s", t->err);
    free(t->err);
    if (!status && !t->found)
        kp_console_warn("no timeline was recorded, and the trace is empty: run the program with --timeline");
    return status;
}

/* Opens all sessions: their times count from the first activity of them all. */
static int write_trace(char *const *paths, size_t n, const struct kp_options *o, const struct kp_display *d,
                       const struct flags *f, struct printed *printed)
{
    struct traced t = {.stores = calloc(n, sizeof(struct kp_store *))};
    int status = t.stores ? EXIT_SUCCESS : kp_console_error(KP_EXIT_FAILED, "%s", strerror(ENOMEM));
    for (size_t i = 0; t.stores && i < n; i++) {
        struct opened file;
        int one = open_file(paths[i], o, d, &file);
        status = status ? status : one ? one : file.status;
        t.stores[t.n] = file.store;
        t.n += !one;
    }
    if (t.n) {
        int one = save_trace(&t, f->trace, f->force);
        status = status ? status : one;
    }
    printed->n = t.n;
    for (size_t i = 0; i < t.n; i++)
        kp_store_close(t.stores[i]);
    free(t.stores);
    return status;
}

/* Writes the requested files: a trace and one of HTML. */
static int write_files(char *const *paths, size_t n, const struct flags *f, const struct kp_options *o,
                       const struct kp_display *d, struct printed *printed)
{
    int status = f->trace ? write_trace(paths, n, o, d, f, printed) : EXIT_SUCCESS;
    if (!f->html && !f->open)
        return status;
    *printed = (struct printed){0};
    int one = write_html(paths, o, d, f, printed);
    return status ? status : one;
}

/* Says of several sessions that they may be shown as one. */
static void hint_at_ranks(char *const *paths, size_t n)
{
    struct kp_rank_file *files = calloc(n, sizeof *files);
    bool opened = files;
    char *err = NULL;
    for (size_t i = 0; opened && i < n; i++) {
        files[i].path = paths[i];
        opened = !kp_store_open(paths[i], &files[i].store, &err);
        free(err);
        err = NULL;
    }
    if (opened && kp_are_rotated_ranks(files, n))
        fprintf(stderr,
                "==KPROF== These are %zu ranks of a rotation: --ranks merges them, with one entry for each kernel and "
                "shape, and compares the ranks\n",
                n);
    for (size_t i = 0; files && i < n; i++)
        kp_store_close(files[i].store);
    free(files);
}

/* Prints the chosen launches of each session. */
static int print_chosen(char *const *paths, size_t n, const struct flags *f, const struct kp_options *o,
                        struct kp_display *d)
{
    struct kp_chooser *chooser;
    char *err;
    struct printed printed = {0};
    /* The options were checked before: only memory can be missing. */
    int rc = kp_chooser_new(o, &chooser, &err);
    d->chooser = chooser;
    int status = rc ? kp_console_error(KP_EXIT_FAILED, "%s", strerror(-rc))
                 : f->keep && (rc = keep_files(paths, f, d, &printed), rc || f->unprinted) ? rc
                 : f->is_folded                   ? print_folded(paths, o, d, f, &printed)
                 : f->html || f->open || f->trace ? write_files(paths, n, f, o, d, &printed)
                 : n == 1                         ? print_file(*paths, o, d, NULL, &printed)
                 : d->format != KP_FORMAT_TEXT    ? print_together(paths, n, o, d, &printed)
                                                  : print_files(paths, o, d, &printed);
    if (!status && printed.n && printed.unmatched == printed.n)
        status = KP_EXIT_USAGE; /* some of several sessions may lack the kernel */
    if (!status && n > 1 && d->format == KP_FORMAT_TEXT && !f->is_folded && !f->trace)
        hint_at_ranks(paths, n);
    kp_chooser_free(chooser);
    free(err);
    return status;
}

/* --- ranks --- */

/* Opens the sessions. Returns 0, or the exit status of the first that failed. */
static int open_ranks(char *const *paths, size_t n, struct kp_rank_file *files)
{
    int status = EXIT_SUCCESS;
    for (size_t i = 0; i < n; i++) {
        files[i].path = paths[i];
        int one = kp_open_session(paths[i], false, &files[i].store);
        status = status ? status : one;
    }
    return status;
}

/* Merges the sessions into the file `to`. None may be missing: the numbers would be those of the other ranks only.
 * Returns 0, or an exit status after reporting why. */
static int put_together(char *const *paths, size_t n, const char *to)
{
    struct kp_rank_file *files = calloc(n, sizeof *files);
    char *err = NULL;
    if (!files)
        return kp_console_error(KP_EXIT_FAILED, "%s", strerror(ENOMEM));
    int status = open_ranks(paths, n, files);
    if (status) {
        kp_console_error(0, "the ranks are not merged because one of them is missing");
    } else {
        int rc = kp_put_together(files, n, to, &err);
        if (rc)
            status = kp_console_error(rc == -EINVAL ? KP_EXIT_USAGE : KP_EXIT_FAILED, "%s", err ? err : strerror(-rc));
    }
    mode_t mode = 0666;
    for (size_t i = 0; i < n; i++) {
        mode &= files[i].store ? kp_store_mode(files[i].store) : 0;
        kp_store_close(files[i].store);
    }
    if (!status)
        chmod(to, mode | S_IRUSR); /* the mode of what is made of it, in a folder that nobody else may enter */
    free(files);
    free(err);
    return status;
}

/* Returns true if the environment, the flags, or the file of options choose the pages. */
static bool is_page_given(void)
{
    char name[KP_OPTION_NAME_MAX];
    kp_option_env_name(kp_option_row(offsetof(struct kp_options, page)), name);
    char *value = kp_options_value(environ, name);
    free(value);
    return value;
}

/* Prints what the sessions of ranks give together, which is in a file of its own meanwhile. */
static int print_ranks(char *const *paths, size_t n, const struct flags *f, const struct kp_options *o,
                       struct kp_display *d)
{
    static const enum kp_page_id pages[] = {KP_PAGE_RANKS, KP_PAGE_DETAILS};
    if (f->trace)
        return kp_console_error(KP_EXIT_USAGE, "timelines are not merged: use --trace-json without --ranks");
    static const char begin[] = "kprof-ranks-", name[] = "ranks.kprof";
    char *folder, *to[] = {temporary_file(begin, name, &folder), NULL};
    if (!*to) {
        int status = no_temporary_file();
        free(folder);
        return status;
    }
    if (!is_page_given()) {
        d->n_pages = sizeof pages / sizeof *pages;
        memcpy(d->pages, pages, sizeof pages);
    }
    d->file = "--ranks FILE...";
    int status = put_together(paths, n, *to);
    if (!status)
        status = print_chosen(to, 1, f, o, d);
    kp_temporary_remove(folder);
    free(folder);
    free(*to);
    return status;
}

/* --- the command --- */

static int take_html(const char *value, void *arg)
{
    struct flags *f = arg;
    return kp_file_take("html", value, &f->html);
}

static int take_trace(const char *value, void *arg)
{
    struct flags *f = arg;
    return kp_file_take("trace-json", value, &f->trace);
}

static int take_open(const char *value, void *arg)
{
    struct flags *f = arg;
    (void)value;
    f->open = true;
    return 0;
}

static int take_ranks(const char *value, void *arg)
{
    struct flags *f = arg;
    (void)value;
    f->ranks = true;
    return 0;
}

static int take_folded(const char *value, void *arg)
{
    static const char *const choices[] = {[KP_FOLDED_STACK] = "stack", [KP_FOLDED_NVTX] = "nvtx", NULL};
    struct flags *f = arg;
    size_t choice;
    int status = kp_cli_take_choice("folded", value, choices, &choice);
    f->is_folded = !status;
    if (!status)
        f->folded = (enum kp_folded_by)choice;
    return status;
}

static const struct kp_own_flag own[] = {
    {"html", " FILE",
     "write all sessions into one HTML file instead, which any browser shows without a network: kernels, sections, "
     "charts, source",
     take_html, false},
    {"open", "",
     "open that file in the browser; without html it is a temporary file, which a later command removes after a day",
     take_open, false},
    {"trace-json", " FILE",
     "write the timelines of all sessions into one file of trace events instead, which Perfetto (ui.perfetto.dev) and "
     "chrome://tracing load",
     take_trace, false},
    {"folded", " {stack,nvtx}",
     "print folded stacks instead, for flame graph tools: a line for each call stack or NVTX path and kernel, with the "
     "ns on the GPU",
     take_folded, false},
    {"ranks", "",
     "merge the sessions of a program's ranks, recorded by rotation: each kernel and shape has one entry, and the page "
     "ranks, which is the first by default, shows how its time varies between them",
     take_ranks, false},
};

const struct kp_own_flag *kp_main_report_flags(size_t *n)
{
    *n = sizeof own / sizeof *own;
    return own;
}

/* Checks flags that are valid by themselves but not in combination. Returns 0, or an exit status after reporting
 * why. */
static int check_flags(const struct flags *f, bool has_files)
{
    const char *flag = f->html ? "html" : f->trace ? "trace-json" : "open";
    if (f->is_folded && (f->html || f->open || f->trace))
        return kp_console_error(KP_EXIT_USAGE, "folded and %s exclude each other; run the command once for each", flag);
    bool html_out = f->html && kp_target_is_stdout(f->html), trace_out = f->trace && kp_target_is_stdout(f->trace);
    if (html_out && (f->open || trace_out))
        return kp_console_error(KP_EXIT_USAGE,
                                f->open ? "open shows a file, and `--html -` writes to stdout; name a file for html"
                                        : "html and trace-json cannot both go to stdout; name a file for one of them");
    if (has_files)
        return EXIT_SUCCESS;
    if (f->html || f->trace)
        return kp_console_error(KP_EXIT_USAGE,
                                "kprof report needs one or more session files, and %s is the file to write: write "
                                "`kprof report --%s NEW-FILE FILE.kprof`",
                                f->html ? f->html : f->trace, flag);
    return kp_console_error(KP_EXIT_USAGE, "kprof report needs one or more session files; " KP_TRY_RECORD);
}

/* Checks that the files may be written, before a long report is made for them. Returns 0, or an exit status. */
static int check_files(const struct flags *f)
{
    int status = f->html ? kp_file_check(f->html, f->force) : 0;
    return !status && f->trace ? kp_file_check(f->trace, f->force) : status;
}

/* Returns what is written in place of pages: bits of kp_instead. */
static unsigned written_instead(const struct flags *f, const struct kp_options *o)
{
    unsigned html = f->html ? KP_INSTEAD_HTML : f->open ? KP_INSTEAD_OPEN : 0, trace = f->trace ? KP_INSTEAD_TRACE : 0;
    return f->is_folded ? KP_INSTEAD_FOLDED : html || trace ? html | trace : o->json ? KP_INSTEAD_JSON : 0;
}

int kp_main_report(int argc, char **argv)
{
    struct flags f = {.html = NULL};
    struct kp_cli_of flags = {.command = "report",
                              .takes = "session files",
                              .least = KP_OPT_REPORT,
                              .own = own,
                              .n_own = sizeof own / sizeof *own,
                              .arg = &f};
    struct kp_options o;
    struct kp_display d;
    bool lost_instances = false;
    int status = kp_cli_take(&flags, argc, argv);
    if (status)
        return status;
    status = check_flags(&f, optind < argc);
    if (status)
        return status;
    status = kp_open_display(&o, &d);
    if (status)
        return status;
    kp_idle_tell_instead(&o, written_instead(&f, &o));
    f.keep = kp_idle_has_noted(offsetof(struct kp_options, export_file)) ? o.export_file : NULL;
    f.unprinted = o.as_it_comes && !f.html && !f.open && !f.trace && !f.is_folded;
    kp_idle_tell_overwrite(&o, f.html || f.trace || f.keep, "--export, --html or --trace-json");
    kp_display_fit(&d, &o, STDOUT_FILENO);
    f.force = o.force_overwrite;
    status = check_files(&f);
    if (!status)
        kp_open_tell_twice(argv + optind, (size_t)(argc - optind), "its launches are counted twice");
    d.lost_instances = o.face == KP_FACE_NCU ? NULL : &lost_instances;
    if (!status)
        status = (f.ranks ? print_ranks : print_chosen)(argv + optind, (size_t)(argc - optind), &f, &o, &d);
    if (lost_instances)
        kp_console_note("CSV has one value for each metric; for the values of instances use --json, or --page raw "
                        "--print-metric-instances values");
    kp_options_free(&o);
    return status;
}
