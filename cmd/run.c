#include "cmd/run.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/nearest.h"
#include "base/path.h"
#include "base/stream.h"
#include "base/temporary.h"
#include "base/text.h"
#include "base/version.h"
#include "cmd/application.h"
#include "cmd/check.h"
#include "cmd/console.h"
#include "cmd/html_file.h"
#include "cmd/idle.h"
#include "cmd/run_outcome.h"
#include "report/options/options.h"
#include "report/pages/page.h"
#include "report/view/display.h"

static const char library_name[] = KP_LIBRARY;
static const char status_name[] = "status";

/* Signals that the user may send to the command but mean for the program; held back until the command ends. All others
 * that would end the command are so, too, as long as the program runs: it is not left behind. */
static const int forwarded[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
/* Signals that end no process. */
static const int harmless[] = {SIGCONT, SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU, SIGURG, SIGWINCH};
/* Signals that a terminal sends to the program as well. */
static const int of_terminal[] = {SIGINT, SIGQUIT, SIGHUP};

/* --- before the program starts --- */

/* Finds the path of this command, also if there is no /proc. */
static bool find_command(char exe[PATH_MAX])
{
    ssize_t n = readlink("/proc/self/exe", exe, PATH_MAX - 1);
    if (n < 0)
        return realpath((const char *)getauxval(AT_EXECFN), exe);
    exe[n] = '\0';
    return true;
}

char *kp_run_library(void)
{
    static const char *const folders[] = {"", "../lib/"};
    char exe[PATH_MAX], path[PATH_MAX + 64];
    if (!find_command(exe))
        return NULL;
    *(strrchr(exe, '/') + 1) = '\0';
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        snprintf(path, sizeof path, "%s%s%s", exe, folders[i], library_name);
        if (!access(path, R_OK))
            return realpath(path, NULL);
    }
    return NULL;
}

/* AddressSanitizer refuses to start after a preloaded library, unless an option allows it. The user's own options come
 * last, and so win. */
static int let_sanitiser_start(void)
{
    static const char variable[] = "ASAN_OPTIONS";
    const char *own = getenv(variable);
    char *list = NULL;
    bool set = asprintf(&list, "verify_asan_link_order=0%s%s", own && *own ? ":" : "", own ? own : "") >= 0 &&
               !setenv(variable, list, 1);
    free(list);
    return set ? 0 : kp_console_error(KP_EXIT_FAILED, "%s", strerror(ENOMEM));
}

/* `first`: libraries that come before kprof's. */
static int set_preload(const char *first)
{
    const char *others = getenv("LD_PRELOAD");
    char *library = kp_run_library(), *list = NULL;
    int status = 0;
    if (!library)
        status = kp_console_error(KP_EXIT_FAILED, "cannot find %s: it belongs next to the kprof command or in ../lib",
                                  library_name);
    else if (strpbrk(library, " :"))
        status = kp_console_error(KP_EXIT_FAILED,
                                  "LD_PRELOAD cannot name '%s': move it to a path without blanks or colons", library);
    else if (asprintf(&list, "%s%s%s%s%s", first, *first ? ":" : "", library, others && *others ? ":" : "",
                      others ? others : "") < 0 ||
             setenv("LD_PRELOAD", list, 1))
        status = kp_console_error(KP_EXIT_FAILED, "%s", strerror(ENOMEM));
    free(list);
    free(library);
    return status;
}

/* Removes what killed commands and programs have left, a week later: the sessions among it can be read till then. */
static void sweep(void)
{
    enum { WEEK = 7 * 24 * 60 * 60 };
    static const char *const left[][2] = {{"kprof.", status_name},
                                          {"kprof-", "session.kprof"}, /* of libkprof.so, for programs started without
                                                                          the command */
                                          {"kprof-ranks-", "ranks.kprof"},
                                          {"kprof-read-", "session"}};
    for (size_t i = 0; i < sizeof left / sizeof *left; i++)
        kp_temporary_sweep(left[i][0], left[i][1], WEEK);
}

