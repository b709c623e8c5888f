#include "cmd/application.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/path.h"
#include "base/room.h"
#include "base/temporary.h"
#include "base/text.h"
#include "cmd/console.h"
#include "cmd/join.h"

/* A plan asks for some hundred runs at most; more are a mistake. */
enum { MOST_RUNS = 1024 };

/* A series of runs. */
struct series {
    const struct kp_application *a;
    char **folders; /* of the sessions of each run */
    size_t folders_made, made, wanted;
    int first_status; /* as waitpid gives it */
    off_t input;      /* stdin's offset; -1: it cannot be read again */
    bool told_input;
    const char *why; /* there must be no more runs; NULL = there may */
};

static void say_of_run(const struct kp_application *a, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void say_of_run(const struct kp_application *a, const char *format, ...)
{
    va_list args;
    if (a->o->quiet)
        return;
    va_start(args, format);
    fputs("==KPROF== ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
}

static int no_memory(void)
{
    return kp_console_error(KP_EXIT_FAILED, "%s", strerror(ENOMEM));
}

/* ---- the environment of a run ---- */

/* Writes a path so that kp_expand_path leaves it as it is. */
static char *escaped(const char *path, const char *rest)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    if (!f)
        return NULL;
    for (const char *c = path; *c; c++)
        fprintf(f, *c == '%' ? "%%%%" : "%c", *c);
    fputs(rest, f);
    return kp_text_end(f, &text) ? NULL : text;
}

static int set_path(const char *name, const char *path, const char *rest)
{
    char *value = escaped(path, rest);
    int rc = value && !setenv(name, value, 1) ? 0 : -ENOMEM;
    free(value);
    return rc;
}

/* Later runs repeat what the first one has said, so only their warnings are shown. */
static int set_later_run(void)
{
    return setenv("KPROF_QUIET", "on", 1) || setenv("KPROF_LOG_FILE", "stderr", 1) ||
                   setenv("KPROF_REPORT_PIPE", "0", 1)
               ? -ENOMEM
               : 0;
}

static int prepare_run(struct series *s)
{
    const struct kp_application *a = s->a;
    char number[32], *folder = NULL;
    if (!KP_ROOM(s->folders, s->made))
        return no_memory();
    if (asprintf(&folder, "%s/run-%zu", a->folder, s->made + 1) < 0)
        return no_memory();
    s->folders[s->made] = folder;
    snprintf(number, sizeof number, "%zu", s->made + 1);
    if (mkdir(folder, 0700)) {
        int status = kp_console_error(KP_EXIT_FAILED, "cannot make the folder %s: %s", folder, strerror(errno));
        free(folder);
        return status;
    }
    s->folders_made = ++s->made;
    if (setenv("KPROF_REPLAY_FOLDER", a->folder, 1) || set_path("KPROF_SESSION_FILE", folder, "/%p.kprof") ||
        setenv("KPROF_REPLAY_RUN", number, 1) || (s->made > 1 && set_later_run()))
        return no_memory();
    return 0;
}

/* Lets the program read its input again. */
static void rewind_input(struct series *s)
{
    struct stat st;
    if (s->input >= 0 && lseek(STDIN_FILENO, s->input, SEEK_SET) == s->input)
        return;
    if (s->told_input || fstat(STDIN_FILENO, &st) || S_ISCHR(st.st_mode))
        return; /* a terminal is read again, and /dev/null is the same each time */
    s->told_input = true;
    fprintf(stderr, "==WARNING== stdin is a pipe, so later runs cannot read what the first run has read; redirect a "
                    "file instead (< FILE)\n");
}

/* ---- how a run ended ---- */

static char *end_of(int status)
{
    char *text = NULL;
    int n = WIFSIGNALED(status) ? asprintf(&text, "by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)))
                                : asprintf(&text, "with exit code %d", WEXITSTATUS(status));
    return n < 0 ? NULL : text;
}

static void tell_other_end(const struct series *s, int status, struct kp_run_outcome *out)
{
    char *this = end_of(status), *first = end_of(s->first_status);
    if (status != s->first_status)
        out->failures |= kp_failure_bit(KP_FAILURE_IN_PART);
    if (status != s->first_status && this && first)
        fprintf(stderr, "==WARNING== run %zu of the program ended %s, the first one %s\n", s->made, this, first);
    free(this);
    free(first);
}

/* Adds what a later run reports to the first one's. */
static void add_outcome(const struct series *s, struct kp_run_outcome *out)
{
    struct kp_run_outcome later;
    if (kp_run_outcome_read(s->a->status_file, &later))
        return;
    out->failures |= later.failures;
    out->unfinished += later.unfinished;
    out->runs = later.runs > out->runs ? later.runs : out->runs;
    kp_run_outcome_free(&later);
}

/* Returns true if no run can count anything. */
static bool is_hopeless(const struct kp_run_outcome *out)
{
    return out->failures & (kp_failure_bit(KP_FAILURE_PERMISSION) | kp_failure_bit(KP_FAILURE_CUPTI));
}

/* Runs the program once. Sets `why` if there must be no more runs. Returns 0 or an exit status. */
static int run_once(struct series *s, struct kp_run_outcome *out)
{
    int status = 0, signal_got = 0;
    int rc = prepare_run(s);
    if (!rc && s->made > 1) {
        rewind_input(s);
        say_of_run(s->a, "Run %zu of %zu of the program", s->made, s->wanted);
        rc = truncate(s->a->status_file, 0)
                 ? kp_console_error(KP_EXIT_FAILED, "%s: %s", s->a->status_file, strerror(errno))
                 : 0;
    }
    if (!rc)
        rc = s->a->run(s->a->arg, &status, &signal_got);
    if (rc)
        return rc;
    if (signal_got && signal_got != SIGUSR1 && signal_got != SIGUSR2)
        s->why = "a signal ended the series";
    if (s->made > 1) {
        tell_other_end(s, status, out);
        add_outcome(s, out);
    } else {
        s->first_status = status;
        kp_run_outcome_read(s->a->status_file, out);
        if (WIFSIGNALED(status) && !s->why)
            s->why = "the program was killed";
    }
    if (!s->why && is_hopeless(out))
        s->why = "the counters cannot be read, see above";
    s->wanted = out->runs < MOST_RUNS ? out->runs : MOST_RUNS;
    return 0;
}

/* ---- sessions ---- */

/* The session of a process in one run. */
struct found {
    char *path, *exe;
    int64_t start;
    bool taken;
};

struct sessions {
    struct found *at;
    size_t n;
};

static int by_start(const void *a, const void *b)
{
    const struct found *x = a, *y = b;
    return (x->start > y->start) - (x->start < y->start);
}

static void add_session(struct sessions *s, const char *folder, const char *name)
{
    struct kp_store *store = NULL;
    struct kp_session facts = {0};
    char *err = NULL, *path = NULL;
    if (KP_ROOM(s->at, s->n) && asprintf(&path, "%s/%s", folder, name) >= 0 && !kp_store_open(path, &store, &err) &&
        !kp_store_get_session(store, &facts, &err)) {
        s->at[s->n++] = (struct found){.path = path, .exe = facts.exe, .start = facts.start_unix_ns};
        facts.exe = NULL;
        path = NULL;
    }
    kp_store_close(store);
    kp_session_free(&facts);
    free(path);
    free(err);
}

static struct sessions find_sessions(const char *folder)
{
    static const char ending[] = ".kprof";
    struct sessions s = {.n = 0};
    struct dirent **entries = NULL;
    int n = scandir(folder, &entries, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        const char *dot = strrchr(entries[i]->d_name, '.');
        if (dot && !strcmp(dot, ending))
            add_session(&s, folder, entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    if (s.n)
        qsort(s.at, s.n, sizeof *s.at, by_start);
    return s;
}

static void free_sessions(struct sessions *s)
{
    for (size_t i = 0; i < s->n; i++) {
        free(s->at[i].path);
        free(s->at[i].exe);
    }
    free(s->at);
}

/* Returns the session of the same process in another run: the first of its program that is not taken yet. */
static const char *partner_of(struct sessions *run, const char *exe)
{
    for (size_t i = 0; i < run->n; i++)
        if (!run->at[i].taken && !strcmp(run->at[i].exe, exe)) {
            run->at[i].taken = true;
            return run->at[i].path;
        }
    return NULL;
}

/* ---- the end ---- */

static void tell_notes(const char *text)
{
    for (const char *end; (end = strchr(text, '\n')); text = end + 1)
        fprintf(stderr, "==WARNING== %.*s\n", (int)(end - text), text);
}

/* Returns the path of the joined session, and whether it is the export. malloc'ed, NULL after reporting why. */
static char *path_of(const struct kp_application *a, const char *first, bool *is_export)
{
    struct kp_store *store = NULL;
    struct kp_session s = {0};
    char *path = NULL, *err = NULL;
    *is_export = *a->o->export_file;
    if (!*is_export)
        return kp_asprintf("%s.joined", first);
    if (kp_store_open(first, &store, &err) || kp_store_get_session(store, &s, &err) ||
        kp_expand_path(a->o->export_file, s.pid, s.host, &path, &err)) {
        kp_console_error(0, "%s", err ? err : strerror(ENOMEM));
        path = NULL;
    }
    kp_store_close(store);
    kp_session_free(&s);
    free(err);
    return path;
}

static void report_joined(const struct kp_application *a, const char *path, bool is_export)
{
    struct kp_store *store = NULL;
    struct kp_session s = {0};
    char *err = NULL;
    if (!kp_store_open(path, &store, &err) && !kp_store_get_session(store, &s, &err))
        a->print(a->print_arg, store, &s, is_export ? path : NULL);
    else
        kp_console_error(0, "%s", err ? err : strerror(ENOMEM));
    kp_store_close(store);
    kp_session_free(&s);
    free(err);
}

static void join(const struct series *s, const char *const *paths, struct kp_run_outcome *out)
{
    const struct kp_application *a = s->a;
    const struct kp_join j = {.ranges = kp_options_by_ranges(a->o),
                              .by = a->o->app_replay_match,
                              .mode = a->o->app_replay_mode,
                              .folder = a->folder,
                              .paths = paths,
                              .runs = s->made,
                              .wanted = s->wanted};
    bool is_export;
    char *to = path_of(a, paths[0], &is_export), *err = NULL, *notes = NULL;
    size_t size;
    FILE *f = to ? open_memstream(&notes, &size) : NULL;
    int rc = f ? kp_application_join(&j, to, a->o->force_overwrite, f, &err) : -ENOMEM;
    if (f && kp_text_end(f, &notes))
        notes = NULL;
    if (notes && *notes) {
        out->failures |= kp_failure_bit(KP_FAILURE_IN_PART);
        tell_notes(notes);
    }
    if (rc) {
        out->failures |= kp_failure_bit(is_export ? KP_FAILURE_EXPORT : KP_FAILURE_REPORT);
        kp_console_error(0, "the runs cannot be joined: %s", err ? err : strerror(-rc));
    } else {
        report_joined(a, to, is_export);
    }
    if (!rc && is_export) {
        kp_run_outcome_free(out);
        out->stored = strdup(to);
    } else if (to && !is_export) {
        kp_store_remove(to);
    }
    free(notes);
    free(err);
    free(to);
}

/* Joins the sessions of each process of the first run with those of the others. */
static void join_all(struct series *s, struct kp_run_outcome *out)
{
    struct sessions *runs = calloc(s->made + 1, sizeof *runs);
    const char **paths = calloc(s->made + 1, sizeof *paths);
    for (size_t k = 0; runs && paths && k < s->made; k++)
        runs[k] = find_sessions(s->folders[k]);
    for (size_t i = 0; runs && paths && i < runs[0].n; i++) {
        paths[0] = runs[0].at[i].path;
        for (size_t k = 1; k < s->made; k++)
            paths[k] = partner_of(&runs[k], runs[0].at[i].exe);
        join(s, paths, out);
    }
    for (size_t k = 0; runs && k < s->made; k++)
        free_sessions(&runs[k]);
    free(runs);
    free(paths);
}

/* Removes what the runs share: how the counters are shared out, and counter data of launches. */
static void remove_shared(const char *folder)
{
    static const char *const beginnings[] = {"plan.", "claim.", "images."};
    struct dirent **entries = NULL;
    int n = scandir(folder, &entries, NULL, NULL);
    for (int i = 0; i < n; i++) {
        char *path = NULL;
        for (size_t k = 0; k < sizeof beginnings / sizeof *beginnings; k++)
            if (!strncmp(entries[i]->d_name, beginnings[k], strlen(beginnings[k])) &&
                asprintf(&path, "%s/%s", folder, entries[i]->d_name) >= 0) {
                if (unlink(path))
                    kp_temporary_remove(path);
                free(path);
            }
        free(entries[i]);
    }
    free(entries);
}

/* Each run is as slow as what it counts. */
static void warn_of_times(const struct kp_options *o)
{
    if (o->delay || o->duration)
        fprintf(stderr,
                "==WARNING== delay and duration start again in each run, and may choose other %s there; launch-skip "
                "and launch-count choose the same\n",
                kp_options_by_ranges(o) ? "ranges" : "launches");
}

int kp_application_run(const struct kp_application *a, struct kp_run_outcome *out, int *status)
{
    struct series s = {.a = a, .wanted = 1, .input = lseek(STDIN_FILENO, 0, SEEK_CUR)};
    int rc = 0;
    warn_of_times(a->o);
    while (!rc && !s.why && s.made < s.wanted) {
        size_t before = s.made;
        rc = run_once(&s, out);
        if (rc && before) { /* the end of the command is that of the first run */
            s.why = "the next one could not be started";
            s.made = before;
            rc = 0;
        }
    }
    *status = s.first_status;
    if (!rc && s.why && s.made < s.wanted) {
        out->failures |= kp_failure_bit(KP_FAILURE_IN_PART);
        fprintf(stderr, "==WARNING== only %zu of %zu runs were made because %s: the values of the others are missing\n",
                s.made, s.wanted, s.why);
    }
    if (s.made)
        join_all(&s, out);
    for (size_t k = 0; k < s.folders_made; k++) {
        kp_temporary_remove(s.folders[k]);
        free(s.folders[k]);
    }
    free(s.folders);
    remove_shared(a->folder);
    return rc;
}
