/* `kprof diff A B...`. */
#include <errno.h>
#include <getopt.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/stream.h"
#include "cmd/commands.h"
#include "cmd/console.h"
#include "cmd/diff.h"
#include "cmd/html_file.h"
#include "cmd/idle.h"
#include "cmd/open_sessions.h"
#include "cmd/whole_file.h"
#include "report/html/html.h"
#include "report/options/options.h"
#include "report/pages/page.h"
#include "report/write/fit.h"
#include "report/write/out.h"

enum { MAX_LIMITS = 64, MAX_SESSIONS = 26 /* a letter for each */ };

/* The values of the flags. */
struct flags {
    struct kp_diff_options options;
    struct kp_diff_limit limits[MAX_LIMITS];
    char *names[MAX_LIMITS]; /* of the limits; owned */
    const char *html;        /* the file to write; NULL = none */
    bool rows;               /* rows were asked for; none is left out */
    struct kp_json json;
};

/* Reads `5`, `5%`, `0.5%`. */
static bool read_percent(const char *text, double *out)
{
    size_t n = strspn(text, "0123456789.");
    char *end;
    *out = strtod(text, &end);
    return n && end == text + n && (!*end || !strcmp(end, "%"));
}

static int take_by(const char *value, void *arg)
{
    static const char *const choices[] = {[KP_DIFF_BY_LAUNCH] = "launch", [KP_DIFF_BY_KERNEL] = "kernel", NULL};
    struct flags *f = arg;
    size_t choice;
    int status = kp_cli_take_choice("by", value, choices, &choice);
    if (!status)
        f->options.by = (enum kp_diff_by)choice;
    return status;
}

static int take_show(const char *value, void *arg)
{
    static const char *const choices[] = {"changed", "all", NULL};
    struct flags *f = arg;
    size_t choice;
    int status = kp_cli_take_choice("show", value, choices, &choice);
    if (!status)
        f->options.all = choice;
    f->rows = true;
    return status;
}

static int take_threshold(const char *value, void *arg)
{
    struct flags *f = arg;
    if (read_percent(value, &f->options.threshold))
        return 0;
    return kp_console_error(KP_EXIT_USAGE, "--threshold: '%s' is not a percentage; write one such as 1%%", value);
}

static int take_limit(const char *value, void *arg)
{
    struct flags *f = arg;
    size_t n = f->options.n_limits;
    const char *colon = strrchr(value, ':');
    struct kp_diff_limit limit = {.metric = KP_DIFF_DURATION};
    if (!read_percent(colon ? colon + 1 : value, &limit.percent) || colon == value)
        return kp_console_error(KP_EXIT_USAGE, "--fail-above: '%s' is not a limit; write 5%% or METRIC:5%%", value);
    if (n == MAX_LIMITS)
        return kp_console_error(KP_EXIT_USAGE, "--fail-above: more than %d limits", MAX_LIMITS);
    if (colon) {
        f->names[n] = strndup(value, (size_t)(colon - value));
        if (!f->names[n])
            return kp_console_error(KP_EXIT_FAILED, "%s", strerror(ENOMEM));
        limit.metric = f->names[n];
    }
    f->limits[n] = limit;
    f->options.n_limits++;
    return 0;
}

static int take_html_file(const char *value, void *arg)
{
    struct flags *f = arg;
    if (kp_target_is_stdout(value))
        return kp_console_error(KP_EXIT_USAGE, "the table of differences goes to stdout; name a file for --html");
    return kp_file_take("html", value, &f->html);
}

static const struct kp_own_flag own[] = {
    {"by", " {launch,kernel}",
     "launch: launches are paired by name, grid and order; kernel: averages by kernel name (default launch)", take_by,
     false},
    {"show", " {changed,all}", "rows that changed by more than the threshold, or all (default changed)", take_show,
     false},
    {"threshold", " PERCENT", "changes up to this count as none (default 1%)", take_threshold, false},
    {"fail-above", " [METRIC:]PERCENT",
     "exit with 1 if the metric (default: the duration) grew by more in any pair; may be given several times",
     take_limit, true},
    {"html", " FILE",
     "also write all sessions into one HTML file: kernels side by side, A as the baseline of the others",
     take_html_file, false},
};

const struct kp_own_flag *kp_main_diff_flags(size_t *n)
{
    *n = sizeof own / sizeof *own;
    return own;
}