/* Makes a folder for the sessions of the program and its children, each named by its process. *status receives the path
 * of the file of their outcomes. malloc'ed; NULL on failure: then a killed program leaves no report, and no outcomes
 * are known. The folder is dated back, so that a removed session is distinguishable from none. */
static char *make_folder(char **status)
{
    const struct timespec long_ago[] = {{0}, {0}};
    sweep();
    char *folder = kp_temporary_folder("kprof.");
    *status = NULL;
    if (!folder)
        return NULL;
    int fd = asprintf(status, "%s/%s", folder, status_name) < 0
                 ? -1
                 : open(*status, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0)
        close(fd);
    utimensat(AT_FDCWD, folder, long_ago, 0);
    return folder;
}

/* Tells the library to keep its session in `folder`. */
static int set_session_file(const char *folder)
{
    char *pattern = NULL;
    size_t size;
    FILE *f = open_memstream(&pattern, &size);
    if (!f)
        return -ENOMEM;
    for (const char *c = folder; *c; c++)
        fprintf(f, *c == '%' ? "%%%%" : "%c", *c);
    fputs("/%p" KP_SESSION_ENDING, f);
    int rc = kp_text_end(f, &pattern) || setenv("KPROF_SESSION_FILE", pattern, 1) ? -ENOMEM : 0;
    free(pattern);
    return rc;
}

/* --- the program --- */

struct child {
    pid_t pid;
    int status;          /* as waitpid gives it */
    int signal;          /* that the command got meanwhile and has forwarded; 0 = none */
    const char *binary;  /* path of a program that no shell can read; NULL = it may be a script */
    bool no_input;       /* its standard input is /dev/null */
    const char *reached; /* the status file, if the program ends when all launches are profiled; NULL: it ends itself */
    bool ended;          /* for that reason */
    bool held;           /* the signals are held back: */
    sigset_t mask;
    struct sigaction on_child; /* as they were before */
};

/* Runs in the forked child. Stores in *failure, which the parent shares, why the program could not be executed. A file
 * that the kernel refuses is run by the shell, but for a binary one. */
static void become(char **argv, const struct child *c, volatile int *failure)
{
    sigaction(SIGCHLD, &c->on_child, NULL);
    sigprocmask(SIG_SETMASK, &c->mask, NULL);
    int input = c->no_input ? open("/dev/null", O_RDONLY | O_CLOEXEC) : -1;
    if (input >= 0)
        dup2(input, STDIN_FILENO);
    if (c->binary)
        execv(c->binary, argv);
    else
        execvp(argv[0], argv);
    *failure = errno;
    _exit(KP_EXIT_NOT_FOUND);
}

static bool is_one_of(const int *signals, size_t n, int sig)
{
    for (size_t i = 0; i < n; i++)
        if (signals[i] == sig)
            return true;
    return false;
}

/* Waits for the child, and forwards signals meanwhile. Does not forward the terminal's signals, which the program
 * has got already. */
static void wait_for(struct child *c, const sigset_t *awaited)
{
    const struct timespec step = {.tv_nsec = 20 * 1000 * 1000};
    siginfo_t info;
    while (waitpid(c->pid, &c->status, WNOHANG) != c->pid) {
        int sig = c->reached ? sigtimedwait(awaited, &info, &step) : sigwaitinfo(awaited, &info);
        if (sig < 0 && c->reached && !c->ended)
            c->ended = kp_run_outcome_end(c->reached, c->pid);
        if (sig > 0 && sig != SIGCHLD)
            c->signal = sig;
        if (sig <= 0 || sig == SIGCHLD ||
            (info.si_code == SI_KERNEL && is_one_of(of_terminal, sizeof of_terminal / sizeof *of_terminal, sig)))
            continue;
        if (info.si_code == SI_QUEUE)
            sigqueue(c->pid, sig, info.si_value);
        else
            kill(c->pid, sig);
    }
}

