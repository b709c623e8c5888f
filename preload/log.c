#include "preload/log.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Programs get the lowest free numbers; a copy up here leaves theirs as they would have been. */
enum { HIGH_DESCRIPTOR = 700 };

static const char progress_mark[] = "==KPROF==";

static atomic_int log_fd = STDERR_FILENO, error_fd = STDERR_FILENO;
static bool log_quiet, log_apart;

/* A write may raise SIGPIPE or SIGXFSZ, which would end the program for a line that is not its own. */
struct kp_quiet kp_quiet_begin(void)
{
    struct kp_quiet q;
    sigset_t pending;
    sigemptyset(&q.raised);
    sigaddset(&q.raised, SIGPIPE);
    sigaddset(&q.raised, SIGXFSZ);
    sigpending(&pending);
    q.had_pipe = sigismember(&pending, SIGPIPE) == 1;
    q.had_size = sigismember(&pending, SIGXFSZ) == 1;
    sigprocmask(SIG_BLOCK, &q.raised, &q.before); /* of this thread, on Linux */
    return q;
}

void kp_quiet_end(struct kp_quiet *q)
{
    static const struct timespec at_once = {0};
    if (q->had_pipe)
        sigdelset(&q->raised, SIGPIPE);
    if (q->had_size)
        sigdelset(&q->raised, SIGXFSZ);
    while (sigtimedwait(&q->raised, NULL, &at_once) > 0)
        ; /* ours: taken away before it can be delivered */
    sigprocmask(SIG_SETMASK, &q->before, NULL);
}

static int write_to(int fd, const char *text, size_t len)
{
    int rc = 0;
    struct kp_quiet q = kp_quiet_begin();
    while (len && !rc) {
        ssize_t n = write(fd, text, len);
        if (n < 0 && errno != EINTR)
            rc = -errno;
        if (n > 0) {
            text += n;
            len -= (size_t)n;
        }
    }
    kp_quiet_end(&q);
    return rc;
}

/* A log file that cannot be written to is given up for stderr, once, with a word. */
static int write_all(const char *text, size_t len)
{
    char line[128];
    if (log_fd < 0)
        return 0; /* stderr is not the program's own any more: nothing is written into what took its place */
    int rc = write_to(log_fd, text, len);
    if (!rc || log_fd == error_fd || error_fd < 0)
        return rc;
    log_fd = error_fd;
    int n =
        snprintf(line, sizeof(line), "==ERROR== cannot write the log file: %s; the rest follows here\n", strerror(-rc));
    write_to(log_fd, line, (size_t)n);
    return write_to(log_fd, text, len);
}

/* A line of our own, as against the report. */
static int write_line(const char *text, size_t len)
{
    if (!log_apart)
        return write_all(text, len);
    return error_fd < 0 ? 0 : write_to(error_fd, text, len);
}

static int sink_write(void *arg, const char *text, size_t len)
{
    (void)arg;
    return write_all(text, len);
}

const struct kp_sink *kp_log_sink(void)
{
    static const struct kp_sink sink = {.write = sink_write};
    return &sink;
}

int kp_log_high_copy(int fd)
{
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, HIGH_DESCRIPTOR);
    return copy >= 0 ? copy : fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
}

/* What descriptor 2 was when the program started. */
static struct {
    bool known;
    dev_t device;
    ino_t file;
} first_stderr;

void kp_log_remember_stderr(void)
{
    struct stat s;
    first_stderr.known = fstat(STDERR_FILENO, &s) == 0;
    if (first_stderr.known) {
        first_stderr.device = s.st_dev;
        first_stderr.file = s.st_ino;
    }
}

void kp_log_open(void)
{
    struct stat s;
    bool same = first_stderr.known && fstat(STDERR_FILENO, &s) == 0 && s.st_dev == first_stderr.device &&
                s.st_ino == first_stderr.file;
    int copy = same ? kp_log_high_copy(STDERR_FILENO) : -1;
    log_fd = error_fd = copy >= 0 ? copy : same ? STDERR_FILENO : -1;
}

int kp_log_own_output(const struct stat *s)
{
    struct stat own;
    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++)
        if (!fstat(fd, &own) && own.st_dev == s->st_dev && own.st_ino == s->st_ino &&
            (fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDONLY)
            return fd;
    return -1;
}

int kp_log_to(const char *path)
{
    struct stat s;
    int fd = -1, own = stat(path, &s) ? -1 : kp_log_own_output(&s);
    if (!strcmp(path, "stderr"))
        return 0;
    if (!strcmp(path, "stdout")) {
        fd = kp_log_high_copy(STDOUT_FILENO);
    } else if (own >= 0) { /* opened again, it would be emptied */
        fd = kp_log_high_copy(own);
    } else {
        int low = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666);
        if (low >= 0) {
            fd = kp_log_high_copy(low);
            close(low);
        }
    }
    if (fd < 0)
        return -errno;
    log_fd = fd;
    return 0;
}

void kp_log_quiet(bool quiet)
{
    log_quiet = quiet;
}

void kp_log_apart(void)
{
    log_apart = true;
}

static void line(const char *mark, const char *format, va_list ap)
{
    int saved = errno; /* the program's, whose call we are in */
    char *text = NULL, *whole = NULL;
    if (vasprintf(&text, format, ap) >= 0) {
        int n = asprintf(&whole, "%s %s\n", mark, text);
        if (n > 0)
            write_line(whole, (size_t)n);
        free(whole);
        free(text);
    }
    errno = saved;
}

#define LINE(mark)                                                                                                     \
    do {                                                                                                               \
        va_list ap;                                                                                                    \
        va_start(ap, format);                                                                                          \
        line(mark, format, ap);                                                                                        \
        va_end(ap);                                                                                                    \
    } while (0)

void kp_log_progress(const char *format, ...)
{
    if (!log_quiet)
        LINE(progress_mark);
}

void kp_log_lines_add(struct kp_log_lines *l, const char *format, ...)
{
    va_list ap;
    if (log_quiet || (!l->to && !(l->to = open_memstream(&l->text, &l->len))))
        return;
    va_start(ap, format);
    fprintf(l->to, "%s ", progress_mark);
    vfprintf(l->to, format, ap);
    fputc('\n', l->to);
    va_end(ap);
}

void kp_log_lines_write(struct kp_log_lines *l)
{
    if (l->to && !fclose(l->to))
        write_line(l->text, l->len);
    free(l->text);
    *l = (struct kp_log_lines){.to = NULL};
}

void kp_log_warning(const char *format, ...)
{
    LINE("==WARNING==");
}

void kp_log_error(const char *format, ...)
{
    LINE("==ERROR==");
}