/* The sessions; the first is compared with each of the others. */
struct sessions {
    struct kp_diff_input at[MAX_SESSIONS];
    size_t n;
};

static int write_compared(const struct sessions *s, const struct kp_options *o, const struct kp_display *d,
                          const char *path)
{
    struct kp_display of_file = *d;
    struct kp_html *html = kp_html_new();
    char *err = NULL;
    int rc = html ? 0 : -ENOMEM;
    mode_t mode = 0666;
    kp_html_display(&of_file, o->brief_above);
    for (size_t i = 0; !rc && i < s->n; i++) {
        of_file.file = s->at[i].name;
        mode &= kp_store_mode(s->at[i].store);
        rc = kp_page_write_store(kp_html_writer(html), &of_file, s->at[i].store, &err);
    }
    int status = rc ? kp_console_error(KP_EXIT_FAILED, "%s", err ? err : strerror(-rc))
                    : kp_file_save_html(html, true, path, o->force_overwrite, mode);
    kp_html_free(html);
    free(err);
    return status;
}

/* Says how a session gets counted launches, if it has none. Returns whether it said so. */
static bool tell_empty(const struct kp_diff_input *session, enum kp_diff_empty empty)
{
    static const char *const remedies[] = {
        [KP_DIFF_NO_LAUNCH] = "`kprof report` says why",
        [KP_DIFF_TIMELINE_ALONE] = "it was recorded with --page timeline alone; record it with --timeline instead",
    };
    if (empty != KP_DIFF_NOT_EMPTY)
        kp_console_error(0, "%s has no counted launch: %s", session->name, remedies[empty]);
    return empty != KP_DIFF_NOT_EMPTY;
}

/* Returns the exit status of a comparison, after reporting why nothing was compared. */
static int status_of(const struct kp_diff_input pair[2], const struct flags *f, const struct kp_diff_outcome *outcome)
{
    if (outcome->nothing_chosen && !f->options.n_limits)
        return kp_console_error(
            KP_EXIT_USAGE,
            "%s and %s do not both have any of what was chosen: choose what both have, or record both with it",
            pair[0].name, pair[1].name);
    if (tell_empty(&pair[0], outcome->empty[0]) || tell_empty(&pair[1], outcome->empty[1]))
        return KP_EXIT_FAILED;
    if (!outcome->pairs)
        return kp_console_error(KP_EXIT_FAILED, "%s and %s have no %s in common: nothing was compared", pair[0].name,
                                pair[1].name, f->options.by == KP_DIFF_BY_LAUNCH ? "launch" : "kernel");
    if (!f->options.n_limits && (outcome->without_counters[0] || outcome->without_counters[1]))
        return kp_console_error(KP_EXIT_FAILED, "%s has launches but no counters: no counter could be compared",
                                pair[!outcome->without_counters[0]].name);
    return outcome->exceeded || outcome->unchecked ? KP_EXIT_FAILED : EXIT_SUCCESS;
}

/* Heads a comparison that is one of several. */
static void print_heading(const struct kp_sink *out, const struct sessions *s, size_t other)
{
    struct kp_out o = {.sink = out};
    if (s->n == 2)
        return;
    kp_out_print(&o, other > 1 ? "\n" : "");
    kp_out_print(&o, "==KPROF== Comparison %zu of %zu: %c with %c\n", other, s->n - 1, s->at[0].letter,
                 s->at[other].letter);
}

/* Ends the output of a comparison, and reports why it failed; of several it says which. Returns the exit status. */
static int tell_failed(const struct sessions *s, const struct kp_diff_input pair[2], int rc, const char *err)
{
    if (err && s->n > 2)
        return kp_console_error(KP_EXIT_USAGE, "%s and %s: %s", pair[0].name, pair[1].name, err);
    return err ? kp_console_error(KP_EXIT_USAGE, "%s", err) : kp_console_end(rc, NULL);
}

/* Prints the comparison of one session with the first. *failed: it could not be read or written; *listed is set if
 * kernels were listed. Returns its exit status. */