static bool is_session(const char *path)
{
    struct kp_store *store = NULL;
    char *err = NULL;
    bool is = !kp_store_open(path, &store, &err);
    kp_store_close(store);
    free(err);
    return is;
}

/* Returns what kprof has for a command of nsys; NULL: it is none. */
static const char *of_nsys(const char *name)
{
    static const char *const words[][2] = {
        {"profile", "kprof runs a program without a word before it; `kprof --timeline` records what nsys does"},
        {"launch", "kprof runs a program without a word before it"},
        {"stats", "`kprof report --page summary,timeline FILE` prints what nsys calls stats"},
        {"analyze", "`kprof report FILE` prints advice for each kernel"},
        {"export",
         "`kprof report --json FILE` and `--trace-json` write what nsys exports; a session is an SQLite file"},
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strcmp(name, words[i][0]))
            return words[i][1];
    return NULL;
}

/* Reports that execution found no file: the program, or the one that is to read it. */
static int not_found(const char *name, const char *const *commands)
{
    struct stat st;
    char *path = kp_check_find_program(name), *reader = path ? kp_check_interpreter(path) : NULL;
    const char *near = path ? NULL : kp_nearest(name, commands);
    if (!path && of_nsys(name))
        kp_console_error(0, "%s: no such program; %s", name, of_nsys(name));
    else if (reader)
        kp_console_error(0, "%s: its interpreter %s: %s", name, reader, strerror(ENOENT));
    else if (near)
        kp_console_error(0, "%s: no such program; did you mean `kprof %s`?", name, near);
    else if (!strcmp(name, "help") || !strcmp(name, "version"))
        kp_console_error(0, "%s: no such program; did you mean `kprof --%s`?", name, name);
    else if (!strchr(name, '/') && !stat(name, &st) && S_ISREG(st.st_mode))
        kp_console_error(0, "%s: no such program in PATH; the one here is ./%s", name, name);
    else
        kp_console_error(0, "%s: no such program", name);
    free(reader);
    free(path);
    return KP_EXIT_NOT_FOUND;
}

static int cannot_execute(const char *name, int why, const char *const *commands)
{
    struct stat st;
    if (!*name)
        return kp_console_error(KP_EXIT_NOT_FOUND, "the program's name is empty");
    if (why == ENOENT)
        return not_found(name, commands);
    if (!stat(name, &st) && S_ISDIR(st.st_mode))
        return kp_console_error(KP_EXIT_NOT_EXECUTABLE, "%s is a folder; name a program in it", name);
    if (is_session(name))
        return kp_console_error(KP_EXIT_NOT_EXECUTABLE,
                                "%s is not a program but a stored session; `kprof report %s` prints it", name, name);
    return kp_console_error(KP_EXIT_NOT_EXECUTABLE, "%s: %s", name, strerror(why));
}

/* Holds back, once, the signals that are forwarded to the program. */
static void hold_signals(struct child *c)
{
    struct sigaction plain = {.sa_handler = SIG_DFL};
    sigset_t held;
    if (c->held)
        return;
    sigemptyset(&held);
    sigaddset(&held, SIGCHLD);
    for (size_t i = 0; i < sizeof forwarded / sizeof *forwarded; i++)
        sigaddset(&held, forwarded[i]);
    sigprocmask(SIG_BLOCK, &held, &c->mask);
    sigaction(SIGCHLD, &plain, &c->on_child); /* some parents leave it ignored, which would discard the status */
    c->held = true;
}

/* Holds back all that would end the command as well. *before receives the mask to restore. */
static sigset_t hold_more(sigset_t *before)
{
    sigset_t awaited;
    sigfillset(&awaited);
    for (size_t i = 0; i < sizeof harmless / sizeof *harmless; i++)
        sigdelset(&awaited, harmless[i]);
    sigprocmask(SIG_BLOCK, &awaited, before);
    return awaited;
}

