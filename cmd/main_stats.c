/* `kprof stats FILE...`: the reports of `nsys stats`. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/room.h"
#include "base/text.h"
#include "base/width.h"
#include "cmd/commands.h"
#include "cmd/console.h"
#include "cmd/open_sessions.h"
#include "report/store/store.h"

/* The rows of a report, first the headings. */
struct rows {
    char ***at;
    size_t n, columns;
};

struct stats {
    const char *reports; /* a comma list; NULL = all */
    bool csv;
};

static void free_stats_rows(struct rows *r)
{
    for (size_t i = 0; i < r->n; i++) {
        for (size_t k = 0; k < r->columns; k++)
            free(r->at[i][k]);
        free(r->at[i]);
    }
    free(r->at);
}

static int take_row(const char *const *cells, size_t n, void *arg)
{
    struct rows *r = arg;
    if (!KP_ROOM(r->at, r->n) || !(r->at[r->n] = calloc(n, sizeof **r->at)))
        return -ENOMEM;
    r->columns = n;
    char **row = r->at[r->n++];
    for (size_t i = 0; i < n; i++)
        if (!(row[i] = kp_strdup(cells[i] ? cells[i] : "")))
            return -ENOMEM;
    return 0;
}

/* Writes a field as nsys does: in quotation marks only if it needs them. */
static void write_field(const char *text)
{
    bool quoted = strpbrk(text, ",\"\n");
    if (quoted)
        putchar('"');
    for (; *text; text++)
        printf("%s", *text == '"' ? "\"\"" : (char[]){*text, '\0'});
    if (quoted)
        putchar('"');
}

static void write_csv(const struct rows *r)
{
    for (size_t i = 0; i < r->n; i++)
        for (size_t k = 0; k < r->columns; k++) {
            write_field(r->at[i][k]);
            putchar(k + 1 < r->columns ? ',' : '\n');
        }
}

static void write_cell(const char *text, size_t width, bool last)
{
    size_t pad = width > kp_width(text) ? width - kp_width(text) : 0;
    printf(" %*s%s", last ? 0 : (int)pad, "", text);
}

static void write_columns(const struct rows *r)
{
    size_t *widths = calloc(r->columns + 1, sizeof *widths), widest = 0;
    for (size_t i = 0; widths && i < r->n; i++)
        for (size_t k = 0; k < r->columns; k++)
            widths[k] = kp_width(r->at[i][k]) > widths[k] ? kp_width(r->at[i][k]) : widths[k];
    for (size_t k = 0; widths && k < r->columns; k++)
        widest = widths[k] > widest ? widths[k] : widest;
    char *rule = widths ? malloc(widest + 1) : NULL;
    for (size_t i = 0; rule && i < r->n; i++) {
        for (size_t k = 0; k < r->columns; k++)
            write_cell(r->at[i][k], widths[k], k + 1 == r->columns);
        putchar('\n');
        for (size_t k = 0; !i && k < r->columns; k++) {
            memset(rule, '-', widths[k]);
            rule[widths[k]] = '\0';
            write_cell(rule, 0, false);
        }
        if (!i)
            putchar('\n');
    }
    free(rule);
    free(widths);
}

/* Says that a report is left out, as nsys does. */
static void skip_report(const char *name)
{
    char text[160];
    snprintf(text, sizeof text, "%s is left out: the session has no such records; a run with --timeline has them",
             name);
    kp_console_note(text);
}

/* Prints a report of a session, if there are rows for it. `first`: nothing was printed before it. */
static int print_report(struct kp_store *store, size_t report, const struct stats *s, bool *first)
{
    struct rows rows = {0};
    char *err = NULL;
    const char *title, *name = kp_stats_report(report, &title);
    int rc = kp_store_stats(store, report, take_row, &rows, &err);
    if (!rc && rows.n < 2) {
        skip_report(name);
    } else if (!rc) {
        if (!s->csv)
            printf("%s ** %s (%s):\n\n", *first ? "" : "\n", title, name);
        else if (!*first)
            putchar('\n');
        (s->csv ? write_csv : write_columns)(&rows);
        *first = false;
    }
    free_stats_rows(&rows);
    int status = kp_console_end(rc, err);
    free(err);
    return status;
}

static int print_stats_of(const char *path, const struct stats *s, bool *first)
{
    struct kp_store *store = NULL;
    const char *title, *name;
    int status = kp_open_session(path, false, &store);
    for (size_t i = 0; !status && (name = kp_stats_report(i, &title)); i++)
        if (!s->reports || kp_list_has(s->reports, name))
            status = print_report(store, i, s, first);
    kp_store_close(store);
    return status;
}

static int take_report(const char *value, void *arg)
{
    struct stats *s = arg;
    const char *list = value, *word, *title, *name;
    size_t len;
    while (kp_word_next(&list, &word, &len)) {
        size_t i = 0;
        while ((name = kp_stats_report(i, &title)) && (strlen(name) != len || strncmp(name, word, len) != 0))
            i++;
        if (!name)
            return kp_console_error(KP_EXIT_USAGE,
                                    "there is no report %.*s; `kprof stats --help` has the names of those of nsys that "
                                    "a timeline has",
                                    (int)len, word);
    }
    s->reports = value;
    return 0;
}

static int take_format(const char *value, void *arg)
{
    static const char *const choices[] = {"column", "csv", NULL};
    size_t choice;
    int status = kp_cli_take_choice("format", value, choices, &choice);
    ((struct stats *)arg)->csv = !status && choice == 1;
    return status;
}

static const struct kp_own_flag own[] = {
    {"report", " LIST",
     "reports by nsys' names, separated by commas: nvtx_sum, cuda_gpu_kern_sum, cuda_gpu_kern_gb_sum, "
     "cuda_gpu_mem_time_sum, cuda_gpu_mem_size_sum, cuda_gpu_sum, cuda_gpu_trace, nvtx_gpu_proj_sum, "
     "nvtx_gpu_proj_trace; if not given, all",
     take_report, false},
    {"format", " {column,csv}", "column: tables; csv: comma-separated values, as from nsys", take_format, false},
};

const struct kp_own_flag *kp_main_stats_flags(size_t *n)
{
    *n = sizeof own / sizeof *own;
    return own;
}

int kp_main_stats(int argc, char **argv)
{
    struct stats s = {0};
    bool first = true;
    struct kp_cli_of flags = {.command = "stats",
                              .takes = "session files",
                              .least = KP_OPT_NONE,
                              .own = own,
                              .n_own = sizeof own / sizeof *own,
                              .arg = &s};
    int status = kp_cli_take(&flags, argc, argv);
    if (!status && optind == argc)
        status = kp_console_error(KP_EXIT_USAGE, "kprof stats needs one or more session files; " KP_TRY_RECORD);
    for (int i = optind; !status && i < argc; i++)
        status = print_stats_of(argv[i], &s, &first);
    return status;
}
