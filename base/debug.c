#include "base/debug.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include <sys/syscall.h>

enum { LINE_MAX_BYTES = 512 };

static const char *const names[] = {
#define KP_DEBUG_DOMAIN(id, name, what) [KP_DEBUG_##id] = name,
#include "base/debug.def"
#undef KP_DEBUG_DOMAIN
};

atomic_uint kp_debug_shown;

static void to_stderr(const char *line, size_t len)
{
    ssize_t written = write(STDERR_FILENO, line, len);
    (void)written; /* a failed debug line is not retried */
}

static void (*write_line)(const char *line, size_t len) = to_stderr;

void kp_debug_to(void (*write)(const char *line, size_t len))
{
    write_line = write ? write : to_stderr;
}

void kp_debug_show(unsigned domains)
{
    atomic_store(&kp_debug_shown, domains);
}

void kp_debug_line(enum kp_debug_domain domain, const char *format, ...)
{
    char line[LINE_MAX_BYTES];
    va_list args;
    int head = snprintf(line, sizeof line, "==KPROF== debug %s [%ld]: ", names[domain], (long)syscall(SYS_gettid));
    va_start(args, format);
    int text = vsnprintf(line + head, sizeof line - (size_t)head - 1, format, args);
    va_end(args);
    size_t len = (size_t)head + (text > 0 ? (size_t)text : 0);
    len = len < sizeof line - 2 ? len : sizeof line - 2; /* cuts longer text */
    for (size_t i = (size_t)head; i < len; i++)
        if ((unsigned char)line[i] < ' ' || line[i] == 127)
            line[i] = ' '; /* a kernel's name must not forge a line */
    line[len++] = '\n';
    write_line(line, len);
}