/* Returns 0 when the program ran, else an exit status. */
static int run_program(char **argv, const char *const *commands, struct child *c)
{
    /* Needs no descriptor: there may be none left. */
    int *failure = mmap(NULL, sizeof *failure, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (failure == MAP_FAILED)
        return kp_console_error(KP_EXIT_FAILED, "%s", strerror(errno));
    hold_signals(c);
    sigset_t before, awaited = hold_more(&before);
    c->pid = fork();
    int error = errno;
    if (!c->pid)
        become(argv, c, failure);
    if (c->pid > 0)
        wait_for(c, &awaited);
    sigprocmask(SIG_SETMASK, &before, NULL);
    int why = *failure;
    munmap(failure, sizeof *failure);
    if (c->pid < 0)
        return kp_console_error(KP_EXIT_FAILED, "cannot start a process for %s: %s", argv[0], strerror(error));
    return why ? cannot_execute(argv[0], why, commands) : 0;
}

/* --- after the program has ended --- */

static FILE *open_log(const struct kp_options *o, const struct kp_session *s)
{
    char *path = NULL, *err = NULL;
    enum kp_log_target target = kp_options_log_target(o->log_file);
    if (target != KP_LOG_TO_FILE)
        return target == KP_LOG_TO_STDERR && !o->report_pipe ? stderr : stdout;
    int rc = kp_expand_path(o->log_file, s->pid, s->host, &path, &err);
    /* Appends: it may contain lines from the program's run. Like a session, a new one is for its owner alone. */
    int fd = rc ? -1 : open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, S_IRUSR | S_IWUSR);
    FILE *log = fd < 0 ? NULL : fdopen(fd, "a");
    if (!log && fd >= 0)
        close(fd);
    free(path);
    free(err);
    return log ? log : stderr;
}

static void print_session(FILE *log, const struct kp_display *d, struct kp_store *store, const struct kp_session *s,
                          const struct child *c)
{
    char *err = NULL;
    struct kp_sink out = kp_stream_sink(log);
    FILE *words = d->format == KP_FORMAT_TEXT ? log : stderr;
    if (d->face == KP_FACE_NCU)
        fprintf(words, "==WARNING== Process %" PRIu64 " ended without its report\n", s->pid);
    else if (WIFSIGNALED(c->status) && s->pid == (uint64_t)c->pid)
        fprintf(words, "==KPROF== Process %" PRIu64 " was killed by signal %d (%s); its report up to then:\n", s->pid,
                WTERMSIG(c->status), strsignal(WTERMSIG(c->status)));
    else
        fprintf(words, "==KPROF== Process %" PRIu64 " ended without its report; here it is, up to then:\n", s->pid);
    int rc = kp_page_print_store(&out, d, store, &err);
    if (rc && rc != -EPIPE) /* a reader who has seen enough is not a failure */
        kp_console_error(0, "%s", err ? err : "the report could not be written");
    fflush(log);
    free(err);
}

/* Returns true if the process outlives the program, and still needs its session file. */
static bool still_runs(const struct kp_session *s, const struct child *c)
{
    return s->pid != (uint64_t)c->pid && !kill((pid_t)s->pid, 0);
}

/* What becomes of the sessions in the folder. */
struct settling {
    const struct kp_options *o;
    const struct child *child;
    struct kp_html_files *html;
    int failed; /* the status of the first that could not be written as HTML */
};

static void add_html(struct settling *t, struct kp_store *store)
{
    int status = *t->o->html_file ? kp_file_add_html(t->html, store, t->o, t->o->html_file) : 0;
    t->failed = t->failed ? t->failed : status;
}

/* Prints the session at `path` if its process died before printing it, and adds it to the HTML files. Returns whether
 * the file is still in use. */
