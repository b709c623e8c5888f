#include "preload/os/log.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/debug.h"
#include "base/descriptor.h"
#include "base/terminal.h"
#include "base/text.h"
#include "base/wait_limits.h"
#include "base/width.h"
#include "base/wrap.h"
#include "preload/os/outcome.h"
#include "preload/os/quiet.h"
#include "preload/os/stdout_mute.h"
#include "report/options/options.h"

static const char own_mark[] = "==KPROF==", mark_of_ncu[] = "==PROF==";

/* A destination of lines. A program may close descriptors that it does not know, and its own files may get their
 * numbers. So each line first checks that the descriptor is still the same file. */
struct place {
    atomic_int fd; /* negative: none */
    struct kp_descriptor_file file;
    char *path; /* of a log file; NULL = one of the program's streams */
};

static struct place error = {.fd = STDERR_FILENO}, log_file = {.fd = -1};
static _Atomic(struct place *) log_to = &error;
static bool log_quiet, log_apart, log_piped, log_as_ncu;
static atomic_int writing;

enum { COLUMNS_LEAST = 40 };
static size_t columns; /* width of the terminal that stderr is; 0 = it is none */

/* Waits for room in a pipe or terminal that does not block, as a server may have set a stderr that it shares. Returns
 * false at once if nobody has read since a wait timed out: the program does not wait for each line. */
static bool has_room(int fd)
{
    static atomic_bool is_stuck;
    long timeout = atomic_load(&is_stuck) ? kp_limit_next(KP_WAIT_LOG) : kp_limit_first(KP_WAIT_LOG);
    bool has = poll(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, (int)timeout) > 0;
    atomic_store(&is_stuck, !has);
    return has;
}

static int write_to(int fd, const char *text, size_t len)
{
    int rc = 0;
    struct kp_quiet q = kp_quiet_begin();
    writing++;
    while (len && !rc) {
        /* A program may have a function of its own that is called write. */
        long n = syscall(SYS_write, fd, text, len);
        if (n < 0 && errno == EAGAIN && has_room(fd))
            continue;
        if (n < 0 && errno != EINTR)
            rc = -errno;
        if (n > 0) {
            text += n;
            len -= (size_t)n;
        }
    }
    writing--;
    kp_quiet_end(&q);
    return rc;
}

/* Finds a descriptor of the place's file again: one that the program left open, or a new one; -1 = none. */
static int find_again(const struct place *p)
{
    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++)
        if (kp_descriptor_is(fd, &p->file))
            return kp_descriptor_copy(fd);
    return p->path ? kp_descriptor_open_again(p->path, O_WRONLY | O_APPEND | O_NOCTTY | O_NONBLOCK, &p->file) : -1;
}

/* Returns the place's descriptor. Negative: it is gone, and another file that has its number stays untouched. */
static int descriptor_of(struct place *p)
{
    int fd = p->fd;
    if (fd < 0 || !p->file.known || kp_descriptor_is(fd, &p->file))
        return fd;
    fd = find_again(p);
    atomic_store(&p->fd, fd);
    return fd;
}

static int write_at(struct place *p, const char *text, size_t len)
{
    int fd = descriptor_of(p);
    return fd < 0 ? -EBADF : write_to(fd, text, len);
}

/* Writes text; if the log file cannot be written, switches to stderr, once, with a warning. */
static int write_all(const char *text, size_t len)
{
    char line[128];
    int rc = write_at(log_to, text, len);
    if (rc == -EPIPE && log_piped)
        return 0; /* the reader has seen enough */
    if (!rc || log_to == &error || descriptor_of(&error) < 0)
        return error.fd < 0 && log_to == &error ? 0 : rc;
    log_to = &error;
    kp_outcome_failed(KP_FAILURE_LOG);
    int n =
        snprintf(line, sizeof(line), "==ERROR== cannot write the log file: %s; the rest follows here\n", strerror(-rc));
    write_at(&error, line, (size_t)n);
    return write_at(&error, text, len);
}

static int write_text(const char *text, size_t len, bool apart)
{
    return apart ? write_at(&error, text, len) : write_all(text, len);
}

/* Writes a line that is wider than the terminal; its later parts are aligned with the start of the text. */
static void write_broken(const char *line, bool apart)
{
    static const char blanks[] = "            ";
    size_t mark = strcspn(line, " ") + 1, indent = 0, len;
    struct kp_wrap w = {line, columns - sizeof blanks};
    mark = mark < sizeof blanks ? mark : sizeof blanks - 1;
    for (const char *part; kp_wrap_next(&w, &part, &len); indent = mark) {
        write_text(blanks, indent, apart);
        write_text(part, len, apart);
        write_text("\n", 1, apart);
    }
}