static int print_one(const struct sessions *s, size_t other, const struct flags *f, const struct kp_display *d,
                     bool *failed, bool *listed)
{
    const struct kp_diff_input pair[2] = {s->at[0], s->at[other]};
    struct kp_diff_options options = f->options;
    struct kp_diff_outcome outcome = {0};
    struct kp_sink out = kp_stream_sink(stdout);
    struct kp_fit fit;
    char *err = NULL;
    options.first = other == 1;
    options.last = other + 1 == s->n;
    kp_fit_init(&fit, &out, d->width);
    bool is_text = d->format == KP_FORMAT_TEXT; /* other rows are not broken into lines */
    if (is_text)
        print_heading(&fit.sink, s, other);
    int rc = kp_diff(is_text ? &fit.sink : &out, d, &options, pair, &outcome, &err), last = kp_fit_end(&fit);
    rc = rc ? rc : last;
    fputs(outcome.over ? outcome.over : "", stderr);
    int status = tell_failed(s, pair, rc, err);
    *failed = status;
    *listed |= outcome.brief;
    if (!status) {
        kp_console_warn(outcome.missing ? outcome.missing : "");
        status = status_of(pair, f, &outcome);
        kp_console_warn(outcome.warnings ? outcome.warnings : "");
    }
    free(outcome.over);
    free(outcome.warnings);
    free(outcome.missing);
    free(err);
    return status;
}

/* Prints all comparisons. Returns the status of the worst: they are ordered so. */
static int print_all(const struct sessions *s, const struct flags *f, const struct kp_options *o,
                     const struct kp_display *d)
{
    bool failed = false, listed = false;
    int status = EXIT_SUCCESS;
    for (size_t i = 1; !failed && i < s->n; i++) {
        int one = print_one(s, i, f, d, &failed, &listed);
        status = one > status ? one : status;
    }
    if (!failed)
        kp_idle_tell_lists(o, listed);
    if (!failed && f->html) {
        int written = write_compared(s, o, d, f->html);
        status = status ? status : written;
    }
    return status;
}

static int print_diff(char *const *paths, size_t n, const struct flags *f, const struct kp_options *o,
                      const struct kp_display *d)
{
    struct sessions s = {.n = n};
    int status = EXIT_SUCCESS;
    for (size_t i = 0; !status && i < n; i++) {
        s.at[i] = (struct kp_diff_input){.name = paths[i], .letter = (char)('A' + i)};
        if (kp_open_session(paths[i], !*o->section_folder, &s.at[i].store))
            status = KP_EXIT_USAGE; /* status 1 means differing values */
    }
    if (!status)
        kp_open_tell_twice(paths, n, "they cannot differ; compare files of two recordings");
    if (!status)
        status = print_all(&s, f, o, d);
    for (size_t i = 0; i < n; i++)
        kp_store_close(s.at[i].store);
    return status;
}

/* Checks the number of sessions. Returns 0, or an exit status after reporting what is wrong. */
static int check_sessions(int n, const struct flags *f)
{
    if (n > MAX_SESSIONS)
        return kp_console_error(KP_EXIT_USAGE, "kprof diff compares at most %d session files", MAX_SESSIONS);
    if (n >= 2)
        return EXIT_SUCCESS;
    if (f->html)
        return kp_console_error(KP_EXIT_USAGE,
                                "kprof diff needs two or more session files, and %s is the file to write: write `kprof "
                                "diff --html NEW-FILE A.kprof B.kprof`",
                                f->html);
    return kp_console_error(KP_EXIT_USAGE, "kprof diff needs two or more session files; " KP_TRY_RECORD);
}

int kp_main_diff(int argc, char **argv)
{
    struct flags f = {.options = {.threshold = 1}};
    struct kp_cli_of flags = {.command = "diff",
                              .takes = "two or more session files",
                              .least = KP_OPT_DIFF,
                              .own = own,
                              .n_own = sizeof own / sizeof *own,
                              .arg = &f};
    struct kp_options o = {0};
    struct kp_display d;
    f.options.limits = f.limits;
    f.options.json = &f.json;
    int status = kp_cli_take(&flags, argc, argv);
    if (!status)
        status = check_sessions(argc - optind, &f);
    if (!status)
        status = kp_open_display(&o, &d);
    if (!status) {
        kp_idle_tell_overwrite(&o, f.html, "--html");
        status = f.html ? kp_file_check(f.html, o.force_overwrite) : 0;
        if (status)
            kp_options_free(&o);
    }
    if (!status) {
        kp_display_fit(&d, &o, STDOUT_FILENO);
        d.brief_above = f.rows ? 0 : d.brief_above;
        status = print_diff(argv + optind, (size_t)(argc - optind), &f, &o, &d);
        kp_options_free(&o);
    }
    for (size_t i = 0; i < MAX_LIMITS; i++)
        free(f.names[i]);
    return status;
}