static bool settle_session(const char *path, struct settling *t)
{
    const struct kp_options *o = t->o;
    const struct child *c = t->child;
    struct kp_store *store = NULL;
    struct kp_session s = {0};
    char *err = NULL;
    bool in_use = false;
    /* An unreadable session was never begun, and has no launches. */
    if (kp_store_open(path, &store, &err) || kp_store_get_session(store, &s, &err))
        goto out;
    in_use = !s.complete && still_runs(&s, c);
    if (!in_use)
        add_html(t, store);
    if (!in_use && !s.complete && !o->unprinted) {
        FILE *log = open_log(o, &s);
        struct kp_display d = kp_display_of(o);
        kp_display_fit(&d, o, fileno(log));
        print_session(log, &d, store, &s, c);
        if (log != stderr && log != stdout)
            fclose(log);
    }
out:
    kp_store_close(store);
    kp_session_free(&s);
    free(err);
    return in_use;
}

static void settle_entry(const char *folder, const char *name, struct settling *t)
{
    char *session = NULL, *journal = NULL;
    if (asprintf(&session, "%s/%s", folder, name) >= 0 && !settle_session(session, t)) {
        unlink(session);
        if (asprintf(&journal, "%s-journal", session) >= 0)
            unlink(journal);
    }
    free(journal);
    free(session);
}

static void settle_folder(const char *folder, struct settling *t)
{
    struct dirent **entries = NULL;
    int n = scandir(folder, &entries, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        const char *ending = strrchr(entries[i]->d_name, '.');
        if (ending && !strcmp(ending, KP_SESSION_ENDING)) /* the session's removal includes its journal */
            settle_entry(folder, entries[i]->d_name, t);
        free(entries[i]);
    }
    free(entries);
    rmdir(folder); /* fails while a process that outlives the program uses it */
}

static bool was_used(const char *folder)
{
    struct stat s;
    return stat(folder, &s) || s.st_mtim.tv_sec || s.st_mtim.tv_nsec;
}

/* ---- messages at the end ---- */

/* A run, from its start to its end. */
struct run {
    struct kp_options o;
    struct child child;
    char *folder, *status_file; /* see make_folder */
    char *program;              /* the executed file; NULL if not found */
    kp_failure_set found;       /* failures found before the program started */
    struct kp_run_outcome outcome;
    struct kp_html_files html;
    bool known;   /* `outcome` has been read */
    bool used;    /* CUDA was used, if known */
    bool removed; /* an earlier session was removed because the options say so */
};

/* Finds the path of the session, and what became of an earlier one, which must not pass for this run's. */
static char *find_earlier(const struct run *r, const char **earlier)
{
    struct stat st;
    char *path = kp_check_export_path(&r->o);
    bool there = path && !lstat(path, &st);
    *earlier = there        ? "; the existing file is not from this run"
               : r->removed ? "; --force-overwrite has removed the earlier file"
                            : "";
    return path;
}

/* Explains a missing report: the user of a program without CUDA would wait for one. */
static void say_why_nothing(const struct run *r)
{
    const char *why = kp_check_not_followed(r->program), *earlier;
    if (r->o.face == KP_FACE_NCU) {
        fputs(KP_NONE_PROFILED, stdout);
        return;
    }
    char *path = find_earlier(r, &earlier);
    if (*r->o.export_file)
        fprintf(stderr, "==KPROF== Nothing was written to %s%s. ", r->o.export_file, earlier);
    else
        fputs("==KPROF== No session was stored. ", stderr);
    free(path);
    if (why)
        fprintf(stderr, "%s cannot be profiled: %s.\n", r->program, why);
    else
        fputs("Unless a line above says why, the program did not use CUDA, or cannot be profiled (set-user-ID, "
              "statically linked).\n",
              stderr);
}

static void say_not_stored(const struct run *r)
{
    const char *earlier;
    char *path = find_earlier(r, &earlier);
    kp_console_error(0, "nothing was written to %s, a line above says why%s", path ? path : r->o.export_file, earlier);
    free(path);
}

static bool has_stored(const struct run *r)
{
    struct stat st;
    return r->outcome.stored && !stat(r->outcome.stored, &st);
}

