/* `kprof diff A B`. */
#include <errno.h>
#include <getopt.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/stream.h"
#include "base/terminal.h"
#include "base/text.h"
#include "cmd/console.h"
#include "cmd/diff.h"
#include "cmd/html_file.h"
#include "cmd/main.h"
#include "cmd/open.h"
#include "report/html/html.h"
#include "report/options/options.h"
#include "report/pages/page.h"
#include "report/write/fit.h"

enum { MAX_LIMITS = 64 };

/* The values of the flags. */
struct flags {
    struct kp_diff_options options;
    struct kp_diff_limit limits[MAX_LIMITS];
    char *names[MAX_LIMITS]; /* of the limits; owned */
    const char *html;        /* the file to write; NULL = none */
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
    int status = kp_flags_take_choice("by", value, choices, &choice);
    if (!status)
        f->options.by = (enum kp_diff_by)choice;
    return status;
}

static int take_show(const char *value, void *arg)
{
    static const char *const choices[] = {"changed", "all", NULL};
    struct flags *f = arg;
    size_t choice;
    int status = kp_flags_take_choice("show", value, choices, &choice);
    if (!status)
        f->options.all = choice;
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
        return kp_console_error(KP_EXIT_USAGE, "--fail-above: '%s' is no limit; write 5%% or METRIC:5%%", value);
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

static int take_html(const char *value, void *arg)
{
    struct flags *f = arg;
    return kp_html_take(value, &f->html);
}

static const struct kp_own_flag own[] = {
    {"by", " {launch,kernel}",
     "launch: launches are paired by name, grid and order; kernel: averages by kernel name (default launch)", take_by},
    {"show", " {changed,all}", "rows that changed by more than the threshold, or all (default changed)", take_show},
    {"threshold", " PERCENT", "changes that are no change (default 1%)", take_threshold},
    {"fail-above", " [METRIC:]PERCENT",
     "exit with 1 when the metric, the duration if none is named, grew by more in any pair; may be given several times",
     take_limit},
    {"html", " FILE", "write both sessions into one HTML file, too: kernels side by side, A as the baseline of B",
     take_html},
};

const struct kp_own_flag *kp_main_diff_flags(size_t *n)
{
    *n = sizeof own / sizeof *own;
    return own;
}

static int write_html(const struct kp_diff_input input[2], const struct kp_options *o, const struct kp_display *d,
                      const char *path)
{
    struct kp_display of_file = *d;
    struct kp_html *html = kp_html_new();
    char *err = NULL;
    int rc = html ? 0 : -ENOMEM;
    kp_html_display(&of_file, o->brief_above);
    for (int i = 0; !rc && i < 2; i++)
        rc = kp_page_write_store(kp_html_writer(html), &of_file, input[i].store, &err);
    int status =
        rc ? kp_console_error(KP_EXIT_FAILED, "%s", err ? err : strerror(-rc)) : kp_html_save(html, true, path);
    kp_html_free(html);
    free(err);
    return status;
}

/* Returns the exit status of a comparison, after reporting why nothing was compared. */
static int status_of(char *const *paths, const struct flags *f, const struct kp_diff_outcome *outcome)
{
    if (!outcome->pairs)
        return kp_console_error(KP_EXIT_FAILED, "%s and %s have no %s in common: nothing was compared", paths[0],
                                paths[1], f->options.by == KP_DIFF_BY_LAUNCH ? "launch" : "kernel");
    if (!f->options.n_limits && (outcome->without_counters[0] || outcome->without_counters[1]))
        return kp_console_error(KP_EXIT_FAILED,
                                "%s has launches, but no counters: nothing that was counted could be compared",
                                paths[!outcome->without_counters[0]]);
    return outcome->exceeded || outcome->unchecked ? KP_EXIT_FAILED : EXIT_SUCCESS;
}

static int print_diff(char *const *paths, const struct flags *f, const struct kp_options *o, const struct kp_display *d)
{
    struct kp_diff_input input[2] = {{paths[0], NULL}, {paths[1], NULL}};
    struct kp_diff_outcome outcome = {0};
    struct kp_sink out = kp_stream_sink(stdout);
    struct kp_fit fit;
    char *err = NULL;
    int status = 0, rc;
    for (int i = 0; !status && i < 2; i++)
        status = kp_open_session(paths[i], !*o->section_folder, &input[i].store);
    if (status) {
        status = KP_EXIT_USAGE; /* status 1 means differing values */
        goto out;
    }
    kp_fit_init(&fit, &out, kp_terminal_width(STDOUT_FILENO));
    rc = kp_diff(&fit.sink, d, &f->options, input, &outcome, &err);
    bool unreadable = rc && err;
    int last = kp_fit_end(&fit);
    rc = rc ? rc : last;
    if (fflush(stdout) && !rc)
        rc = -errno;
    status = rc ? kp_console_error(unreadable ? KP_EXIT_USAGE : KP_EXIT_FAILED, "%s", err ? err : strerror(-rc))
                : status_of(paths, f, &outcome);
    if (!rc && outcome.warnings)
        kp_console_warn(outcome.warnings);
    if (!rc && f->html) {
        int written = write_html(input, o, d, f->html);
        status = status ? status : written;
    }
out:
    free(outcome.warnings);
    kp_store_close(input[0].store);
    kp_store_close(input[1].store);
    free(err);
    return status;
}

int kp_main_diff(int argc, char **argv)
{
    struct flags f = {.options = {.threshold = 1}};
    struct kp_flags_of flags = {.command = "diff",
                                .takes = "two session files",
                                .least = KP_OPT_DIFF,
                                .own = own,
                                .n_own = sizeof own / sizeof *own,
                                .arg = &f};
    struct kp_options o = {0};
    struct kp_display d;
    f.options.limits = f.limits;
    int status = kp_flags_take(&flags, argc, argv);
    if (!status && argc - optind != 2)
        status = kp_console_error(KP_EXIT_USAGE, "kprof diff takes two session files");
    if (!status)
        status = kp_open_display(&o, &d);
    if (!status) {
        status = print_diff(argv + optind, &f, &o, &d);
        kp_options_free(&o);
    }
    for (size_t i = 0; i < MAX_LIMITS; i++)
        free(f.names[i]);
    return status;
}