/* Writes lines of our own, which are not part of the report. `apart`: to stderr, wherever the report goes. */
static void write_lines(char *text, size_t len, bool apart)
{
    bool fits = columns < COLUMNS_LEAST || (!apart && log_to != &error);
    if (fits)
        write_text(text, len, apart);
    for (char *end; !fits && len && (end = memchr(text, '\n', len)); len -= (size_t)(end + 1 - text), text = end + 1) {
        *end = '\0';
        if (kp_width(text) > columns) {
            write_broken(text, apart);
        } else {
            *end = '\n';
            write_text(text, (size_t)(end + 1 - text), apart);
        }
    }
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

/* The file of descriptor 2 when the program started. */
static struct kp_descriptor_file first_stderr;

void kp_log_remember_stderr(void)
{
    first_stderr = kp_descriptor_file(STDERR_FILENO);
}

static void write_debug(const char *line, size_t len)
{
    write_at(&error, line, len);
}

void kp_log_open(void)
{
    bool same = kp_descriptor_is(STDERR_FILENO, &first_stderr);
    int copy = same ? kp_descriptor_copy(STDERR_FILENO) : -1;
    error.file = first_stderr;
    error.fd = copy >= 0 ? copy : same ? STDERR_FILENO : -1;
    columns = same && isatty(STDERR_FILENO) ? kp_terminal_width(STDERR_FILENO) : 0;
    kp_debug_to(write_debug);
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
    enum kp_log_target target = kp_options_log_target(path);
    struct stat s;
    if (target == KP_LOG_TO_STDERR)
        return 0;
    bool is_stream = target == KP_LOG_TO_STDOUT;
    int fd, own = is_stream ? STDOUT_FILENO : stat(path, &s) ? -1 : kp_log_own_output(&s);
    if (own >= 0) /* opening the file again would empty it */
        fd = kp_descriptor_copy(own);
    else
        fd = kp_descriptor_raise(open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600));
    if (fd < 0)
        return -errno;
    log_file.path = is_stream ? NULL : strdup(path);
    log_file.file = kp_descriptor_file(fd);
    log_file.fd = fd;
    log_to = &log_file;
    log_piped = is_stream && !fstat(fd, &s) && S_ISFIFO(s.st_mode);
    return 0;
}

bool kp_log_report_to_pipe(uint64_t inode)
{
    struct stat s;
    if (!inode || fstat(STDOUT_FILENO, &s) || s.st_ino != inode || kp_log_to("stdout"))
        return false;
    log_apart = true;
    return true;
}

void kp_log_behind_stdout(void)
{
    if (log_to == &log_file && !log_file.path)
        kp_stdout_flush();
}

int kp_log_descriptor(void)
{
    return descriptor_of(log_to);
}

void kp_log_quiet(bool quiet)
{
    log_quiet = quiet;
}

void kp_log_as_ncu(bool as_ncu)
{
    log_as_ncu = as_ncu;
}

bool kp_log_is_writing(void)
{
    return writing > 0;
}

void kp_log_apart(void)
{
    log_apart = true;
}

/* Prints a line, without allocating unless it is long: it may report that memory is short. */
static void line(const char *mark, const char *format, va_list ap)
{
    int saved = errno; /* errno of the program, whose call this is */
    char few[512], *text = few;
    size_t size = sizeof(few);
    va_list again;
    va_copy(again, ap);
    int begin = snprintf(few, size, "%s ", mark);
    int len = begin + vsnprintf(few + begin, size - begin, format, ap);
    if (len >= begin && (size_t)len + 2 > size && (text = malloc((size_t)len + 2))) {
        size = (size_t)len + 2;
        snprintf(text, size, "%s ", mark);
        vsnprintf(text + begin, size - begin, format, again);
    }
    va_end(again);
    if (!text) {
        text = few;
        len = (int)size - 2; /* cuts it to the room available */
    }
    if (len >= begin) {
        kp_blank_controls(text + begin, (size_t)(len - begin)); /* names in it may contain anything */
        text[len] = '\n';
        write_lines(text, (size_t)len + 1, log_apart);
    }
    if (text != few)
        free(text);
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
    if (!log_quiet && !log_as_ncu)
        LINE(own_mark);
}

void kp_log_profiler(const char *format, ...)
{
    if (!log_quiet)
        LINE(log_as_ncu ? mark_of_ncu : own_mark);
}

void kp_log_still(const char *text)
{
    char whole[256];
    int n = snprintf(whole, sizeof(whole), "%s %s\n", own_mark, text);
    bool to_stdout = log_to == &log_file && !log_file.path;
    if (log_quiet || log_as_ncu || n <= 0 || (size_t)n >= sizeof(whole))
        return;
    write_lines(whole, (size_t)n, to_stdout || log_apart);
}

void kp_log_lines_add(struct kp_log_lines *l, const char *format, ...)
{
    va_list ap;
    char *text = NULL;
    if (log_quiet || (!l->to && !(l->to = open_memstream(&l->text, &l->len))))
        return;
    va_start(ap, format);
    int len = vasprintf(&text, format, ap);
    va_end(ap);
    if (len < 0)
        return;
    kp_blank_controls(text, (size_t)len);
    fprintf(l->to, "%s %s\n", log_as_ncu ? mark_of_ncu : own_mark, text);
    free(text);
}

void kp_log_lines_write(struct kp_log_lines *l)
{
    if (l->to && !kp_text_end(l->to, &l->text))
        write_lines(l->text, l->len, log_apart);
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

void kp_log_outcome(uint64_t seen, uint64_t matched)
{
    char *strict = kp_outcome_ended(seen, matched);
    if (strict)
        kp_log_error("%s", strict);
    free(strict);
}