/* Names the files with the launches of processes that were killed before they could print their report. */
static void say_where(const struct run *r)
{
    const struct kp_run_outcome *out = &r->outcome;
    int status = r->child.status;
    if (!out->unfinished || !*r->o.export_file || !has_stored(r) || r->o.quiet)
        return;
    if (WIFSIGNALED(status))
        fprintf(stderr, "==KPROF== Process %d was killed by signal %d (%s)", (int)r->child.pid, WTERMSIG(status),
                strsignal(WTERMSIG(status)));
    else
        fputs("==KPROF== A process ended without its report", stderr);
    fprintf(stderr, "; its measurements are in %s: kprof report", out->stored);
    for (size_t i = 0; i < out->n_stored; i++)
        fprintf(stderr, " %s", out->all_stored[i]);
    fputc('\n', stderr);
}

/* Returns the kinds of failure of the whole run. */
static kp_failure_set judge_run(const struct run *r)
{
    const struct kp_run_outcome *out = &r->outcome;
    kp_failure_set set = r->found | out->failures;
    if (out->unfinished)
        set |= kp_failure_bit(KP_FAILURE_INCOMPLETE);
    if (!r->used)
        set |= kp_failure_bit(kp_check_not_followed(r->program) ? KP_FAILURE_NOT_FOLLOWED : KP_FAILURE_NO_CUDA);
    else if (!set && out->started && !out->matched)
        set |= kp_failure_bit(out->seen || out->left ? KP_FAILURE_NO_MATCH : KP_FAILURE_NO_LAUNCH);
    return set;
}

static int exit_status(const struct child *c)
{
    if (c->ended && WIFSIGNALED(c->status))
        return EXIT_SUCCESS;
    if (WIFEXITED(c->status))
        return WEXITSTATUS(c->status);
    int sig = WTERMSIG(c->status);
    struct rlimit no_core = {0};
    struct sigaction plain = {.sa_handler = SIG_DFL};
    sigset_t only;
    setrlimit(RLIMIT_CORE, &no_core); /* the program has left a core file if wanted */
    sigaction(sig, &plain, NULL);
    sigemptyset(&only);
    sigaddset(&only, sig);
    raise(sig);
    sigprocmask(SIG_UNBLOCK, &only, NULL);
    return KP_EXIT_SIGNAL + sig;
}

/* Returns, with `strict`, the status of the first kind of failure, if the program itself succeeded. */
static int strict_status(const struct run *r)
{
    kp_failure_set set = judge_run(r);
    char *line = set ? kp_failure_line(set) : NULL;
    bool own = WIFSIGNALED(r->child.status) || WEXITSTATUS(r->child.status);
    int status = set ? kp_failure_rows[kp_failure_first(set)].status : 0;
    if (set && own)
        kp_console_error(0, "strict: %s; the exit status is that of the program, which failed", line ? line : "");
    else if (set)
        kp_console_error(0, "strict: %s; the exit status is %d", line ? line : "", status);
    free(line);
    return set && !own ? status : -1;
}

/* Adds the exports to the HTML files. One that another process has replaced since is added once. */
static void add_exports(const struct kp_run_outcome *out, struct settling *t)
{
    for (size_t i = 0; *t->o->html_file && i < out->n_stored; i++) {
        struct kp_store *store = NULL;
        char *err = NULL;
        bool again = false;
        for (size_t k = 0; k < i; k++)
            again |= !strcmp(out->all_stored[k], out->all_stored[i]);
        if (!again && !kp_store_open(out->all_stored[i], &store, &err))
            add_html(t, store);
        kp_store_close(store);
        free(err);
    }
}

/* Prints and removes sessions that are left, and writes the HTML files. */
static void settle_sessions(struct run *r)
{
    struct settling t = {&r->o, &r->child, &r->html, 0};
    if (r->folder)
        settle_folder(r->folder, &t);
    add_exports(&r->outcome, &t);
    int status = kp_file_save_all_html(&r->html, r->o.force_overwrite);
    if (status || t.failed)
        r->found |= kp_failure_bit(KP_FAILURE_REPORT);
}

