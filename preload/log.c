#include "preload/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Programs get the lowest free numbers; a copy up here leaves theirs as they would have been. */
enum { HIGH_DESCRIPTOR = 700 };

static int log_fd = STDERR_FILENO;
static bool log_quiet;

static int write_all(const char *text, size_t len)
{
    while (len) {
        ssize_t n = write(log_fd, text, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        text += n;
        len -= (size_t)n;
    }
    return 0;
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

static int high_copy(int fd)
{
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, HIGH_DESCRIPTOR);
    return copy >= 0 ? copy : fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
}

void kp_log_open(void)
{
    int copy = high_copy(STDERR_FILENO);
    if (copy >= 0)
        log_fd = copy;
}

int kp_log_to(const char *path)
{
    int fd = -1;
    if (!strcmp(path, "stderr"))
        return 0;
    if (!strcmp(path, "stdout")) {
        fd = high_copy(STDOUT_FILENO);
    } else {
        int low = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666);
        if (low >= 0) {
            fd = high_copy(low);
            close(low);
        }
    }
    if (fd < 0)
        return -errno;
    if (log_fd != STDERR_FILENO)
        close(log_fd);
    log_fd = fd;
    return 0;
}

void kp_log_quiet(bool quiet)
{
    log_quiet = quiet;
}

static void line(const char *mark, const char *format, va_list ap)
{
    int saved = errno; /* the program's, whose call we are in */
    char *text = NULL, *whole = NULL;
    if (vasprintf(&text, format, ap) >= 0) {
        int n = asprintf(&whole, "%s %s\n", mark, text);
        if (n > 0)
            write_all(whole, (size_t)n);
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
        LINE("==KPROF==");
}

void kp_log_info(const char *format, ...)
{
    LINE("==KPROF==");
}

void kp_log_warning(const char *format, ...)
{
    LINE("==WARNING==");
}

void kp_log_error(const char *format, ...)
{
    LINE("==ERROR==");
}
