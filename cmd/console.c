#include "cmd/console.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/terminal.h"
#include "base/text.h"
#include "base/wrap.h"

/* Prints a mark and at most `most` bytes of a text as a line to stderr; on a terminal it is broken to fit, aligned with
 * the start of the text. */
static void say_line(const char *mark, const char *text, size_t most)
{
    size_t width = kp_terminal_width(STDERR_FILENO), indent = strlen(mark), len;
    char *line = strndup(text, most);
    const char *part;
    struct kp_wrap w = {line ? line : text, width > 2 * indent ? width - indent : SIZE_MAX};
    for (; kp_wrap_next(&w, &part, &len); mark = "")
        fprintf(stderr, "%-*s%.*s\n", (int)indent, mark, (int)len, part);
    free(line);
}

int kp_console_error(int status, const char *format, ...)
{
    va_list args;
    char *text = NULL;
    va_start(args, format);
    int len = vasprintf(&text, format, args);
    va_end(args);
    if (len >= 0)
        kp_blank_controls(text, (size_t)len);
    say_line("==ERROR== ", len >= 0 ? text : strerror(ENOMEM), SIZE_MAX);
    if (len >= 0)
        free(text);
    return status;
}

void kp_console_warn(const char *text)
{
    const char *end;
    for (; *text; text = end + (*end == '\n')) {
        end = text + strcspn(text, "\n");
        say_line("==WARNING== ", text, (size_t)(end - text));
    }
}

void kp_console_note(const char *text)
{
    say_line("==KPROF== ", text, SIZE_MAX);
}

int kp_console_end(int rc, const char *err)
{
    /* A write may have failed before, with nothing left to flush now; errno is still that write's. */
    if (fflush(stdout) || ferror(stdout))
        return kp_console_error(KP_EXIT_FAILED, "cannot write the output: %s", strerror(errno ? errno : EIO));
    return rc ? kp_console_error(KP_EXIT_FAILED, "%s", err ? err : strerror(-rc)) : EXIT_SUCCESS;
}