/* Prints, like ncu, that the program failed. */
static void tell_exit_code(const struct run *r)
{
    int status = r->child.status;
    if (r->o.check_exit_code && WIFEXITED(status) && WEXITSTATUS(status))
        fprintf(r->o.face == KP_FACE_NCU ? stdout : stderr, "==ERROR== The application returned an error code (%d).\n",
                WEXITSTATUS(status));
}

/* Reports what became of the session. Returns an exit status, or -1 for the program's. */
static int settle(struct run *r)
{
    signal(SIGPIPE, SIG_IGN); /* a closed pipe must not hide how the program ended */
    bool known = r->status_file && (r->known || !kp_run_outcome_read(r->status_file, &r->outcome));
    r->used = !known || r->outcome.started || (!r->known && was_used(r->folder)); /* a series uses it anyhow */
    if (r->status_file)
        unlink(r->status_file);
    settle_sessions(r);
    if (!r->used && !r->o.quiet)
        say_why_nothing(r);
    if (known && r->used && *r->o.export_file && !has_stored(r) && !(r->outcome.left && !r->outcome.seen)) {
        say_not_stored(r);
        r->found |= judge_run(r) ? 0 : kp_failure_bit(KP_FAILURE_EXPORT);
    }
    if (known)
        say_where(r);
    tell_exit_code(r);
    return known && r->o.strict ? strict_status(r) : -1;
}

/* Sends the report to stdout if that is a pipe (say, to a pager) or the report is data, and no output is named. Of
 * text, a file or a terminal gets nothing on stdout but what the program prints. Programs below this one may have
 * another stdout: the file is named. */
static int choose_pipe(struct kp_options *o)
{
    char inode[32], *given = kp_options_value(environ, KP_OPTION_PREFIX "LOG_FILE");
    struct stat s;
    bool data = o->csv || o->json, own = !given && o->face != KP_FACE_NCU && !o->report_pipe; /* ncu's is stdout */
    bool piped = own && !fstat(STDOUT_FILENO, &s) && (data || S_ISFIFO(s.st_mode));
    free(given);
    if (!piped)
        return 0;
    o->report_pipe = s.st_ino;
    snprintf(inode, sizeof inode, "%" PRIu64, o->report_pipe);
    return setenv(KP_OPTION_PREFIX "REPORT_PIPE", inode, 1) ? kp_console_error(KP_EXIT_FAILED, "%s", strerror(ENOMEM))
                                                            : 0;
}

static int prepare_folder(struct run *r)
{
    r->folder = make_folder(&r->status_file);
    if (!r->folder && r->o.strict)
        return kp_console_error(KP_EXIT_FAILED, "cannot create a folder in TMPDIR or /tmp: %s", strerror(errno));
    if (r->folder && !*r->o.export_file && !*r->o.session_file && set_session_file(r->folder))
        return kp_console_error(KP_EXIT_FAILED, "%s", strerror(ENOMEM));
    if (r->status_file && setenv("KPROF_STATUS_FILE", r->status_file, 1))
        return kp_console_error(KP_EXIT_FAILED, "%s", strerror(ENOMEM));
    return 0;
}

/* Removes a session that will be replaced before the program starts: if the program makes none, the old one must not
 * pass for it. */
static void remove_old(struct run *r)
{
    struct stat st;
    char *path = r->o.force_overwrite && r->program ? kp_check_export_path(&r->o) : NULL;
    if (path && !stat(path, &st) && S_ISREG(st.st_mode))
        r->removed = !unlink(path);
    free(path);
}

/* ---- application replay ---- */

/* A run of a series. */
struct again {
    struct run *r;
    char **argv;
    const char *const *commands;
    struct child child;
};

static int run_again(void *arg, int *status, int *signal_got)
{
    struct again *a = arg;
    a->child.signal = 0;
    int rc = run_program(a->argv, a->commands, &a->child);
    *status = a->child.status;
    *signal_got = a->child.signal;
    return rc;
}

/* Prints what the runs of a process give together. */
static void print_joined(void *arg, struct kp_store *store, const struct kp_session *s, const char *kept)
{
    struct run *r = arg;
    const struct kp_options *o = &r->o;
    struct kp_display d = kp_display_of(o);
    char *err = NULL;
    FILE *log = open_log(o, s);
    if (*o->html_file && kp_file_add_html(&r->html, store, o, o->html_file))
        r->found |= kp_failure_bit(KP_FAILURE_REPORT);
    kp_display_fit(&d, o, fileno(log));
    d.file = kept;
    struct kp_sink out = kp_stream_sink(log);
    int rc = 0;
    if (o->unprinted)
        fprintf(log, "==PROF== Report: %s\n", kept ? kept : o->export_file);
    else
        rc = kp_page_print_store(&out, &d, store, &err);
    if (rc && rc != -EPIPE)
        kp_console_error(0, "%s", err ? err : "the report could not be written");
    fflush(log);
    free(err);
    if (log != stderr && log != stdout)
        fclose(log);
}

/* Runs the program once for each pass. The first run's end is that of the command. */
static int run_series(struct run *r, char **argv, const char *const *commands)
{
    struct again again = {r, argv, commands, r->child};
    const struct kp_application a = {&r->o, r->folder, r->status_file, run_again, &again, print_joined, r};
    if (!r->folder || !r->status_file)
        return kp_console_error(KP_EXIT_FAILED,
                                "application replay cannot create the folder that it needs in TMPDIR or /tmp");
    int status = kp_application_run(&a, &r->outcome, &r->child.status);
    r->child.pid = again.child.pid;
    r->known = true;
    return status;
}

static int run(struct run *r, char **argv, const char *const *commands)
{
    int status = kp_check_run(&r->o, &r->found);
    r->program = kp_check_find_program(argv[0]);
    if (!status && !kp_check_is_for_musl(r->program))
        status = set_preload(r->o.preload_library);
    if (!status)
        status = let_sanitiser_start();
    if (!status)
        status = prepare_folder(r);
    if (!status)
        status = choose_pipe(&r->o);
    if (status)
        return status;
    kp_idle_tell(&r->o);
    kp_idle_tell_overwrite(&r->o, *r->o.export_file || *r->o.html_file || *r->o.session_file, "--export or --html");
    if (r->o.clock_control != KP_CLOCKS_LEFT)
        kp_console_warn("clock-control: clocks are left as they are; the report has the frequencies that were seen");
    r->child.reached = r->o.kill && r->o.launch_count ? r->status_file : NULL;
    r->child.no_input = r->o.null_stdin;
    r->child.binary = r->program && kp_check_is_binary(r->program) ? r->program : NULL;
    remove_old(r);
    status = kp_options_by_runs(&r->o) ? run_series(r, argv, commands) : run_program(argv, commands, &r->child);
    return status ? status : settle(r);
}

int kp_main_run(char **argv, const char *const *commands)
{
    struct run r = {.folder = NULL};
    char *err = NULL;
    int rc = kp_options_from_env(&r.o, environ, &err);
    if (rc) {
        kp_console_error(0, "%s", err ? err : strerror(-rc));
        free(err);
        return rc == -EINVAL ? KP_EXIT_USAGE : KP_EXIT_FAILED;
    }
    int status = run(&r, argv, commands);
    if (r.status_file)
        unlink(r.status_file);
    if (r.folder && (!rmdir(r.folder) || errno == ENOTEMPTY)) /* a process that outlives the program uses it */
        kp_temporary_keep(r.folder);
    kp_run_outcome_free(&r.outcome);
    free(r.program);
    free(r.status_file);
    free(r.folder);
    kp_options_free(&r.o);
    return status < 0 ? exit_status(&r.child) : status;
}
